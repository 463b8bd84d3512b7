"""Translations without the web framework, which would take as long as the search for them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple, get_args
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse

from bilex.core.errors import BilexError
from bilex.model.space import Direction, Retrieval
from bilex_workbench.lookup import translations
from bilex_workbench.problems import LONGEST_WORD, MOST_ANSWERS
from bilex_workbench.state import Workbench

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PATH = "/api/translate"
_NUMBERS = frozenset(str(number) for number in range(1, MOST_ANSWERS + 1))
_DIRECTIONS: dict[str, Direction] = {name: name for name in get_args(Direction)}
_RETRIEVALS: dict[str, Retrieval] = {name: name for name in get_args(Retrieval)}


class _Wanted(NamedTuple):
    word: str
    direction: Direction
    k: int
    retrieval: Retrieval


class FastTranslations:
    """Answers `GET /api/translate` itself where the request is as it should be.

    Everything else, and whatever cannot be answered, goes to the application, which documents this address
    too and finds the words for what is wrong.

    Args:
        app: The application.
        bench: What answers.
    """

    def __init__(self, app: ASGIApp, bench: Workbench) -> None:
        self._app, self._bench = app, bench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        wanted = _wanted(scope)
        if wanted is None:
            await self._app(scope, receive, send)
            return
        try:
            self._bench.note_request()
            word, direction, k, retrieval = wanted
            found = await translations(self._bench.engine, word, direction, k, retrieval)
        except (BilexError, sqlite3.Error):
            await self._app(scope, receive, send)
            return
        await JSONResponse(found)(scope, receive, send)


def _wanted(scope: Scope) -> _Wanted | None:
    """What a request asks for; None if it is another request or not well-formed."""
    if scope["type"] != "http" or scope["path"] != _PATH or scope["method"] != "GET":
        return None
    given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    word, k = given.get("word", ""), given.get("k", "5")
    direction = _DIRECTIONS.get(given.get("direction", "forward"))
    retrieval = _RETRIEVALS.get(given.get("retrieval", "csls"))
    if direction is None or retrieval is None or not 0 < len(word) <= LONGEST_WORD or k not in _NUMBERS:
        return None
    return _Wanted(word, direction, int(k), retrieval)
