"""The dictionary as a table."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from bilex_workbench.decisions import decisions_about, notes_of
from bilex_workbench.entries import COLUMNS, Filter, entry, page
from bilex_workbench.problems import ProblemError
from bilex_workbench.reviewing import CANDIDATES
from bilex_workbench.routes import Bench, Limit, Offset, Share, TextQuery, WordQuery

router = APIRouter(tags=["table"])
Rank = Annotated[int | None, Query(ge=1)]


@router.get("/api/entries")
def entries(
    bench: Bench,
    offset: Offset = 0,
    limit: Limit = 100,
    q: TextQuery = "",
    within: Annotated[str, Query(alias="in")] = "both",
    match: str = "contains",
    min_confidence: Share = None,
    max_confidence: Share = None,
    band: str | None = None,
    min_rank: Rank = None,
    max_rank: Rank = None,
    status: str = "",
    mutual: bool | None = None,
    identical: bool | None = None,
    noted: bool | None = None,
    reviewer: TextQuery = "",
    sort: str = "source_rank",
) -> dict[str, Any]:
    """A page of the table."""
    wanted = Filter(
        q,
        within,
        match,
        min_confidence,
        max_confidence,
        min_rank,
        max_rank,
        status,
        mutual,
        identical,
        noted,
        reviewer,
    ).within_band(band, bench.bands)
    total, rows = page(bench.store, wanted, sort, offset, limit)
    return {
        "total": total,
        "offset": offset,
        "limit": limit,
        "complete": bench.filled,
        "columns": COLUMNS,
        "rows": rows,
    }


@router.get("/api/entry")
def one_entry(bench: Bench, source: WordQuery) -> dict[str, Any]:
    """One source word with candidates, notes and the history of decisions."""
    found = entry(bench.store, source)
    if found is None:
        raise ProblemError(404, f"'{source[:100]}' is not in the table.")
    history = decisions_about(bench.store.reading, source)
    return {
        **found,
        "candidates": [vars(candidate) for candidate in bench.engine.translate(source, CANDIDATES)],
        "history": [decision.as_dict() for decision in reversed(history)],
        "notes": notes_of(bench.store, source),
    }
