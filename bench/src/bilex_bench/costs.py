"""What the steps of a setup cost, roughly, on two cores and on one GPU.

Each method counts its own work. The rates below come from docs/performance.md and docs/stage-c2.md; they only
show whether it is an hour or a day before a grid runs, and earlier results correct them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bilex_bench.about import about
from bilex_bench.setups import Setup

if TYPE_CHECKING:
    from bilex.aligners import Aligner

Device = Literal["cpu", "cuda"]

_DIM = 300
_MANY_SEEDS = 2236  # from here on C1 and C2 learn from the seeds alone
_TRIAL_VOCABULARY = 20_000
_INDUCED = 4_000
# Seconds to compare one word with one other in both directions, and of any fit beside its comparisons.
_COMPARE = {"cpu": 2e-9, "cuda": 1e-11}
_CLOSED_FORM = 3.0
# Seconds to tune an encoder of E5-small's size on one word (forward and backward), and to encode one.
_TUNE = {"cpu": 3.8e-3, "cuda": 1.1e-5}
_ENCODE = {"cpu": 1.3e-3, "cuda": 4e-6}
# Work of an encoder against E5-small's, and the length of its vectors.
_ENCODERS = {
    "e5-small-q4": (1.0, 384),
    "intfloat/multilingual-e5-small": (1.0, 384),
    "google/mt5-small": (1.0, 512),
    "xlm-mlm-100-1280": (15.0, 1280),
}
_USUAL_ENCODER = (4.0, 768)
_PROCESS_GIGABYTES = 0.8


@dataclass(frozen=True)
class Size:
    """What costs depend on.

    Args:
        source: Words of the source language.
        target: Words of the target language.
        seeds: Seed pairs.
    """

    source: int
    target: int
    seeds: int

    @property
    def words(self) -> int:
        """Words of both languages."""
        return self.source + self.target

    @property
    def product(self) -> int:
        """Words of one language times words of the other."""
        return self.source * self.target

    def cut(self, words: int) -> Size:
        """At most so many words of each language."""
        return replace(self, source=min(self.source, words), target=min(self.target, words))


def seconds(setup: Setup, size: Size, device: Device) -> dict[str, float]:
    """What each step of a setup takes, if nothing of it is there yet.

    Args:
        setup: What is run.
        size: On how much.
        device: Where.

    Returns:
        Seconds by step; the names are those of `Result.seconds`.
    """
    steps = {"fit": _fit(setup, size, device)}
    if setup.lm is not None:
        work, _ = _ENCODERS.get(setup.lm, _USUAL_ENCODER)
        tune = _tune_words(setup.tuning, size.seeds) * work * _TUNE[device] if setup.tune else 0.0
        small = size.cut(_TRIAL_VOCABULARY)
        steps |= {"tune": tune, "encode": size.words * work * _ENCODE[device]}
        if setup.mixing == "auto":
            steps["trial"] = _fit(setup, small, device) + tune + small.words * work * _ENCODE[device]
        steps["combine"] = 1e-5 * size.words
    steps["evaluate"] = 3.0 + 2 * size.product * _COMPARE[device]
    return steps


def gigabytes(setup: Setup, size: Size) -> float:
    """Peak memory of the process."""
    floats = 4 * _DIM * size.words  # as read, mapped to unit length, and while they are compared
    if setup.lm is not None:
        work, dim = _ENCODERS.get(setup.lm, _USUAL_ENCODER)
        floats += 3 * max(dim, _DIM) * size.words + round(work * 120e6)
    aligner = _aligner(setup)
    working = 0.0 if aligner is None else aligner.working_gigabytes(size.source, size.target, size.seeds)
    return _PROCESS_GIGABYTES + working + 4 * floats / 1e9


def _fit(setup: Setup, size: Size, device: Device) -> float:
    """Seconds of a fit, from the work that the method counts for itself."""
    aligner = _aligner(setup)
    if aligner is None:
        return _CLOSED_FORM
    counts = (size.source, size.target, size.seeds)
    return _CLOSED_FORM + _COMPARE[device] * (
        aligner.comparisons(*counts) + aligner.timed_comparisons(*counts)
    )


def _aligner(setup: Setup) -> Aligner | None:
    method = about(setup.method)
    return None if method is None else method(**setup.settings)


def _tune_words(tuning: Mapping[str, Any], seeds: int) -> int:
    """Words that are passed through the encoder while it is tuned."""
    light = {"light": (8, 2, 5_000), "demo": (0, 1, 1_000)}.get(str(tuning.get("preset")), (28, 5, 10**9))
    names = ("negatives", "epochs", "max_pairs")
    negatives, epochs, most = (tuning.get(name, usual) for name, usual in zip(names, light, strict=True))
    pairs = seeds if seeds >= _MANY_SEEDS else seeds + _INDUCED
    return int(min(pairs, most or pairs) * (2 + 2 * negatives) * epochs)
