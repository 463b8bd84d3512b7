"""A whole dictionary out of a space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bilex.core.data_frames import Tabular
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Entry, Lexicon
from bilex.lexicon.entries import Dictionary, Languages
from bilex.lexicon.formats import WriteOptions, WriteReport, text_of, write
from bilex.model.known import Proposals
from bilex.model.space import Direction, Floats, Retrieval, Rows, Space
from bilex.model.unknown import Side

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.translator import Translator

_WORDS_A_BLOCK = 16384
_SHOWN_PAIRS = 3
_SHOWN_ROWS = 10
_TYPES: dict[str, type] = {
    "source": str,
    "target": str,
    "score": float,
    "confidence": float,
    "source_rank": int,
    "target_rank": int,
    "known": bool,
    "part_of_speech": str,
    "status": str,
    "provenance": str,
    "sense": int,
}


@dataclass(frozen=True, repr=False)
class InducedLexicon(Tabular):
    """Pairs with their scores, in order of the frequency of the words that asked, best translation first.

    Args:
        entries: The pairs.
        query_side: Whose words were translated; their column is written first.
    """

    entries: tuple[Entry, ...]
    query_side: Side = "source"

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def pairs(self) -> Lexicon:
        """The pairs alone, as a word list that an aligner can learn from."""
        return Lexicon([(entry.source, entry.target) for entry in self.entries], "the induced dictionary")

    def __repr__(self) -> str:
        shown = ", ".join(f"{entry.source}–{entry.target}" for entry in self.entries[:_SHOWN_PAIRS])
        more = ", ..." if len(self) > _SHOWN_PAIRS else ""
        return f"InducedLexicon({len(self):,} pairs: {shown}{more})"

    def _repr_html_(self) -> str:
        from bilex.core.notebook import html_table

        rows = [(e.source, e.target, e.score, "known" if e.known else e.confidence) for e in self.entries]
        return html_table(
            ("source", "target", "score", "confidence"), rows, _SHOWN_ROWS, f"{len(self):,} pairs"
        )

    def columns(self) -> dict[str, list[Any]]:
        """The fields of the entries, less texts that none of them has."""
        texts = ("part_of_speech", "status", "provenance", "sense")
        unused = [name for name in texts if not any(getattr(entry, name) for entry in self.entries)]
        names = [field.name for field in fields(Entry) if field.name not in unused]
        return {name: [getattr(entry, name) for entry in self.entries] for name in names}

    def column_types(self) -> dict[str, type]:
        """The type of every field that an entry may have."""
        return _TYPES

    def dictionary(self, languages: Languages = (None, None)) -> Dictionary:
        """The entries for a file, the words that asked first.

        Args:
            languages: Codes of the source and the target language, where known.
        """
        if self.query_side == "source":
            return Dictionary(self.entries, languages)
        swapped = tuple(entry.swapped() for entry in self.entries)
        return Dictionary(swapped, (languages[1], languages[0]), ("target", "source"))

    def text(
        self, form: str, *, languages: Languages = (None, None), options: WriteOptions | None = None
    ) -> str:
        """The whole dictionary as text, the words that asked first.

        Args:
            form: "tsv" (both words, score, confidence, "known" or "found"; no header, so that every reader
                of word lists takes it), "csv" (with a header), "jsonl" or another format that is text.
            languages: Codes of the two languages, for formats that mark words with them.
            options: How to write.
        """
        return text_of(self.dictionary(languages), form, options)[0]

    def save(
        self,
        path: str | Path,
        form: str | None = None,
        *,
        languages: Languages = (None, None),
        options: WriteOptions | None = None,
    ) -> WriteReport:
        """Write the dictionary, atomically, in the format named or the one that the file's name says."""
        return write(path, self.dictionary(languages), form, options)


@dataclass(frozen=True)
class Overrides:
    """What to export; the fields are the arguments of `Translator.lexicon`."""

    k: int = 1
    direction: Literal["forward", "backward", "both"] = "forward"
    retrieval: Retrieval = "csls"
    mutual: bool = False
    min_score: float | None = None
    min_confidence: float | None = None
    ranks: tuple[int, int | None] = (1, None)
    model_only: bool = False
    keep: Keep | None = None

    @property
    def query_side(self) -> tuple[Direction, ...]:
        """The directions in which words ask."""
        return ("forward", "backward") if self.direction == "both" else (self.direction,)


@dataclass(frozen=True)
class _Found:
    """Pairs of rows with scores and confidences, one query word after another."""

    source: Rows
    target: Rows
    score: Floats
    confidence: npt.NDArray[np.float64]
    known: npt.NDArray[np.bool_]

    def only(self, chosen: npt.NDArray[np.bool_] | Rows) -> _Found:
        return _Found(*(part[chosen] for part in vars(self).values()))


def induce(translator: Translator, overrides: Overrides, progress: Progress = SILENT) -> InducedLexicon:
    """Every word with its best translations.

    Args:
        translator: Who translates.
        overrides: What to export.
        progress: Receives how far the work is.

    Raises:
        BilexError: An option makes no sense, or confidences are asked for where none were calibrated.
    """
    check_overrides(translator, overrides)
    lists = []
    for side in overrides.query_side:
        answers = _ask(translator, overrides, side, progress)
        lists.append(
            answers.only(_answered_back(translator, overrides, answers, side, progress))
            if overrides.mutual
            else answers
        )
    backward = overrides.direction == "backward"
    found = _joined(lists, len(translator.space.target), by_target=backward)
    if overrides.min_score is not None:
        found = found.only(found.known | (found.score >= overrides.min_score))
    if overrides.min_confidence is not None:
        found = found.only(found.known | (found.confidence >= overrides.min_confidence))
    return InducedLexicon(tuple(_entries(translator.space, found)), "target" if backward else "source")


def check_overrides(translator: Translator, overrides: Overrides) -> None:
    """Refuse what makes no sense.

    Raises:
        BilexError: Confidences are asked for where there are none, or no words.
    """
    calibration, ranks = translator.calibration, overrides.ranks
    if overrides.min_confidence is not None and any(
        (side, overrides.retrieval) not in calibration.parts for side in overrides.query_side
    ):
        raise BilexError(
            f"a least confidence was asked for, but this model has none ({calibration.note}); "
            "use a least score instead."
        )
    if ranks[0] < 1 or (ranks[1] is not None and ranks[1] < ranks[0]) or overrides.k < 1:
        raise BilexError(
            f"ranks {ranks[0]} to {ranks[1]} with {overrides.k} translations a word name no words; "
            "ranks count from 1, and at least 1 translation is needed."
        )


def _ask(translator: Translator, overrides: Overrides, direction: Direction, progress: Progress) -> _Found:
    """The k best answers of every query word within a range of ranks."""
    queries = queries_of(translator, overrides, direction)
    found = answers_of(
        translator, overrides, queries, 1 if overrides.mutual else overrides.k, direction, progress
    )
    query = np.repeat(queries, found.rows.shape[1])
    answer = found.rows.reshape(-1)
    source, target = (query, answer) if direction == "forward" else (answer, query)
    scores, confidence, known = (
        found.scores.reshape(-1),
        found.confidence.reshape(-1),
        found.known.reshape(-1),
    )
    chosen = answer >= 0
    if overrides.keep is not None:
        chosen &= may_answer(translator, overrides.keep, direction)[answer] | known
    return _Found(source, target, scores, confidence, known).only(chosen)


def queries_of(translator: Translator, overrides: Overrides, direction: Direction) -> Rows:
    """The rows of the words to translate: those within the ranks that the filters keep.

    Raises:
        BilexError: There are none.
    """
    query_side, _ = translator.space.sides(direction)
    first, last = overrides.ranks
    queries = np.arange(first - 1, min(last or len(query_side), len(query_side)), dtype=np.int64)
    side: Side = "source" if direction == "forward" else "target"
    if overrides.keep is not None and len(queries):
        queries = queries[[overrides.keep(query_side.index_to_key[row], side) for row in queries.tolist()]]
        if not len(queries):
            raise BilexError("the filters leave no word to translate; ask for less.")
    if not len(queries):
        raise BilexError(
            f"there are {len(query_side)} words and none of rank {first} or above; ask for less."
        )
    return queries


def may_answer(translator: Translator, keep: Keep, direction: Direction) -> npt.NDArray[np.bool_]:
    """Of each word of the key language, whether the filters keep it."""
    key_side = translator.space.sides(direction)[1]
    side: Side = "target" if direction == "forward" else "source"
    return np.array([keep(word, side) for word in key_side.index_to_key], bool)


def answers_of(
    translator: Translator,
    overrides: Overrides,
    queries: Rows,
    k: int,
    direction: Direction,
    progress: Progress,
) -> Proposals:
    """The answers of many words, some thousand at a time, for progress and so that no more are copied."""
    propose = translator.proposer(direction, overrides.retrieval, model_only=overrides.model_only)
    blocks = []
    with progress.task(f"Translating {direction}", len(queries)) as task:
        for start in range(0, len(queries), _WORDS_A_BLOCK):
            block = queries[start : start + _WORDS_A_BLOCK]
            blocks.append(propose(block, k))
            task.advance(len(block))
    return Proposals(
        *(np.concatenate(parts) for parts in zip(*(vars(b).values() for b in blocks), strict=True))
    )


def _answered_back(
    translator: Translator, overrides: Overrides, found: _Found, asked: Direction, progress: Progress
) -> npt.NDArray[np.bool_]:
    """Whether each pair's query word is the best answer of its answer."""
    query, answer = (found.source, found.target) if asked == "forward" else (found.target, found.source)
    distinct, place = np.unique(answer, return_inverse=True)
    back: Direction = "backward" if asked == "forward" else "forward"
    best = answers_of(translator, overrides, distinct, 1, back, progress).rows
    mutual: npt.NDArray[np.bool_] = best[place.reshape(-1), 0] == query
    return mutual


def _joined(lists: list[_Found], targets: int, *, by_target: bool) -> _Found:
    """All pairs, each once (the first list's own): by query word, known ones first, by falling score."""
    joined = _Found(
        *(np.concatenate(parts) for parts in zip(*(vars(f).values() for f in lists), strict=True))
    )
    _, first = np.unique(joined.source * targets + joined.target, return_index=True)
    joined = joined.only(np.sort(first))
    query_side, answer = (joined.target, joined.source) if by_target else (joined.source, joined.target)
    return joined.only(np.lexsort((answer, -joined.score, ~joined.known, query_side)))


def _entries(space: Space, found: _Found) -> Iterator[Entry]:
    for source, target, score, confidence, known in zip(
        *(part.tolist() for part in vars(found).values()), strict=True
    ):
        yield Entry(
            source=space.source.index_to_key[source],
            target=space.target.index_to_key[target],
            score=score,
            confidence=None if np.isnan(confidence) else confidence,
            source_rank=source + 1,
            target_rank=target + 1,
            known=known,
        )
