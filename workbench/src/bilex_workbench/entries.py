"""The dictionary as a table: filters, sorting, pages, and what can be done to many entries at once."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bilex_workbench.decisions import STATUSES, Decision, Verdict, record, refresh, take_back
from bilex_workbench.intervals import Band
from bilex_workbench.kinds import KINDS
from bilex_workbench.priority import in_queue_as
from bilex_workbench.problems import ProblemError
from bilex_workbench.store import Store, now

COLUMNS = (
    "source",
    "target",
    "score",
    "confidence",
    "source_rank",
    "target_rank",
    "mutual",
    "identical",
    "known",
    "status",
    "accepted",
    "reviewers",
    "decisions",
    "decided",
    "noted",
    "kind",
    "headword",
    "answer",
    "forms",
    "fresh",
    "assignee",
)
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
_KEYS = {"both": ("source_key", "target_key"), "source": ("source_key",), "target": ("target_key",)}


@dataclass(frozen=True)
class Filter:
    """Which entries are wanted; the fields are the parameters of `GET /api/entries`."""

    q: str = ""
    within: str = "both"
    match: str = "contains"
    min_confidence: float | None = None
    max_confidence: float | None = None
    min_rank: int | None = None
    max_rank: int | None = None
    status: str = ""
    mutual: bool | None = None
    identical: bool | None = None
    noted: bool | None = None
    reviewer: str = ""
    kind: str = ""
    known: bool | None = None
    doubtful: bool | None = None
    fresh: bool | None = None
    heads: bool | None = None
    headword: str = ""
    assignee: str = ""

    def within_band(self, name: str | None, bands: list[Band]) -> Filter:
        """The same filter, within a frequency band."""
        if not name:
            return self
        for band in bands:
            if band.name == name:
                ranks = (max(self.min_rank or 1, band.first), min(self.max_rank or band.last, band.last))
                return replace(self, min_rank=ranks[0], max_rank=ranks[1])
        raise ProblemError(400, f"There is no frequency band '{name}'; see 'bands' of /api/model.")

    def condition(self) -> tuple[str, list[Any]]:
        """The filter as a condition of SQL with its values."""
        parts: list[str] = []
        values: list[Any] = []

        def add(part: str, *given: Any) -> None:
            parts.append(part)
            values.extend(given)

        self._search(add)
        bounds = (
            ("confidence >= ?", self.min_confidence),
            ("confidence <= ?", self.max_confidence),
            ("row >= ?", None if self.min_rank is None else self.min_rank - 1),
            ("row <= ?", None if self.max_rank is None else self.max_rank - 1),
        )
        for part, bound in bounds:
            if bound is not None:
                add(part, bound)
        for name in ("mutual", "identical", "noted", "known", "fresh"):
            wanted = getattr(self, name)
            if wanted is not None:
                add(f"{name} = ?", int(wanted))
        self._lists(add)
        if self.reviewer:
            add(
                "source IN (SELECT source FROM decisions WHERE reviewer = ? AND undone IS NULL)",
                self.reviewer,
            )
        return (" AND ".join(parts) or "1", values)

    def _lists(self, add: Any) -> None:
        for name, allowed in (("status", STATUSES), ("kind", KINDS)):
            if getattr(self, name):
                chosen = _listed(getattr(self, name), name, allowed)
                add(f"{name} IN ({', '.join('?' * len(chosen))})", *chosen)
        if self.doubtful is not None:  # seeds have priority 0 unless something speaks against them
            add(f"{'' if self.doubtful else 'NOT '}(known = 1 AND priority > 0)")
        if self.heads is not None:
            add(f"headword {'=' if self.heads else '<>'} source")
        for name in ("headword", "assignee"):
            if getattr(self, name):
                add(f"{name} = ?", getattr(self, name))

    def _search(self, add: Any) -> None:
        if not self.q:
            return
        wanted = self.q.casefold()
        keys = _KEYS.get(self.within)
        if keys is None:
            raise ProblemError(400, f"Searching in '{self.within}' is not known; use both, source or target.")
        if self.match == "contains":
            add("(" + " OR ".join(f"instr({key}, ?) > 0" for key in keys) + ")", *[wanted] * len(keys))
        elif self.match == "exact":
            add("(" + " OR ".join(f"{key} = ?" for key in keys) + ")", *[wanted] * len(keys))
        elif self.match == "prefix":
            ranges = [f"({key} >= ? AND {key} < ?)" for key in keys]
            add("(" + " OR ".join(ranges) + ")", *[wanted, wanted + "\U0010ffff"] * len(keys))
        else:
            raise ProblemError(400, f"Match '{self.match}' is not known; use contains, prefix or exact.")


def _listed(text: str, name: str, allowed: Sequence[str]) -> list[str]:
    """The values of a list with commas."""
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in chosen if part not in allowed]
    if wrong or not chosen:
        raise ProblemError(400, f"{name.capitalize()} '{text[:100]}' is not known; use {', '.join(allowed)}.")
    return chosen


def kinds_named(text: str) -> list[str]:
    """The kinds of a list with commas; none for an empty text."""
    return _listed(text, "kind", KINDS) if text else []


def order_by(sort: str) -> str:
    """The ORDER BY of a sort parameter, as the indices have it."""
    name, falling = sort.removeprefix("-"), sort.startswith("-")
    if name not in _SORTS:
        raise ProblemError(400, f"The table cannot be sorted by '{name}'; use {', '.join(_SORTS)}.")
    column = _SORTS[name]
    way = "DESC" if falling else "ASC"
    return f"row {way}" if column == "row" else f"{column} {way}, row {way}"


def page(
    store: Store, wanted: Filter, sort: str, offset: int, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many entries a filter finds, and some of them in order; those without a value come last."""
    condition, values = wanted.condition()
    order = order_by(sort)
    total = store.counted(f"SELECT count(*) FROM entries WHERE {condition}", *values)
    parts = [(condition, total)]
    column = order.split()[0]
    if column in _MAY_BE_EMPTY and "DESC" not in order:  # SQLite has empty values first
        full = store.counted(
            f"SELECT count(*) FROM entries WHERE {condition} AND {column} IS NOT NULL", *values
        )
        parts = [
            (f"{condition} AND {column} IS NOT NULL", full),
            (f"{condition} AND {column} IS NULL", total - full),
        ]
    rows: list[int] = []
    for part, count in parts:
        missing = limit - len(rows)
        if missing and offset < count:
            query = f"SELECT row FROM entries WHERE {part} ORDER BY {order} LIMIT ? OFFSET ?"
            rows += [row["row"] for row in store.all(query, *values, missing, offset)]
        offset = max(0, offset - count)
    return total, [entry_by_row(store, row) for row in rows]


def entry_by_row(store: Store, row: int) -> dict[str, Any]:
    """One row of the table."""
    found = store.one(f"{_ENTRY} WHERE row = ?", row)
    assert found is not None
    return as_row(found)


def entry(store: Store, source: str) -> dict[str, Any] | None:
    """The row of a source word; None if it has none."""
    found = store.one(f"{_ENTRY} WHERE source = ?", source)
    return None if found is None else as_row(found)


def known_entry(store: Store, source: str) -> dict[str, Any]:
    """The row of a source word."""
    found = entry(store, source)
    if found is None:
        raise ProblemError(404, f"'{source[:100]}' is not in the table.")
    return found


def as_row(found: sqlite3.Row) -> dict[str, Any]:
    """A row as the interface answers it."""
    values: dict[str, Any] = dict(found)
    values["source_rank"] = found["row"] + 1
    for name in ("accepted", "reviewers"):
        values[name] = json.loads(values[name])
    for name in ("identical", "known", "noted", "fresh"):
        values[name] = bool(values[name])
    values["mutual"] = None if values["mutual"] is None else bool(values["mutual"])
    values["headword"] = values["headword"] or values["source"]
    return {name: values[name] for name in COLUMNS}


def mark(
    store: Store,
    sources: Sequence[str] | Filter,
    reviewer: str,
    kind: str | None = None,
    assignee: str | None = None,
) -> dict[str, Any]:
    """Set the kind or the assignee of many entries at once."""
    with store.writing() as connection:
        condition, values = _where(sources)
        rows = connection.execute(
            "SELECT entries.row, entries.source, entries.kind now, priority, marks.kind, marks.assignee "
            "FROM entries LEFT JOIN marks ON marks.source = entries.source "
            f"WHERE entries.row IN (SELECT row FROM entries WHERE {condition})",
            values,
        ).fetchall()
        before = [[row["source"], row["kind"], row["assignee"] or "", row["now"]] for row in rows]
        for row in rows:
            _set_mark(
                connection,
                row["source"],
                row["kind"] if kind is None else kind,
                row["assignee"] if assignee is None else assignee,
            )
            if kind:
                _set_kind(connection, row["source"], kind)
        return {"batch": _keep_batch(connection, reviewer, "mark", before), "changed": len(rows)}


def assign(
    store: Store, sources: Sequence[str] | Filter, reviewer: str, people: Sequence[str], by: str
) -> dict[str, Any]:
    """Divide many entries among people, in parts of about the same size."""
    with store.writing() as connection:
        condition, values = _where(sources)
        rows = connection.execute(
            "SELECT entries.row, entries.source, entries.kind now, source_key, marks.kind, marks.assignee "
            "FROM entries LEFT JOIN marks ON marks.source = entries.source "
            f"WHERE entries.row IN (SELECT row FROM entries WHERE {condition}) "
            f"ORDER BY {_PART_ORDERS[by]}, entries.row",
            values,
        ).fetchall()
        chosen = _divided([_PART_KEYS[by](row) for row in rows], len(people), by)
        before = [[row["source"], row["kind"], row["assignee"] or "", row["now"]] for row in rows]
        for row, place in zip(rows, chosen, strict=True):
            _set_mark(connection, row["source"], row["kind"], people[place])
        batch = _keep_batch(connection, reviewer, "mark", before)
    shares = [{"name": name, "entries": chosen.count(place)} for place, name in enumerate(people)]
    return {"batch": batch, "changed": len(rows), "people": shares}


_PART_ORDERS = {"even": "priority DESC", "range": "entries.row", "letter": "source_key", "kind": "now"}
_PART_KEYS: dict[str, Callable[[sqlite3.Row], Any]] = {
    "even": lambda row: row["row"],
    "range": lambda row: row["row"],
    "letter": lambda row: row["source_key"][:1],
    "kind": lambda row: row["now"],
}


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


def batches(store: Store, limit: int) -> list[dict[str, Any]]:
    """The newest bulk actions: who did what to how many entries, and whether it was taken back."""
    rows = store.all(
        "SELECT id batch, at, reviewer, action, json_array_length(before) changed, undone FROM batches "
        "ORDER BY id DESC LIMIT ?",
        limit,
    )
    return [dict(row) for row in rows]


def decide_many(
    store: Store, sources: Sequence[str] | Filter, reviewer: str, verdict: Verdict
) -> dict[str, Any]:
    """Accept or reject the first answer of many entries at once, or skip them."""
    with store.writing() as connection:
        condition, values = _where(sources)
        rows = connection.execute(
            f"SELECT source, target, answer FROM entries WHERE {condition} AND target IS NOT NULL", values
        ).fetchall()
        made = []
        for row in rows:
            shown = (row["answer"] or row["target"],)
            accepted = shown if verdict == "accept" else ()
            wrong = shown if verdict == "none" else ()
            one = Decision(row["source"], reviewer, verdict, accepted, wrong, shown, row["target"])
            made.append([record(connection, one).id])
        return {"batch": _keep_batch(connection, reviewer, "decide", made), "changed": len(rows)}


def undo_batch(store: Store, number: int) -> dict[str, Any]:
    """Take back what a batch changed."""
    with store.writing() as connection:
        batch = connection.execute("SELECT * FROM batches WHERE id = ?", (number,)).fetchone()
        if batch is None:
            raise ProblemError(404, f"There is no batch {number}.")
        if batch["undone"]:
            raise ProblemError(409, f"Batch {number} was taken back already.")
        before = json.loads(batch["before"])
        for one in before:
            if batch["action"] == "decide":
                take_back(connection, one[0])
            else:
                source, kind, assignee, shown = one
                _set_mark(connection, source, kind, assignee)
                _set_kind(connection, source, shown)
        connection.execute("UPDATE batches SET undone = ? WHERE id = ?", (now(), number))
    return {"batch": number, "changed": len(before)}


def _where(sources: Sequence[str] | Filter) -> tuple[str, list[Any]]:
    if isinstance(sources, Filter):
        return sources.condition()
    return "source IN (SELECT value FROM json_each(?))", [json.dumps(list(sources))]


def _keep_batch(connection: sqlite3.Connection, reviewer: str, action: str, before: list[Any]) -> int:
    cursor = connection.execute(
        "INSERT INTO batches (at, reviewer, action, before) VALUES (?, ?, ?, ?)",
        (now(), reviewer, action, json.dumps(before, ensure_ascii=False)),
    )
    return int(cursor.lastrowid or 0)


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
