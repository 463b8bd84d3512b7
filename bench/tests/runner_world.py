"""A small data folder of planted languages, methods that make trouble, and a tiny encoder, for runner tests.

Worker processes know the troublesome methods because the data folder they are sent is of a class of this
module, which they therefore import.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilex import BilexError
from bilex.aligners.base import Pairs
from bilex.aligners.procrustes import Procrustes
from bilex.core.progress import Progress
from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder
from bilex_bench.engine import Begun, Job, News, Retried, Step
from bilex_bench.results import Result, Setup
from bilex_bench.work import WorkPlan
from planted import planted

WORDS, SEEDS = 300, 120
PAIRS = ("aa-bb", "cc-dd")


class KnownFolder(DataFolder):
    """A data folder that brings the troublesome methods along wherever it is sent."""


@dataclass(kw_only=True, repr=False)
class Troublesome(Procrustes):
    """Procrustes, with trouble.

    Args:
        trouble: "none", "error", "bug", "memory", "die", "sleep", or "wait" for a file named `log` + ".go".
        times: How often there is trouble, counted in `log`; then all is well.
        log: A file that gets a line for each fit.
        seconds: How long to sleep.
    """

    name = "troublesome"
    summary = "for tests"

    trouble: str = "none"
    times: int = 1000
    log: str = ""
    seconds: float = 0.3

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        before = len(fits_logged(self.log)) if self.log else 0
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{self.trouble}\n")
        if self.trouble == "sleep":
            time.sleep(self.seconds)
        elif self.trouble == "wait":
            while not Path(f"{self.log}.go").exists():
                time.sleep(0.05)
        elif before < self.times:
            self._make_trouble()
        super()._fit(source, target, pairs, progress, checkpoint)

    def _make_trouble(self) -> None:
        if self.trouble == "error":
            raise BilexError("this method fails on purpose; do not use it.")
        if self.trouble == "bug":
            raise ZeroDivisionError("a bug on purpose")
        if self.trouble == "memory":
            raise MemoryError
        if self.trouble == "die":
            os.kill(os.getpid(), signal.SIGKILL)


def fits_logged(log: str | Path) -> list[str]:
    return Path(log).read_text().splitlines() if Path(log).exists() else []


def make_folder(path: Path) -> KnownFolder:
    """Write the vectors and dictionaries of two pairs."""
    for number, pair in enumerate(PAIRS):
        world = planted(WORDS, 16, 0.6, seed=number)
        for language, words in zip(pair.split("-"), (world.source, world.target), strict=True):
            words.save(path / "vectors" / f"{language}.vec")
        world.pairs(0, SEEDS).save(path / f"{pair}.train.1k.tsv")
        world.pairs(0, SEEDS // 2).save(path / f"{pair}.train.500.tsv")
        world.pairs(SEEDS, WORDS).save(path / f"{pair}.test.tsv")
    return open_folder(path)


def open_folder(path: Path) -> KnownFolder:
    found = DataFolder.open(path, "world")
    return KnownFolder(**vars(found))


def setup(method: str = "procrustes", **changes: Any) -> Setup:
    return Setup(**{"dataset": "world", "pair": "aa-bb", "seeds": "1k", "method": method, **changes})


def grid() -> list[Setup]:
    """Eight setups in eight families."""
    return [
        setup(method, pair=pair, seeds=seeds)
        for pair in PAIRS
        for seeds in ("1k", "500")
        for method in ("procrustes", "advanced")
    ]


def plan_for(folder: DataFolder, tmp_path: Path, **changes: Any) -> WorkPlan:
    return WorkPlan(
        **{
            "folders": {"world": folder},
            "work": str(tmp_path / "work"),
            "cache": str(tmp_path / "cache"),
            "device": "cpu",
            **changes,
        }
    )


class Noted:
    """Remembers all news of a run."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.retried: list[str] = []
        self.steps: list[Step] = []
        self.begun: list[Sequence[Setup]] = []
        self.most_at_once = 0
        self._now: set[Job] = set()

    def take(self, all_news: Iterable[News]) -> None:
        for job, event in all_news:
            if isinstance(event, Result):
                self.results.append(event)
            elif isinstance(event, Begun):
                self.begun.append(job.setups)
                self._now.add(job)
                self.most_at_once = max(self.most_at_once, len(self._now))
                self.began(event)
            elif isinstance(event, Step):
                self.steps.append(event)
            elif isinstance(event, Retried):
                self.retried.append(event.reason)
            else:
                self._now.discard(job)

    def began(self, event: Begun) -> None:
        """For subclasses."""


def outcomes(results: Iterable[Result]) -> dict[str, Any]:
    """What must be equal however a setup was run: status, all figures, all predictions."""
    return {r.setup.key: (r.status, r.evaluation, dict(r.predictions)) for r in results}


def make_encoder(path: Path, seed: int = 0) -> str:
    """A tiny random encoder as a model folder."""
    from tiny_encoders import tiny_encoder

    tiny_encoder(seed=seed).save(path, "a tiny encoder")
    return str(path)
