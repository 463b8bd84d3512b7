"""The REST interface, one module for each part of docs/reference/rest.md."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from pydantic import StringConstraints

from bilex.model.space import Direction, Retrieval
from bilex_workbench.interface import Problem
from bilex_workbench.problems import LONGEST_WORD, MOST_ANSWERS
from bilex_workbench.state import Book, Workbench

# What each status means that the server sends instead of an answer.
SAID = {
    400: "The request makes no sense.",
    401: "There is no token, or it is not right.",
    403: "The host name or the origin is not this server's.",
    404: "There is no such thing.",
    408: "The body came too slowly; nothing was done.",
    409: "The state does not allow it; nothing was changed.",
    413: "The body is too large.",
    422: "A parameter or the body is malformed.",
    429: "Too many wrong tokens came from there.",
    503: "No model is open, or the review file cannot be used just now; nothing was stored.",
    504: "It took too long.",
    507: "The disk is full.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The description of answers that are errors."""
    return {status: {"model": Problem, "description": SAID[status]} for status in statuses}


def files(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """The description of an answer that is a file."""
    content = {name: {"schema": {"type": "string", "format": "binary"}} for name in media_types}
    return {200: {"description": "The file.", "content": content}}


def body_of(media_type: str) -> dict[str, Any]:
    """The description of a body that is no JSON."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": True, "content": content}}


async def _watched(request: Request) -> Workbench:
    """The workbench, for a request that the page makes again and again to see how far something is."""
    bench: Workbench = request.app.state.bench
    return bench


async def _bench(request: Request) -> Workbench:
    bench = await _watched(request)
    bench.note_request()
    return bench


async def _book(request: Request, direction: Annotated[Direction, Query()] = "forward") -> Book:
    """The dictionary in the direction that is asked for."""
    return (await _bench(request)).books[direction]


Bench = Annotated[Workbench, Depends(_bench)]
BookOf = Annotated[Book, Depends(_book)]
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
