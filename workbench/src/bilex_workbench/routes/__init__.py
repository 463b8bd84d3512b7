"""The REST interface, one module for each part of docs/reference/rest.md."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from pydantic import StringConstraints

from bilex.model.space import Direction, Retrieval
from bilex_workbench.problems import LONGEST_WORD, MOST_ANSWERS
from bilex_workbench.state import Workbench


async def _watched(request: Request) -> Workbench:
    """The workbench, for a request that the page makes again and again to see how far something is."""
    bench: Workbench = request.app.state.bench
    return bench


async def _bench(request: Request) -> Workbench:
    bench = await _watched(request)
    bench.note_request()
    return bench


Bench = Annotated[Workbench, Depends(_bench)]
WatchedBench = Annotated[Workbench, Depends(_watched)]
WordQuery = Annotated[str, Query(min_length=1, max_length=LONGEST_WORD)]
TextQuery = Annotated[str, Query(max_length=LONGEST_WORD)]
DirectionQuery = Annotated[Direction, Query()]
RetrievalQuery = Annotated[Retrieval, Query()]
K = Annotated[int, Query(ge=1, le=MOST_ANSWERS)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]
Share = Annotated[float | None, Query(ge=0, le=1)]
ReviewerQuery = Annotated[str, StringConstraints(strip_whitespace=True), Query(min_length=1, max_length=60)]
Which = Literal["confirmed", "confident", "all"]
