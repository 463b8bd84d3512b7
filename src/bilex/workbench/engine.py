"""An open model: translations from the stored candidates, or by searches that are gathered into batches."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bilex.checksums import CHECKSUMS
from bilex.files import sha256
from bilex.space import Direction, Retrieval
from bilex.translator import Answer, Translator
from bilex.translator.answers import Translation
from bilex.translator.known import Proposals
from bilex.workbench.completions import Completions
from bilex.workbench.problems import LONGEST_WORD
from bilex.workbench.recalibration import UNCHANGED, Recalibration
from bilex.workbench.served import ServedSpace
from bilex.workbench.store import Store

STORED_CANDIDATES = 10
STORED = np.dtype([("row", "<i4"), ("score", "<f4"), ("confidence", "<f4"), ("known", "?")])
_LONGEST_WAIT = 30.0
_BUSY_SECONDS, _ALONE_SECONDS = 0.5, 10.0
# A search of many words costs little more than one of few. Who was answered last often asks again at once, so
# a search waits a little until as many ask as before.
_MOST_AT_ONCE = 64
_WAIT_FOR_EACH = 0.0015


@dataclass(frozen=True)
class _Question:
    """A word that waits for its turn; its answer is handed to a future of a thread or of the event loop."""

    word: str
    k: int
    direction: Direction
    method: Retrieval
    answer: Future[Answer] | asyncio.Future[Answer]


class Engine:
    """A model that is open, with its review file.

    Args:
        folder: The model.
        store: Its review file.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self.fingerprint = sha256(folder / CHECKSUMS)
        opened = Translator.load(folder, verify=False, device="cpu")
        self.translator = replace(opened, space=ServedSpace.of(opened.space))
        self.recalibration = Recalibration.from_facts(store.fact("recalibration"), self.fingerprint)
        self._waiting: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._completions: dict[Direction, Completions] = {}
        self.stored: dict[Direction, int] = {"forward": 0, "backward": 0}  # words whose answers are stored
        self._asked = -_BUSY_SECONDS
        self._closed = threading.Event()
        self._worker = threading.Thread(target=self._work, name="searches", daemon=True)
        self._worker.start()
        threading.Thread(target=self._prepare, name="preparing", daemon=True).start()

    @property
    def space(self) -> ServedSpace:
        """The two vocabularies."""
        space = self.translator.space
        assert isinstance(space, ServedSpace)
        return space

    @property
    def busy(self) -> bool:
        """Whether somebody asked for something just now, so that work in the background should wait."""
        return time.monotonic() - self._asked < _BUSY_SECONDS

    @property
    def alone(self) -> bool:
        """Whether nobody asked for anything for a while."""
        return time.monotonic() - self._asked > _ALONE_SECONDS

    def note_request(self) -> None:
        """Somebody asks for something now."""
        self._asked = time.monotonic()

    def row(self, word: str, direction: Direction) -> int | None:
        """The row of a word of the query language, looked up as it is and then lower-cased."""
        rows = self.space.sides(direction)[0].key_to_index
        found = rows.get(word)
        if found is None and self.translator.lowercase:
            found = rows.get(word.lower())
        return found

    def translate(
        self, word: str, k: int, direction: Direction = "forward", method: Retrieval = "csls"
    ) -> Answer:
        """The best translations of a word: those stored, or a search together with others that wait."""
        found = self._looked_up(word, k, direction, method)
        if found is None:
            answer: Future[Answer] = Future()
            self._waiting.put(_Question(word, k, direction, method, answer))
            found = answer.result(_LONGEST_WAIT)
        return self._finished(found, direction, method)

    async def answer(
        self, word: str, k: int, direction: Direction = "forward", method: Retrieval = "csls"
    ) -> Answer:
        """The same for the server's event loop, which serves others until the search is done."""
        found = self._looked_up(word, k, direction, method)
        if found is None:
            answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self._waiting.put(_Question(word, k, direction, method, answer))
            async with asyncio.timeout(_LONGEST_WAIT):
                found = await answer
        return self._finished(found, direction, method)

    def _looked_up(self, word: str, k: int, direction: Direction, method: Retrieval) -> Answer | None:
        """An answer that the table has already."""
        if method != "csls" or k > STORED_CANDIDATES:
            return None
        row = self.row(word, direction)
        if row is None or row >= self.stored[direction]:
            return None
        stored = self._stored(row, direction)
        return None if stored is None else Answer(word, tuple(stored[:k]), "vocabulary")

    def _prepare(self) -> None:
        """Make the keys of both languages ready while nobody asks for anything; searches do it themselves."""
        for side in ("target", "source"):
            while self.busy and not self._closed.wait(_BUSY_SECONDS):
                pass
            if not self._closed.is_set():
                self.space.keys[side].prepare()

    def completions(self, direction: Direction) -> Completions:
        """What completes words of the query language; made when it is first needed."""
        if direction not in self._completions:
            self._completions[direction] = Completions(self.space.sides(direction)[0].index_to_key)
        return self._completions[direction]

    def close(self) -> None:
        """Stop the thread that searches."""
        self._closed.set()
        self._waiting.put(None)
        self._worker.join(_LONGEST_WAIT)

    def _stored(self, row: int, direction: Direction) -> list[Translation] | None:
        found = self.store.one(
            "SELECT answers FROM candidates WHERE direction = ? AND row = ?", direction_number(direction), row
        )
        if found is None:
            return None
        words = self.space.sides(direction)[1].index_to_key
        return [
            Translation(
                words[int(one["row"])],
                float(one["score"]),
                None if np.isnan(one["confidence"]) else float(one["confidence"]),
                int(one["row"]) + 1,
                bool(one["known"]),
            )
            for one in np.frombuffer(found["answers"], STORED)
        ]

    def _finished(self, answer: Answer, direction: Direction, method: Retrieval) -> Answer:
        """An answer without words too long to show, and recalibrated where audits say something about it."""
        audited = (direction, method) == ("forward", "csls")
        change = self.recalibration if audited else UNCHANGED
        shown = tuple(
            replace(found, confidence=change(found.confidence)) if change.decisions else found
            for found in answer
            if len(found.word) <= LONGEST_WORD
        )
        return replace(answer, translations=shown)

    def _work(self) -> None:
        """Answer whatever waits, all of one kind at once, until None comes."""
        batch: list[_Question] = []
        while (question := self._waiting.get()) is not None:
            batch = self._gathered(question, len(batch))
            self.note_request()
            self._answer(batch)
            self.note_request()

    def _gathered(self, first: _Question, expected: int) -> list[_Question]:
        """The questions that wait, or come while there are fewer than were answered last."""
        batch = [first]
        end = time.monotonic() + _WAIT_FOR_EACH * (expected - 1)
        while len(batch) < _MOST_AT_ONCE:
            patience = end - time.monotonic() if len(batch) < expected else 0.0
            try:
                more = self._waiting.get(timeout=max(0.0, patience))
            except queue.Empty:
                break
            if more is None:
                self._waiting.put(None)
                break
            batch.append(more)
        return batch

    def _answer(self, batch: list[_Question]) -> None:
        kinds = dict.fromkeys((question.direction, question.method) for question in batch)
        for direction, method in kinds:
            chosen = [q for q in batch if (q.direction, q.method) == (direction, method)]
            try:
                most = max(question.k for question in chosen)
                words = [question.word for question in chosen]
                found = self.translator.translate(words, most, direction=direction, method=method)
                cut = [
                    replace(answer, translations=answer.translations[: question.k])
                    for question, answer in zip(chosen, found, strict=True)
                ]
                _hand_out(chosen, cut)
            except Exception as error:
                _hand_out(chosen, [error] * len(chosen))
        self.space.give_back_pages()


def _hand_out(questions: list[_Question], answers: Sequence[Answer | Exception]) -> None:
    """Give each question its answer; the event loop is woken once for all of its own."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Any, Answer | Exception]]] = {}
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(question.answer, asyncio.Future):
            loops.setdefault(question.answer.get_loop(), []).append((question.answer, answer))
        else:
            _settle([(question.answer, answer)])
    for loop, settled in loops.items():
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: list[tuple[Any, Answer | Exception]]) -> None:
    for future, answer in settled:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def direction_number(direction: Direction) -> int:
    """How a direction stands in the table of candidates."""
    return 0 if direction == "forward" else 1


def packed(proposals: Proposals) -> list[bytes]:
    """Each query's proposals as the table of candidates keeps them."""
    made = np.empty(proposals.rows.shape, STORED)
    made["row"], made["score"] = proposals.rows, proposals.scores
    made["confidence"], made["known"] = proposals.confidence, proposals.known
    there = proposals.rows >= 0
    return [row[kept].tobytes() for row, kept in zip(made, there, strict=True)]
