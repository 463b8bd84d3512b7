"""What people decided about a word, and what follows from all of it together."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from bilex_workbench.interface import ANSWERED, ProblemError
from bilex_workbench.store import Store, now

Verdict = Literal["accept", "none", "skip"]
Status = Literal["unreviewed", "accepted", "corrected", "rejected", "skipped", "disagreement", "covered"]
STATUSES: tuple[str, ...] = get_args(Status)
DECIDED = "status IN ('accepted', 'corrected', 'rejected', 'disagreement')"


@dataclass(frozen=True)
class Decision:
    """One decision of one person about one source word.

    The verdict is to "accept" some translations, that "none" of those shown is right, or "skip": left for
    later, perhaps with verdicts about some candidates. Candidates that were shown and stand in none of the
    three lists are unknown.
    """

    __pydantic_config__: ClassVar[Any] = ANSWERED
    source: str
    reviewer: str
    verdict: Verdict
    accepted: tuple[str, ...] = ()  # free text is allowed
    rejected: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()  # what was shown, in that order
    best: str | None = None  # the model's first translation at that time
    note: str = ""
    kind: Literal["review", "audit", "import", "resolution"] = "review"
    at: str = ""
    undone: str | None = None  # when it was taken back
    id: int = 0  # its number in the file; 0 before it is there
    unsure: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> Decision:
        """A row of the table `decisions`."""
        values = dict(row)
        for name in ("accepted", "rejected", "candidates", "unsure"):
            values[name] = tuple(json.loads(values[name]))
        return cls(**values)


@dataclass(frozen=True)
class Outcome:
    """What all standing decisions about a word come to."""

    status: str = "unreviewed"
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    decisions: int = 0  # how many people decided
    decided: str | None = None  # when the newest decision was made
    fresh: bool = False  # whether the model's first translation is one that nobody was shown yet


def standing(decisions: Iterable[Decision]) -> list[Decision]:
    """Each person's newest decision that was not taken back; a skip counts only where there is no other."""
    newest: dict[str, Decision] = {}
    for decision in decisions:
        if decision.undone is not None:
            continue
        earlier = newest.get(decision.reviewer)
        if decision.verdict != "skip" or earlier is None or earlier.verdict == "skip":
            newest[decision.reviewer] = decision
    return sorted(newest.values(), key=lambda decision: decision.id)


def outcome(decisions: Iterable[Decision], best: str | None, answer: str | None = None) -> Outcome:
    """What the decisions about one word come to.

    People disagree where one accepts a translation that another rejects, or where one accepts and another
    says that none is right. Otherwise accepted is what somebody accepted. A resolution counts before all.
    """
    stands = standing(decisions)
    judged = [decision for decision in stands if decision.verdict != "skip"]
    wrong = dict.fromkeys(word for decision in stands for word in decision.rejected)
    if not judged:
        return Outcome("skipped", (), tuple(wrong), decided=stands[-1].at) if stands else Outcome()
    people = tuple(dict.fromkeys(decision.reviewer for decision in judged))
    final = [decision for decision in judged if decision.kind == "resolution"]
    counted = final[-1:] or judged
    if final:
        wrong = dict.fromkeys(final[-1].rejected)
    named = dict.fromkeys(word for decision in counted for word in decision.accepted)
    verdicts = {decision.verdict for decision in counted}
    shown = {word for one in judged for word in (*one.candidates, *one.accepted, *one.rejected, one.best)}
    fresh = best is not None and best not in shown
    if len(verdicts) > 1 or named.keys() & wrong.keys():
        return Outcome("disagreement", (), (), people, len(people), judged[-1].at, fresh)
    status = "rejected" if not named else "accepted" if {best, answer} & named.keys() else "corrected"
    return Outcome(status, tuple(named), tuple(wrong), people, len(people), judged[-1].at, fresh)


def decisions_about(connection: sqlite3.Connection | Store, source: str) -> list[Decision]:
    """All decisions about a word, oldest first, those taken back included."""
    rows = connection.execute("SELECT * FROM decisions WHERE source = ? ORDER BY id", (source,))
    return [Decision.from_row(row) for row in rows]


def refresh(connection: sqlite3.Connection, source: str) -> None:
    """Bring a word's row of the table, and those of its forms, up to date with the decisions about it."""
    row = connection.execute(
        "SELECT row, target, answer, headword FROM entries WHERE source = ?", (source,)
    ).fetchone()
    if row is None:  # the model does not have the word
        return
    found = outcome(decisions_about(connection, source), row["target"], row["answer"])
    people, decided = _json(found.reviewers), found.decided
    connection.execute(
        "UPDATE entries SET status = ?, accepted = ?, reviewers = ?, decisions = ?, decided = ?, fresh = ?, "
        "noted = EXISTS (SELECT 1 FROM notes WHERE notes.source = entries.source) WHERE row = ?",
        (found.status, _json(found.accepted), people, found.decisions, decided, found.fresh, row["row"]),
    )
    if row["headword"] == source:
        connection.execute(
            f"UPDATE entries SET status = CASE WHEN (SELECT {DECIDED} FROM entries WHERE source = ?1) "
            "THEN 'covered' ELSE 'unreviewed' END "
            "WHERE headword = ?1 AND source <> ?1 AND status IN ('unreviewed', 'covered')",
            (source,),
        )
    else:
        cover_forms(connection, row["row"], row["row"])


def cover_forms(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Mark the forms of some rows that nobody decided on as covered where their headword is decided."""
    connection.execute(
        "UPDATE entries SET status = CASE WHEN EXISTS (SELECT 1 FROM entries head "
        f"WHERE head.source = entries.headword AND head.{DECIDED}) THEN 'covered' ELSE 'unreviewed' END "
        "WHERE row BETWEEN ? AND ? AND headword <> source AND status IN ('unreviewed', 'covered')",
        (first, last),
    )


def record(connection: sqlite3.Connection, decision: Decision) -> Decision:
    """Add a decision, within a transaction."""
    decision = replace(decision, at=decision.at or now())
    values = {
        name: _json(value) if isinstance(value, tuple) else value
        for name, value in vars(decision).items()
        if name not in ("id", "undone")
    }
    cursor = connection.execute(
        f"INSERT INTO decisions ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
        tuple(values.values()),
    )
    if decision.note:
        set_note(connection, decision.source, decision.reviewer, decision.note)
    refresh(connection, decision.source)
    return replace(decision, id=cursor.lastrowid or 0)


def undo(connection: sqlite3.Connection, reviewer: str) -> Decision:
    """Take back a person's newest decision that stands, those of audits apart."""
    row = connection.execute(
        "SELECT id FROM decisions WHERE reviewer = ? AND undone IS NULL AND kind <> 'audit' "
        "ORDER BY id DESC LIMIT 1",
        (reviewer,),
    ).fetchone()
    if row is None:
        raise ProblemError(409, f"'{reviewer}' has no decision left to take back.")
    return take_back(connection, row["id"])


def take_back(connection: sqlite3.Connection, number: int) -> Decision:
    """Mark a decision as taken back."""
    connection.execute("UPDATE decisions SET undone = ? WHERE id = ?", (now(), number))
    row = connection.execute("SELECT * FROM decisions WHERE id = ?", (number,)).fetchone()
    refresh(connection, row["source"])
    return Decision.from_row(row)


def set_note(connection: sqlite3.Connection, source: str, reviewer: str, note: str) -> None:
    """Keep one note per person and word; an empty one removes it."""
    if note:
        connection.execute(
            "INSERT OR REPLACE INTO notes (source, reviewer, note, at) VALUES (?, ?, ?, ?)",
            (source, reviewer, note, now()),
        )
    else:
        connection.execute("DELETE FROM notes WHERE source = ? AND reviewer = ?", (source, reviewer))
    refresh(connection, source)


def notes_of(store: Store, source: str) -> list[dict[str, Any]]:
    """The notes about a word, newest first."""
    query = "SELECT reviewer, note, at FROM notes WHERE source = ? ORDER BY id DESC"
    return [dict(row) for row in store.all(query, source)]


def all_outcomes(store: Store) -> dict[str, Outcome]:
    """What was decided about every word that somebody decided on, in order of its first decision."""
    about: dict[str, list[Decision]] = {}
    for row in store.all("SELECT * FROM decisions ORDER BY id"):
        about.setdefault(row["source"], []).append(Decision.from_row(row))
    found = store.all(
        "SELECT source, target, answer FROM entries WHERE source IN (SELECT source FROM decisions)"
    )
    targets = {row["source"]: (row["target"], row["answer"]) for row in found}
    return {
        source: outcome(decisions, *targets.get(source, (None, None))) for source, decisions in about.items()
    }


def _json(words: Iterable[str]) -> str:
    return json.dumps(list(words), ensure_ascii=False)
