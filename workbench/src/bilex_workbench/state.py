"""The workbench as a whole: the model that is open, its review file, and the job that runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import filelock

from bilex.core.errors import BilexError
from bilex.core.files import restore
from bilex.core.languages import language_name
from bilex.core.manifest import CHECKSUMS
from bilex.model.provenance import Provenance
from bilex.model.space import Direction, Side
from bilex.model.storage import describe, read_config, read_provenance
from bilex_workbench import retraining
from bilex_workbench.engine import Backward, Engine
from bilex_workbench.examples import Corpus
from bilex_workbench.intervals import Band, frequency_bands
from bilex_workbench.precompute import Precompute
from bilex_workbench.problems import ProblemError, not_ready
from bilex_workbench.schema import lock as take_lock
from bilex_workbench.schema import review_file
from bilex_workbench.store import Store

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
    """How a server was started.

    Attributes:
        folder: Where files may be chosen from and models are made; None for no choice.
        work: Where uploads and new models are kept.
        fill: Whether the table is filled in the background.
        upload_limit: The most bytes of one upload.
        earlier: How many earlier models are kept.
    """

    folder: Path | None = None
    work: Path = field(default_factory=Path.cwd)
    fill: bool = True
    upload_limit: int = 4 << 30
    earlier: int = retraining.EARLIER_MODELS


class Book:
    """The dictionary in one direction: what its table, review, audit and exports need.

    Target to source has a review file of its own; it is made, and its table filled, when somebody first
    asks for it.
    """

    def __init__(self, bench: Workbench, direction: Direction) -> None:
        self._bench, self.direction = bench, direction
        self._store: Store | None = None
        self._engine: Engine | None = None
        self._filling: Precompute | None = None
        self._lock = threading.Lock()

    @property
    def store(self) -> Store:
        """The review file."""
        if self.direction == "forward":
            return self._bench.store
        with self._lock:
            if self._store is None:
                self._bench.store  # noqa: B018 - 503 where there is no model
                assert self._bench.folder is not None
                self._store = Store(review_file(self._bench.folder, self.direction))
            return self._store

    @property
    def engine(self) -> Engine:
        """The open model, read in this direction."""
        engine, store = self._bench.engine, self.store
        if self.direction == "forward":
            return engine
        with self._lock:
            if self._engine is None or self._engine.fingerprint != engine.fingerprint:
                if self._filling is not None:
                    self._filling.stop()
                self._engine = Backward(engine, store)
                self._filling = Precompute(self._engine)
                if self._bench.settings.fill:
                    self._filling.start()
            return self._engine

    @property
    def exists(self) -> bool:
        """Whether somebody asked for this direction, now or earlier."""
        folder = self._bench.folder
        return folder is not None and review_file(folder, self.direction).is_file()

    @property
    def bands(self) -> list[Band]:
        """The frequency bands of the vocabulary that is asked about."""
        return self._bench.bands_of("source" if self.direction == "forward" else "target")

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the two languages, in this direction."""
        source, target = self._bench.languages
        return (source, target) if self.direction == "forward" else (target, source)

    @property
    def filling(self) -> Precompute | None:
        """What fills the table."""
        return self._bench.filling if self.direction == "forward" else self._filling

    @property
    def filled(self) -> bool:
        """Whether the table is complete."""
        return self.filling is not None and self.filling.complete

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._filling is not None:
                self._filling.stop()
            if self._store is not None:
                self._store.close()
            self._store = self._engine = self._filling = None


class Workbench:
    """One server's state."""

    def __init__(self, settings: Settings, model: Path | None = None) -> None:
        from bilex_workbench.jobs import Jobs

        self.settings = settings
        self.generation = 0
        self.state = "none"
        self.detail: str | None = None
        self.operation: str | None = None
        self.progress: tuple[int, int] | None = None
        self.folder: Path | None = None
        self.corpus: Corpus | None = None
        self._config: dict[str, Any] = {}
        self._provenance = Provenance()
        self._operation_lock = threading.Lock()
        self._loaded: tuple[int, ...] | None = None  # which folder was opened
        self._tried: tuple[int, ...] | None = None  # and which was tried last
        self._next_look = 0.0
        self._engine: Engine | None = None
        self._store: Store | None = None
        self._filling: Precompute | None = None
        self._lock: filelock.BaseFileLock | None = None
        self._changing = threading.RLock()
        self.books: dict[Direction, Book] = {name: Book(self, name) for name in get_args(Direction)}
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
            retraining.settle(store, folder, self.settings.earlier)
            self._config, self._provenance = config, provenance
            self.folder, self._store, self._lock = folder, store, lock
            self.load()

    def load(self) -> None:
        """Check and open the model of this server's folder in the background; an earlier one serves on."""
        self.state, self.detail = "loading", "The model's files are being compared with their checksums."
        threading.Thread(target=self._load, name="loading", daemon=True).start()

    def _load(self) -> None:
        folder, store = self.folder, self._store
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
            if self._store is not store:  # the server took another model or ended meanwhile
                engine.close()
                return
            earlier, self._engine = self._engine, engine
            if self._filling is not None:
                self._filling.stop()
            if earlier is not None:
                earlier.close()
            self._config, self._provenance, self._loaded = config, provenance, self._tried
            self._filling = Precompute(engine)
            self.generation += 1
            self.state, self.detail = "ready", None
            if self.settings.fill:
                self._filling.start()

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
        """The review file."""
        if self._store is None:
            raise not_ready()
        return self._store

    @property
    def engine(self) -> Engine:
        """The open model."""
        self._look_at_folder()
        if self.state == "failed":
            raise ProblemError(503, self.detail or "The model could not be opened.")
        if self._engine is None:
            raise not_ready()
        return self._engine

    def note_request(self) -> None:
        """Somebody asks for something: the table is filled when nobody does."""
        if self._engine is not None:
            self._engine.note_request()

    @property
    def size(self) -> int:
        """How many words both vocabularies have together."""
        return int(self._config["source_words"]) + int(self._config["target_words"]) if self._config else 0

    @property
    def encoder_opens(self) -> bool:
        """Whether the model has a language model that is not open yet, so that requests may wait for it."""
        return self._engine is not None and not self._engine.encoder_open

    def bands_of(self, side: Side) -> list[Band]:
        """The frequency bands of a vocabulary."""
        return frequency_bands(int(self._config[f"{side}_words"])) if self._config else []

    @property
    def filling(self) -> Precompute | None:
        """What fills the table of source words."""
        return self._filling

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the two languages, where they are known."""
        return self._provenance.languages

    @property
    def filled(self) -> bool:
        """Whether the table is complete."""
        return self._filling is not None and self._filling.complete

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Wait for the model, and where the table is filled, for all of it (for scripts and tests)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.state == "failed":
                raise BilexError(self.detail or "the model could not be opened")
            done = self.state == "ready" and (not self.settings.fill or self.filled)
            if done or (self._filling is not None and self._filling.error):
                return
            time.sleep(0.02)
        raise BilexError("the model was not ready in time.")

    def describe(self) -> dict[str, Any]:
        """What `GET /api/model` answers."""
        self._look_at_folder()
        found: dict[str, Any] = {
            "state": self.state,
            "operation": self.operation,
            "progress": self.progress,
            "detail": self.detail or (self._filling.error if self._filling else None),
            "generation": self.generation,
            "job": self.jobs.describe(),
        }
        if self.folder is None:
            return found
        config, made = self._config, self._provenance
        return {
            **found,
            "name": self.folder.name,
            "folder": str(self.folder),
            "source": _language("source", made.source_language, config["source_words"]),
            "target": _language("target", made.target_language, config["target_words"]),
            "method": made.method,
            "language_model": None if made.language_model is None else made.language_model.lm,
            "confidences": any("forward csls" in part for part in config["calibrations"].values()),
            "seeds": made.seed_pairs,
            "made": made.made,
            "bands": [vars(band) for band in self.bands_of("source")],
            "lemmas": self._lemmas(),
            "corpus": self.corpus is not None,
            "entries": {
                "done": self._filling.done if self._filling else 0,
                "total": int(config["source_words"]),
                "complete": self.filled,
            },
            "backward": self._backward(),
        }

    def _backward(self) -> dict[str, Any] | None:
        """How far the table of target words is filled; None if nobody asked for it yet."""
        book = self.books["backward"]
        if not book.exists:
            return None
        with contextlib.suppress(BilexError):  # the model is not open
            book.engine  # noqa: B018 - goes on where it was
            assert book.filling is not None
            total = int(self._config["target_words"])
            return {"done": book.filling.done, "total": total, "complete": book.filled}
        return None

    def _lemmas(self) -> dict[str, bool] | None:
        """Whether each language has a lemmatiser; None while that is not known."""
        found = self._store.fact("lemmatised") if self._store else None
        return None if found is None else {"source": found[0], "target": found[1]}

    def close(self) -> None:
        """Let go of the model; what was decided is on the disk already."""
        self.books["backward"].close()
        if self._filling is not None:
            self._filling.stop()
        if self._engine is not None:
            self._engine.close()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()
        self._engine = self._store = self._filling = self._lock = self._loaded = None
        self.state = "none"

    def stop(self) -> None:
        """End everything, the job included."""
        self.jobs.stop()
        with self._changing:
            self.close()


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What tells a model folder from another one at the same place; None where there is none."""
    try:
        found, listed = folder.stat(), (folder / CHECKSUMS).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, listed.st_ino, listed.st_mtime_ns


def _language(side: str, code: str | None, words: int) -> dict[str, Any]:
    return {
        "code": code,
        "name": language_name(code) if code else side,
        "words": words,
        "rtl": code in RIGHT_TO_LEFT,
    }
