"""Precompute the table of entries in the background: every source word with its best translations.

The most frequent words come first. Words are searched a few at a time, and hardly any while people ask for
something, so that nobody waits long for what is done here. What is done is remembered, so that a server that
is started again goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from bilex.model.known import Proposals, Proposer
from bilex.model.space import Direction
from bilex_workbench.decisions import cover_forms, refresh
from bilex_workbench.engine import STORED_CANDIDATES, Backward, Engine, direction_number, packed
from bilex_workbench.kinds import Kinds
from bilex_workbench.priority import Priorities, in_queue, sample_rows
from bilex_workbench.problems import LONGEST_WORD
from bilex_workbench.store import remember

_BLOCK = 256  # words that are written at a time
_SEARCHED, _SEARCHED_ALONE = 32, 128  # words that are searched at a time, and if nobody was here for a while
_PAUSE, _LOOK_EVERY = 0.01, 0.2
_DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
_BUSY_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_ROWS_A_TRANSACTION = 1024
_KIND_CANDIDATES = 5
_DOUBTFUL = 500  # seeds that are offered for another look

_PARTS = tuple(field.name for field in fields(Proposals))
_FROM_MODEL = (
    "source",
    "target",
    "source_key",
    "target_key",
    "score",
    "model_confidence",
    "confidence",
    "target_rank",
    "identical",
    "known",
    "priority",
    "shuffled",
    "kind",
    "headword",
    "answer",
    "assignee",
)
_INSERT = (
    f"INSERT INTO entries (row, {', '.join(_FROM_MODEL)}) VALUES (?{', ?' * len(_FROM_MODEL)}) "
    f"ON CONFLICT (row) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _FROM_MODEL)}, "
    "mutual = NULL"
)


class Precompute(threading.Thread):
    """Translates all words of an open model, both ways, into its review file."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="filling", daemon=True)
        self.engine, self.store = engine, engine.store
        self.total = len(engine.space.source)
        self._stopped = threading.Event()
        self._priorities: Priorities | None = None
        self._kinds: Kinds | None = None
        self.error: str | None = None

    @property
    def done(self) -> int:
        """How many source words have their entry."""
        return min(self.total, int(self.store.fact("entries_done", 0)))

    @property
    def complete(self) -> bool:
        """Whether every word of both languages is done."""
        fact = self.store.fact("entries_complete")
        return bool(fact == self.engine.base)

    def stop(self) -> None:
        """End after the present block."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Fill what is missing."""
        try:
            while isinstance(self.engine, Backward) and not self.engine.ready:
                if self._stopped.wait(_LOOK_EVERY):
                    return
            self._prepare()
            done = self._side("forward", "entries_done", self.total)
            if done and self.engine.own_candidates:
                done = self._side("backward", "answers_done", len(self.engine.space.target))
            if done:
                self._mark_mutual()
        except (sqlite3.Error, OSError, ValueError, RuntimeError) as error:  # also where the process ends
            self.error = f"The table could not be filled ({error}); start the server again."

    def _prepare(self) -> None:
        """Start from nothing if the file was filled from another model."""
        if self.store.fact("entries_of") == self.engine.base:
            return
        with self.store.writing() as connection:
            connection.execute("DELETE FROM candidates")
            connection.execute("DELETE FROM entries WHERE row >= ?", (self.total,))
            if self.store.fact("vocabulary") != self._vocabulary():
                connection.execute("DELETE FROM entries")
            remember(connection, "vocabulary", self._vocabulary())
            remember(connection, "entries_of", self.engine.base)
            for name in ("entries_done", "answers_done"):
                remember(connection, name, 0)
            remember(connection, "entries_complete", None)
            remember(connection, "lemmatised", None)

    def _find_kinds(self) -> Kinds:
        """What tells kinds and headwords; the headwords are kept, so that later starts need no tables."""
        kinds = Kinds(self.engine.space, self.engine.languages)
        if self.store.fact("lemmatised") is None:
            with self.store.writing() as connection:
                connection.execute("DELETE FROM forms")
                for side, words in enumerate((self.engine.space.source, self.engine.space.target)):
                    heads = ((row, kinds.head(side, row)) for row in range(len(words)))
                    connection.executemany(
                        "INSERT INTO forms VALUES (?, ?, ?)",
                        ((side, row, head) for row, head in heads if head != row),
                    )
                remember(connection, "lemmatised", kinds.lemmatised)
        return kinds

    def _vocabulary(self) -> str:
        """A checksum that says whether rows still mean the same source words."""
        digest = hashlib.sha256()
        for word in self.engine.space.source.index_to_key:
            digest.update(word.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()

    def _side(self, direction: Direction, fact: str, total: int) -> bool:
        """Translate all words of one language; whether the end was reached is returned."""
        propose = self.engine.propose(direction)
        self.engine.stored[direction] = done = int(self.store.fact(fact, 0))
        if direction == "forward" and done < total:
            self._kinds = self._find_kinds()
            if not self._measure_sample(propose):
                return False
        while done < total:
            queries = np.arange(done, min(done + _BLOCK, total), dtype=np.int64)
            proposals = self._searched(propose, queries)
            if proposals is None:
                return False
            with self.store.writing() as connection:
                self._write(connection, direction, queries, proposals)
                done = int(queries[-1]) + 1
                remember(connection, fact, done)
            self.engine.stored[direction] = done
            self.engine.space.give_back_pages()
            time.sleep(_PAUSE)  # lets decisions that wait for the file go first
        return True

    def _measure_sample(self, propose: Proposer) -> bool:
        """Measure what the order of the queue compares entries with; False if this is to end."""
        found = self._searched(propose, sample_rows(self.total))
        if found is not None:
            self._priorities = Priorities.of(found)
        return found is not None

    def _searched(self, propose: Proposer, queries: npt.NDArray[np.int64]) -> Proposals | None:
        """The answers of some words; None if this is to end."""
        found, start = [], 0
        while start < len(queries):
            self._give_way()
            if self._stopped.is_set():
                return None
            size = _SEARCHED_ALONE if self.engine.alone else _SEARCHED
            found.append(propose(queries[start : start + size], STORED_CANDIDATES))
            start += size
        return Proposals(*(np.concatenate([getattr(part, name) for part in found]) for name in _PARTS))

    def _give_way(self) -> None:
        """Wait while people ask for something, but go on a little even if they never stop."""
        end = time.monotonic() + _LONGEST_PAUSE
        while self.engine.busy and time.monotonic() < end and not self._stopped.wait(_BUSY_PAUSE):
            pass

    def _write(
        self,
        connection: sqlite3.Connection,
        direction: Direction,
        queries: npt.NDArray[np.int64],
        proposals: Proposals,
    ) -> None:
        if self.engine.own_candidates:
            connection.executemany(
                "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?)",
                [
                    (direction_number(direction), row, answers)
                    for row, answers in zip(queries.tolist(), packed(proposals), strict=True)
                ],
            )
        if direction == "forward":
            self._write_entries(connection, queries.tolist(), proposals)

    def _write_entries(
        self, connection: sqlite3.Connection, rows: Sequence[int], proposals: Proposals
    ) -> None:
        space, change = self.engine.space, self.engine.change
        own = proposals.confidence[:, 0]
        new = change.of_all(own)
        known = proposals.known[:, 0]
        assert self._priorities is not None and self._kinds is not None
        queries = np.array(rows, np.int64)
        pays = self._priorities(queries, proposals)
        kinds = self._kinds.of(queries, proposals.rows[:, :_KIND_CANDIDATES])
        marks = {
            mark["source"]: mark
            for mark in connection.execute(
                "SELECT * FROM marks WHERE source IN (SELECT value FROM json_each(?))",
                (json.dumps([space.source.index_to_key[row] for row in rows]),),
            )
        }
        values = []
        for number, row in enumerate(rows):
            source = space.source.index_to_key[row]
            answer = int(proposals.rows[number, 0])
            target = space.target.index_to_key[answer] if answer >= 0 else None
            if len(source) > LONGEST_WORD:
                continue
            if len(target or "") > LONGEST_WORD:
                target = None
            mark = marks.get(source)
            kind = mark["kind"] if mark and mark["kind"] else kinds[number]
            head = row if kind != "inflected" and mark and mark["kind"] else self._kinds.head(0, row)
            headword = space.source.index_to_key[head]
            lemma = space.target.index_to_key[self._kinds.head(1, answer)] if target else None
            values.append(
                (
                    row,
                    source,
                    target,
                    source.casefold(),
                    target.casefold() if target else None,
                    float(proposals.scores[number, 0]) if target else None,
                    _or_none(own[number]),
                    _or_none(new[number]),
                    answer + 1 if target else None,
                    int(source == target),
                    int(known[number]),
                    in_queue(float(pays[number]), kind),
                    random.Random(row).getrandbits(31),
                    kind,
                    headword if len(headword) <= LONGEST_WORD else source,
                    lemma if lemma and len(lemma) <= LONGEST_WORD and head == row else target,
                    mark["assignee"] if mark else "",
                )
            )
        connection.executemany(_INSERT, values)
        for table in ("decisions", "notes"):
            query = (
                f"SELECT DISTINCT source FROM {table} WHERE source IN "
                "(SELECT source FROM entries WHERE row BETWEEN ? AND ?)"
            )
            for found in connection.execute(query, (rows[0], rows[-1])).fetchall():
                refresh(connection, found["source"])
        cover_forms(connection, rows[0], rows[-1])

    def _mark_mutual(self) -> None:
        """Say of every pair whether each word is the other's first answer."""
        if self.complete:
            return
        best, forward = (self.engine.first_answers(direction) for direction in _DIRECTIONS[::-1])
        rows = np.arange(self.total)
        mutual = np.where(forward >= 0, best[np.maximum(forward, 0)] == rows, False)
        for start in range(0, self.total, _ROWS_A_TRANSACTION * 8):
            part = range(start, min(start + _ROWS_A_TRANSACTION * 8, self.total))
            with self.store.writing() as connection:
                connection.executemany(
                    "UPDATE entries SET mutual = ? WHERE row = ?", [(int(mutual[row]), row) for row in part]
                )
            time.sleep(_PAUSE)
        doubtful = dict.fromkeys(self.engine.doubtful(_DOUBTFUL))
        with self.store.writing() as connection:
            connection.executemany(  # seeds have priority 0, doubtful ones less than any content word
                "UPDATE entries SET priority = ? WHERE source = ? AND known = 1",
                [(0.4 * (1 - place / len(doubtful)), source) for place, source in enumerate(doubtful)],
            )
            remember(connection, "entries_complete", self.engine.base)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
