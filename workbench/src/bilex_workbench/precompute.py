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
from dataclasses import fields

import numpy as np

from bilex.model.known import Proposals, Proposer, doubtful_seeds
from bilex.model.space import Direction, Floats, Rows
from bilex_workbench.decisions import cover_forms, refresh
from bilex_workbench.engine import DIRECTIONS, STORED, STORED_CANDIDATES, Engine
from bilex_workbench.interface import LONGEST_WORD
from bilex_workbench.kinds import Kinds
from bilex_workbench.priority import Priorities, in_queue, sample_rows
from bilex_workbench.recalibration import UNCHANGED
from bilex_workbench.store import Store, remember

_BLOCK = 256  # words that are written at a time
_SEARCHED, _SEARCHED_ALONE = 32, 128  # words that are searched at a time, and if nobody was here for a while
_PAUSE, _LOOK_EVERY = 0.01, 0.2
_BUSY_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_ROWS_PER_TRANSACTION = 8192
_KIND_CANDIDATES = 5
_DOUBTFUL = 500  # seeds that are offered for another look
_PARTS = tuple(field.name for field in fields(Proposals))


class Precompute(threading.Thread):
    """Translates all words of an open model into a review file.

    That of source words keeps the candidates of both languages; that of target words reads them there.
    """

    def __init__(self, engine: Engine, store: Store | None = None, direction: Direction = "forward") -> None:
        super().__init__(name="filling", daemon=True)
        self.engine, self.direction = engine, direction
        self.store = store or engine.store
        self.space = engine.spaces[direction]
        self.total = len(self.space.source)
        self._stopped = threading.Event()
        self._priorities: Priorities | None = None
        self._kinds: Kinds | None = None
        self.error: str | None = None

    @property
    def done(self) -> int:
        """How many words have their entry."""
        return min(self.total, int(self.store.fact("entries_done", 0)))

    @property
    def complete(self) -> bool:
        """Whether every word is done."""
        return bool(self.store.fact("entries_complete") == self.engine.base)

    def stop(self) -> None:
        """End after the present block."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Fill what is missing."""
        try:
            while self._reads and self.engine.store.fact("entries_complete") != self.engine.base:
                if self._stopped.wait(_LOOK_EVERY):
                    return
            self._prepare()
            done = self._side(self.direction, "entries_done", self.total)
            if done and not self._reads:
                done = self._side("backward", "answers_done", len(self.space.target))
            if done:
                self._mark_mutual()
        except (sqlite3.Error, OSError, ValueError, RuntimeError) as error:  # also where the process ends
            self.error = f"The table could not be filled ({error}); start the server again."

    @property
    def _reads(self) -> bool:
        """Whether candidates are read that another table keeps."""
        return self.direction == "backward"

    def _prepare(self) -> None:
        """Start from nothing if the file was filled from another model."""
        if self.store.fact("entries_of") == self.engine.base:
            return
        digest = hashlib.sha256()  # says whether rows still mean the same words
        for word in self.space.source.index_to_key:
            digest.update(word.encode("utf-8", "surrogatepass") + b"\n")
        vocabulary = digest.hexdigest()
        with self.store.writing() as connection:
            connection.execute("DELETE FROM candidates")
            connection.execute("DELETE FROM entries WHERE row >= ?", (self.total,))
            if self.store.fact("vocabulary") != vocabulary:
                connection.execute("DELETE FROM entries")
            facts = {"vocabulary": vocabulary, "entries_of": self.engine.base, "entries_done": 0}
            empty = {"answers_done": 0, "entries_complete": None, "lemmatised": None}
            for name, value in (facts | empty).items():
                remember(connection, name, value)

    def _find_kinds(self) -> Kinds:
        """What tells kinds and headwords; the headwords are kept, so that later starts need no tables."""
        source, target = self.engine.translator.provenance.languages
        languages = (target, source) if self._reads else (source, target)
        kinds = Kinds(self.space, languages, self._give_way)
        if self.store.fact("lemmatised") is None:
            with self.store.writing() as connection:
                connection.execute("DELETE FROM forms")
                for side, words in enumerate((self.space.source, self.space.target)):
                    heads = ((row, kinds.head(side, row)) for row in range(len(words)))
                    connection.executemany(
                        "INSERT INTO forms VALUES (?, ?, ?)",
                        ((side, row, head) for row, head in heads if head != row),
                    )
                remember(connection, "lemmatised", kinds.lemmatised)
        return kinds

    def _side(self, direction: Direction, fact: str, total: int) -> bool:
        """Translate all words of one language; whether the end was reached is returned."""
        propose = self._stored if self._reads else self.engine.translator.proposer(direction, "csls")
        done = int(self.store.fact(fact, 0))
        if not self._reads:
            self.engine.stored[direction] = done
        if direction == self.direction and done < total:
            self._kinds = self._find_kinds()
            sample = self._searched(propose, sample_rows(self.total))  # what the queue's order compares with
            if sample is None:
                return False
            self._priorities = Priorities.of(sample)
        while done < total:
            queries = np.arange(done, min(done + _BLOCK, total), dtype=np.int64)
            proposals = self._searched(propose, queries)
            if proposals is None:
                return False
            done = int(queries[-1]) + 1
            with self.store.writing() as connection:
                if not self._reads:
                    _keep_candidates(connection, direction, queries, proposals)
                if direction == self.direction:
                    self._write_entries(connection, queries, proposals)
                remember(connection, fact, done)
            if not self._reads:
                self.engine.stored[direction] = done
            self.space.give_back_pages()
            time.sleep(_PAUSE)  # lets decisions that wait for the file go first
        return True

    def _stored(self, queries: Rows | Floats, k: int) -> Proposals:
        """The stored candidates of some rows."""
        found = Proposals.blank(len(queries), k)
        for place, row in enumerate(queries.tolist()):
            answers = self.engine.candidates(row, self.direction)
            if answers is not None:
                parts = (found.rows, found.scores, found.confidence, found.known)
                for name, part in zip(STORED.names or (), parts, strict=True):
                    part[place, : len(answers)] = answers[name][:k]  # type: ignore[index]
        return found

    def _searched(self, propose: Proposer, queries: Rows) -> Proposals | None:
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

    def _write_entries(self, connection: sqlite3.Connection, queries: Rows, proposals: Proposals) -> None:
        words, answers = self.space.source.index_to_key, self.space.target.index_to_key
        change = UNCHANGED if self._reads else self.engine.change
        new = change.of_all(proposals.confidence[:, 0])
        assert self._priorities is not None and self._kinds is not None
        pays = self._priorities(queries, proposals, self._kinds.listed(queries))
        kinds = self._kinds.of(queries, proposals.rows[:, :_KIND_CANDIDATES])
        rows = queries.tolist()
        found = connection.execute(
            "SELECT * FROM marks WHERE source IN (SELECT value FROM json_each(?))",
            (json.dumps([words[row] for row in rows]),),
        )
        marks = {mark["source"]: mark for mark in found}
        values = []
        for number, row in enumerate(rows):
            source, answer = words[row], int(proposals.rows[number, 0])
            target = answers[answer] if answer >= 0 else None
            if len(source) > LONGEST_WORD:
                continue
            if len(target or "") > LONGEST_WORD:
                target = None
            mark = marks.get(source)
            marked = mark["kind"] if mark else None
            kind = marked or kinds[number]
            head = row if marked and kind != "inflected" else self._kinds.head(0, row)
            lemma = answers[self._kinds.head(1, answer)] if target else None
            values.append(
                {
                    "row": row,
                    "source": source,
                    "target": target,
                    "source_key": source.casefold(),
                    "target_key": target.casefold() if target else None,
                    "score": float(proposals.scores[number, 0]) if target else None,
                    "model_confidence": _or_none(proposals.confidence[number, 0]),
                    "confidence": _or_none(new[number]),
                    "target_rank": answer + 1 if target else None,
                    "identical": source == target,
                    "known": bool(proposals.known[number, 0]),
                    "priority": in_queue(float(pays[number]), kind),
                    "shuffled": random.Random(row).getrandbits(31),
                    "kind": kind,
                    "headword": words[head] if len(words[head]) <= LONGEST_WORD else source,
                    "answer": lemma if lemma and len(lemma) <= LONGEST_WORD and head == row else target,
                    "assignee": mark["assignee"] if mark else "",
                }
            )
        if values:
            given = ", ".join(f":{name}" for name in values[0])
            updates = ", ".join(f"{name} = excluded.{name}" for name in values[0])
            connection.executemany(
                f"INSERT INTO entries ({', '.join(values[0])}) VALUES ({given}) "
                f"ON CONFLICT (row) DO UPDATE SET {updates}, mutual = NULL",
                values,
            )
        decided = connection.execute(
            "SELECT source FROM entries WHERE row BETWEEN ? AND ? AND "
            "(EXISTS (SELECT 1 FROM decisions WHERE decisions.source = entries.source) "
            "OR EXISTS (SELECT 1 FROM notes WHERE notes.source = entries.source))",
            (rows[0], rows[-1]),
        )
        for one in decided.fetchall():
            refresh(connection, one["source"])
        cover_forms(connection, rows[0], rows[-1])

    def _mark_mutual(self) -> None:
        """Say of every pair whether each word is the other's first answer."""
        if self.complete:
            return
        forward, best = (
            self._first_answers(self.direction),
            self._first_answers(DIRECTIONS[self.direction == "forward"]),
        )
        rows = np.arange(self.total)
        mutual = np.where(forward >= 0, best[np.maximum(forward, 0)] == rows, False)
        for start in range(0, self.total, _ROWS_PER_TRANSACTION):
            part = range(start, min(start + _ROWS_PER_TRANSACTION, self.total))
            with self.store.writing() as connection:
                connection.executemany(
                    "UPDATE entries SET mutual = ? WHERE row = ?", [(int(mutual[row]), row) for row in part]
                )
            time.sleep(_PAUSE)
        seeds = doubtful_seeds(self.engine.translator, _DOUBTFUL)  # that the model answers otherwise
        doubtful = dict.fromkeys(one.target if self._reads else one.source for one in seeds)
        with self.store.writing() as connection:
            connection.executemany(  # seeds have priority 0, doubtful ones less than any content word
                "UPDATE entries SET priority = ? WHERE source = ? AND known = 1",
                [(0.4 * (1 - place / len(doubtful)), source) for place, source in enumerate(doubtful)],
            )
            remember(connection, "entries_complete", self.engine.base)

    def _first_answers(self, direction: Direction) -> Rows:
        """The row of each word's first stored candidate; -1 where there is none."""
        first = np.full(len(self.engine.spaces[direction].source), -1, np.int64)
        query = "SELECT row, answers FROM candidates WHERE direction = ?"
        for row, answers in self.engine.store.rows(query, DIRECTIONS.index(direction)):
            if answers:
                first[row] = int.from_bytes(answers[:4], "little", signed=True)
        return first


def _keep_candidates(
    connection: sqlite3.Connection, direction: Direction, queries: Rows, proposals: Proposals
) -> None:
    made = np.empty(proposals.rows.shape, STORED)
    made["row"], made["score"] = proposals.rows, proposals.scores
    made["confidence"], made["known"] = proposals.confidence, proposals.known
    there = proposals.rows >= 0
    connection.executemany(
        "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?)",
        [
            (DIRECTIONS.index(direction), row, answers[kept].tobytes())
            for row, answers, kept in zip(queries.tolist(), made, there, strict=True)
        ],
    )


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
