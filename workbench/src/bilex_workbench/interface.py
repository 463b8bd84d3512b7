"""What all parts of the REST interface share: limits, types of texts and parameters, bodies, answers, errors.

Each part has its own bodies, answers and operations in the module that does the work.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
    model_validator,
)

from bilex.core.errors import BilexError

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
LONGEST_WORD = 1000  # characters; longer words are neither shown nor taken
MOST_ANSWERS = 100  # of one word
ANSWERED = {"json_schema_serialization_defaults_required": True}  # of a dataclass that is an answer

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


class ProblemError(BilexError):
    """A request that cannot be served: a status of HTTP and one sentence."""

    def __init__(self, status: int, sentence: str, more: dict[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.more = status, more or {}


# Texts and parameters.


def _one_line(text: str) -> str:
    if CONTROL.search(text):
        raise ValueError("line breaks and tabs are not allowed in words and names")
    return text


Word = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WORD), AfterValidator(_one_line)]
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=60, strip_whitespace=True),
    AfterValidator(_one_line),
]
Note = Annotated[str, StringConstraints(max_length=10_000)]
Words = Annotated[list[Word], Field(max_length=100)]

WordQuery = Annotated[str, Query(min_length=1, max_length=LONGEST_WORD)]
TextQuery = Annotated[str, Query(max_length=LONGEST_WORD)]
K = Annotated[int, Query(ge=1, le=MOST_ANSWERS)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]
Share = Annotated[float | None, Query(ge=0, le=1)]
ReviewerQuery = Annotated[str, StringConstraints(strip_whitespace=True), Query(min_length=1, max_length=60)]


# Bodies and answers.


class Body(BaseModel):
    """A body in which nothing unknown may stand, nor control characters but new lines and tabs."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        parts = [value]
        while parts:
            part = parts.pop()
            if isinstance(part, str) and CONTROL.search(part.replace("\n", "").replace("\t", "")):
                raise ValueError("control characters are not allowed in texts")
            parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        return value


class UndoIn(Body):
    """Who takes a decision back."""

    reviewer: Name


class Answer(BaseModel):
    """An answer: what it holds is what is described here."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


def answer(name: str, /, **fields: Any) -> Any:
    """An answer with these fields."""
    needed: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=Answer, **needed)


class Problem(Answer):
    """Why a request was not served, in one sentence; with 409, what the server does instead."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)
    detail: str
    state: Literal["none", "loading", "ready", "failed"] | None = None
    operation: str | None = None
    generation: int | None = None


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The description of answers that are errors."""
    return {status: {"model": Problem, "description": SAID[status]} for status in statuses}


def files(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """The description of an answer that is a file."""
    return {200: {"description": "The file.", "content": _binary(*media_types)}}


def body_of(media_type: str) -> dict[str, Any]:
    """The description of a body that is no JSON."""
    return {"requestBody": {"required": True, "content": _binary(media_type)}}


def _binary(*media_types: str) -> dict[str, Any]:
    return {name: {"schema": {"type": "string", "format": "binary"}} for name in media_types}
