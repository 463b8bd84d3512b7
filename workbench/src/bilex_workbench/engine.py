"""An open model: translations in both directions, from stored candidates or by searches."""

from __future__ import annotations

import asyncio
import contextlib
import math
import mmap
import sqlite3
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from starlette.concurrency import run_in_threadpool

from bilex.core.files import sha256
from bilex.core.manifest import CHECKSUMS
from bilex.model import Answer, Translator
from bilex.model.answers import Translation
from bilex.model.space import SIDES, Direction, Floats, Retrieval, Rows, SearchableKeys, Side, Space
from bilex.vectors import WordVectors
from bilex_workbench.api import LONGEST_WORD, ProblemError, showable
from bilex_workbench.database import Database
from bilex_workbench.statistics import UNCHANGED, Recalibration, before_audits

if TYPE_CHECKING:
    from bilex.search.cpu import ServedKeys

STORED_CANDIDATES = 10
STORED = np.dtype([("rows", "<i4"), ("scores", "<f4"), ("confidence", "<f4"), ("known", "?")])  # as Proposals
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
LONGEST_WAIT = 30.0  # seconds for a search
_MOST_COMPLETIONS = 20_000
_MOST_AT_ONCE, _GATHERING_SECONDS = 64, 0.002


class Keys:
    """The vectors of one language, rounded to 8 bits once and searched with or without CSLS's penalty."""

    def __init__(self, words: WordVectors, penalty: Floats) -> None:
        self._words, self._penalty = words, penalty
        self._lock = threading.Lock()

    def top_k(self, vectors: Floats, k: int, *, penalised: bool) -> tuple[Floats, Rows]:
        """Scores and rows of the k best words for each vector, exact as everywhere."""
        with self._lock:
            return self._served.top_k(vectors, min(k, len(self._words)), penalised=penalised)

    def prepare(self) -> None:
        """Round the vectors now, so that the first search need not wait for it."""
        with self._lock:
            self._served  # noqa: B018 - cached

    @cached_property
    def _served(self) -> ServedKeys:
        from bilex.search.cpu import ServedKeys

        vectors = np.asarray(self._words.vectors)
        return ServedKeys(vectors, self._penalty, lambda: _release_pages(vectors))


@dataclass(frozen=True, eq=False)
class _KeySearch:
    """`Keys` as a `Space` searches them."""

    keys: Keys
    penalised: bool

    def top_k(self, queries: Floats, k: int) -> tuple[Floats, Rows]:
        return self.keys.top_k(queries, k, penalised=self.penalised)


class ServedSpace(Space):
    """The vocabularies and CSLS terms of a `Space`, with prepared keys: one query takes milliseconds."""

    def __init__(self, space: Space, lowercase: bool, keys: Sequence[Keys] = ()) -> None:
        super().__init__(space.source, space.target, space.metric, "cpu")
        self.set_neighbourhoods(*space.neighbourhoods())
        self.lowercase = lowercase
        found = keys or map(Keys, (self.source, self.target), self.neighbourhoods())
        self.keys: dict[Side, Keys] = dict(zip(SIDES, found, strict=True))

    def reversed(self) -> ServedSpace:
        """The same space from target to source, with the same keys."""
        turned = Space(self.target, self.source, self.metric, "cpu")
        turned.set_neighbourhoods(*self.neighbourhoods()[::-1])
        return ServedSpace(turned, self.lowercase, [self.keys["target"], self.keys["source"]])

    def words(self, side: Side) -> WordVectors:
        """The vocabulary of one language."""
        return self.source if side == "source" else self.target

    def row(self, word: str, side: Side = "source") -> int | None:
        """The row of a word, looked up as typed and then lower-cased."""
        rows = self.words(side).key_to_index
        found = rows.get(word)
        return rows.get(word.lower()) if found is None and self.lowercase else found

    @cached_property
    def _alphabetical(self) -> list[int]:
        words = self.source.index_to_key
        return sorted(range(len(words)), key=words.__getitem__)

    def completions(self, text: str, k: int) -> list[str]:
        """At most k source words that begin with a text, most frequent first."""
        words, order = self.source.index_to_key, self._alphabetical
        start = bisect_left(order, text, key=words.__getitem__)
        stop = bisect_left(order, text + "\U0010ffff", key=words.__getitem__)
        rows = sorted(order[start : min(stop, start + _MOST_COMPLETIONS)])
        return showable(words[row] for row in rows)[:k]

    def release_pages(self) -> None:
        """Release the pages of the vectors' files that were read."""
        for words in (self.source, self.target):
            _release_pages(np.asarray(words.vectors))

    def _keys(self, direction: Direction, penalty: Floats | None) -> SearchableKeys:
        return _KeySearch(self._searched(direction), penalised=penalty is not None)

    def _mean_of_best(self, vectors: Floats, direction: Direction, neighbours: int) -> Floats:
        near, _ = self._searched(direction).top_k(vectors, neighbours, penalised=False)
        return np.asarray(near.mean(axis=1, dtype=np.float64), dtype=np.float32)

    def _searched(self, direction: Direction) -> Keys:
        return self.keys["target" if direction == "forward" else "source"]


def _release_pages(array: Floats) -> None:
    """Release the pages of a mapped file that were read; the next access reads them again."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, eq=False)
class _Query:
    word: str
    k: int
    kind: tuple[Direction, Retrieval]
    answer: Future[Answer] = field(default_factory=Future)


class Searches:
    """One thread that searches for all requests: those that arrive together share one pass over the keys.

    A search for many words takes little longer than one for few. Clients that were just answered often send
    the next query at once, so after a search for several words the next one waits until no more arrive.
    """

    def __init__(self, translator: Translator, searching: Callable[[], None]) -> None:
        self._translator, self._searching = translator, searching
        self._waiting: deque[_Query] = deque()
        self._thread = ThreadPoolExecutor(1, "searches")
        self._last = 0  # queries of the last search

    def submit(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Future[Answer]:
        """The best translations of a word, as soon as they are found."""
        query = _Query(word, k, (direction, retrieval))
        self._waiting.append(query)
        try:
            self._thread.submit(self._search)
        except RuntimeError as error:
            raise ProblemError(503, "The model was replaced just now; try again.") from error
        return query.answer

    def close(self) -> None:
        """End the thread after it has answered what waits."""
        self._thread.shutdown()

    def _search(self) -> None:
        """Answer all queries that wait."""
        seen = 0
        while self._last > 1 and seen < len(self._waiting) < _MOST_AT_ONCE:
            seen = len(self._waiting)
            time.sleep(_GATHERING_SECONDS)
        taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_AT_ONCE))]
        batch = [query for query in taken if query.answer.set_running_or_notify_cancel()]
        if not batch:  # answered together with an earlier query, or nobody waits any more
            return
        self._last = len(batch)
        self._searching()
        for direction, retrieval in dict.fromkeys(query.kind for query in batch):
            alike = [query for query in batch if query.kind == (direction, retrieval)]
            words, most = [query.word for query in alike], max(query.k for query in alike)
            try:
                found = self._translator.translate(words, most, direction=direction, retrieval=retrieval)
                for query, answer in zip(alike, found, strict=True):
                    query.answer.set_result(replace(answer, translations=answer.translations[: query.k]))
            except Exception as error:
                for query in alike:
                    query.answer.set_exception(error)
        self._searching()


class Engine:
    """A model that is open, with the review file that keeps its candidates.

    Searched and stored confidences are those of the model before audits corrected them; `change` is applied
    to what is shown.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder, self.database = folder, database
        self.fingerprint = sha256(folder / CHECKSUMS)
        opened = Translator.load(folder, verify=False, device="cpu")
        words = whole = ServedSpace(opened.space, opened.lowercase)
        if opened.whole_space is not opened.space:  # words, then phrases of the seeds
            whole = ServedSpace(opened.whole_space, opened.lowercase)
        self.space = whole
        self.spaces: dict[Direction, ServedSpace] = {"forward": whole, "backward": whole.reversed()}
        # The review file knows a model by its fingerprint before corrections.
        self.base, own, self.applied = before_audits(folder, self.fingerprint, opened.calibration)
        self.translator = opened.with_parts(space=words, whole_space=whole, calibration=own)
        change = Recalibration(**(database.fact("recalibration") or {}))
        self.recalibration = change if change.model in (None, self.fingerprint) else UNCHANGED
        self.stored: dict[Direction, int] = {"forward": 0, "backward": 0}  # words whose answers are stored
        self.encoder_open = all(reader.kind == "subwords" for reader in self.translator.unknown)
        self._opening_encoder = threading.Lock()
        self._requested = -math.inf
        self._searches = Searches(self.translator, self._before_and_after_search)
        self.close = self._searches.close

    @property
    def change(self) -> Recalibration:
        """How shown confidences differ from the stored ones."""
        return self.recalibration.after(self.applied)

    def note_request(self) -> None:
        """Remember the time of a request: background work waits for people."""
        self._requested = time.monotonic()

    @property
    def quiet_seconds(self) -> float:
        """How long no request came."""
        return time.monotonic() - self._requested

    def _before_and_after_search(self) -> None:
        self.note_request()
        self.space.release_pages()

    def translate(self, word: str, k: int, direction: Direction = "forward") -> Answer:
        """The best translations of a word by CSLS, without words too long to show."""
        found = self._stored(word, k, direction, "csls")
        if found is None:
            if self.spaces[direction].row(word) is None:
                self.open_encoder()
            found = self._searches.submit(word, k, direction, "csls").result(LONGEST_WAIT)
        return self._shown(found, direction, "csls")

    async def answer(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer:
        """The same for the event loop, which serves a third more requests than a thread for each."""
        found = self._stored(word, k, direction, retrieval)
        if found is None:
            if self.spaces[direction].row(word) is None:
                await run_in_threadpool(self.open_encoder)
            search = asyncio.wrap_future(self._searches.submit(word, k, direction, retrieval))
            found = await asyncio.wait_for(search, LONGEST_WAIT)
        return self._shown(found, direction, retrieval)

    def _shown(self, found: Answer, direction: Direction, retrieval: Retrieval) -> Answer:
        """An answer with confidences as audits corrected them, without words too long to show."""
        change = self.change if (direction, retrieval) == ("forward", "csls") else UNCHANGED
        shown = (
            replace(one, confidence=change(one.confidence)) if change.decisions else one
            for one in found
            if len(one.word) <= LONGEST_WORD
        )
        return replace(found, translations=tuple(shown))

    def _stored(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer | None:
        """The answer from stored candidates, where the table has them."""
        space = self.spaces[direction]
        row = space.row(word)
        if retrieval != "csls" or k > STORED_CANDIDATES or row is None or row >= self.stored[direction]:
            return None
        with self.database.reading() as db:
            stored = candidates(db, row, direction)
        if stored is None:
            return None
        words = space.target.index_to_key
        found = (
            Translation(words[at], score, None if np.isnan(sure) else sure, at + 1, known)
            for at, score, sure, known in stored[:k].tolist()
        )
        return Answer(word, tuple(found), "vocabulary")

    def open_encoder(self) -> None:
        """Open the language model, however long that takes, if it is not open yet."""
        with self._opening_encoder:
            if not self.encoder_open:
                with contextlib.suppress(Exception):  # the search that needs it reports what is wrong
                    for reader in self.translator.unknown:
                        reader.vectors(["a"], "source")
                self.encoder_open = True


def candidates(db: sqlite3.Connection, row: int, direction: Direction) -> npt.NDArray[Any] | None:
    """The stored candidates of a word; None where none are stored yet."""
    query = "SELECT answers FROM candidates WHERE direction = ? AND row = ?"
    found = db.execute(query, (DIRECTIONS.index(direction), row)).fetchone()
    return None if found is None else np.frombuffer(found["answers"], STORED)
