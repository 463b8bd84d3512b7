"""The application, and running it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

import bilex
from bilex.core.errors import BilexError
from bilex_workbench.access import AccessPolicy, Safety
from bilex_workbench.documentation import documentation
from bilex_workbench.fast_path import FastTranslations
from bilex_workbench.problems import ProblemError
from bilex_workbench.routes import audit, entries, jobs, lookup, publish, review, setup
from bilex_workbench.state import Workbench
from bilex_workbench.uploads import Uploads

PAGE = Path(__file__).with_name("page")
_UPLOADS = ".bilex-uploads"
_ROUTERS = (lookup, entries, review, audit, jobs, publish, setup)


def application(bench: Workbench, policy: AccessPolicy) -> Safety:
    """The whole server as an ASGI application.

    Args:
        bench: Its state.
        policy: Who may come in.
    """
    uploads = Uploads(bench.settings.work / _UPLOADS, bench.settings.upload_limit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        bench.stop()
        uploads.clear()

    app = FastAPI(
        title="bilex workbench",
        version=bilex.__version__,
        description="Review, correct, retrain and publish a dictionary. See docs/reference/rest.md.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.bench, app.state.uploads = bench, uploads
    for module in _ROUTERS:
        app.include_router(module.router)
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
    return Safety(FastTranslations(app, bench), policy)


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
