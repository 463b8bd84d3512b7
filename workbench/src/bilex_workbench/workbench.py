"""The server's state: the open model, its review files and tables, and the operation or job that runs."""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, Query, Request
from pydantic import Field, PrivateAttr

from bilex.core.errors import BilexError
from bilex.core.files import restore
from bilex.core.languages import language_name
from bilex.core.locks import exclusive_lock
from bilex.core.manifest import CHECKSUMS
from bilex.model.space import Direction
from bilex.model.storage import StoredModel
from bilex_workbench.api import ProblemError, Response
from bilex_workbench.database import Database, now, review_file
from bilex_workbench.engine import Engine, ServedSpace
from bilex_workbench.precompute import Filled, Precompute
from bilex_workbench.statistics import FrequencyBand, frequency_bands
from bilex_workbench.versions import Versions

if TYPE_CHECKING:
    from bilex_workbench.examples import Corpus
    from bilex_workbench.setup import Uploads

_RIGHT_TO_LEFT = ("ar", "arz", "azb", "ckb", "dv", "fa", "he", "mzn", "pnb", "ps", "sd", "ug", "ur", "yi")
_CHECK_FOLDER_SECONDS = 1.0
_TERMINATION_SECONDS = 10.0
_OPERATIONS = {
    "load": "a model is being opened",
    "keep": "a retrained model is being kept",
    "discard": "a retrained model is being removed",
    "restore": "an earlier model is being restored",
    "learn": "a retraining is running; wait for it or cancel it",
    "fit": "a first fit is running; wait for it or cancel it",
    "apply": "confidences are being written into the model",
    "recalibrate": "confidences are being changed",
    "import": "a sheet is being imported",
}
_NOT_READY = "No model is open yet; wait until it is loaded, or make one first."
JobKind = Literal["learn", "fit"]
Finish = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Settings:
    """How a server was started."""

    folder: Path | None = None  # where files may be chosen from; None for no choice
    work: Path = field(default_factory=Path.cwd)  # where uploads and new models are kept
    fill: bool = True  # whether the table is filled in the background
    upload_limit: int = 4 << 30  # bytes of all uploads
    earlier: int = 5  # how many earlier models are kept


class Language(Response):
    """A language of the model."""

    code: str | None
    name: str
    words: int
    rtl: bool


class Lemmatised(Response):
    """Whether each language has a lemmatiser."""

    source: bool
    target: bool


class JobAnswer(Response):
    """A long piece of work."""

    id: str = Field(default_factory=lambda: secrets.token_hex(4))
    kind: JobKind
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    phase: str = "starting"
    done: float = 0
    total: float | None = None
    message: str = ""
    detail: str | None = None
    started: str = Field(default_factory=now)
    seconds: float = 0
    _began: float = PrivateAttr(default_factory=time.monotonic)

    def measure(self) -> None:
        """Set how long the job has taken."""
        self.seconds = round(time.monotonic() - self._began, 1)


class ModelAnswer(Response):
    """The model that is open; null where there is none."""

    state: Literal["none", "loading", "ready", "failed"]
    operation: str | None
    progress: tuple[int, int] | None
    detail: str | None
    generation: int
    job: JobAnswer | None
    name: str | None = None
    folder: str | None = None
    source: Language | None = None
    target: Language | None = None
    method: str | None = None
    language_model: str | None = None
    confidences: bool = False
    seeds: int | None = None
    made: str | None = None
    bands: list[FrequencyBand] = Field(default_factory=list)
    lemmas: Lemmatised | None = None
    corpus: bool = False
    entries: Filled | None = None
    backward: Filled | None = None


class Book:
    """The dictionary in one direction: its review file, table, vocabulary and languages.

    Target to source has its own review file; it is made, and its table filled, at the first request.
    """

    def __init__(self, bench: Workbench, direction: Direction) -> None:
        self.bench, self.direction = bench, direction
        self.opened: Database | None = None
        self.filling: Precompute | None = None
        self._lock = threading.RLock()

    @property
    def database(self) -> Database:
        """The review file."""
        with self._lock:
            if self.opened is None:
                if self.direction == "forward" or self.bench.book.opened is None:
                    raise ProblemError(503, _NOT_READY)
                self.opened = Database(review_file(self.bench.model_folder, self.direction))
            return self.opened

    @property
    def engine(self) -> Engine:
        """The open model, from which the table is filled."""
        engine = self.bench.engine
        self.fill(engine)
        return engine

    def fill(self, engine: Engine) -> None:
        """Start to fill the table from a model, unless that was done before."""
        with self._lock:
            if self.filling is None or self.filling.engine is not engine:
                self.stop_filling()
                self.filling = Precompute(engine, self.database, self.direction)
                if self.bench.settings.fill:
                    self.filling.start()

    @property
    def space(self) -> ServedSpace:
        """The two vocabularies, in this direction."""
        return self.engine.spaces[self.direction]

    @property
    def bands(self) -> list[FrequencyBand]:
        """The frequency bands of the vocabulary."""
        return frequency_bands(len(self.space.source))

    @property
    def filled(self) -> Filled:
        """How far the table is filled."""
        filling = self.filling
        return filling.filled if filling else Filled(done=0, total=0, complete=False)

    def exists(self) -> bool:
        """Whether there is a review file."""
        return self.bench.folder is not None and review_file(self.bench.folder, self.direction).is_file()

    def stop_filling(self) -> None:
        """Stop the thread that fills the table."""
        if self.filling is not None:
            self.filling.stop()
            self.filling = None

    def close(self) -> None:
        """Close the review file."""
        with self._lock:
            self.stop_filling()
            if self.opened is not None:
                self.opened.close()
                self.opened = None


class Workbench:
    """The state of one server."""

    uploads: Uploads

    def __init__(self, settings: Settings, model: Path | None = None) -> None:
        self.settings = settings
        self.generation = 0
        self.state: Literal["none", "loading", "ready", "failed"] = "none"
        self.detail: str | None = None
        self.operation: str | None = None
        self.progress: tuple[int, int] | None = None
        self.folder: Path | None = None
        self.corpus: Corpus | None = None
        self._operation_lock = threading.Lock()
        self._loaded: tuple[int, ...] | None = None  # which folder was opened
        self._tried: tuple[int, ...] | None = None  # and which was tried last
        self._next_check = 0.0
        self._engine: Engine | None = None
        self._job: JobAnswer | None = None
        self._process: subprocess.Popen[bytes] | None = None  # of a job that can be cancelled
        self._lock = contextlib.ExitStack()  # holds the lock of the review file
        self._changing = threading.RLock()
        self.book, self.backward = Book(self, "forward"), Book(self, "backward")
        self.books: dict[Direction, Book] = {"forward": self.book, "backward": self.backward}
        if model is not None:
            self.take(model)

    def begin(self, operation: str) -> None:
        """Start an operation that changes the model or much of the review file; only one runs at a time."""
        with self._operation_lock:
            running = self.operation or ("load" if self.state == "loading" else None)
            if running is not None:
                raise ProblemError(
                    409,
                    f"The server is busy ({_OPERATIONS[running]}); nothing was changed; try again later.",
                    state=self.state,
                    operation=running,
                    generation=self.generation,
                )
            self.operation, self.progress = operation, None

    def end(self) -> None:
        """End the operation."""
        with self._operation_lock:
            self.operation = self.progress = None

    @contextlib.contextmanager
    def exclusive(self, operation: str) -> Iterator[None]:
        """An operation for the length of a block; see `begin`."""
        self.begin(operation)
        try:
            yield
        finally:
            self.end()

    @property
    def job(self) -> JobAnswer | None:
        """The current or last job as it is now; None if there was none."""
        job = self._job
        if job is not None and job.state == "running":
            job.measure()
        return None if job is None else job.model_copy()

    def start_job(self, kind: JobKind, order: dict[str, Any], finish: Finish) -> JobAnswer:
        """Start a job in a process (`worker`); `finish` gets its result before its state becomes "done"."""
        self.begin(kind)
        try:
            command = [sys.executable, "-m", "bilex_workbench.worker"]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        except BaseException:
            self.end()
            raise
        self._job, self._process = JobAnswer(kind=kind), process
        arguments = (self._job, process, {"kind": kind, **order}, finish)
        threading.Thread(target=self._watch, args=arguments, name="job", daemon=True).start()
        return self._job.model_copy()

    def cancel_job(self) -> None:
        """End the job; nothing of it is kept."""
        with self._operation_lock:
            job, process, self._process = self._job, self._process, None
            if job is None or process is None:
                raise ProblemError(409, "No job is running that could be cancelled.")
            job.measure()
            job.state = "cancelled"
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATION_SECONDS)
        process.kill()  # if it has not ended by itself
        self.end()

    def _watch(
        self, job: JobAnswer, process: subprocess.Popen[bytes], order: dict[str, Any], finish: Finish
    ) -> None:
        """Send the order, follow the progress, and finish the job."""
        assert process.stdin is not None and process.stdout is not None
        result = None
        try:
            with process:
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()  # it stays open: the process ends when the server does
                for line in process.stdout:
                    report = json.loads(line)
                    result = report.pop("result", None)
                    for name, value in report.items():
                        setattr(job, name, value)
        except (OSError, ValueError) as error:
            job.detail = f"The job ended unexpectedly ({error})."
        with self._operation_lock:
            if job.state != "running":
                return
            self._process = None  # it can no longer be cancelled
        if job.detail is None:
            try:
                if result is None:
                    ended = f"The job ended unexpectedly (exit code {process.returncode})"
                    raise BilexError(f"{ended}; try fewer words or another method.")
                finish(result)
            except Exception as error:
                job.detail = str(error)
        self.end()
        job.measure()
        job.state = "failed" if job.detail else "done"

    def take(self, model: Path) -> None:
        """Serve a model: check it, lock its review file, and load it in the background."""
        with self._changing:
            folder = model.resolve()
            restore(folder)
            StoredModel.open(folder, many=False)
            path = review_file(folder)
            with contextlib.ExitStack() as stack:
                stack.enter_context(exclusive_lock(path))
                database = Database(path)
                held = stack.pop_all()
            self.close()
            self.folder, self.book.opened, self._lock = folder, database, held
            self.versions.finish_replacement()
            self.load()

    def load(self) -> None:
        """Check and open the model's folder in the background; an earlier model is served meanwhile."""
        self.state, self.detail = "loading", "The model's files are being compared with their checksums."
        threading.Thread(target=self._load, name="loading", daemon=True).start()

    def _load(self) -> None:
        folder, database = self.folder, self.book.opened
        if folder is None or database is None:
            return
        self._tried = _identity(folder)
        try:
            StoredModel.open(folder, many=False).check(verify=True)
            self.detail = "The model is being opened."
            engine = Engine(folder, database)
        except Exception as error:
            self.state, self.detail = "failed", str(error) or type(error).__name__
            return
        with self._changing:
            if self.book.opened is not database:  # the server took another model or ended meanwhile
                engine.close()
                return
            earlier, self._engine = self._engine, engine
            self._loaded = self._tried
            self.backward.stop_filling()
            self.book.fill(engine)
            self.generation += 1
            self.state, self.detail = "ready", None
            if earlier is not None:
                earlier.close()

    def _check_folder(self) -> None:
        """Notice, at most once per second, that the model's folder was replaced or removed."""
        if time.monotonic() < self._next_check or self.folder is None:
            return
        self._next_check = time.monotonic() + _CHECK_FOLDER_SECONDS
        found = _identity(self.folder)
        with self._operation_lock:
            if self.operation or self.state not in ("ready", "failed") or self._loaded is None:
                return
            if found == self._loaded:
                self.state, self.detail = "ready", None
            elif found is None:
                self.state = "failed"
                self.detail = f"{self.folder}: the model is gone; put it back, or restart the server."
            elif found != self._tried:
                self.load()

    @property
    def database(self) -> Database:
        """The review file of source words."""
        return self.book.database

    @property
    def versions(self) -> Versions:
        """The versions of the model."""
        return Versions(self.database, self.model_folder, self.settings.earlier)

    @property
    def model_folder(self) -> Path:
        """The folder of the model."""
        if self.folder is None:
            raise ProblemError(503, _NOT_READY)
        return self.folder

    @property
    def engine(self) -> Engine:
        """The open model."""
        self._check_folder()
        if self.state == "failed":
            raise ProblemError(503, self.detail or "The model could not be opened.")
        if self._engine is None:
            raise ProblemError(503, _NOT_READY)
        return self._engine

    def waits_for_encoder(self) -> bool:
        """Whether requests may have to wait until the language model is open."""
        return self._engine is not None and not self._engine.encoder_open

    def wait_until_ready(self, seconds: float = 600.0) -> None:
        """Wait for the model, and where the table is filled, for all of it (for scripts and tests)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.state == "failed":
                raise BilexError(self.detail or "the model could not be opened")
            filling = self.book.filling if self.state == "ready" else None
            if filling and (not self.settings.fill or filling.filled.complete or filling.error):
                return
            time.sleep(0.02)
        raise BilexError("the model was not ready in time.")

    def describe(self) -> ModelAnswer:
        """The response of `GET /api/model`."""
        self._check_folder()
        filling, engine = self.book.filling, self._engine
        shown = ("state", "operation", "progress", "generation", "job")
        found: dict[str, Any] = {name: getattr(self, name) for name in shown}
        found["detail"] = self.detail or (filling.error if filling else None)
        if self.folder is not None:
            found |= {"name": self.folder.name, "folder": str(self.folder)}
            found |= {"corpus": self.corpus is not None, "entries": self.book.filled}
        if engine is not None and self.book.opened is not None:
            made, space = engine.translator.provenance, engine.space
            lemmas = self.book.opened.fact("lemmatised")
            found |= {
                "source": _language("source", made.source_language, len(space.source)),
                "target": _language("target", made.target_language, len(space.target)),
                "method": made.method,
                "language_model": made.language_model and made.language_model.lm,
                "confidences": ("forward", "csls") in engine.translator.calibration.parts,
                "seeds": made.seed_pairs,
                "made": made.made,
                "bands": frequency_bands(len(space.source)),
                "lemmas": lemmas and {"source": lemmas[0], "target": lemmas[1]},
            }
        if self.backward.exists():
            with contextlib.suppress(BilexError):  # the model is not open
                self.backward.engine  # noqa: B018 - continues filling the table
                found["backward"] = self.backward.filled
        return ModelAnswer(**found)

    def close(self) -> None:
        """Close the model; decisions are on disk already."""
        for book in self.books.values():
            book.stop_filling()
        if self._engine is not None:
            self._engine.close()
        for book in self.books.values():
            book.close()
        self._lock.close()
        self._engine = self._loaded = None
        self.state = "none"

    def stop(self) -> None:
        """End everything, the job included."""
        with contextlib.suppress(ProblemError):
            self.cancel_job()
        with self._changing:
            self.close()


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What distinguishes a model folder from another one at the same place; None where there is none."""
    try:
        found, listed = folder.stat(), (folder / CHECKSUMS).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, listed.st_ino, listed.st_mtime_ns


def _language(side: str, code: str | None, words: int) -> dict[str, Any]:
    name = language_name(code) if code else side
    return {"code": code, "name": name, "words": words, "rtl": code in _RIGHT_TO_LEFT}


# Dependencies of the routes.


async def _polled(request: Request) -> Workbench:
    bench: Workbench = request.app.state.bench
    return bench


PolledBench = Annotated[Workbench, Depends(_polled)]  # for requests that the page repeats to show progress


async def _bench(bench: PolledBench) -> Workbench:
    if bench._engine is not None:
        bench._engine.note_request()
    return bench


Bench = Annotated[Workbench, Depends(_bench)]


async def _book(bench: Bench, direction: Annotated[Direction, Query()] = "forward") -> Book:
    return bench.books[direction]


BookOf = Annotated[Book, Depends(_book)]  # of the direction in the request


def _reader(book: BookOf) -> Iterator[sqlite3.Connection]:
    with book.database.reading() as db:
        yield db


Reader = Annotated[sqlite3.Connection, Depends(_reader)]  # of that direction's review file
