"""What can be known about a model without a test dictionary.

Four things, each measured on the model alone: seeds that a second fit had not seen; how many first answers
answer back; how well a part of the seeds predicts the rest; and the accuracy that the confidences promise.
The accuracy on a test dictionary lies between that on held-out seeds, which are easier than its words, and
that expected for all frequent words, among which are names and inflected forms that dictionaries leave out.
docs/guide/evaluate.md says how well each predicts the accuracy on a test dictionary.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bilex.aligners.procrustes import common_rotations
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.fit.calibration import DIRECTIONS, ask
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.card import share_interval
from bilex.model.refine import inverse_map, taken_back
from bilex.model.space import Direction, Floats, Rows, Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from rich.console import RenderableType

FREQUENT = 10_000
# How far the expected accuracy was from that on test dictionaries, beyond what the number of words explains
# (docs/guide/evaluate.md): other words are easier or harder than those that were asked.
TYPICAL_ERROR = 0.075
# The same for the accuracy on a dictionary, and how much held-out seeds count in it; both were chosen on one
# family of vectors and confirmed on another.
TYPICAL_DICTIONARY_ERROR = 0.09
HELD_OUT_WEIGHT = 0.7
_MOST_ASKED = 2_000
_MOST_PREDICTED = 1_000
_VOCABULARY = 10_000
_FOLDS = 5
_FEWEST_PAIRS = 50
_Z = 1.96


@dataclass(frozen=True)
class Share:
    """A share of some words, with its 95 % interval."""

    share: float
    low: float
    high: float
    words: int


@dataclass(frozen=True)
class Judgement:
    """What is known about one direction of a model.

    Attributes:
        held_out: P@1 on seed words that a second fit had not seen; None where none were held out.
        mutual: The share of frequent words whose first answer has them as its own first answer.
        predicted: The share of seed words, at most 1,000, that are translated rightly when the two languages
            are rotated onto each other anew by the other seeds, in five parts, from their vectors before the
            model's maps; None for too few seeds, or maps that cannot be undone.
        expected: The mean confidence of the first answers to words that are no seeds; None where there are no
            confidences. Its interval counts the words asked, the held-out words that the confidences were
            learned on, and `TYPICAL_ERROR`.
        on_dictionary: The accuracy to expect on a test dictionary: between `held_out`, which counts 0.7, and
            what is expected for frequent words that are no seeds; None where one of them is missing.
    """

    held_out: Share | None
    mutual: Share
    predicted: Share | None
    expected: Share | None
    on_dictionary: Share | None


@dataclass(frozen=True)
class WithoutGold:
    """What is known about a model, by direction."""

    forward: Judgement
    backward: Judgement
    note: str

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, fractions between 0 and 1."""
        return asdict(self)

    def table(self, languages: tuple[str, str] = ("source", "target")) -> RenderableType:
        """A table for a rich console.

        Args:
            languages: The names of the two languages.
        """
        from rich.table import Table

        one, other = languages
        table = Table(title="Without a test dictionary", title_justify="left")
        table.add_column("measured on the model alone")
        for heading in (f"{one} to {other}", f"{other} to {one}"):
            table.add_column(heading, justify="right")
        rows = {
            "expected P@1 on a test dictionary": "on_dictionary",
            "expected P@1 of the words, from the confidences": "expected",
            "P@1 on held-out seeds": "held_out",
            "seeds predicted by the other seeds": "predicted",
            "first answers that answer back": "mutual",
        }
        for label, name in rows.items():
            table.add_row(label, *(_shown(getattr(side, name)) for side in (self.forward, self.backward)))
        table.caption, table.caption_justify = self.note, "left"
        return table


def judge(
    translator: Translator,
    *,
    words: Mapping[Direction, Collection[str]] | None = None,
    progress: Progress = SILENT,
) -> WithoutGold:
    """Measure what can be known without a test dictionary.

    Args:
        translator: The model.
        words: By direction, words for whose translations the accuracy is expected; for a direction without
            any, 2,000 of the 10,000 most frequent words, those that are no seeds.
        progress: Shows how far the work is.

    Raises:
        BilexError: None of `words` is in the vocabulary.
    """
    predicted = _predicted(translator, progress)
    sides = {}
    with progress.task("Asking frequent words", 2) as task:
        for direction in DIRECTIONS:
            named = (words or {}).get(direction)
            frequent = _expected(translator, direction, _asked(translator, direction, None))
            held_out = _held_out(translator, direction)
            sides[direction] = Judgement(
                held_out,
                _mutual(translator.space, direction),
                predicted.get(direction),
                frequent
                if named is None
                else _expected(translator, direction, _asked(translator, direction, named)),
                _on_dictionary(held_out, frequent),
            )
            task.advance()
    note = translator.calibration.note
    return WithoutGold(sides["forward"], sides["backward"], f"Confidences: {note}.")


def _asked(translator: Translator, direction: Direction, words: Collection[str] | None) -> Rows:
    """Rows of the words for which an accuracy is expected."""
    query_side, _ = translator.space.sides(direction)
    if words is not None:
        rows = [row for word in words if (row := query_side.key_to_index.get(word)) is not None]
        if not rows:
            raise BilexError(
                "none of the words is in the model's vocabulary; check their language and spelling."
            )
        return np.array(rows, np.int64)
    known = translator.known_pairs.right[direction]
    rows = [row for row in range(min(FREQUENT, len(query_side))) if row not in known]
    return _spread_over(np.array(rows, np.int64))


def _spread_over(rows: Rows) -> Rows:
    """At most 2,000 of some words, evenly over their frequencies."""
    return rows[:: -(-len(rows) // _MOST_ASKED)] if len(rows) > _MOST_ASKED else rows


def _held_out(translator: Translator, direction: Direction) -> Share | None:
    part = translator.calibration.parts.get((direction, "csls"))
    if part is None:
        return None
    return _of_count(round(part.accuracy * part.words), part.words)


def _mutual(space: Space, direction: Direction) -> Share:
    """How many of the frequent words are the first answer of their first answer."""
    query_side, _ = space.sides(direction)
    queries = _spread_over(np.arange(min(FREQUENT, len(query_side)), dtype=np.int64))
    answers = space.search(queries, 1, direction=direction)[1][:, 0]
    distinct, place = np.unique(answers, return_inverse=True)
    back: Direction = "backward" if direction == "forward" else "forward"
    best = space.search(distinct, 1, direction=back)[1][:, 0]
    return _of_count(int(np.sum(best[place.reshape(-1)] == queries)), len(queries))


def _expected(translator: Translator, direction: Direction, rows: Rows) -> Share | None:
    """The mean confidence of the model's own first answers."""
    part = translator.calibration.parts.get((direction, "csls"))
    if part is None or not len(rows):
        return None
    proposals = translator.proposer(direction, "csls", model_only=True)(rows, 1)
    sure = proposals.confidence[:, 0]
    share = float(sure.mean())
    spread = float(np.sum(sure * (1 - sure))) / len(sure) ** 2
    spread += part.accuracy * (1 - part.accuracy) / part.words + TYPICAL_ERROR**2
    return _of_spread(share, spread, len(sure))


def _on_dictionary(held_out: Share | None, frequent: Share | None) -> Share | None:
    """Between held-out seeds and all frequent words."""
    if held_out is None or frequent is None:
        return None
    weight = HELD_OUT_WEIGHT
    share = weight * held_out.share + (1 - weight) * frequent.share
    # The confidences come from the same words, so that their number counts once.
    spread = held_out.share * (1 - held_out.share) / held_out.words
    return _of_spread(share, spread + TYPICAL_DICTIONARY_ERROR**2, held_out.words)


def _predicted(translator: Translator, progress: Progress) -> dict[Direction, Share]:
    """Each fifth of the seeds predicted by a rotation that the other four fifths give.

    The vectors are those before the model's maps, which have seen all seeds.
    """
    backs = inverse_map(translator, "source"), inverse_map(translator, "target")
    if not all(back.steps for back in backs):
        return {}
    sides = translator.space.source, translator.space.target
    source, target = (
        taken_back(side.head(_VOCABULARY), back) for side, back in zip(sides, backs, strict=True)
    )
    usable = translator.seeds.covered(source.key_to_index, target.key_to_index)
    words = sorted(usable.translations())
    if len(words) < _FEWEST_PAIRS:
        return {}
    np.random.default_rng(0).shuffle(words)
    words = words[:_MOST_PREDICTED]
    counted = {direction: [0, 0] for direction in DIRECTIONS}
    with progress.task("Predicting seeds by the others", _FOLDS) as task:
        for fold in range(_FOLDS):
            drawn = set(words[fold::_FOLDS])
            held_out = Lexicon([pair for pair in usable.pairs if pair[0] in drawn], usable.name)
            learned = usable.without(held_out, by="word")
            space = Space(_rotated(source, target, learned), target, "cosine", translator.space.device)
            for (direction, method), found in ask(space, held_out).items():
                if method == "csls":
                    counted[direction][0] += len(found.right)
                    counted[direction][1] += int(found.right[:, 0].sum())
            task.advance()
    return {direction: _of_count(right, asked) for direction, (asked, right) in counted.items() if asked}


def _rotated(source: WordVectors, target: WordVectors, pairs: Lexicon) -> WordVectors:
    """Source words rotated onto the target words of some pairs."""
    index = pairs.index(source.key_to_index, target.key_to_index)
    x = np.asarray(source.vectors[index[:, 0]], np.float64)
    y = np.asarray(target.vectors[index[:, 1]], np.float64)
    u, _, v = common_rotations(x.T @ y)
    rotated: Floats = np.asarray(source.vectors) @ (u @ v.T).astype(np.float32)
    return WordVectors(source.index_to_key, rotated)


def _of_count(right: int, words: int) -> Share:
    """A share with Wilson's interval."""
    low, high = share_interval(right, words)
    return Share(right / words, low, high, words)


def _of_spread(share: float, variance: float, words: int) -> Share:
    half = _Z * math.sqrt(variance)
    return Share(share, max(0.0, share - half), min(1.0, share + half), words)


def _shown(share: Share | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share.share:.1f} % ({100 * share.low:.0f}–{100 * share.high:.0f})"
