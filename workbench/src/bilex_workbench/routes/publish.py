"""Publish: exports, the change log, sheets out and in."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from bilex_workbench import interface as i
from bilex_workbench import publishing
from bilex_workbench.entries import Filter
from bilex_workbench.importing import import_sheet
from bilex_workbench.problems import ProblemError
from bilex_workbench.publishing import Choice
from bilex_workbench.routes import Bench, BookOf, ReviewerQuery, Share, Which, body_of, files, problems
from bilex_workbench.site import Cover
from bilex_workbench.state import Book, Workbench

router = APIRouter(tags=["publish"])


def _file(content: str | bytes, name: str, media_type: str) -> Response:
    body = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    kind = f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
    return Response(body, media_type=kind, headers=headers)


def _name(bench: Workbench, book: Book, what: str, suffix: str) -> str:
    """A file name that says which model it is of, in characters that every system takes."""
    model = bench.folder.name if bench.folder else "bilex"
    way = "" if book.direction == "forward" else "-backward"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{model}-{what}{way}{suffix}")


@router.get("/api/publish/formats", response_model=i.FormatsAnswer)
def formats(bench: Bench) -> Any:
    """The formats of exports."""
    return {"formats": publishing.formats()}


def _choice(
    which: Which = "confirmed", min_confidence: Share = None, without: str = "", by: str = "lemma"
) -> Choice:
    return Choice(which, min_confidence, without, by)


CoverText = Annotated[str, Query(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Chosen = Annotated[Choice, Depends(_choice)]


@router.get(
    "/api/publish/export",
    response_class=Response,
    responses=files(*publishing.media_types()) | problems(409),
)
def export(
    bench: Bench,
    book: BookOf,
    choice: Chosen,
    form: Annotated[str, Query(alias="format")] = "csv",
    title: CoverText = "",
    authors: CoverText = "",
    licence: CoverText = "",
) -> Response:
    """The dictionary as a file; title, authors and licence stand on the cover of a site."""
    made = publishing.export(book.store, form, choice, book.languages, Cover(title, authors, licence))
    what = "site" if form == "site" else "dictionary"
    return _file(made.content, _name(bench, book, what, made.suffix), made.media_type)


@router.get("/api/publish/preview", response_model=i.PreviewAnswer)
def preview(book: BookOf, choice: Chosen) -> Any:
    """How large an export will be."""
    return publishing.preview(book.store, choice)


@router.get(
    "/api/publish/changes", response_class=Response, responses=files("text/csv", "application/x-ndjson")
)
def change_log(bench: Bench, book: BookOf, form: Annotated[str, Query(alias="format")] = "csv") -> Response:
    """Who decided what, when."""
    media_type = "text/csv" if form == "csv" else "application/x-ndjson"
    return _file(
        publishing.change_log(book.store, form), _name(bench, book, "changes", f".{form}"), media_type
    )


@router.get("/api/publish/sheet", response_class=Response, responses=files("text/csv"))
def sheet(
    bench: Bench,
    book: BookOf,
    status: str = "",
    band: str | None = None,
    min_confidence: Share = None,
    max_confidence: Share = None,
    limit: Annotated[int | None, Query(ge=1, le=1_000_000_000)] = None,
) -> Response:
    """Entries as CSV to fill in without a server."""
    wanted = Filter(status=status, min_confidence=min_confidence, max_confidence=max_confidence).within_band(
        band, book.bands
    )
    return _file(
        publishing.sheet(book.store, wanted, limit), _name(bench, book, "review", ".csv"), "text/csv"
    )


@router.post(
    "/api/publish/import",
    response_model=i.ImportAnswer,
    responses=problems(409),
    openapi_extra=body_of("text/csv"),
)
async def import_verdicts(
    bench: Bench, book: BookOf, request: Request, reviewer: ReviewerQuery, dry_run: bool = False
) -> Any:
    """Take over the verdicts of a filled-in sheet."""
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(400, "The sheet is not UTF-8; save it as 'CSV UTF-8'.") from error
    return await run_in_threadpool(_imported, bench, book, text, reviewer, dry_run)


def _imported(bench: Workbench, book: Book, text: str, reviewer: str, dry_run: bool) -> dict[str, Any]:
    def progress(done: int, total: int) -> None:
        bench.progress = done, total

    if dry_run:
        return import_sheet(book.store, text, reviewer, dry_run=True).as_dict()
    with bench.exclusive("import"):
        return import_sheet(book.store, text, reviewer, progress=progress).as_dict()
