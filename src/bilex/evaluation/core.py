"""Scoring a space against a test dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.evaluation.phrases import with_phrase_metrics
from bilex.evaluation.result import Evaluation
from bilex.evaluation.scoring import METHODS, Scoring
from bilex.lexicon import Lexicon
from bilex.model.composed import Composer, missing_phrases, space_composer, with_phrases
from bilex.model.space import CSLS_NEIGHBOURS, Space


def evaluate(
    space: Space,
    lexicon: Lexicon,
    *,
    train: Lexicon | None = None,
    neighbours: int = CSLS_NEIGHBOURS,
    precision_at: Sequence[int] = (1, 5, 10),
    bootstrap: int = 1000,
    seed: int = 0,
    compose: Composer | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Translate the words of a test dictionary both ways, and count how often a gold comes out.

    The standard figures are the paper's: over the distinct source words with at least one pair that
    has both words in the vectors, an answer being right if it is any of the word's golds. The other
    conventions stand beside them in the result.

    Args:
        space: Two vocabularies in one space.
        lexicon: The test dictionary. It is never learned from.
        train: The seed dictionary; if given, the score without leaked words is reported too.
        neighbours: The k of CSLS.
        precision_at: The n of each precision.
        bootstrap: Resamplings for the 95 % intervals; 0 for none.
        seed: Fixes the resampling.
        compose: Gives vectors to phrases that the vocabularies lack, as `Translator.phrase_vectors` does;
            None to compose them of their words in the space.
        progress: Receives how far the work is.

    Raises:
        BilexError: No pair of the dictionary has both words in the vectors, or a setting is senseless.

    Examples:
        >>> evaluate(space, Lexicon.load("test.tsv")).forward.metrics["csls"]["p@1"]  # doctest: +SKIP
        0.409
    """
    if not precision_at or min(precision_at) < 1 or bootstrap < 0:
        raise BilexError("precision_at needs whole numbers from 1 on, and bootstrap 0 or more resamplings.")
    lexicon = lexicon.as_units(space.source.key_to_index, space.target.key_to_index)
    coverage = lexicon.coverage(space.source.key_to_index, space.target.key_to_index)
    phrases = missing_phrases(lexicon, space)
    wider = space
    if any(phrases.values()):
        wider, _ = with_phrases(space, phrases, compose or space_composer(space), neighbours)
    if not len(lexicon.index(wider.source.key_to_index, wider.target.key_to_index)):
        raise BilexError(
            f"{lexicon.name}: {coverage.sentence()}, so there is nothing to evaluate; check that it is a "
            f"dictionary of these two languages, source word first.{coverage.advice()}"
        )
    settings = {"csls_neighbours": neighbours, "bootstrap": bootstrap, "seed": seed}
    scoring = Scoring(space, neighbours, tuple(precision_at), bootstrap, seed)
    with progress.task("evaluate", total=2 * (len(METHODS) + 1)) as task:
        forward = scoring.direction("forward", lexicon, train, task)
        swapped_train = train.swapped() if train is not None else None
        backward = scoring.direction("backward", lexicon.swapped(), swapped_train, task)
    if wider is not space:
        beyond = replace(scoring, space=wider)
        forward = with_phrase_metrics(forward, beyond, "forward", lexicon, train, space)
        backward = with_phrase_metrics(backward, beyond, "backward", lexicon.swapped(), swapped_train, space)
    return Evaluation(forward, backward, lexicon.name, settings)
