"""The dictionary as a table: filters, sorting, pages, and bulk actions."""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field, Json, StringConstraints, field_validator

from bilex_workbench import api
from bilex_workbench.database import dicts, now, value
from bilex_workbench.decisions import STATUSES, Decision, Status, Verdict, record, refresh, undo
from bilex_workbench.kinds import KINDS, Kind
from bilex_workbench.precompute import in_queue
from bilex_workbench.workbench import BookOf, Reader

router = APIRouter(tags=["table"])
_SORTS = {
    "source_rank": "row",
    "target_rank": "target_rank",
    "source": "source_key",
    "target": "target_key",
    "score": "score",
    "confidence": "confidence",
    "status": "status",
    "decided": "decided",
    "priority": "priority",
    "kind": "kind",
}
_DIVISIONS = {  # how entries are ordered, and which of them stay together
    "even": ("priority DESC", "row"),
    "range": ("row", "row"),
    "letter": ("source_key", "letter"),
    "kind": ("shown_kind", "shown_kind"),
}
_MATCHES = {"contains": "instr({0}, ?) > 0", "prefix": "({0} >= ? AND {0} < ?)", "exact": "{0} = ?"}
_MOST_FORMS = 200
_ROW = (
    "source, target, score, confidence, row + 1 source_rank, target_rank, mutual, identical, known, status, "
    "accepted, reviewers, decisions, decided, noted, kind, coalesce(headword, source) headword, answer, "
    "fresh, assignee, (SELECT count(*) FROM entries form WHERE form.headword = entries.source "
    "AND form.row <> entries.row) forms"
)
Rank = Annotated[int | None, Query(ge=1)]
Sort = Annotated[str, Query(pattern=f"^-?({'|'.join(_SORTS)})$")]


@dataclass(frozen=True)
class Filter:
    """Which entries to find; the fields are the parameters of `GET /api/entries`."""

    q: api.TextQuery = ""
    within: Annotated[Literal["both", "source", "target"], Query(alias="in")] = "both"
    match: Literal["contains", "prefix", "exact"] = "contains"
    min_confidence: api.Share = None
    max_confidence: api.Share = None
    min_rank: Rank = None
    max_rank: Rank = None
    status: str = ""
    mutual: bool | None = None
    identical: bool | None = None
    noted: bool | None = None
    reviewer: api.TextQuery = ""
    kind: str = ""
    known: bool | None = None
    doubtful: bool | None = None
    fresh: bool | None = None
    heads: bool | None = None
    headword: api.TextQuery = ""
    assignee: api.TextQuery = ""

    def condition(self) -> tuple[str, list[Any]]:
        """The filter as an SQL condition with its values."""
        found: list[tuple[str, list[Any]]] = []
        if self.q:
            text = self.q.casefold()
            values = [text, text + "\U0010ffff"] if self.match == "prefix" else [text]
            keys = [f"{side}_key" for side in ("source", "target") if self.within in ("both", side)]
            parts = [_MATCHES[self.match].format(key) for key in keys]
            found.append((f"({' OR '.join(parts)})", values * len(keys)))
        for name, allowed in (("status", STATUSES), ("kind", KINDS)):
            if chosen := listed(getattr(self, name), name, allowed):
                found.append((f"{name} IN ({', '.join('?' * len(chosen))})", chosen))
        if self.reviewer:
            decided = "SELECT source FROM decisions WHERE reviewer = ? AND undone IS NULL"
            found.append((f"source IN ({decided})", [self.reviewer]))
        if self.doubtful is not None:  # seeds have priority 0 unless the model answers otherwise
            found.append((f"{'' if self.doubtful else 'NOT '}(known = 1 AND priority > 0)", []))
        if self.heads is not None:
            found.append((f"headword {'=' if self.heads else '<>'} source", []))
        compared: dict[str, Any] = {
            "confidence >= ?": self.min_confidence,
            "confidence <= ?": self.max_confidence,
            "row >= ? - 1": self.min_rank,
            "row <= ? - 1": self.max_rank,
            "headword = ?": self.headword or None,
            "assignee = ?": self.assignee or None,
        }
        for name in ("mutual", "identical", "noted", "known", "fresh"):
            compared[f"{name} = ?"] = getattr(self, name)
        found += [(part, [value]) for part, value in compared.items() if value is not None]
        condition = " AND ".join(part for part, _ in found) or "1"
        return condition, [value for _, values in found for value in values]


def listed(text: str, name: str, allowed: Sequence[str]) -> list[str]:
    """The values of a comma-separated list."""
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    if not set(chosen) <= set(allowed):
        message = f"{name.capitalize()} '{text[:100]}' is not known; use {', '.join(allowed)}."
        raise api.ProblemError(400, message)
    return chosen


def _within_band(book: BookOf, wanted: Annotated[Filter, Depends()], band: str | None = None) -> Filter:
    if not band:
        return wanted
    for one in book.bands:
        if one.name == band:
            first, last = max(wanted.min_rank or 1, one.first), min(wanted.max_rank or one.last, one.last)
            return replace(wanted, min_rank=first, max_rank=last)
    raise api.ProblemError(400, f"There is no frequency band '{band}'; see 'bands' of /api/model.")


Wanted = Annotated[Filter, Depends(_within_band)]


class Row(api.Response):
    """An entry: a source word with the model's best translation and what people decided."""

    source: str
    target: str | None
    score: float | None
    confidence: float | None
    source_rank: int
    target_rank: int | None
    mutual: bool | None
    identical: bool
    known: bool
    status: Status
    accepted: Json[list[str]]
    reviewers: Json[list[str]]
    decisions: int
    decided: str | None
    noted: bool
    kind: Kind
    headword: str
    answer: str | None
    forms: int
    fresh: bool
    assignee: str


EntryPage = api.response(
    "EntryPage", total=int, offset=int, limit=int, complete=bool, columns=list[str], rows=list[Row]
)


@router.get("/api/entries", response_model=EntryPage)
def entries(
    book: BookOf,
    db: Reader,
    wanted: Wanted,
    offset: api.Offset = 0,
    limit: api.Limit = 100,
    sort: Sort = "source_rank",
) -> Any:
    """A page of the table; entries without a value in the sorted column come last."""
    condition, values = wanted.condition()
    direction = "DESC" if sort.startswith("-") else "ASC"
    order = f"{_SORTS[sort.removeprefix('-')]} {direction} NULLS LAST, row {direction}"  # as in the indices
    page = f"SELECT row FROM entries WHERE {condition} ORDER BY {order} LIMIT {limit} OFFSET {offset}"
    return {
        "total": value(db, f"SELECT count(*) FROM entries WHERE {condition}", *values),
        "offset": offset,
        "limit": limit,
        "complete": book.filled.complete,
        "columns": list(Row.model_fields),
        "rows": select_rows(db, f"row IN ({page}) ORDER BY {order}", *values),
    }


def select_rows(db: sqlite3.Connection, condition: str, *values: Any) -> list[dict[str, Any]]:
    """The entries that fulfil a condition, as `Row`s."""
    return dicts(db, f"SELECT {_ROW} FROM entries WHERE {condition}", *values)


def entry_of(db: sqlite3.Connection, source: str) -> dict[str, Any]:
    """The entry of a source word."""
    for row in select_rows(db, "source = ?", source):
        return row
    raise api.ProblemError(404, f"'{source[:100]}' is not in the table.")


def forms_of(db: sqlite3.Connection, source: str) -> list[str]:
    """The other forms that are listed under a headword, most frequent first."""
    query = (
        f"SELECT source FROM entries WHERE headword = ?1 AND source <> ?1 ORDER BY row LIMIT {_MOST_FORMS}"
    )
    return [form for (form,) in db.execute(query, (source,))]


# Bulk actions.


class ManyIn(api.Body):
    """The entries of a bulk action: those named, or all that the filter of the address finds."""

    reviewer: api.Name
    sources: Annotated[list[api.Word], Field(max_length=10_000)] | None = None

    def condition(self, wanted: Filter) -> tuple[str, list[Any]]:
        """The choice as an SQL condition with its values."""
        if self.sources is None:
            return wanted.condition()
        return "source IN (SELECT value FROM json_each(?))", [json.dumps(self.sources)]


class MarkIn(ManyIn):
    """A kind or an assignee for many entries; null leaves it as it is."""

    kind: Kind | None = None
    assignee: Annotated[api.Text, StringConstraints(max_length=60, strip_whitespace=True)] | None = None


class AssignIn(ManyIn):
    """The people among whom entries are divided, and how."""

    people: list[api.Name] = Field(min_length=1, max_length=50)
    by: Literal["even", "range", "letter", "kind"] = "even"

    @field_validator("people")
    @classmethod
    def _different(cls, people: list[str]) -> list[str]:
        if len(set(people)) < len(people):
            raise ValueError("a person is named twice")
        return people


class DecideManyIn(ManyIn):
    """A verdict about the first answer of many entries."""

    verdict: Verdict


class BatchIn(api.Body):
    """The bulk action to undo."""

    batch: int = Field(ge=1, le=2**53)


Batch = api.response(
    "Batch",
    "A bulk action: its number, for undo, how many entries it changed, who did it and when.",
    batch=int,
    changed=int,
    at=str,
    reviewer=str,
    action=Literal["mark", "decide"],
    undone=str | None,
)
PersonShare = api.response("PersonShare", "How many entries somebody got.", name=str, entries=int)
BatchAnswer = api.response("BatchAnswer", batch=int, changed=int)
BatchesAnswer = api.response("BatchesAnswer", batches=[Batch])
AssignedAnswer = api.response("AssignedAnswer", batch=int, changed=int, people=[PersonShare])


@router.post("/api/entries/mark", response_model=BatchAnswer)
def mark_entries(book: BookOf, wanted: Wanted, body: MarkIn) -> Any:
    """Correct the kind of many entries, or assign them to somebody."""
    if body.kind is None and body.assignee is None:
        raise api.ProblemError(400, "Nothing would change; name a kind or an assignee.")
    with book.database.writing() as db:
        marks = _marks(db, body, wanted, "row")
        return _mark(db, marks, body.reviewer, body.kind, [body.assignee] * len(marks))


@router.post("/api/entries/assign", response_model=AssignedAnswer)
def assign_entries(book: BookOf, wanted: Wanted, body: AssignIn) -> Any:
    """Divide many entries among people: evenly, by frequency range, by letter or by kind."""
    order, key = _DIVISIONS[body.by]
    with book.database.writing() as db:
        marks = _marks(db, body, wanted, order)
        places = divide([mark[key] for mark in marks], len(body.people), body.by)
        batch = _mark(db, marks, body.reviewer, None, [body.people[place] for place in places])
    people = [{"name": name, "entries": places.count(place)} for place, name in enumerate(body.people)]
    return {**batch, "people": people}


def _marks(db: sqlite3.Connection, body: ManyIn, wanted: Filter, order: str) -> list[sqlite3.Row]:
    """The chosen entries: each source word, the kind and assignee that people gave it, and what is shown."""
    condition, values = body.condition(wanted)
    return db.execute(
        "SELECT chosen.source, marks.kind, coalesce(marks.assignee, '') assignee, shown_kind, priority, "
        "headword, row, letter FROM (SELECT row, source, kind shown_kind, source_key, "
        "substr(source_key, 1, 1) letter, priority, headword "
        f"FROM entries WHERE {condition}) chosen LEFT JOIN marks ON marks.source = chosen.source "
        f"ORDER BY {order}, row",
        values,
    ).fetchall()


def _mark(
    db: sqlite3.Connection,
    marks: Sequence[sqlite3.Row],
    reviewer: str,
    kind: str | None,
    assignees: Sequence[str | None],
) -> dict[str, int]:
    """Set the kind or the assignees of entries; None leaves them as they are."""
    before = [list(mark)[:6] for mark in marks]
    for (source, own, earlier, *_), assignee in zip(before, assignees, strict=True):
        _set_mark(db, source, kind or own, earlier if assignee is None else assignee, kind)
    return _keep_batch(db, reviewer, "mark", before)


def divide(keys: Sequence[Any], people: int, by: str) -> list[int]:
    """Which of the people gets each entry; entries with the same key stay together."""
    if by == "even":
        return [place % people for place in range(len(keys))]
    sizes = Counter(keys)  # in the order of the entries
    chosen: dict[Any, int] = {}
    load, seen = [0] * people, 0
    for key, size in sizes.most_common() if by == "kind" else sizes.items():
        chosen[key] = load.index(min(load)) if by == "kind" else int(people * (seen + size / 2) / len(keys))
        load[chosen[key]] += size
        seen += size
    return [chosen[key] for key in keys]


@router.get("/api/entries/batches", response_model=BatchesAnswer)
def bulk_actions(db: Reader, limit: api.Limit = 20) -> Any:
    """The newest bulk actions, each of which can be undone."""
    query = (
        "SELECT id batch, at, reviewer, action, json_array_length(before) changed, undone FROM batches "
        "ORDER BY id DESC LIMIT ?"
    )
    return {"batches": dicts(db, query, limit)}


@router.post("/api/entries/decide", response_model=BatchAnswer)
def decide_entries(book: BookOf, wanted: Wanted, body: DecideManyIn) -> Any:
    """Accept or reject the first answer of many entries, or skip them."""
    condition, values = body.condition(wanted)
    query = f"SELECT source, target, answer FROM entries WHERE {condition} AND target IS NOT NULL"
    with book.database.writing() as db:
        made = []
        for source, target, answer in db.execute(query, values).fetchall():
            shown = (answer or target,)
            accepted, wrong = (shown if body.verdict == verdict else () for verdict in ("accept", "none"))
            one = Decision(source, body.reviewer, body.verdict, accepted, wrong, shown, target)
            made.append([record(db, one).id])
        return _keep_batch(db, body.reviewer, "decide", made)


@router.post("/api/entries/undo", response_model=BatchAnswer, responses=api.problems(404, 409))
def undo_entries(book: BookOf, body: BatchIn) -> Any:
    """Undo a bulk action."""
    with book.database.writing() as db:
        batch = db.execute("SELECT * FROM batches WHERE id = ?", (body.batch,)).fetchone()
        if batch is None:
            raise api.ProblemError(404, f"There is no batch {body.batch}.")
        if batch["undone"]:
            raise api.ProblemError(409, f"Batch {body.batch} was undone already.")
        before = json.loads(batch["before"])
        revert = undo if batch["action"] == "decide" else _set_mark
        for one in before:
            revert(db, *one)
        db.execute("UPDATE batches SET undone = ? WHERE id = ?", (now(), body.batch))
    return {"batch": body.batch, "changed": len(before)}


def _keep_batch(db: sqlite3.Connection, reviewer: str, action: str, before: list[Any]) -> dict[str, int]:
    cursor = db.execute(
        "INSERT INTO batches (at, reviewer, action, before) VALUES (?, ?, ?, ?)",
        (now(), reviewer, action, json.dumps(before, ensure_ascii=False)),
    )
    return {"batch": cursor.lastrowid or 0, "changed": len(before)}


def _set_mark(
    db: sqlite3.Connection,
    source: str,
    kind: str | None,
    assignee: str,
    shown: str | None,
    priority: float | None = None,
    headword: str | None = None,
) -> None:
    """Store the kind and assignee that people gave an entry, and show a kind, which may be the model's.

    An undo gives the earlier priority and headword. Otherwise a form that gets another kind becomes its own
    headword.
    """
    db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (source, kind, assignee))
    db.execute("UPDATE entries SET assignee = ? WHERE source = ?", (assignee, source))
    row = db.execute(
        "SELECT entries.kind, entries.priority, entries.headword, head.source lemma FROM entries "
        "LEFT JOIN forms ON side = 0 AND forms.row = entries.row "
        "LEFT JOIN entries head ON head.row = forms.head WHERE entries.source = ?",
        (source,),
    ).fetchone()
    if shown is None or row is None:
        return
    headword = headword or (row["lemma"] if shown == "inflected" else None) or source
    if (row["kind"], row["headword"]) != (shown, headword):
        if priority is None:
            priority = in_queue(2 * row["priority"] % 1, shown)
        query = "UPDATE entries SET kind = ?, priority = ?, headword = ? WHERE source = ?"
        db.execute(query, (shown, priority, headword, source))
        refresh(db, source)
