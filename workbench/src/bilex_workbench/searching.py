"""Searches for everybody who asks: questions that come together are answered by one pass over the keys.

A search of many words costs little more than one of few, so it pays to wait until all who are about to ask
have asked. The event loop knows when that is: it has nothing else left to do. Who was answered last often
asks again at once, so with more than one person about it also stays idle for a moment first.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from bilex.model import Answer, Translator
from bilex.model.space import Direction, Retrieval
from bilex_workbench.interface import ProblemError

LONGEST_WAIT = 30.0
_MOST_AT_ONCE = 64
_QUIET_LOOKS = 3  # a request becomes a question two turns of the event loop after it arrived
_BETWEEN_LOOKS = 0.0005


@dataclass(frozen=True)
class _Question:
    """A word that waits for its turn; its answer is handed to a future of a thread or of the event loop."""

    word: str
    k: int
    direction: Direction
    retrieval: Retrieval
    answer: Future[Answer] | asyncio.Future[Answer]


class Searches:
    """A thread that searches, and what waits for it."""

    def __init__(self, translator: Translator, searched: Callable[[], None]) -> None:
        self._translator, self._searched = translator, searched
        self._ready: queue.SimpleQueue[list[_Question] | None] = queue.SimpleQueue()
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Question]] = {}
        self._searching: set[asyncio.AbstractEventLoop] = set()  # those that wait for answers
        self._closed = False
        self._last = 0  # how many questions the last of them handed over
        self._thread = threading.Thread(target=self._work, name="searches", daemon=True)
        self._thread.start()

    def ask(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer:
        """The answer for a thread, which waits for it."""
        answer: Future[Answer] = Future()
        self._hand_over([_Question(word, k, direction, retrieval, answer)])
        return answer.result(LONGEST_WAIT)

    async def answer(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer:
        """The answer for the event loop, which serves others until it is there."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        waiting = self._gathered.setdefault(loop, [])
        waiting.append(_Question(word, k, direction, retrieval, answer))
        if len(waiting) == 1 and loop not in self._searching:
            self._look(loop, 0, 0)
        async with asyncio.timeout(LONGEST_WAIT):
            return await answer

    def close(self) -> None:
        """End the thread; what still waits is answered with 503."""
        self._closed = True
        self._ready.put(None)
        self._thread.join(LONGEST_WAIT)
        self._refuse_all()

    def _hand_over(self, batch: list[_Question]) -> None:
        self._ready.put(batch)
        if self._closed and not self._thread.is_alive():
            self._refuse_all()

    def _refuse_all(self) -> None:
        """Answer what came too late for a search."""
        gone = ProblemError(503, "The model was replaced just now; try again.")
        with contextlib.suppress(queue.Empty):
            while True:
                batch = self._ready.get_nowait()
                if batch:
                    self._hand_out(batch, [gone] * len(batch))

    def _look(self, loop: asyncio.AbstractEventLoop, seen: int, quiet: int) -> None:
        """Let what was gathered be searched if no question came during the last looks; else look again."""
        waiting = self._gathered.get(loop, [])
        quiet = quiet + 1 if len(waiting) == seen else 0
        if quiet < _QUIET_LOOKS and len(waiting) < _MOST_AT_ONCE:
            pause = _BETWEEN_LOOKS if self._last > 1 else 0.0
            loop.call_later(pause, self._look, loop, len(waiting), quiet)
        elif waiting:
            self._last = len(waiting)
            self._searching.add(loop)
            self._hand_over(self._gathered.pop(loop))

    def _work(self) -> None:
        """Answer whatever waits, all of one kind at once, until None comes."""
        while (batch := self._ready.get()) is not None:
            self._searched()
            self._answer(batch)
            self._searched()

    def _answer(self, batch: list[_Question]) -> None:
        kinds = dict.fromkeys((question.direction, question.retrieval) for question in batch)
        answers: dict[int, Answer | Exception] = {}
        for direction, retrieval in kinds:
            chosen = [q for q in batch if (q.direction, q.retrieval) == (direction, retrieval)]
            try:
                most = max(question.k for question in chosen)
                words = [question.word for question in chosen]
                found = self._translator.translate(words, most, direction=direction, retrieval=retrieval)
                for question, answer in zip(chosen, found, strict=True):
                    answers[id(question)] = replace(answer, translations=answer.translations[: question.k])
            except Exception as error:
                answers |= {id(question): error for question in chosen}
        self._hand_out(batch, [answers[id(question)] for question in batch])

    def _hand_out(self, batch: list[_Question], answers: Sequence[Answer | Exception]) -> None:
        """Give each question its answer; those of one batch have come from one thread or event loop."""
        settled = [(question.answer, answer) for question, answer in zip(batch, answers, strict=True)]
        first = batch[0].answer
        if isinstance(first, asyncio.Future):
            loop = first.get_loop()
            with contextlib.suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(self._settle_in_loop, loop, settled)
        else:
            _settle(settled)

    def _settle_in_loop(self, loop: asyncio.AbstractEventLoop, settled: list[tuple[Any, Any]]) -> None:
        self._searching.discard(loop)
        _settle(settled)
        if self._gathered.get(loop):
            self._look(loop, 0, 0)


def _settle(settled: list[tuple[Any, Answer | Exception]]) -> None:
    for future, answer in settled:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
