"""What to expect of a model whose seeds are too few for confidences: what they say of each other."""

from __future__ import annotations

from bilex.aligners.base import Aligner
from bilex.aligners.small import small_vocabularies
from bilex.core.progress import Progress
from bilex.fit.expectation import Expectation, from_few_seeds
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

_FEWEST_TO_PREDICT = 3
_VOCABULARY = 5_000


def expectation_of(
    otherwise: Expectation,
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    progress: Progress,
) -> Expectation:
    """How well the seeds predict each other, on frequent words.

    Args:
        otherwise: What to return where even that cannot be measured.
        aligner: The aligner.
        source: Source vectors.
        target: Target vectors.
        lexicon: The seed pairs, or None.
        progress: Receives how far the work is.
    """
    if lexicon is None:
        return otherwise
    usable = lexicon.covered(source.key_to_index, target.key_to_index)
    if len(usable.translations()) < _FEWEST_TO_PREDICT:
        return otherwise
    pinned = aligner.pinned(len(usable), min(len(source), len(target)))

    def without(learned: Lexicon, held_out: Lexicon) -> Space:
        both = Lexicon([*learned.pairs, *held_out.pairs])
        fitted = pinned.clone().fit(*small_vocabularies(source, target, both, _VOCABULARY), learned)
        return Space.from_aligner(fitted, source, target)

    return from_few_seeds(without, usable, aligner.seed, progress)
