"""The application: its routes, its description in OpenAPI, its errors, and a fast path for translations."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

import bilex
from bilex.core.errors import BilexError
from bilex.model.space import Direction, Retrieval
from bilex_workbench import (
    articles,
    audit,
    entries,
    examples,
    importing,
    lookup,
    publishing,
    retraining,
    reviewing,
    uploads,
)
from bilex_workbench.access import HEALTH, AccessPolicy, Safety
from bilex_workbench.interface import LONGEST_WORD, MOST_ANSWERS, SAID, ProblemError
from bilex_workbench.lookup import translations
from bilex_workbench.state import Workbench
from bilex_workbench.uploads import Uploads

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PAGE = Path(__file__).with_name("page")
_UPLOADS = ".bilex-uploads"
_ROUTERS = (
    *(lookup.router, entries.router, reviewing.table, articles.router, examples.router, reviewing.router),
    *(audit.router, retraining.router, publishing.router, importing.router, uploads.router),
)
_PROBLEM = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_SECURITY = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token that 'bilex serve' prints, or the one it was started with.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "bilex_8765",
        "description": "What a browser gets for the token at /?token=TOKEN; it is named after the port.",
    },
}
_WITHOUT_MODEL = ("/api/health", "/api/model", "/api/job", "/api/setup")


def application(bench: Workbench, policy: AccessPolicy) -> Safety:
    """The whole server as an ASGI application."""
    files = Uploads(bench.settings.work / _UPLOADS, bench.settings.upload_limit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        bench.stop()
        files.clear()

    app = FastAPI(
        title="bilex workbench",
        version=bilex.__version__,
        description="Review, correct, retrain and publish a dictionary. See docs/reference/rest.md.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.bench, app.state.uploads = bench, files
    for router in _ROUTERS:
        app.include_router(router)
    describe = app.openapi
    app.openapi = lambda: app.openapi_schema or _with_problems(describe())  # type: ignore[method-assign]
    app.add_api_route("/docs", lambda: HTMLResponse(documentation(app.openapi())), include_in_schema=False)
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(BilexError, _problem)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(sqlite3.Error, _not_read)
    app.add_exception_handler(OverflowError, _strange)
    app.add_exception_handler(UnicodeError, _strange)
    app.add_exception_handler(Exception, _unexpected)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True))
    unhurried = ("/api/translate", "/api/why")
    return Safety(
        FastTranslations(app, bench), policy, lambda path: path in unhurried and bench.encoder_opens
    )


def _with_problems(described: dict[str, Any]) -> dict[str, Any]:
    """The description with the security scheme, and with the errors that depend on the shape of a request."""
    described["components"]["securitySchemes"] = _SECURITY
    for unused in ("HTTPValidationError", "ValidationError"):
        described["components"]["schemas"].pop(unused, None)
    described["security"] = [{"token": []}, {"cookie": []}]
    for path, operations in described["paths"].items():
        for method, one in operations.items():
            one["responses"].pop("422", None)  # the framework's own, which the server does not send
            sent = [400, 403]
            if path == HEALTH:
                one["security"] = []
            else:
                sent += [401, 429]
            if not path.startswith(_WITHOUT_MODEL):
                sent.append(503)
            if method == "get":
                sent.append(504)
            if "requestBody" in one:
                sent += [408, 413]
            if "requestBody" in one or "parameters" in one:
                sent.append(422)
            for status in sent:
                answer = {"description": SAID[status], "content": _PROBLEM}
                one["responses"].setdefault(str(status), answer)
            one["responses"] = dict(sorted(one["responses"].items()))
    return described


def _problem(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, ProblemError) else 400
    headers = {"Retry-After": "1"} if status == 503 else None
    more = error.more if isinstance(error, ProblemError) else {}
    return JSONResponse({"detail": str(error), **more}, status, headers)


def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("query", "body"))
    return JSONResponse({"detail": f"{where or 'the body'}: {first['msg']}."}, 422)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = "There is no such address." if error.status_code == 404 else f"{error.detail}."
    return JSONResponse({"detail": sentence}, error.status_code)


def _not_read(request: Request, error: Exception) -> Response:
    detail = f"The review file could not be read ({error}); try again, or start the server again."
    return JSONResponse({"detail": detail}, 503, {"Retry-After": "1"})


def _strange(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": f"A number or a text cannot be stored ({error})."}, 400)


def _unexpected(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": f"An unexpected error: {type(error).__name__}."}, 500)


def documentation(described: dict[str, Any]) -> str:
    """The interface as a page without script, made from its OpenAPI description."""
    schemas = described.get("components", {}).get("schemas", {})
    parts = [
        _section(method, path, one, schemas)
        for path, ways in described["paths"].items()
        for method, one in ways.items()
    ]
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>bilex workbench: REST interface</title>'
    )
    intro = f"<h1>REST interface</h1><p>{escape(described['info']['description'])} "
    link = 'As data: <a href="/openapi.json">openapi.json</a>.</p>'
    return f"{head}<main>{intro}{link}{''.join(parts)}</main></html>"


def _section(method: str, path: str, one: dict[str, Any], schemas: dict[str, Any]) -> str:
    def listed(name: str, needed: bool, where: str) -> str:
        return f"<li><code>{escape(name)}</code> ({where}{', needed' if needed else ''})</li>"

    text = str(one.get("description") or one.get("summary") or "")
    items = [listed(p["name"], p.get("required", False), p["in"]) for p in one.get("parameters", [])]
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = schemas.get(str(body.get("$ref", "")).rsplit("/", 1)[-1], {})
    needed = schema.get("required", [])
    items += [listed(name, name in needed, "body") for name in schema.get("properties", {})]
    shown = f"<ul>{''.join(items)}</ul>" if items else ""
    title = f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
    return f"<section>{title}<p>{escape(text)}</p>{shown}</section>"


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
    """Answers well-formed `GET /api/translate` without the framework, which takes as long as the search.

    Everything else, and whatever cannot be answered, goes to the application, which documents this address
    too and finds the words for what is wrong.
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
