"""One setup of a benchmark, what is fitted on what with which settings, and the result that came of it.

A setup is plain data, so that it can be compared, stored, sent to another machine and shown. Setups that
differ only in what is built on a fitted aligner (language model, λ) are of one family: the aligner is
fitted once for all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bilex.core.text import escape_control_characters

if TYPE_CHECKING:
    from bilex.evaluation import Prediction


Mixing = float | Literal["auto"]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What one row of a results file is about."""

    dataset: str  # the name of the data folder in the grid
    pair: str  # source and target language, such as "en-ru"; both directions are scored
    seeds: str  # the name of the seed dictionary, such as "5k" or "1k"; "0" for none
    method: str  # the name of an aligner
    # the aligner's settings that differ from its defaults
    settings: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None  # how many of the most frequent words of each language are read; None for all
    seed: int = 0  # the random seed of methods that need one
    lm: str | None = None  # the language model of stage C2; None for the aligner alone
    tune: bool = True  # whether that model is tuned; False combines it as it is
    # the settings of tuning that differ from the model's preset
    tuning: Mapping[str, Any] = field(default_factory=dict)
    # λ, the weight of the language model, 1 being the model alone, or "auto"; None without a model
    mixing: Mixing | None = None
    # The name in tables. It says nothing that the other fields do not, and is no part of `key`
    label: str = ""

    def __post_init__(self) -> None:
        # Grids and results files come from others; on a terminal and in tables their labels are one line.
        object.__setattr__(self, "label", escape_control_characters(" ".join(self.label.split())))

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        source, _, target = self.pair.partition("-")
        return source, target

    @property
    def key(self) -> str:
        """A name for everything that the result depends on: equal keys, equal experiments."""
        return _digest(self._family_content(), self.lm, self.tune, dict(self.tuning), self.mixing)

    @property
    def family(self) -> str:
        """A name for what the aligner's fit depends on."""
        return _digest(self._family_content())

    @property
    def stage(self) -> str | None:
        """A name for what stage C2 depends on, λ left out; None without a language model."""
        if self.lm is None:
            return None
        return _digest(self._family_content(), self.lm, self.tune, dict(self.tuning))

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, ready for JSON."""
        return asdict(self)

    def sentence(self) -> str:
        """The setup in a few words, for progress and errors."""
        words = [self.label or self.method, self.pair, f"{self.seeds} seeds"]
        if self.lm is not None:
            words.append(f"{self.lm}{'' if self.tune else ' not tuned'}, λ = {self.mixing}")
        return ", ".join(words)

    def _family_content(self) -> list[Any]:
        settings = dict(self.settings)
        return [self.dataset, self.pair, self.seeds, self.method, settings, self.limit, self.seed]


def families(setups: Iterable[Setup]) -> list[list[Setup]]:
    """Setups grouped by what they share, in order of first appearance: the unit of work of a runner."""
    found: dict[str, list[Setup]] = {}
    for setup in setups:
        found.setdefault(setup.family, []).append(setup)
    return list(found.values())


def _digest(*content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


DirectionName = Literal["forward", "backward"]
DIRECTIONS: tuple[DirectionName, ...] = ("forward", "backward")


def now() -> str:
    """This moment as results write it: UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, eq=False)
class WordSample:
    """Vectors of some test pairs at one point of the method, for pictures."""

    source_words: tuple[str, ...]  # source words of test pairs
    target_words: tuple[str, ...]  # their translations, one for each
    source: npt.NDArray[np.float32]  # one row per source word
    target: npt.NDArray[np.float32]  # one row per target word


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """One setup and what came of it."""

    setup: Setup  # what was run
    status: Literal["done", "failed"]  # "done" or "failed"
    error: str | None = None  # why it failed, in one sentence
    # `Evaluation.as_dict()`: the figures of both directions under every convention
    evaluation: Mapping[str, Any] | None = None
    # the answers to every covered test word, by direction
    predictions: Mapping[DirectionName, tuple[Prediction, ...]] = field(default_factory=dict)
    # by step: "fit" (of the aligner), "tune", "encode", "combine", "trial" (what choosing λ took), "evaluate"
    seconds: Mapping[str, float] = field(default_factory=dict)
    gigabytes: float | None = None  # peak memory of the process during this setup's family
    gpu_gigabytes: float | None = None  # peak GPU memory likewise; None without a GPU
    device: str = "cpu"  # "cpu" or "cuda"
    # versions of bilex, Python and the libraries; hardware; host; number of threads; the command line that
    # started the run, if one did
    environment: Mapping[str, Any] = field(default_factory=dict)
    # what the aligner and stage C2 report about themselves
    report: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""  # when, in UTC, ISO 8601
    attempts: int = 1  # how often it was tried
    # vectors for pictures by name: "static" (as read), "aligned", "lm", "lm-tuned", "combined"
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

    @property
    def mixing(self) -> float | None:
        """λ: as given, or as chosen where it was left to choose; None where there is none."""
        mixing = self.report.get("mixing") if self.setup.mixing == "auto" else self.setup.mixing
        return None if mixing is None else float(mixing)

    @property
    def working_seconds(self) -> float:
        """What the setup takes from the vectors to a space that translates; scoring does not count."""
        return sum(seconds for step, seconds in self.seconds.items() if step != "evaluate")
