"""A whole dictionary out of a space."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from bilex.errors import BilexError
from bilex.files import atomic_file
from bilex.lexicon import Lexicon
from bilex.lexicon.writing import OutputFormat, format_of
from bilex.progress import SILENT, Progress
from bilex.space import Direction, Floats, Retrieval, Rows, Space
from bilex.translator.calibration import Calibration

_WORDS_A_BLOCK = 16384


@dataclass(frozen=True)
class Entry:
    """One pair of an induced dictionary; ranks count from 1, the most frequent word."""

    source: str
    target: str
    score: float
    confidence: float | None
    source_rank: int
    target_rank: int


@dataclass(frozen=True)
class InducedLexicon:
    """Pairs with their scores, in order of the source words' frequency, best translation first."""

    entries: tuple[Entry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def pairs(self) -> Lexicon:
        """The pairs alone, as a word list that an aligner can learn from."""
        return Lexicon([(entry.source, entry.target) for entry in self.entries], "the induced dictionary")

    def text(self, form: OutputFormat) -> str:
        """The whole dictionary as text.

        Args:
            form: "tsv" (source, target, score, confidence; no header, so that every reader of word
                lists takes it), "csv" (with a header) or "jsonl".
        """
        if form == "jsonl":
            return "".join(json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in self.entries)
        buffer = io.StringIO(newline="")
        if form == "csv":
            writer = csv.writer(buffer, lineterminator="\n")
            writer.writerow(("source", "target", "score", "confidence", "source_rank", "target_rank"))
            writer.writerows(
                [*_columns(entry), entry.source_rank, entry.target_rank] for entry in self.entries
            )
        else:
            buffer.writelines("\t".join(_columns(entry)) + "\n" for entry in self.entries)
        return buffer.getvalue()

    def write(self, path: str | Path, form: OutputFormat | None = None) -> None:
        """Write the dictionary, atomically, in the format named or the one that the file's name says."""
        with atomic_file(path) as temporary:
            temporary.write_text(self.text(format_of(path, form)), encoding="utf-8", newline="")


def _columns(entry: Entry) -> list[str]:
    confidence = "" if entry.confidence is None else f"{entry.confidence:.4f}"
    return [entry.source, entry.target, f"{entry.score:.4f}", confidence]


@dataclass(frozen=True)
class _Found:
    """Pairs of rows with scores and confidences, one asking word after another."""

    source: Rows
    target: Rows
    score: Floats
    confidence: npt.NDArray[np.float64]

    def only(self, chosen: npt.NDArray[np.bool_] | Rows) -> _Found:
        return _Found(self.source[chosen], self.target[chosen], self.score[chosen], self.confidence[chosen])


def induce(
    space: Space,
    calibration: Calibration,
    *,
    k: int = 1,
    direction: Literal["forward", "backward", "both"] = "forward",
    method: Retrieval = "csls",
    mutual: bool = False,
    min_score: float | None = None,
    min_confidence: float | None = None,
    ranks: tuple[int, int | None] = (1, None),
    progress: Progress = SILENT,
) -> InducedLexicon:
    """Every word with its best translations.

    Args:
        space: Both vocabularies in one space.
        calibration: From scores to confidences.
        k: How many translations a word.
        direction: Who asks: source words ("forward"), target words ("backward"), or "both" (pairs
            that either found, each once).
        method: "csls", or "nn" for the plain similarity.
        mutual: Keep only pairs in which each word is the other's best (at most one a word, whatever k).
        min_score: Keep only pairs that score at least this.
        min_confidence: Keep only pairs of at least this confidence.
        ranks: The frequency range of asking words, first and last rank from 1; None for no end.
        progress: Who is told how far the work is.

    Returns:
        The pairs, source word first whichever side asked.

    Raises:
        BilexError: A wish makes no sense, or confidences are asked for where none were calibrated.
    """
    asking: tuple[Direction, ...] = ("forward", "backward") if direction == "both" else (direction,)
    if any((side, method) not in calibration.parts for side in asking) and min_confidence is not None:
        raise BilexError(
            f"a least confidence was asked for, but this model has none ({calibration.note}); "
            "use a least score instead."
        )
    if ranks[0] < 1 or (ranks[1] is not None and ranks[1] < ranks[0]) or k < 1:
        raise BilexError(
            f"ranks {ranks[0]} to {ranks[1]} with {k} translations a word name no words; "
            "ranks count from 1, and at least 1 translation is needed."
        )
    lists = []
    for side in asking:
        answers = _ask(space, calibration, side, method, 1 if mutual else k, ranks, progress)
        lists.append(
            answers.only(_answered_back(space, answers, side, method, progress)) if mutual else answers
        )
    found = _joined(lists, len(space.target))
    if min_score is not None:
        found = found.only(found.score >= min_score)
    if min_confidence is not None:
        found = found.only(found.confidence >= min_confidence)
    return InducedLexicon(tuple(_entries(space, found)))


def _ask(
    space: Space,
    calibration: Calibration,
    direction: Direction,
    method: Retrieval,
    k: int,
    ranks: tuple[int, int | None],
    progress: Progress,
) -> _Found:
    """The k best answers of every asking word within a range of ranks."""
    asking, _ = space.sides(direction)
    queries = np.arange(ranks[0] - 1, min(ranks[1] or len(asking), len(asking)), dtype=np.int64)
    if not len(queries):
        raise BilexError(f"there are {len(asking)} words and none of rank {ranks[0]} or above; ask for less.")
    scores, answers = _search(space, queries, max(k, 2), direction, method, progress)
    confidence = calibration.confidence(scores, direction, method)
    if confidence is None:
        confidence = np.full(scores.shape, np.nan)
    shown = scores[:, :k].shape[1]
    query = np.repeat(queries, shown)
    answer = answers[:, :k].reshape(-1)
    source, target = (query, answer) if direction == "forward" else (answer, query)
    return _Found(source, target, scores[:, :k].reshape(-1), confidence[:, :k].reshape(-1))


def _search(
    space: Space, queries: Rows, k: int, direction: Direction, method: Retrieval, progress: Progress
) -> tuple[Floats, Rows]:
    """`Space.search`, some thousand words at a time, for progress and so that no more are copied."""
    search = space.searcher(direction=direction, method=method)
    blocks = []
    with progress.task(f"translate ({direction})", len(queries)) as task:
        for start in range(0, len(queries), _WORDS_A_BLOCK):
            block = queries[start : start + _WORDS_A_BLOCK]
            blocks.append(search(block, k))
            task.advance(len(block))
    return np.concatenate([scores for scores, _ in blocks]), np.concatenate([rows for _, rows in blocks])


def _answered_back(
    space: Space, found: _Found, asked: Direction, method: Retrieval, progress: Progress
) -> npt.NDArray[np.bool_]:
    """Whether the best answer to each answer is the word that asked."""
    query, answer = (found.source, found.target) if asked == "forward" else (found.target, found.source)
    distinct, place = np.unique(answer, return_inverse=True)
    back: Direction = "backward" if asked == "forward" else "forward"
    _, best = _search(space, distinct, 1, back, method, progress)
    mutual: npt.NDArray[np.bool_] = best[place.reshape(-1), 0] == query
    return mutual


def _joined(lists: list[_Found], targets: int) -> _Found:
    """All pairs, each once (the first list's own), sorted by source word and falling score."""
    source = np.concatenate([found.source for found in lists])
    target = np.concatenate([found.target for found in lists])
    score = np.concatenate([found.score for found in lists])
    confidence = np.concatenate([found.confidence for found in lists])
    joined = _Found(source, target, score, confidence)
    _, first = np.unique(source * targets + target, return_index=True)
    joined = joined.only(np.sort(first))
    return joined.only(np.lexsort((joined.target, -joined.score, joined.source)))


def _entries(space: Space, found: _Found) -> Iterator[Entry]:
    for source, target, score, confidence in zip(
        found.source.tolist(),
        found.target.tolist(),
        found.score.tolist(),
        found.confidence.tolist(),
        strict=True,
    ):
        yield Entry(
            source=space.source.index_to_key[source],
            target=space.target.index_to_key[target],
            score=score,
            confidence=None if np.isnan(confidence) else confidence,
            source_rank=source + 1,
            target_rank=target + 1,
        )
