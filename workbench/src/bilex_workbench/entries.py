"""The dictionary as a table: filters, sorting, pages, and what can be done to many entries at once."""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field, StringConstraints, field_validator

from bilex_workbench import interface as api
from bilex_workbench.decisions import STATUSES, Decision, Status, Verdict, record, refresh, take_back
from bilex_workbench.kinds import KINDS, Kind
from bilex_workbench.priority import in_queue_as
from bilex_workbench.state import BookOf
from bilex_workbench.store import Store, now

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
_MAY_BE_EMPTY = ("target_rank", "target_key", "score", "confidence", "decided")
_ENTRY = (
    "SELECT entries.*, (SELECT count(*) FROM entries form "
    "WHERE form.headword = entries.source AND form.row <> entries.row) forms "
    "FROM entries"
)
_MATCHES = {"contains": "instr({0}, ?) > 0", "prefix": "({0} >= ? AND {0} < ?)", "exact": "{0} = ?"}
_KEYS = {"both": ("source_key", "target_key"), "source": ("source_key",), "target": ("target_key",)}


_MOST_FORMS = 200
Rank = Annotated[int | None, Query(ge=1)]


@dataclass(frozen=True)
class Filter:
    """Which entries are wanted; the fields are the parameters of `GET /api/entries`."""

    q: api.TextQuery = ""
    within: Annotated[str, Query(alias="in")] = "both"
    match: str = "contains"
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
        """The filter as a condition of SQL with its values."""
        found = [*self._search(), *self._choices()]
        bounds = {
            "confidence >= ?": self.min_confidence,
            "confidence <= ?": self.max_confidence,
            "row >= ?": None if self.min_rank is None else self.min_rank - 1,
            "row <= ?": None if self.max_rank is None else self.max_rank - 1,
        }
        found += [(part, [bound]) for part, bound in bounds.items() if bound is not None]
        for name in ("mutual", "identical", "noted", "known", "fresh"):
            if getattr(self, name) is not None:
                found.append((f"{name} = ?", [getattr(self, name)]))
        if self.doubtful is not None:  # seeds have priority 0 unless something speaks against them
            found.append((f"{'' if self.doubtful else 'NOT '}(known = 1 AND priority > 0)", []))
        if self.heads is not None:
            found.append((f"headword {'=' if self.heads else '<>'} source", []))
        return " AND ".join(part for part, _ in found) or "1", [one for _, given in found for one in given]

    def _choices(self) -> list[tuple[str, list[Any]]]:
        found: list[tuple[str, list[Any]]] = []
        for name, allowed in (("status", STATUSES), ("kind", KINDS)):
            if getattr(self, name):
                chosen = _listed(getattr(self, name), name, allowed)
                found.append((f"{name} IN ({', '.join('?' * len(chosen))})", chosen))
        for name in ("headword", "assignee"):
            if getattr(self, name):
                found.append((f"{name} = ?", [getattr(self, name)]))
        if self.reviewer:
            decided = "SELECT source FROM decisions WHERE reviewer = ? AND undone IS NULL"
            found.append((f"source IN ({decided})", [self.reviewer]))
        return found

    def _search(self) -> list[tuple[str, list[Any]]]:
        if not self.q:
            return []
        wanted = self.q.casefold()
        if self.within not in _KEYS:
            raise api.ProblemError(
                400, f"Searching in '{self.within}' is not known; use both, source or target."
            )
        if self.match not in _MATCHES:
            raise api.ProblemError(400, f"Match '{self.match}' is not known; use {', '.join(_MATCHES)}.")
        values = [wanted, wanted + "\U0010ffff"] if self.match == "prefix" else [wanted]
        parts = [_MATCHES[self.match].format(key) for key in _KEYS[self.within]]
        return [(f"({' OR '.join(parts)})", values * len(parts))]


def _within_band(book: BookOf, wanted: Annotated[Filter, Depends()], band: str | None = None) -> Filter:
    if not band:
        return wanted
    for one in book.bands:
        if one.name == band:
            first, last = max(wanted.min_rank or 1, one.first), min(wanted.max_rank or one.last, one.last)
            return replace(wanted, min_rank=first, max_rank=last)
    raise api.ProblemError(400, f"There is no frequency band '{band}'; see 'bands' of /api/model.")


Wanted = Annotated[Filter, Depends(_within_band)]


class Row(api.Answer):
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
    accepted: list[str]
    reviewers: list[str]
    decisions: int
    decided: str | None
    noted: bool
    kind: Kind
    headword: str
    answer: str | None
    forms: int
    fresh: bool
    assignee: str


class ManyIn(api.Body):
    """Which entries a bulk action is about: those named, or all that the filter of the address finds."""

    reviewer: api.Name
    sources: Annotated[list[api.Word], Field(max_length=10_000)] | None = None

    def condition(self, wanted: Filter) -> tuple[str, list[Any]]:
        """The choice as a condition of SQL with its values."""
        if self.sources is None:
            return wanted.condition()
        return "source IN (SELECT value FROM json_each(?))", [json.dumps(self.sources)]


class MarkIn(ManyIn):
    """A kind or an assignee for many entries; null leaves it as it is."""

    kind: Kind | None = None
    assignee: Annotated[str, StringConstraints(max_length=60, strip_whitespace=True)] | None = None


class AssignIn(ManyIn):
    """Among whom entries are divided, and how."""

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
    """Which bulk action to take back."""

    batch: int = Field(ge=1, le=2**53)


class BatchAnswer(api.Answer):
    """A bulk action: its number, for undo, and how many entries it changed."""

    batch: int
    changed: int


class PersonShare(api.Answer):
    """How many entries somebody got."""

    name: str
    entries: int


class AssignedAnswer(BatchAnswer):
    """A division of entries among people."""

    people: list[PersonShare]


class Batch(BatchAnswer):
    """A bulk action: who did it, when, and when it was taken back."""

    at: str
    reviewer: str
    action: Literal["mark", "decide"]
    undone: str | None


COLUMNS = tuple(Row.model_fields)
BatchesAnswer = api.answer("BatchesAnswer", batches=list[Batch])
EntryPage = api.answer(
    "EntryPage", total=int, offset=int, limit=int, complete=bool, columns=list[str], rows=list[Row]
)


def _listed(text: str, name: str, allowed: Sequence[str]) -> list[str]:
    """The values of a list with commas."""
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in chosen if part not in allowed]
    if wrong or not chosen:
        raise api.ProblemError(
            400, f"{name.capitalize()} '{text[:100]}' is not known; use {', '.join(allowed)}."
        )
    return chosen


def kinds_named(text: str) -> list[str]:
    """The kinds of a list with commas; none for an empty text."""
    return _listed(text, "kind", KINDS) if text else []


@router.get("/api/entries", response_model=EntryPage)
def entries(
    book: BookOf, wanted: Wanted, offset: api.Offset = 0, limit: api.Limit = 100, sort: str = "source_rank"
) -> Any:
    """A page of the table; entries without a value in the column that it is sorted by come last."""
    store, (condition, values) = book.store, wanted.condition()
    name, way = sort.removeprefix("-"), "DESC" if sort.startswith("-") else "ASC"
    if name not in _SORTS:
        raise api.ProblemError(400, f"The table cannot be sorted by '{name}'; use {', '.join(_SORTS)}.")
    column = _SORTS[name]
    order = f"row {way}" if column == "row" else f"{column} {way}, row {way}"  # as the indices have it
    total = store.counted(f"SELECT count(*) FROM entries WHERE {condition}", *values)
    parts = [(condition, total)]
    if column in _MAY_BE_EMPTY and way == "ASC":  # SQLite has empty values first
        some, none = f"{condition} AND {column} IS NOT NULL", f"{condition} AND {column} IS NULL"
        full = store.counted(f"SELECT count(*) FROM entries WHERE {some}", *values)
        parts = [(some, full), (none, total - full)]
    rows: list[int] = []
    skipped = offset
    for part, count in parts:
        missing = limit - len(rows)
        if missing and skipped < count:
            query = f"SELECT row FROM entries WHERE {part} ORDER BY {order} LIMIT ? OFFSET ?"
            rows += [row["row"] for row in store.all(query, *values, missing, skipped)]
        skipped = max(0, skipped - count)
    query = f"{_ENTRY} WHERE row IN (SELECT value FROM json_each(?))"
    found = {row["row"]: _as_row(row) for row in store.all(query, json.dumps(rows))}
    return {
        "total": total,
        "offset": offset,
        "limit": limit,
        "complete": book.filled.complete,
        "columns": COLUMNS,
        "rows": [found[row] for row in rows],
    }


def entry(store: Store, source: str) -> dict[str, Any] | None:
    """The row of a source word; None if it has none."""
    found = store.one(f"{_ENTRY} WHERE source = ?", source)
    return None if found is None else _as_row(found)


def known_entry(store: Store, source: str) -> dict[str, Any]:
    """The row of a source word."""
    found = entry(store, source)
    if found is None:
        raise api.ProblemError(404, f"'{source[:100]}' is not in the table.")
    return found


def _as_row(found: sqlite3.Row) -> dict[str, Any]:
    values = dict(found)
    values["source_rank"] = found["row"] + 1
    values["headword"] = found["headword"] or found["source"]
    for name in ("accepted", "reviewers"):
        values[name] = json.loads(found[name])
    return {name: values[name] for name in COLUMNS}


def forms_of(store: Store, source: str) -> list[str]:
    """The other forms that are listed under a headword, most frequent first."""
    query = "SELECT source FROM entries WHERE headword = ?1 AND source <> ?1 ORDER BY row LIMIT ?2"
    return [row["source"] for row in store.all(query, source, _MOST_FORMS)]


@router.post("/api/entries/mark", response_model=BatchAnswer)
def mark_entries(book: BookOf, wanted: Wanted, body: MarkIn) -> Any:
    """Correct the kind of many entries, or assign them to somebody."""
    if body.kind is None and body.assignee is None:
        raise api.ProblemError(400, "Nothing is to be changed; name a kind or an assignee.")
    with book.store.writing() as connection:
        rows = _with_marks(connection, body, wanted, "row")
        return _mark(connection, rows, body.reviewer, body.kind, [body.assignee] * len(rows))


@router.post("/api/entries/assign", response_model=AssignedAnswer)
def assign_entries(book: BookOf, wanted: Wanted, body: AssignIn) -> Any:
    """Divide many entries among people: evenly, by frequency range, by letter or by kind."""
    with book.store.writing() as connection:
        rows = _with_marks(connection, body, wanted, _PART_ORDERS[body.by])
        chosen = _divided([row[_PART_KEYS[body.by]] for row in rows], len(body.people), body.by)
        batch = _mark(connection, rows, body.reviewer, None, [body.people[place] for place in chosen])
    people = [{"name": name, "entries": chosen.count(place)} for place, name in enumerate(body.people)]
    return {**batch, "people": people}


_PART_ORDERS = {"even": "priority DESC", "range": "row", "letter": "source_key", "kind": "now"}
_PART_KEYS = {"even": "row", "range": "row", "letter": "letter", "kind": "now"}


def _with_marks(
    connection: sqlite3.Connection, body: ManyIn, wanted: Filter, order: str
) -> list[sqlite3.Row]:
    """The chosen entries with what people said of them beside decisions."""
    condition, values = body.condition(wanted)
    return connection.execute(
        "SELECT row, chosen.source, now, letter, marks.kind, marks.assignee FROM "
        "(SELECT row, source, kind now, source_key, substr(source_key, 1, 1) letter, priority "
        f"FROM entries WHERE {condition}) chosen LEFT JOIN marks ON marks.source = chosen.source "
        f"ORDER BY {order}, row",
        values,
    ).fetchall()


def _mark(
    connection: sqlite3.Connection,
    rows: Sequence[sqlite3.Row],
    reviewer: str,
    kind: str | None,
    assignees: Sequence[str | None],
) -> dict[str, int]:
    """Set the kind or the assignees of entries; None leaves them as they are."""
    for row, assignee in zip(rows, assignees, strict=True):
        assigned = row["assignee"] if assignee is None else assignee
        _set_mark(connection, row["source"], kind or row["kind"], assigned)
        if kind:
            _set_kind(connection, row["source"], kind)
    before = [[row["source"], row["kind"], row["assignee"] or "", row["now"]] for row in rows]
    return _keep_batch(connection, reviewer, "mark", before)


def _divided(keys: Sequence[Any], people: int, by: str) -> list[int]:
    """Which of so many people gets each entry; entries with one key stay together."""
    if by == "even":
        return [place % people for place in range(len(keys))]
    sizes = Counter(keys)  # in the order of the entries
    chosen: dict[Any, int] = {}
    if by == "kind":
        load = [0] * people
        for key, size in sizes.most_common():
            chosen[key] = load.index(min(load))
            load[chosen[key]] += size
    else:
        seen = 0
        for key, size in sizes.items():
            chosen[key] = int(people * (seen + size / 2) / len(keys))
            seen += size
    return [chosen[key] for key in keys]


@router.get("/api/entries/batches", response_model=BatchesAnswer)
def bulk_actions(book: BookOf, limit: api.Limit = 20) -> Any:
    """The newest bulk actions, each of which can be taken back."""
    rows = book.store.all(
        "SELECT id batch, at, reviewer, action, json_array_length(before) changed, undone FROM batches "
        "ORDER BY id DESC LIMIT ?",
        limit,
    )
    return {"batches": [dict(row) for row in rows]}


@router.post("/api/entries/decide", response_model=BatchAnswer)
def decide_entries(book: BookOf, wanted: Wanted, body: DecideManyIn) -> Any:
    """Accept or reject the first answer of many entries, or skip them."""
    condition, values = body.condition(wanted)
    with book.store.writing() as connection:
        rows = connection.execute(
            f"SELECT source, target, answer FROM entries WHERE {condition} AND target IS NOT NULL", values
        ).fetchall()
        made = []
        for row in rows:
            shown = (row["answer"] or row["target"],)
            accepted = shown if body.verdict == "accept" else ()
            wrong = shown if body.verdict == "none" else ()
            one = Decision(row["source"], body.reviewer, body.verdict, accepted, wrong, shown, row["target"])
            made.append([record(connection, one).id])
        return _keep_batch(connection, body.reviewer, "decide", made)


@router.post("/api/entries/undo", response_model=BatchAnswer, responses=api.problems(404, 409))
def undo_entries(book: BookOf, body: BatchIn) -> Any:
    """Take back a bulk action."""
    with book.store.writing() as connection:
        batch = connection.execute("SELECT * FROM batches WHERE id = ?", (body.batch,)).fetchone()
        if batch is None:
            raise api.ProblemError(404, f"There is no batch {body.batch}.")
        if batch["undone"]:
            raise api.ProblemError(409, f"Batch {body.batch} was taken back already.")
        before = json.loads(batch["before"])
        for one in before:
            if batch["action"] == "decide":
                take_back(connection, one[0])
            else:
                source, kind, assignee, shown = one
                _set_mark(connection, source, kind, assignee)
                _set_kind(connection, source, shown)
        connection.execute("UPDATE batches SET undone = ? WHERE id = ?", (now(), body.batch))
    return {"batch": body.batch, "changed": len(before)}


def _keep_batch(
    connection: sqlite3.Connection, reviewer: str, action: str, before: list[Any]
) -> dict[str, int]:
    cursor = connection.execute(
        "INSERT INTO batches (at, reviewer, action, before) VALUES (?, ?, ?, ?)",
        (now(), reviewer, action, json.dumps(before, ensure_ascii=False)),
    )
    return {"batch": cursor.lastrowid or 0, "changed": len(before)}


def _set_mark(connection: sqlite3.Connection, source: str, kind: str | None, assignee: str | None) -> None:
    connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (source, kind, assignee or ""))
    connection.execute("UPDATE entries SET assignee = ? WHERE source = ?", (assignee or "", source))


def _set_kind(connection: sqlite3.Connection, source: str, kind: str) -> None:
    """Show an entry as of a kind; a form that becomes another kind is its own headword."""
    row = connection.execute(
        "SELECT entries.row, priority, head FROM entries "
        "LEFT JOIN forms ON side = 0 AND forms.row = entries.row WHERE source = ?",
        (source,),
    ).fetchone()
    if row is None:
        return
    headword = source
    if kind == "inflected" and row["head"] is not None:
        head = connection.execute("SELECT source FROM entries WHERE row = ?", (row["head"],)).fetchone()
        headword = head["source"] if head else source
    connection.execute(
        "UPDATE entries SET kind = ?, priority = ?, headword = ? WHERE source = ?",
        (kind, in_queue_as(row["priority"], kind), headword, source),
    )
    refresh(connection, source)
