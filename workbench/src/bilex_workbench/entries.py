"""The dictionary as a table: filters, sorting and pages of the entries."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from bilex_workbench.bands import Band
from bilex_workbench.decisions import STATUSES
from bilex_workbench.problems import ProblemError
from bilex_workbench.store import Store

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
}
_MAY_BE_EMPTY = ("target_rank", "target_key", "score", "confidence", "decided")
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

    def within_band(self, name: str | None, bands: list[Band]) -> Filter:
        """The same filter, within a frequency band.

        Raises:
            ProblemError: There is no such band.
        """
        if not name:
            return self
        for band in bands:
            if band.name == name:
                ranks = (max(self.min_rank or 1, band.first), min(self.max_rank or band.last, band.last))
                return Filter(**{**vars(self), "min_rank": ranks[0], "max_rank": ranks[1]})
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
        for name in ("mutual", "identical", "noted"):
            wanted = getattr(self, name)
            if wanted is not None:
                add(f"{name} = ?", int(wanted))
        if self.status:
            chosen = _statuses(self.status)
            add(f"status IN ({', '.join('?' * len(chosen))})", *chosen)
        if self.reviewer:
            add(
                "source IN (SELECT source FROM decisions WHERE reviewer = ? AND undone IS NULL)",
                self.reviewer,
            )
        return (" AND ".join(parts) or "1", values)

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


def _statuses(text: str) -> list[str]:
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in chosen if part not in STATUSES]
    if wrong:
        raise ProblemError(400, f"Status '{wrong[0]}' is not known; use {', '.join(STATUSES)}.")
    return chosen


def order_by(sort: str) -> str:
    """The ORDER BY of a sort parameter, as the indices have it.

    Raises:
        ProblemError: The column is not known.
    """
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
    found = store.one("SELECT * FROM entries WHERE row = ?", row)
    assert found is not None
    return as_row(found)


def entry(store: Store, source: str) -> dict[str, Any] | None:
    """The row of a source word; None if it has none."""
    found = store.one("SELECT * FROM entries WHERE source = ?", source)
    return None if found is None else as_row(found)


def as_row(found: sqlite3.Row) -> dict[str, Any]:
    """A row as the interface answers it."""
    values: dict[str, Any] = {name: found[name] for name in COLUMNS if name != "source_rank"}
    values["source_rank"] = found["row"] + 1
    for name in ("accepted", "reviewers"):
        values[name] = json.loads(values[name])
    for name in ("identical", "known", "noted"):
        values[name] = bool(values[name])
    values["mutual"] = None if values["mutual"] is None else bool(values["mutual"])
    return {name: values[name] for name in COLUMNS}
