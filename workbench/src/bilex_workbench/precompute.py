"""The table of the dictionary, which is filled in the background.

The table has every word with its best translations, kind and priority, the most frequent words first. Few
words are searched at a time, and hardly any while requests come. A server that is started again continues
where it was.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import threading
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bilex.fit.calibration import Numbers
from bilex.model.answers import Proposals, doubtful_seeds
from bilex.model.space import Direction, Rows
from bilex_workbench.api import LONGEST_WORD, Response
from bilex_workbench.database import Database, fact, set_facts
from bilex_workbench.decisions import cover_forms, refresh
from bilex_workbench.engine import DIRECTIONS, STORED, STORED_CANDIDATES, Engine, candidates
from bilex_workbench.kinds import Kinds
from bilex_workbench.statistics import UNCHANGED, or_none

_BLOCK, _IDLE_BLOCK = 32, 256  # words per search and transaction; the latter if no request came for a while
_BUSY_SECONDS, _IDLE_SECONDS = 0.5, 10.0
_PAUSE, _BUSY_PAUSE, _LONGEST_PAUSE, _LOOK_EVERY = 0.01, 0.05, 1.0, 0.2
_ROWS_PER_TRANSACTION = 8192
_KIND_CANDIDATES = 5
_DOUBTFUL = 500  # seeds that are offered for another look
_FREQUENT, _SAMPLE = 20_000, 1_000
_UNLISTED = 0.3  # weight of words that no table lists as a lemma: forms without one, names, rare compounds
COMPARED = 2  # candidates that a priority depends on: the first, and how far the second is behind


class Priorities:
    """The value of a decision about each entry, relative to a sample of frequent words (their `leads`).

    Decisions in this order correct the dictionary most often, and where readers meet it. What the model
    learns from them about other words differs little between orders (research/workbench.md).
    """

    def __init__(self, leads: Numbers) -> None:
        self._leads = np.sort(leads)

    def __call__(self, rows: Rows, found: Proposals, listed: npt.NDArray[np.bool_]) -> Numbers:
        """From 0 to 1: uncertain × frequent, less where not listed; 0 for entries that the seeds know.

        Uncertain is the share of the sample with a greater lead, which needs no confidence: a model of few
        seeds has none. The weight of frequency falls with the logarithm of the rank.
        """
        own = leads(found)
        ties = np.searchsorted(self._leads, own, "left") + np.searchsorted(self._leads, own, "right")
        uncertain = 1 - (ties + 1) / (2 * len(self._leads) + 2)  # never quite 0 or 1
        frequent = 1 / (1 + np.log10(1 + rows))
        open_entries = (found.rows[:, 0] >= 0) & ~found.known[:, 0]
        return np.where(open_entries, uncertain * frequent * np.where(listed, 1.0, _UNLISTED), 0.0)


def leads(found: Proposals) -> Numbers:
    """How far the second translation is behind the first; 0 for words with one translation."""
    scores = found.scores.astype(np.float64)
    if scores.shape[1] < COMPARED:
        return np.zeros(len(scores))
    return np.nan_to_num(scores[:, 0] - scores[:, 1], nan=0.0)


def sample_rows(words: int) -> Rows:
    """At most a thousand rows, evenly spread over the frequent words."""
    frequent = min(words, _FREQUENT)
    return np.unique(np.linspace(0, frequent - 1, min(frequent, _SAMPLE)).astype(np.int64))


def in_queue(priority: float, kind: str) -> float:
    """The place of an entry in the queue, from 0 to 1: content words come before all others."""
    return priority and (priority + (kind == "content")) / 2


class Filled(Response):
    """How far the table is filled."""

    done: int
    total: int
    complete: bool


class _StoppedError(Exception):
    """The server ends or opens another model."""


class Precompute(threading.Thread):
    """Fills the table of one direction from an open model.

    The review file of source words stores the candidates of both languages; the other table uses them.
    """

    def __init__(self, engine: Engine, database: Database, direction: Direction = "forward") -> None:
        super().__init__(name="precompute", daemon=True)
        self.engine, self.database, self.direction = engine, database, direction
        self.forward = direction == "forward"
        self.space = engine.spaces[direction]
        self.error: str | None = None
        self._stopped = threading.Event()
        done = database.fact("entries_done", 0) if database.fact("entries_of") == engine.base else 0
        complete = database.fact("entries_complete") == engine.base  # all columns are filled
        total = len(self.space.source)
        self.filled = Filled(done=min(total, done), total=total, complete=complete)

    def stop(self) -> None:
        """End after the current block."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Fill what is missing."""
        try:
            self._reset()
            while not self.forward and self.engine.database.fact("entries_complete") != self.engine.base:
                self._give_way()
                time.sleep(_LOOK_EVERY)
            self._fill(self.direction)
            if self.forward:
                self._fill("backward")
            if not self.filled.complete:
                self._mark_mutual()
            for keys in self.space.keys.values():
                self._give_way()
                keys.prepare()
        except _StoppedError:
            pass
        except (sqlite3.Error, OSError, ValueError, RuntimeError) as error:  # also while the process ends
            self.error = f"The table could not be filled ({error}); restart the server."

    def _give_way(self) -> None:
        """Wait while requests come, but go on a little even if they never stop."""
        end = time.monotonic() + _LONGEST_PAUSE
        while self.engine.quiet_seconds < _BUSY_SECONDS and time.monotonic() < end:
            if self._stopped.wait(_BUSY_PAUSE):
                break
        if self._stopped.is_set():
            raise _StoppedError

    def _blocks(self, rows: Rows) -> Iterator[Rows]:
        """Some rows after the other, with pauses for requests."""
        start = 0
        while start < len(rows):
            self._give_way()
            size = _IDLE_BLOCK if self.engine.quiet_seconds > _IDLE_SECONDS else _BLOCK
            yield rows[start : start + size]
            start += size

    def _reset(self) -> None:
        """Start from nothing if the file was filled from another model."""
        if self.database.fact("entries_of") == self.engine.base:
            return
        words = "\n".join(self.space.source.index_to_key).encode("utf-8", "surrogatepass") + b"\n"
        vocabulary = hashlib.sha256(words).hexdigest()  # tells whether rows still mean the same words
        with self.database.writing() as db:
            db.execute("DELETE FROM candidates")
            db.execute("DELETE FROM entries WHERE row >= ?", (self.filled.total,))
            if fact(db, "vocabulary") != vocabulary:
                db.execute("DELETE FROM entries")
            set_facts(db, vocabulary=vocabulary, entries_of=self.engine.base, entries_complete=None)
            set_facts(db, entries_done=0, answers_done=0, lemmatised=None)

    def _fill(self, direction: Direction) -> None:
        """Translate all words of one language, and write their entries if they are this table's."""
        search = self.engine.translator.proposer(direction, "csls")
        propose = search if self.forward else lambda rows, k: self._stored(rows)
        own = direction == self.direction
        done_fact = "entries_done" if own else "answers_done"
        done, total = self.database.fact(done_fact, 0), len(self.engine.spaces[direction].source)
        if own and done < total:
            kinds = self._find_kinds()
            sampled = [leads(propose(rows, STORED_CANDIDATES)) for rows in self._blocks(sample_rows(total))]
            priorities = Priorities(np.concatenate(sampled))
        if self.forward:
            self.engine.stored[direction] = done
        for rows in self._blocks(np.arange(done, total, dtype=np.int64)):
            proposals = propose(rows, STORED_CANDIDATES)
            with self.database.writing() as db:
                if self.forward:
                    _store_candidates(db, direction, rows, proposals)
                if own:
                    self._write_entries(db, rows, proposals, kinds, priorities)
                done = int(rows[-1]) + 1
                set_facts(db, **{done_fact: done})
            if own:
                self.filled.done = done
            if self.forward:
                self.engine.stored[direction] = done
            self.space.release_pages()
            time.sleep(_PAUSE)  # decisions that wait for the file go first

    def _stored(self, rows: Rows) -> Proposals:
        """The stored candidates of some rows."""
        found = Proposals.blank(len(rows), STORED_CANDIDATES)
        with self.engine.database.reading() as db:
            for place, row in enumerate(rows.tolist()):
                stored = candidates(db, row, self.direction)
                if stored is not None:
                    for name in STORED.names or ():
                        getattr(found, name)[place, : len(stored)] = stored[name]
        return found

    def _find_kinds(self) -> Kinds:
        """What finds kinds and headwords; the headwords are stored for later starts."""
        source, target = self.engine.translator.provenance.languages
        kinds = Kinds(self.space, (source, target) if self.forward else (target, source), self._give_way)
        if self.database.fact("lemmatised") is None:
            with self.database.writing() as db:
                db.execute("DELETE FROM forms")
                for side, words in enumerate((self.space.source, self.space.target)):
                    heads = ((side, row, kinds.head(side, row)) for row in range(len(words)))
                    db.executemany(
                        "INSERT INTO forms VALUES (?, ?, ?)", (one for one in heads if one[1] != one[2])
                    )
                set_facts(db, lemmatised=kinds.lemmatised)
        return kinds

    def _write_entries(
        self, db: sqlite3.Connection, rows: Rows, found: Proposals, kinds: Kinds, priorities: Priorities
    ) -> None:
        words, answers = self.space.source.index_to_key, self.space.target.index_to_key
        change = self.engine.change if self.forward else UNCHANGED
        confidences = change.of_all(found.confidence[:, 0])
        worth = priorities(rows, found, kinds.listed(rows))
        kind_names = kinds.of(rows, found.rows[:, :_KIND_CANDIDATES])
        first, last = int(rows[0]), int(rows[-1])
        query = "SELECT * FROM marks WHERE source IN (SELECT value FROM json_each(?))"
        listed = json.dumps(words[first : last + 1])
        marks = {mark["source"]: (mark["kind"], mark["assignee"]) for mark in db.execute(query, (listed,))}
        values = []
        for number, row in enumerate(rows.tolist()):
            source, answer = words[row], int(found.rows[number, 0])
            if len(source) > LONGEST_WORD:
                continue
            target = answers[answer] if answer >= 0 and len(answers[answer]) <= LONGEST_WORD else None
            marked, assignee = marks.get(source, (None, ""))
            kind = marked or kind_names[number]
            head = row if marked and kind != "inflected" else kinds.head(0, row)
            lemma = answers[kinds.head(1, answer)] if target and head == row else None
            values.append(
                {
                    "row": row,
                    "source": source,
                    "target": target,
                    "source_key": source.casefold(),
                    "target_key": target.casefold() if target else None,
                    "score": float(found.scores[number, 0]) if target else None,
                    "model_confidence": or_none(found.confidence[number, 0]),
                    "confidence": or_none(confidences[number]),
                    "target_rank": answer + 1 if target else None,
                    "identical": source == target,
                    "known": bool(found.known[number, 0]),
                    "priority": in_queue(float(worth[number]), kind),
                    "shuffled": random.Random(row).getrandbits(31),
                    "kind": kind,
                    "headword": words[head] if len(words[head]) <= LONGEST_WORD else source,
                    "answer": lemma if lemma and len(lemma) <= LONGEST_WORD else target,
                    "assignee": assignee,
                }
            )
        if values:
            given = ", ".join(f":{name}" for name in values[0])
            updates = ", ".join(f"{name} = excluded.{name}" for name in values[0])
            db.executemany(
                f"INSERT INTO entries ({', '.join(values[0])}) VALUES ({given}) "
                f"ON CONFLICT (row) DO UPDATE SET {updates}, mutual = NULL",
                values,
            )
        decided = db.execute(
            "SELECT source FROM entries WHERE row BETWEEN ? AND ? AND "
            "(EXISTS (SELECT 1 FROM decisions WHERE decisions.source = entries.source) "
            "OR EXISTS (SELECT 1 FROM notes WHERE notes.source = entries.source))",
            (first, last),
        )
        for (source,) in decided.fetchall():
            refresh(db, source)
        cover_forms(db, "row BETWEEN ? AND ?", first, last)

    def _mark_mutual(self) -> None:
        """Store which pairs are each other's first answers, and which seeds are doubtful."""
        other = DIRECTIONS[self.forward]
        forward, backward = self._first_answers(self.direction), self._first_answers(other)
        mutual = (forward >= 0) & (backward[np.maximum(forward, 0)] == np.arange(self.filled.total))
        for start in range(0, self.filled.total, _ROWS_PER_TRANSACTION):
            part = range(start, min(start + _ROWS_PER_TRANSACTION, self.filled.total))
            with self.database.writing() as db:
                values = [(int(mutual[row]), row) for row in part]
                db.executemany("UPDATE entries SET mutual = ? WHERE row = ?", values)
            time.sleep(_PAUSE)
        seeds = doubtful_seeds(self.engine.translator, _DOUBTFUL)
        doubtful = dict.fromkeys(one.source if self.forward else one.target for one in seeds)
        with self.database.writing() as db:
            db.executemany(  # seeds have priority 0, doubtful ones less than any content word
                "UPDATE entries SET priority = ? WHERE source = ? AND known = 1",
                [(0.4 * (1 - place / len(doubtful)), source) for place, source in enumerate(doubtful)],
            )
            set_facts(db, entries_complete=self.engine.base)
        self.filled.complete = True

    def _first_answers(self, direction: Direction) -> Rows:
        """The row of each word's first stored candidate; -1 where there is none."""
        first = np.full(len(self.engine.spaces[direction].source), -1, np.int64)
        query = "SELECT row, answers FROM candidates WHERE direction = ?"
        with self.engine.database.reading() as db:
            for row, answers in db.execute(query, (DIRECTIONS.index(direction),)):
                if answers:
                    first[row] = np.frombuffer(answers, STORED, 1)["rows"][0]
        return first


def _store_candidates(db: sqlite3.Connection, direction: Direction, rows: Rows, found: Proposals) -> None:
    made = np.empty(found.rows.shape, STORED)
    for name in STORED.names or ():
        made[name] = getattr(found, name)
    values = [
        (DIRECTIONS.index(direction), row, answers[answers["rows"] >= 0].tobytes())
        for row, answers in zip(rows.tolist(), made, strict=True)
    ]
    db.executemany("INSERT OR REPLACE INTO candidates VALUES (?, ?, ?)", values)
