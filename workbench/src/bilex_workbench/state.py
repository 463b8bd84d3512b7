"""The workbench as a whole: the model that is open, its review file, and the job that runs."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock

from bilex.core.errors import BilexError
from bilex.core.languages import language_name
from bilex.model.storage import read_config, read_provenance
from bilex_workbench.bands import Band, frequency_bands
from bilex_workbench.engine import Engine
from bilex_workbench.examples import Corpus
from bilex_workbench.precompute import Precompute
from bilex_workbench.problems import ProblemError, not_ready
from bilex_workbench.schema import lock as take_lock
from bilex_workbench.schema import review_file
from bilex_workbench.store import Store

RIGHT_TO_LEFT = frozenset(
    {"ar", "arz", "azb", "ckb", "dv", "fa", "he", "mzn", "pnb", "ps", "sd", "ug", "ur", "yi"}
)


@dataclass(frozen=True)
class Settings:
    """How a server was started.

    Attributes:
        folder: Where files may be chosen from and models are made; None for no choice.
        work: Where uploads and new models are kept.
        fill: Whether the table is filled in the background.
        upload_limit: The most bytes of one upload.
    """

    folder: Path | None = None
    work: Path = field(default_factory=Path.cwd)
    fill: bool = True
    upload_limit: int = 4 << 30


class Workbench:
    """One server's state.

    Args:
        settings: How it was started.
        model: The model folder; None to start from nothing.

    Raises:
        BilexError: It is no model, its review file cannot be used, or another server has it open.
    """

    def __init__(self, settings: Settings, model: Path | None = None) -> None:
        from bilex_workbench.jobs import Jobs

        self.settings = settings
        self.generation = 0
        self.state = "none"
        self.detail: str | None = None
        self.folder: Path | None = None
        self.corpus: Corpus | None = None
        self._engine: Engine | None = None
        self._store: Store | None = None
        self._filling: Precompute | None = None
        self._lock: filelock.BaseFileLock | None = None
        self._changing = threading.RLock()
        self.jobs = Jobs(self)
        if model is not None:
            self.take(model)

    def take(self, model: Path) -> None:
        """Make a model this server's own: check it, lock its review file, and load it in the background.

        Raises:
            BilexError: It is no model, or another server has it open.
        """
        with self._changing:
            folder = model.resolve()
            read_config(folder)
            path = review_file(folder)
            lock = take_lock(path)
            try:
                store = Store(path)
            except BilexError:
                lock.release()
                raise
            self.close()
            self.folder, self._store, self._lock = folder, store, lock
            self.load()

    def load(self) -> None:
        """Open the model of this server's folder, anew if it changed, without making anybody wait."""
        self.state, self.detail = "loading", None
        threading.Thread(target=self._load, name="loading", daemon=True).start()

    def _load(self) -> None:
        with self._changing:
            if self.folder is None or self._store is None:
                return
            try:
                engine = Engine(self.folder, self._store)
            except (BilexError, OSError, MemoryError) as error:
                self.state, self.detail = "failed", str(error) or type(error).__name__
                return
            earlier, self._engine = self._engine, engine
            if self._filling is not None:
                self._filling.stop()
            if earlier is not None:
                earlier.close()
            self._filling = Precompute(engine)
            self.generation += 1
            self.state = "ready"
            if self.settings.fill:
                self._filling.start()

    @property
    def store(self) -> Store:
        """The review file.

        Raises:
            ProblemError: There is no model.
        """
        if self._store is None:
            raise not_ready()
        return self._store

    @property
    def engine(self) -> Engine:
        """The open model.

        Raises:
            ProblemError: There is none, or it is not loaded yet.
        """
        if self.state == "failed":
            raise ProblemError(503, self.detail or "The model could not be opened.")
        if self._engine is None:
            raise not_ready()
        return self._engine

    def pause_filling(self) -> None:
        """Fill the table no further until the model is loaded again."""
        with self._changing:
            if self._filling is not None:
                self._filling.stop()

    def note_request(self) -> None:
        """Somebody asks for something: the table is filled when nobody does."""
        if self._engine is not None:
            self._engine.note_request()

    @property
    def bands(self) -> list[Band]:
        """The frequency bands of the source vocabulary."""
        if self.folder is None:
            return []
        return frequency_bands(int(read_config(self.folder)["source_words"]))

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the two languages, where they are known."""
        if self.folder is None:
            return None, None
        return read_provenance(self.folder).languages

    @property
    def filled(self) -> bool:
        """Whether the table is complete."""
        return self._filling is not None and self._filling.complete

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Wait for the model, and where the table is filled, for all of it (for scripts and tests)."""
        import time

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
        found: dict[str, Any] = {
            "state": self.state,
            "detail": self.detail or (self._filling.error if self._filling else None),
            "generation": self.generation,
            "job": self.jobs.describe(),
        }
        if self.folder is None:
            return {**found, "name": None, "folder": None, "bands": [], "entries": None}
        config = read_config(self.folder)
        made = read_provenance(self.folder)
        return {
            **found,
            "name": self.folder.name,
            "folder": str(self.folder),
            "source": _language("source", made.source_language, config["source_words"]),
            "target": _language("target", made.target_language, config["target_words"]),
            "method": made.method,
            "language_model": None if made.language_model is None else made.language_model.lm,
            "confidences": "forward csls" in config.get("calibration", {}),
            "seeds": made.seed_pairs,
            "made": made.made,
            "bands": [vars(band) for band in self.bands],
            "lemmas": self._lemmas(),
            "corpus": self.corpus is not None,
            "entries": {
                "done": self._filling.done if self._filling else 0,
                "total": int(config["source_words"]),
                "complete": self.filled,
            },
        }

    def _lemmas(self) -> dict[str, bool] | None:
        """Whether each language has a lemmatiser; None while that is not known."""
        found = self._store.fact("lemmatised") if self._store else None
        return None if found is None else {"source": found[0], "target": found[1]}

    def close(self) -> None:
        """Let go of the model; what was decided is on the disk already."""
        if self._filling is not None:
            self._filling.stop()
        if self._engine is not None:
            self._engine.close()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()
        self._engine = self._store = self._filling = self._lock = None
        self.state = "none"

    def stop(self) -> None:
        """End everything, the job included."""
        self.jobs.stop()
        with self._changing:
            self.close()


def _language(side: str, code: str | None, words: int) -> dict[str, Any]:
    return {
        "code": code,
        "name": language_name(code) if code else side,
        "words": words,
        "rtl": code in RIGHT_TO_LEFT,
    }
