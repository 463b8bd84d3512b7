"""The application with its OpenAPI description and errors, and limits on connections that uvicorn lacks."""

from __future__ import annotations

import asyncio
import logging
import socket
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

import bilex
from bilex.core.errors import BilexError
from bilex_workbench import articles, audit, entries, examples, learn, lookup, publish, review, setup, sheets
from bilex_workbench.access import HEALTH, AccessMiddleware, AccessPolicy
from bilex_workbench.api import ProblemError, problems
from bilex_workbench.setup import Uploads
from bilex_workbench.workbench import Workbench

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HEADER_SECONDS = 10.0
MOST_CONNECTIONS = 256
_BACKLOG = 128
_MOST_LINES, _LINE_SECONDS = 20, 60.0
_MODULES = (lookup, entries, review, articles, examples, audit, learn, publish, sheets, setup)
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


def application(bench: Workbench, policy: AccessPolicy) -> AccessMiddleware:
    """The whole server as an ASGI application."""
    bench.uploads = Uploads(bench.settings.work, bench.settings.upload_limit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        bench.stop()
        bench.uploads.clear()

    app = FastAPI(
        title="bilex workbench",
        version=bilex.__version__,
        description="Review, correct, retrain and publish a dictionary. See docs/reference/rest.md.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        responses=problems(400, 401, 403, 408, 413, 422, 429, 503, 504),
    )
    app.state.bench = bench
    for module in _MODULES:
        app.include_router(module.router)
    describe = app.openapi
    app.openapi = lambda: app.openapi_schema or _with_security(describe())  # type: ignore[method-assign]
    app.add_api_route("/docs", lambda: HTMLResponse(_documentation(app.openapi())), include_in_schema=False)
    errors = (BilexError, RequestValidationError, HTTPException, sqlite3.Error, OverflowError, UnicodeError)
    for kind in (*errors, Exception):
        app.add_exception_handler(kind, _problem)
    app.mount("/", StaticFiles(directory=Path(__file__).with_name("page"), html=True))
    waiting = ("/api/translate", "/api/why")
    return AccessMiddleware(app, policy, lambda path: path in waiting and bench.waits_for_encoder())


def _with_security(described: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI description with the security schemes."""
    described["components"]["securitySchemes"] = _SECURITY
    described["security"] = [{"token": []}, {"cookie": []}]
    described["paths"][HEALTH]["get"]["security"] = []
    for name, schema in described["components"]["schemas"].items():  # Article-Input and Article-Output are
        schema["title"] = name.replace("-", "")  # two classes in a client
    return described


def _problem(request: Request, error: Exception) -> Response:
    """The response to a request that was not served: a status and one sentence."""
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
        detail = f"The review file could not be read ({error}); try again, or restart the server."
    elif isinstance(error, OverflowError | UnicodeError):
        status, detail = 400, f"A number or a text cannot be stored ({error})."
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"detail": detail, **more}, status, headers)


def _documentation(described: dict[str, Any]) -> str:
    """The interface as a page without script, made from its OpenAPI description."""
    sections = []
    for path, operations in described["paths"].items():
        for method, one in operations.items():
            found = [(part["name"], part["in"], part.get("required")) for part in one.get("parameters", [])]
            body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            schema = described["components"]["schemas"].get(body.get("$ref", "").rsplit("/", 1)[-1], {})
            required = schema.get("required", ())
            found += [(name, "body", name in required) for name in schema.get("properties", ())]
            listed = "".join(
                f"<li><code>{escape(name)}</code> ({where}{', required' if needed else ''})</li>"
                for name, where, needed in found
            )
            sections.append(
                f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>"
                f"<p>{escape(one['description'])}</p>{f'<ul>{listed}</ul>' if listed else ''}</section>"
            )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>bilex workbench: REST interface</title>'
        f"<main><h1>REST interface</h1><p>{escape(described['info']['description'])} "
        f'As data: <a href="/openapi.json">openapi.json</a>.</p>{"".join(sections)}</main></html>'
    )


class LimitedProtocol(H11Protocol):
    """A connection that is closed if it sends no whole request in time.

    A full server closes the connection that has waited longest for its request, or else for the rest of a
    body, so that connections which never send one keep nobody out.
    """

    timer: asyncio.TimerHandle | None = None  # runs while no request is being answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request; close another connection if there are too many."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > _most_connections():
            others = (cast(LimitedProtocol, one) for one in self.connections if one is not self)
            idle = min(
                (one for one in others if one.timer or one.cycle.more_body),
                key=lambda one: (one.timer is None, one.since),
                default=self,
            )
            self.connections.discard(idle)
            idle.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop the timer once a whole header has come; then the application limits the time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._await_request()

    def _await_request(self) -> None:
        self._stop_timer()
        self.since = self.loop.time()
        self.timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


def _most_connections() -> int:
    """Connections at once: at most a quarter of the files that the process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))


class LimitedLog(logging.Filter):
    """Logs a few messages per minute, and how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._since, self._lines = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is written."""
        if time.monotonic() - self._since > _LINE_SECONDS:
            left_out, self._since, self._lines = self._lines - _MOST_LINES, time.monotonic(), 0
            if left_out > 0:
                record.msg, record.args = f"{record.getMessage()} ({left_out:,} messages were left out)", ()
        self._lines += 1
        return self._lines <= _MOST_LINES


def run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve an application until Ctrl-C."""
    settings: Any = {"log_level": "warning", "server_header": False, "timeout_graceful_shutdown": 3}
    config = uvicorn.Config(app, http=LimitedProtocol, ws="none", backlog=_BACKLOG, **settings)
    limit = LimitedLog()
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(limit)
    uvicorn.Server(config).run(sockets=[listener])
