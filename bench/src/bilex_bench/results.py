"""What is known about a setup after it ran: figures, predictions, time, memory, machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bilex_bench.setups import Setup

if TYPE_CHECKING:
    from bilex.evaluation import Prediction

DirectionName = Literal["forward", "backward"]
DIRECTIONS: tuple[DirectionName, ...] = ("forward", "backward")


def now() -> str:
    """This moment as results write it: UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, eq=False)
class WordSample:
    """Vectors of some test pairs at one point of the method, for pictures.

    Args:
        source_words: Source words of test pairs.
        target_words: Their translations, one for each.
        source: One row per source word.
        target: One row per target word.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    source: npt.NDArray[np.float32]
    target: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """One setup and what came of it.

    Args:
        setup: What was run.
        status: "done" or "failed".
        error: Why it failed, in one sentence.
        evaluation: `Evaluation.as_dict()`: the figures of both directions under every convention.
        predictions: The answers to every covered test word, by direction.
        seconds: By step: "fit" (of the aligner), "tune", "encode", "combine", "trial" (what choosing λ
            took), "evaluate".
        gigabytes: Peak memory of the process during this setup's family.
        gpu_gigabytes: Peak GPU memory likewise; None without a GPU.
        device: "cpu" or "cuda".
        environment: Versions of bilex, Python and the libraries; hardware; host; number of threads; the
            command line that started the run, if one did.
        report: What the aligner and stage C2 report about themselves.
        started: When, in UTC, ISO 8601.
        attempts: How often it was tried.
        samples: Vectors for pictures by name: "static" (as read), "aligned", "lm", "lm-tuned", "combined".
    """

    setup: Setup
    status: Literal["done", "failed"]
    error: str | None = None
    evaluation: Mapping[str, Any] | None = None
    predictions: Mapping[DirectionName, tuple[Prediction, ...]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    gigabytes: float | None = None
    gpu_gigabytes: float | None = None
    device: str = "cpu"
    environment: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    attempts: int = 1
    samples: Mapping[str, WordSample] = field(default_factory=dict)

    def figure(
        self, direction: DirectionName, retrieval: str, measure: str = "p@1", *, leak_free: bool = False
    ) -> float | None:
        """One figure between 0 and 1; None where there is none."""
        if self.evaluation is None:
            return None
        scored = self.evaluation[direction]
        figures = (scored["leak_free"] or {}).get(retrieval) if leak_free else scored[retrieval]
        return None if figures is None else float(figures[measure])
