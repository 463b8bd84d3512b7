"""An open model: translations from the stored candidates, or by searches that are gathered into batches."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

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
_STORED = np.dtype([("row", "<i4"), ("score", "<f4"), ("confidence", "<f4"), ("known", "?")])
_LONGEST_WAIT = 30.0
_BUSY_SECONDS = 2.0


@dataclass(frozen=True)
class _Question:
    """A word that waits for its turn."""

    word: str
    k: int
    direction: Direction
    method: Retrieval
    answer: Future[Answer]


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
        self.recalibration = Recalibration.from_facts(store.fact("recalibration"))
        self._waiting: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._completions: dict[Direction, Completions] = {}
        self._asked = -_BUSY_SECONDS
        self._worker = threading.Thread(target=self._work, name="searches", daemon=True)
        self._worker.start()

    @property
    def space(self) -> ServedSpace:
        """The two vocabularies."""
        space = self.translator.space
        assert isinstance(space, ServedSpace)
        return space

    @property
    def busy(self) -> bool:
        """Whether somebody searched within the last seconds."""
        return time.monotonic() - self._asked < _BUSY_SECONDS

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
        row = self.row(word, direction)
        if row is not None and method == "csls" and k <= STORED_CANDIDATES:
            stored = self._stored(row, direction)
            if stored is not None:
                return self._finished(Answer(word, tuple(stored[:k]), "vocabulary"))
        answer: Future[Answer] = Future()
        self._waiting.put(_Question(word, k, direction, method, answer))
        return self._finished(answer.result(_LONGEST_WAIT))

    def completions(self, direction: Direction) -> Completions:
        """What completes words of the query language; made when it is first needed."""
        if direction not in self._completions:
            self._completions[direction] = Completions(self.space.sides(direction)[0].index_to_key)
        return self._completions[direction]

    def close(self) -> None:
        """Stop the thread that searches."""
        self._waiting.put(None)
        self._worker.join(_LONGEST_WAIT)

    def _stored(self, row: int, direction: Direction) -> list[Translation] | None:
        found = self.store.one(
            "SELECT answers FROM candidates WHERE direction = ? AND row = ?", direction_number(direction), row
        )
        if found is None or self.store.fact("entries_of") != self.fingerprint:
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
            for one in np.frombuffer(found["answers"], _STORED)
        ]

    def _finished(self, answer: Answer) -> Answer:
        """An answer with recalibrated confidences and without words too long to show."""
        shown = tuple(
            replace(found, confidence=self.recalibration(found.confidence))
            if self.recalibration is not UNCHANGED
            else found
            for found in answer
            if len(found.word) <= LONGEST_WORD
        )
        return replace(answer, translations=shown)

    def _work(self) -> None:
        """Answer whatever waits, all of one kind at once, until None comes."""
        while (question := self._waiting.get()) is not None:
            batch = [question]
            while not self._waiting.empty():
                more = self._waiting.get()
                if more is None:
                    self._waiting.put(None)
                    break
                batch.append(more)
            self._asked = time.monotonic()
            self._answer(batch)
            self._asked = time.monotonic()

    def _answer(self, batch: list[_Question]) -> None:
        kinds = dict.fromkeys((question.direction, question.method) for question in batch)
        for direction, method in kinds:
            chosen = [q for q in batch if (q.direction, q.method) == (direction, method)]
            try:
                most = max(question.k for question in chosen)
                words = [question.word for question in chosen]
                found = self.translator.translate(words, most, direction=direction, method=method)
                for question, answer in zip(chosen, found, strict=True):
                    cut = replace(answer, translations=answer.translations[: question.k])
                    question.answer.set_result(cut)
            except Exception as error:
                for question in chosen:
                    if not question.answer.done():
                        question.answer.set_exception(error)


def direction_number(direction: Direction) -> int:
    """How a direction stands in the table of candidates."""
    return 0 if direction == "forward" else 1


def packed(proposals: Proposals, query: int) -> bytes:
    """One query's proposals as the table of candidates keeps them."""
    there = proposals.rows[query] >= 0
    made = np.empty(int(there.sum()), _STORED)
    made["row"] = proposals.rows[query][there]
    made["score"] = proposals.scores[query][there]
    made["confidence"] = proposals.confidence[query][there]
    made["known"] = proposals.known[query][there]
    return made.tobytes()
