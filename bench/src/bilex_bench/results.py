"""A setup of the benchmark (what is fitted on what, with which settings) and its result.

Setups that differ only in what is built on a fitted aligner (language model, λ) form a family: the aligner
is fitted once for all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from bilex.core.text import escape_control_characters

if TYPE_CHECKING:
    from bilex.evaluation import Prediction

T = TypeVar("T")
K = TypeVar("K")
Mixing = float | Literal["auto"]
DirectionName = Literal["forward", "backward"]
DIRECTIONS: tuple[DirectionName, ...] = ("forward", "backward")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One experiment."""

    dataset: str  # the name of the data folder in the grid
    pair: str  # source and target language, such as "en-ru"; both directions are scored
    seeds: str  # the name of the seed dictionary, such as "5k" or "1k"; "0" for none
    method: str  # the name of an aligner
    settings: Mapping[str, Any] = field(default_factory=dict)  # the aligner's, where not the defaults
    limit: int | None = None  # the number of most frequent words read per language; None for all
    seed: int = 0  # the random seed
    lm: str | None = None  # the language model of stage C2; None for the aligner alone
    tune: bool = True  # whether the language model is tuned
    tuning: Mapping[str, Any] = field(default_factory=dict)  # of tuning, where not the model's preset
    mixing: Mixing | None = None  # λ, the weight of the language model; None without one
    label: str = ""  # the name in tables; not part of `key`

    def __post_init__(self) -> None:
        # Grids and results files come from others: a label must not steer a terminal or break a table.
        object.__setattr__(self, "label", escape_control_characters(" ".join(self.label.split())))

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        source, _, target = self.pair.partition("-")
        return source, target

    @property
    def key(self) -> str:
        """A hash of everything the result depends on."""
        return _digest(self._fit, *self._model, self.mixing)

    @property
    def family(self) -> str:
        """A hash of everything the aligner's fit depends on."""
        return _digest(self._fit)

    @property
    def stage(self) -> str | None:
        """A hash of everything stage C2 depends on, except λ; None without a language model."""
        return None if self.lm is None else _digest(self._fit, *self._model)

    @property
    def _fit(self) -> list[Any]:
        settings = dict(self.settings)
        return [self.dataset, self.pair, self.seeds, self.method, settings, self.limit, self.seed]

    @property
    def _model(self) -> list[Any]:
        return [self.lm, self.tune, dict(self.tuning)]

    def owner(self, step: str) -> str:
        """What a step of `Result.seconds` is done once for: the family, the stage, or this setup alone."""
        if step == "fit":
            return self.family
        return str(self.stage) if step in ("tune", "encode", "trial") else self.key

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, ready for JSON."""
        return asdict(self)

    def sentence(self) -> str:
        """The setup in a few words, for progress and errors."""
        words = [self.label or self.method, self.pair, f"{self.seeds} seeds"]
        if self.lm is not None:
            words.append(f"{self.lm}{'' if self.tune else ' not tuned'}, λ = {self.mixing}")
        return ", ".join(words)


def _digest(*content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by their keys, in order of first appearance."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def families(setups: Iterable[Setup]) -> list[list[Setup]]:
    """Setups by family, in order of first appearance."""
    return list(grouped(setups, lambda setup: setup.family).values())


@dataclass(frozen=True, eq=False)
class WordSample:
    """Vectors of some test pairs at one stage of a method, for t-SNE plots."""

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]  # the translation of each source word
    source: npt.NDArray[np.float32]  # one row per source word
    target: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """The result of one setup."""

    setup: Setup
    status: Literal["done", "failed"]
    error: str | None = None  # why it failed, in one sentence
    evaluation: Mapping[str, Any] | None = None  # `Evaluation.as_dict()`
    # the answers to every covered test word
    predictions: Mapping[DirectionName, tuple[Prediction, ...]] = field(default_factory=dict)
    # by step: "fit" (of the aligner), "tune", "encode", "combine", "trial" (the choice of λ), "evaluate"
    seconds: Mapping[str, float] = field(default_factory=dict)
    gigabytes: float | None = None  # peak memory of the process during the family
    gpu_gigabytes: float | None = None  # peak GPU memory during the family; None without a GPU
    device: str = "cpu"  # "cpu" or "cuda"
    environment: Mapping[str, Any] = field(default_factory=dict)  # versions, hardware, threads, command line
    report: Mapping[str, Any] = field(default_factory=dict)  # of the aligner and of stage C2
    started: str = ""  # in UTC, ISO 8601
    attempts: int = 1
    # by name: "static" (as read), "aligned", "lm", "lm-tuned", "combined"
    samples: Mapping[str, WordSample] = field(default_factory=dict)

    def metric(
        self, direction: DirectionName, retrieval: str, name: str = "p@1", *, leak_free: bool = False
    ) -> float | None:
        """One metric between 0 and 1; None where there is none."""
        if self.evaluation is None:
            return None
        scored = self.evaluation[direction]
        metrics = (scored["leak_free"] or {}).get(retrieval) if leak_free else scored[retrieval]
        return None if metrics is None else float(metrics[name])

    @property
    def mixing(self) -> float | None:
        """λ, as given or as chosen; None without a language model."""
        mixing = self.report.get("mixing") if self.setup.mixing == "auto" else self.setup.mixing
        return None if mixing is None else float(mixing)

    @property
    def working_seconds(self) -> float:
        """The time from the vectors to a space that translates, without evaluation."""
        return sum(seconds for step, seconds in self.seconds.items() if step != "evaluate")
