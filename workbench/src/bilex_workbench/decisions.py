"""Decisions of people about words, and what all decisions about a word amount to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from bilex_workbench.api import RESPONSE
from bilex_workbench.database import now

Verdict = Literal["accept", "none", "skip"]
Status = Literal["unreviewed", "accepted", "corrected", "rejected", "skipped", "disagreement", "covered"]
STATUSES: tuple[str, ...] = get_args(Status)
DECIDED = "status IN ('accepted', 'corrected', 'rejected', 'disagreement')"


@dataclass(frozen=True)
class Decision:
    """One decision of one person about one source word.

    The verdict is to "accept" some translations, that "none" of those shown is right, or to "skip" the word
    for now, perhaps with verdicts about some candidates. Candidates in none of the three lists are unknown.
    """

    __pydantic_config__: ClassVar[Any] = RESPONSE
    source: str
    reviewer: str
    verdict: Verdict
    accepted: tuple[str, ...] = ()  # free text is allowed
    rejected: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()  # as shown, in that order
    best: str | None = None  # the model's first translation at that time
    note: str = ""
    kind: Literal["review", "audit", "import", "resolution"] = "review"
    at: str = ""
    undone: str | None = None  # when it was undone
    id: int = 0  # in the file; 0 before it is stored
    unsure: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What all standing decisions about a word amount to."""

    status: str = "unreviewed"
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    decided: str | None = None  # when the newest decision was made
    fresh: bool = False  # whether nobody was shown the model's first translation yet


def select_decisions(db: sqlite3.Connection, condition: str = "1", *values: Any) -> list[Decision]:
    """The decisions that fulfil a condition, oldest first, undone ones included."""
    found = []
    for row in db.execute(f"SELECT * FROM decisions WHERE {condition} ORDER BY id", values):
        lists = {
            name: tuple(json.loads(row[name])) for name in ("accepted", "rejected", "candidates", "unsure")
        }
        found.append(Decision(**{**dict(row), **lists}))
    return found


def decisions_by_word(db: sqlite3.Connection, condition: str = "1") -> dict[str, list[Decision]]:
    """The decisions that fulfil a condition by word, in the order of the words' first decisions."""
    found: dict[str, list[Decision]] = {}
    for decision in select_decisions(db, condition):
        found.setdefault(decision.source, []).append(decision)
    return found


def standing(decisions: Iterable[Decision]) -> list[Decision]:
    """Each person's newest decision that was not undone; a skip counts only where there is no other."""
    newest: dict[str, Decision] = {}
    for decision in decisions:
        earlier = newest.get(decision.reviewer)
        if decision.undone is None and (
            decision.verdict != "skip" or earlier is None or earlier.verdict == "skip"
        ):
            newest[decision.reviewer] = decision
    return sorted(newest.values(), key=lambda decision: decision.id)


def outcome(decisions: Iterable[Decision], best: str | None, answer: str | None = None) -> Outcome:
    """What the decisions about one word amount to.

    People disagree where one accepts a translation that another rejects, or where one accepts and another
    says that none is right. Otherwise all that somebody accepted is accepted. A resolution counts before all.
    """
    current = standing(decisions)
    judged = [decision for decision in current if decision.verdict != "skip"]
    wrong = dict.fromkeys(word for decision in current for word in decision.rejected)
    if not judged:
        return Outcome("skipped", (), tuple(wrong), decided=current[-1].at) if current else Outcome()
    people, decided = tuple(decision.reviewer for decision in judged), judged[-1].at
    final = [decision for decision in judged if decision.kind == "resolution"][-1:]
    if final:
        wrong = dict.fromkeys(final[0].rejected)
    counted = final or judged
    named = dict.fromkeys(word for decision in counted for word in decision.accepted)
    shown = {word for one in judged for word in (*one.candidates, *one.accepted, *one.rejected, one.best)}
    fresh = best is not None and best not in shown
    if len({decision.verdict for decision in counted}) > 1 or named.keys() & wrong.keys():
        return Outcome("disagreement", (), (), people, decided, fresh)
    status = "rejected" if not named else "accepted" if {best, answer} & named.keys() else "corrected"
    return Outcome(status, tuple(named), tuple(wrong), people, decided, fresh)


def all_outcomes(db: sqlite3.Connection) -> dict[str, Outcome]:
    """The outcome of every word with a decision, in the order of the words' first decisions."""
    about = decisions_by_word(db)
    query = "SELECT source, target, answer FROM entries WHERE source IN (SELECT source FROM decisions)"
    targets = {source: (target, answer) for source, target, answer in db.execute(query)}
    return {source: outcome(found, *targets.get(source, (None, None))) for source, found in about.items()}


def refresh(db: sqlite3.Connection, source: str) -> None:
    """Bring a word's row of the table, and those of its forms, up to date with the decisions about it."""
    row = db.execute("SELECT row, target, answer FROM entries WHERE source = ?", (source,)).fetchone()
    if row is None:  # the model does not have the word
        return
    found = outcome(select_decisions(db, "source = ?", source), row["target"], row["answer"])
    accepted, people = _json(found.accepted), _json(found.reviewers)
    db.execute(
        "UPDATE entries SET status = ?, accepted = ?, reviewers = ?, decisions = ?, decided = ?, fresh = ?, "
        "noted = EXISTS (SELECT 1 FROM notes WHERE notes.source = entries.source) WHERE row = ?",
        (found.status, accepted, people, len(found.reviewers), found.decided, found.fresh, row["row"]),
    )
    cover_forms(db, "(headword = ? OR row = ?)", source, row["row"])


def cover_forms(db: sqlite3.Connection, condition: str, *values: Any) -> None:
    """Mark forms without a decision as covered where their headword is decided, else as unreviewed."""
    db.execute(
        "UPDATE entries SET status = CASE WHEN EXISTS (SELECT 1 FROM entries head "
        f"WHERE head.source = entries.headword AND head.{DECIDED}) THEN 'covered' ELSE 'unreviewed' END "
        f"WHERE {condition} AND headword <> source AND status IN ('unreviewed', 'covered')",
        values,
    )


def record(db: sqlite3.Connection, decision: Decision) -> Decision:
    """Store a decision, within a transaction."""
    decision = replace(decision, at=decision.at or now())
    values = {
        name: _json(value) if isinstance(value, tuple) else value
        for name, value in vars(decision).items()
        if name not in ("id", "undone")
    }
    cursor = db.execute(
        f"INSERT INTO decisions ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
        tuple(values.values()),
    )
    if decision.note:
        set_note(db, decision.source, decision.reviewer, decision.note)
    refresh(db, decision.source)
    return replace(decision, id=cursor.lastrowid or 0)


def undo(db: sqlite3.Connection, number: int) -> Decision:
    """Mark a decision as undone."""
    db.execute("UPDATE decisions SET undone = ? WHERE id = ?", (now(), number))
    (decision,) = select_decisions(db, "id = ?", number)
    refresh(db, decision.source)
    return decision


def set_note(db: sqlite3.Connection, source: str, reviewer: str, note: str) -> None:
    """Store the one note of a person about a word; an empty one removes it."""
    if note:
        values = (source, reviewer, note, now())
        db.execute("INSERT OR REPLACE INTO notes (source, reviewer, note, at) VALUES (?, ?, ?, ?)", values)
    else:
        db.execute("DELETE FROM notes WHERE source = ? AND reviewer = ?", (source, reviewer))
    refresh(db, source)


def _json(words: Iterable[str]) -> str:
    return json.dumps(list(words), ensure_ascii=False)
