"""The workbench as a whole: the model that is open, its review file, and the job that runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import filelock
from fastapi import Depends, Query, Request
from pydantic import Field

from bilex.core.errors import BilexError
from bilex.core.files import restore
from bilex.core.languages import language_name
from bilex.core.manifest import CHECKSUMS
from bilex.model.provenance import Provenance
from bilex.model.space import Direction
from bilex.model.storage import describe, read_config, read_provenance
from bilex_workbench.engine import QUERIES, Engine, ServedSpace
from bilex_workbench.interface import Answer, ProblemError
from bilex_workbench.intervals import FrequencyBand, frequency_bands
from bilex_workbench.jobs import JobAnswer, Jobs
from bilex_workbench.precompute import Precompute
from bilex_workbench.schema import lock as take_lock
from bilex_workbench.schema import review_file
from bilex_workbench.store import Store

if TYPE_CHECKING:
    from bilex_workbench.examples import Corpus

RIGHT_TO_LEFT = frozenset(
    {"ar", "arz", "azb", "ckb", "dv", "fa", "he", "mzn", "pnb", "ps", "sd", "ug", "ur", "yi"}
)


_LOOK_EVERY = 1.0
_DOING = {
    "load": "a model is being opened",
    "keep": "a retrained model is being put in place",
    "discard": "a retrained model is being removed",
    "restore": "an earlier model is being put in place",
    "learn": "a retraining runs; wait for it or cancel it",
    "fit": "a first fit runs; wait for it or cancel it",
    "apply": "confidences are being written into the model",
    "recalibrate": "confidences are being changed",
    "import": "a sheet is being imported",
}


@dataclass(frozen=True)
class Settings:
    """How a server was started."""

    folder: Path | None = None  # where files may be chosen from and models are made; None for no choice
    work: Path = field(default_factory=Path.cwd)  # where uploads and new models are kept
    fill: bool = True  # whether the table is filled in the background
    upload_limit: int = 4 << 30  # bytes of all uploads
    earlier: int = 5  # how many earlier models are kept


class Language(Answer):
    """A language of the model."""

    code: str | None
    name: str
    words: int
    rtl: bool


class Filled(Answer):
    """How far the table is filled."""

    done: int
    total: int
    complete: bool


class Lemmatised(Answer):
    """Whether each language has a lemmatiser."""

    source: bool
    target: bool


class ModelAnswer(Answer):
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
    """The dictionary in one direction: what its table, review, audit and exports need.

    Target to source has a review file of its own; it is made, and its table filled, when somebody first
    asks for it.
    """

    def __init__(self, bench: Workbench, direction: Direction) -> None:
        self.bench, self.direction = bench, direction
        self.opened: Store | None = None
        self.filling: Precompute | None = None
        self._lock = threading.RLock()

    @property
    def store(self) -> Store:
        """The review file."""
        with self._lock:
            if self.opened is None:
                if self.direction == "forward" or self.bench.book.opened is None:
                    raise _not_ready()
                self.opened = Store(review_file(self.bench.model_folder, self.direction))
            return self.opened

    @property
    def engine(self) -> Engine:
        """The open model; the table is filled from it."""
        engine = self.bench.engine
        if self.direction == "backward":
            with self._lock:
                if self.filling is None or self.filling.engine is not engine:
                    self.fill(engine)
        return engine

    def fill(self, engine: Engine) -> None:
        """Fill the table from a model that was opened."""
        with self._lock:
            if self.filling is not None:
                self.filling.stop()
            self.filling = Precompute(engine, self.store, self.direction)
            if self.bench.settings.fill:
                self.filling.start()

    @property
    def space(self) -> ServedSpace:
        """The two vocabularies, in this direction."""
        return self.engine.spaces[self.direction]

    @property
    def exists(self) -> bool:
        """Whether somebody asked for this direction, now or earlier."""
        return self.bench.folder is not None and review_file(self.bench.folder, self.direction).is_file()

    @property
    def words(self) -> int:
        """How many words are asked about; 0 where there is no model."""
        return int(self.bench.config.get(f"{QUERIES[self.direction]}_words", 0))

    @property
    def bands(self) -> list[FrequencyBand]:
        """The frequency bands of the vocabulary that is asked about."""
        return frequency_bands(self.words) if self.words else []

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the two languages, in this direction, where they are known."""
        source, target = self.bench.provenance.languages
        return (source, target) if self.direction == "forward" else (target, source)

    @property
    def filled(self) -> Filled:
        """How far the table is filled."""
        done, complete = (self.filling.done, self.filling.complete) if self.filling else (0, False)
        return Filled(done=done, total=self.words, complete=complete)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self.filling is not None:
                self.filling.stop()
            if self.opened is not None:
                self.opened.close()
            self.opened = self.filling = None


class Workbench:
    """One server's state."""

    def __init__(self, settings: Settings, model: Path | None = None) -> None:
        self.settings = settings
        self.generation = 0
        self.state = "none"
        self.detail: str | None = None
        self.operation: str | None = None
        self.progress: tuple[int, int] | None = None
        self.folder: Path | None = None
        self.corpus: Corpus | None = None
        self.config: dict[str, Any] = {}
        self.provenance = Provenance()
        self._operation_lock = threading.Lock()
        self._loaded: tuple[int, ...] | None = None  # which folder was opened
        self._tried: tuple[int, ...] | None = None  # and which was tried last
        self._next_look = 0.0
        self._engine: Engine | None = None
        self._lock: filelock.BaseFileLock | None = None
        self._changing = threading.RLock()
        self.book, self.backward = Book(self, "forward"), Book(self, "backward")
        self.books: dict[Direction, Book] = {"forward": self.book, "backward": self.backward}
        self.jobs = Jobs(self)
        if model is not None:
            self.take(model)

    def begin(self, operation: str) -> None:
        """Start an operation that changes the model or much of the review file; only one runs at a time."""
        with self._operation_lock:
            doing = self.operation or ("load" if self.state == "loading" else None)
            if doing is not None:
                now = {"state": self.state, "operation": doing, "generation": self.generation}
                raise ProblemError(
                    409, f"The server is busy ({_DOING[doing]}); nothing was changed; try again later.", now
                )
            self.operation, self.progress = operation, None

    def end(self) -> None:
        """The operation is over."""
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

    def take(self, model: Path) -> None:
        """Make a model this server's own: check it, lock its review file, and load it in the background."""
        from bilex_workbench.retraining import settle

        with self._changing:
            folder = model.resolve()
            restore(folder)
            config, provenance = read_config(folder), read_provenance(folder)
            path = review_file(folder)
            lock = take_lock(path)
            try:
                store = Store(path)
            except BilexError:
                lock.release()
                raise
            self.close()
            settle(store, folder, self.settings.earlier)
            self.config, self.provenance = config, provenance
            self.folder, self.book.opened, self._lock = folder, store, lock
            self.load()

    def load(self) -> None:
        """Check and open the model of this server's folder in the background; an earlier one serves on."""
        self.state, self.detail = "loading", "The model's files are being compared with their checksums."
        threading.Thread(target=self._load, name="loading", daemon=True).start()

    def _load(self) -> None:
        folder, store = self.folder, self.book.opened
        if folder is None or store is None:
            return
        self._tried = _identity(folder)
        try:
            describe(folder, verify=True)
            self.detail = "The model is being opened."
            config, provenance = read_config(folder), read_provenance(folder)
            engine = Engine(folder, store)
        except Exception as error:
            self.state, self.detail = "failed", str(error) or type(error).__name__
            return
        with self._changing:
            if self.book.opened is not store:  # the server took another model or ended meanwhile
                engine.close()
                return
            earlier, self._engine = self._engine, engine
            self.config, self.provenance, self._loaded = config, provenance, self._tried
            self.book.fill(engine)
            if earlier is not None:
                earlier.close()
            self.generation += 1
            self.state, self.detail = "ready", None

    def _look_at_folder(self) -> None:
        """Notice, at most once per second, that somebody replaced or removed the model's folder."""
        if time.monotonic() < self._next_look or self.operation or self.state not in ("ready", "failed"):
            return
        self._next_look = time.monotonic() + _LOOK_EVERY
        found = None if self.folder is None else _identity(self.folder)
        with self._operation_lock:
            if self.operation or self.state not in ("ready", "failed") or self._loaded is None:
                return
            if found == self._loaded:
                self.state, self.detail = "ready", None
            elif found is None:
                self.state = "failed"
                self.detail = f"{self.folder}: the model is gone; put it back, or start the server again."
            elif found != self._tried:
                self.load()

    @property
    def store(self) -> Store:
        """The review file of source words."""
        return self.book.store

    @property
    def model_folder(self) -> Path:
        """Where the model lies."""
        if self.folder is None:
            raise _not_ready()
        return self.folder

    @property
    def engine(self) -> Engine:
        """The open model."""
        self._look_at_folder()
        if self.state == "failed":
            raise ProblemError(503, self.detail or "The model could not be opened.")
        if self._engine is None:
            raise _not_ready()
        return self._engine

    def note_request(self) -> None:
        """Somebody asks for something: the table is filled when nobody does."""
        if self._engine is not None:
            self._engine.note_request()

    @property
    def encoder_opens(self) -> bool:
        """Whether the model has a language model that is not open yet, so that requests may wait for it."""
        return self._engine is not None and not self._engine.encoder_open

    def wait_until_ready(self, seconds: float = 600.0) -> None:
        """Wait for the model, and where the table is filled, for all of it (for scripts and tests)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.state == "failed":
                raise BilexError(self.detail or "the model could not be opened")
            done = self.state == "ready" and (not self.settings.fill or self.book.filled.complete)
            if done or (self.book.filling is not None and self.book.filling.error):
                return
            time.sleep(0.02)
        raise BilexError("the model was not ready in time.")

    def describe(self) -> ModelAnswer:
        """What `GET /api/model` answers."""
        self._look_at_folder()
        filling = self.book.filling
        found = ModelAnswer(
            state=self.state,  # type: ignore[arg-type]
            operation=self.operation,
            progress=self.progress,
            detail=self.detail or (filling.error if filling else None),
            generation=self.generation,
            job=self.jobs.describe(),
        )
        if self.folder is None:
            return found
        made = self.provenance
        lemmas = self.book.opened.fact("lemmatised") if self.book.opened else None
        more = {
            "name": self.folder.name,
            "folder": str(self.folder),
            "source": _language("source", made.source_language, self.book.words),
            "target": _language("target", made.target_language, self.backward.words),
            "method": made.method,
            "language_model": None if made.language_model is None else made.language_model.lm,
            "confidences": any("forward csls" in part for part in self.config["calibrations"].values()),
            "seeds": made.seed_pairs,
            "made": made.made,
            "bands": self.book.bands,
            "lemmas": lemmas and Lemmatised(source=lemmas[0], target=lemmas[1]),
            "corpus": self.corpus is not None,
            "entries": self.book.filled,
        }
        if self.backward.exists:
            with contextlib.suppress(BilexError):  # the model is not open
                self.backward.engine  # noqa: B018 - goes on where it was
                more["backward"] = self.backward.filled
        return found.model_copy(update=more)

    def close(self) -> None:
        """Let go of the model; what was decided is on the disk already."""
        self.backward.close()
        if self.book.filling is not None:
            self.book.filling.stop()
        if self._engine is not None:
            self._engine.close()
        self.book.close()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()
        self._engine = self._lock = self._loaded = None
        self.state = "none"

    def stop(self) -> None:
        """End everything, the job included."""
        self.jobs.stop()
        with self._changing:
            self.close()


def _not_ready() -> ProblemError:
    return ProblemError(503, "No model is open yet; wait until it is loaded, or make one first.")


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What tells a model folder from another one at the same place; None where there is none."""
    try:
        found, listed = folder.stat(), (folder / CHECKSUMS).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, listed.st_ino, listed.st_mtime_ns


def _language(side: str, code: str | None, words: int) -> Language:
    name = language_name(code) if code else side
    return Language(code=code, name=name, words=words, rtl=code in RIGHT_TO_LEFT)


# What operations depend on.


async def _watched(request: Request) -> Workbench:
    """The workbench, for a request that the page makes again and again to see how far something is."""
    bench: Workbench = request.app.state.bench
    return bench


async def _bench(request: Request) -> Workbench:
    bench = await _watched(request)
    bench.note_request()
    return bench


async def _book(request: Request, direction: Annotated[Direction, Query()] = "forward") -> Book:
    """The dictionary in the direction that is asked for."""
    return (await _bench(request)).books[direction]


Bench = Annotated[Workbench, Depends(_bench)]
BookOf = Annotated[Book, Depends(_book)]
WatchedBench = Annotated[Workbench, Depends(_watched)]
