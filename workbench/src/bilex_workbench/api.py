"""Limits, types, base models and errors that all routes share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model

from bilex.core.errors import BilexError
from bilex.lexicon.entries import FORBIDDEN

LONGEST_WORD = 1000  # characters; longer words are neither shown nor accepted
MOST_ANSWERS = 100  # of one word
RESPONSE: Any = {"json_schema_serialization_defaults_required": True}  # of a dataclass that is a response

_STATUSES = {
    400: "The request makes no sense.",
    401: "The token is missing or wrong.",
    403: "The host name or the origin is not this server's.",
    404: "There is no such thing.",
    408: "The body came too slowly; nothing was done.",
    409: "The state does not allow it; nothing was changed.",
    413: "The body is too large.",
    422: "A parameter or the body is malformed.",
    429: "Too many wrong tokens came from this address.",
    503: "No model is open, or the review file cannot be used now; nothing was stored.",
    504: "It took too long.",
    507: "The disk is full.",
}


class ProblemError(BilexError):
    """A request that cannot be served: an HTTP status, one sentence, and further fields of the response."""

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.status, self.more = status, more


def _one_line(text: str) -> str:
    if FORBIDDEN.search(text):
        raise ValueError("line breaks, tabs and control characters are not allowed")
    return text


def showable(words: Iterable[str]) -> list[str]:
    """The words that are not too long to show."""
    return [word for word in words if len(word) <= LONGEST_WORD]


def _lines(text: str) -> str:
    if FORBIDDEN.search(re.sub("[\n\t]", " ", text)):
        raise ValueError("control characters are not allowed")
    return text


Word = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WORD), AfterValidator(_one_line)]
Name = Annotated[
    str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True), AfterValidator(_one_line)
]
Text = Annotated[str, AfterValidator(_lines)]
Note = Annotated[Text, Field(max_length=10_000)]
Words = Annotated[list[Word], Field(max_length=100)]

WordQuery = Annotated[str, Query(min_length=1, max_length=LONGEST_WORD)]
TextQuery = Annotated[str, Query(max_length=LONGEST_WORD)]
K = Annotated[int, Query(ge=1, le=MOST_ANSWERS)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]
Share = Annotated[float | None, Query(ge=0, le=1)]
ReviewerQuery = Annotated[str, StringConstraints(strip_whitespace=True), Query(min_length=1, max_length=60)]


class Body(BaseModel):
    """A request body, or a part of one, without unknown fields."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class Response(BaseModel):
    """A response: of what a route returns, the documented fields are sent."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


def response(name: str, about: str | None = None, /, **fields: Any) -> Any:
    """A `Response` class of these required fields; `[kind]` is a list."""
    required: dict[str, Any] = {}
    for field, kind in fields.items():
        required[field] = (list.__class_getitem__(kind[0]) if isinstance(kind, list) else kind, ...)
    return create_model(name, __base__=Response, __doc__=about, **required)


class Problem(Response):
    """Why a request was not served, in one sentence; with 409, what the server does instead."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)
    detail: str
    state: Literal["none", "loading", "ready", "failed"] | None = None
    operation: str | None = None
    generation: int | None = None


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of error responses."""
    return {status: {"model": Problem, "description": _STATUSES[status]} for status in statuses}


def binary(*media_types: str) -> dict[str, Any]:
    """The documentation of a body or response that is a file."""
    return {"content": {name: {"schema": {"type": "string", "format": "binary"}} for name in media_types}}
