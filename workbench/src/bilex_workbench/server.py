"""The application: its routes, its description in OpenAPI, its errors, and a fast path for translations."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args
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
    for kind in (
        BilexError,
        RequestValidationError,
        HTTPException,
        sqlite3.Error,
        OverflowError,
        UnicodeError,
    ):
        app.add_exception_handler(kind, _problem)
    app.add_exception_handler(Exception, _problem)
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
    for name, schema in described["components"]["schemas"].items():  # Article-Input, Article-Output, ...
        schema["title"] = name.replace("-", "")  # are classes of their own in a client
    described["security"] = [{"token": []}, {"cookie": []}]
    for path, operations in described["paths"].items():
        for method, one in operations.items():
            one["responses"].pop("422", None)  # the framework's own, which the server does not send
            if path == HEALTH:
                one["security"] = []
            body, guarded = "requestBody" in one, path != HEALTH
            sent = {400: True, 401: guarded, 403: True, 408: body, 413: body, 429: guarded}
            sent |= {422: body or "parameters" in one, 503: not path.startswith(_WITHOUT_MODEL)}
            sent |= {504: method == "get"}
            for status in (status for status, there in sent.items() if there):
                answer = {"description": SAID[status], "content": _PROBLEM}
                one["responses"].setdefault(str(status), answer)
            one["responses"] = dict(sorted(one["responses"].items()))
    return described


def _problem(request: Request, error: Exception) -> Response:
    """The answer to a request that was not served: a status and one sentence."""
    status, detail, more = 500, f"An unexpected error: {type(error).__name__}.", {}
    if isinstance(error, ProblemError):
        status, detail, more = error.status, str(error), error.more
    elif isinstance(error, BilexError):
        status, detail = 400, str(error)
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("query", "body"))
        status, detail = 422, f"{where or 'the body'}: {first['msg']}."
    elif isinstance(error, HTTPException):
        status = error.status_code
        detail = "There is no such address." if status == 404 else f"{error.detail}."
    elif isinstance(error, sqlite3.Error):
        status = 503
        detail = f"The review file could not be read ({error}); try again, or start the server again."
    elif isinstance(error, OverflowError | UnicodeError):
        status, detail = 400, f"A number or a text cannot be stored ({error})."
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"detail": detail, **more}, status, headers)


def documentation(described: dict[str, Any]) -> str:
    """The interface as a page without script, made from its OpenAPI description."""
    schemas = described["components"]["schemas"]
    parts = [
        f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>"
        f"<p>{escape(one['description'])}</p>{_parameters(one, schemas)}</section>"
        for path, ways in described["paths"].items()
        for method, one in ways.items()
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>bilex workbench: REST interface</title>'
        f"<main><h1>REST interface</h1><p>{escape(described['info']['description'])} "
        f'As data: <a href="/openapi.json">openapi.json</a>.</p>{"".join(parts)}</main></html>'
    )


def _parameters(one: dict[str, Any], schemas: dict[str, Any]) -> str:
    found = [(part["name"], part["in"], part.get("required")) for part in one.get("parameters", [])]
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = schemas.get(body.get("$ref", "").rsplit("/", 1)[-1], {})
    found += [(name, "body", name in schema.get("required", ())) for name in schema.get("properties", ())]
    listed = (
        f"<li><code>{escape(name)}</code> ({where}{', needed' if needed else ''})</li>"
        for name, where, needed in found
    )
    return f"<ul>{''.join(listed)}</ul>" if found else ""


_NUMBERS = frozenset(str(number) for number in range(1, MOST_ANSWERS + 1))


class FastTranslations:
    """Answers well-formed `GET /api/translate` without the framework, which takes as long as the search.

    Everything else, and whatever cannot be answered, goes to the application, which documents this address
    too and finds the words for what is wrong.
    """

    def __init__(self, app: ASGIApp, bench: Workbench) -> None:
        self._app, self._bench = app, bench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        answer: ASGIApp = self._app
        if scope["type"] == "http" and scope["path"] == "/api/translate" and scope["method"] == "GET":
            given = {"direction": "forward", "retrieval": "csls", "k": "5"}
            given |= parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            if _well_formed(given):
                self._bench.note_request()
                word, direction, retrieval = given["word"], given["direction"], given["retrieval"]
                with suppress(BilexError, sqlite3.Error):
                    found = await translations(
                        self._bench.engine,
                        word,
                        cast(Direction, direction),
                        int(given["k"]),
                        cast(Retrieval, retrieval),
                    )
                    answer = JSONResponse(found)
        await answer(scope, receive, send)


def _well_formed(given: dict[str, str]) -> bool:
    right = given["direction"] in get_args(Direction) and given["retrieval"] in get_args(Retrieval)
    return right and given["k"] in _NUMBERS and 0 < len(given.get("word", "")) <= LONGEST_WORD
