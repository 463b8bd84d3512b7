"""The work itself: one family of setups, from vectors to results.

The aligner is fitted once for the whole family, a language model tuned once for all its λ; both stay in
the work folder, so that an interrupted family goes on where it was.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import as_json
from bilex.encoders.settings import C2
from bilex.evaluation import evaluate
from bilex.fit import FitResult
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex.vectors.stored import Matrix
from bilex_bench.results import Result, Setup, WordSample, now
from bilex_bench.stages import FinishedStage, Problem, finished_stage, fitted, tuning_of
from bilex_bench.workplace import PeakMemory, Workplace

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

_MOST_PAIRS = 300  # of a sample


class FamilyOutOfMemoryError(Exception):
    """A family needs more memory than there is; it deserves a try with nothing beside it."""


def run_family(
    setups: Sequence[Setup],
    workplace: Workplace,
    *,
    progress: Progress = SILENT,
    attempt: int = 1,
    last_attempt: bool = True,
) -> Iterator[Result]:
    """Run setups of one family, and give each result as soon as it is there.

    Whatever goes wrong with a setup becomes its failed result, and the rest goes on.
    """
    peak = PeakMemory(workplace.device)
    yield from _Family(setups, workplace, progress, attempt, last_attempt, peak).results()


@dataclass(frozen=True, eq=False)
class _Aligned:
    """Everything that the setups of a family share."""

    problem: Problem
    test: Lexicon
    name: str
    fit: FitResult
    sampler: Sampler


@dataclass(frozen=True, eq=False)
class _Family:
    """One run of `run_family`."""

    setups: Sequence[Setup]
    workplace: Workplace
    progress: Progress
    attempt: int
    last_attempt: bool
    peak: PeakMemory

    def results(self) -> Iterator[Result]:
        """The results: the aligner alone first, then one language model after the other."""
        started = now()
        try:
            aligned = self._aligned()
        except Exception as error:
            yield from [self._failed(setup, error, started) for setup in self.setups]
            return
        for setup in self.setups:
            if setup.lm is None:
                yield self._attempted(setup, lambda: self._aligner_alone(setup, aligned))  # noqa: B023
        for setups in self._stages():
            started = now()
            try:
                stage = self._stage(setups, aligned)
            except Exception as error:
                yield from [self._failed(setup, error, started) for setup in setups]
                continue
            for setup in setups:
                yield self._attempted(setup, lambda: self._combined(setup, aligned, stage))  # noqa: B023

    def _stages(self) -> list[list[Setup]]:
        """The setups with a language model, those together that share its tuning."""
        found: dict[str, list[Setup]] = {}
        for setup in self.setups:
            if setup.stage is not None:
                found.setdefault(setup.stage, []).append(setup)
        return list(found.values())

    def _aligned(self) -> _Aligned:
        """Read and fit."""
        setup = self.setups[0]
        source, target = self.workplace.vocabularies(setup, self.progress)
        seeds, test = self.workplace.dictionaries(setup)
        problem = Problem(source, target, seeds)
        aligner = get_method(setup.method)(device=self.workplace.device, seed=setup.seed)
        aligner.set_params(**setup.settings)
        name, fit = fitted(problem, aligner, folder=self.workplace.fits, progress=self.progress)
        return _Aligned(problem, test, name, fit, Sampler(source, target, test))

    def _stage(self, setups: Sequence[Setup], aligned: _Aligned) -> FinishedStage:
        first = setups[0]
        encoder = self.workplace.encoder(str(first.lm), self.progress)
        settings = C2(
            str(first.lm),
            tune=first.tune,
            tuning=tuning_of(encoder, first.tuning, first.seed),
            mixing="auto" if any(setup.mixing == "auto" for setup in setups) else 1.0,
        )
        return finished_stage(
            aligned.problem,
            settings,
            (aligned.name, aligned.fit),
            encoder,
            folder=self.workplace.stages,
            encodings=self.workplace.encodings,
            progress=self.progress,
        )

    def _aligner_alone(self, setup: Setup, aligned: _Aligned) -> Result:
        wanted = setup.key in self.workplace.plan.sampled
        samples = aligned.sampler.of_aligner(aligned.fit.space) if wanted else {}
        return self._scored(setup, aligned, aligned.fit.space, {}, {}, samples)

    def _combined(self, setup: Setup, aligned: _Aligned, stage: FinishedStage) -> Result:
        if setup.mixing is None:
            raise BilexError(f"{setup.sentence()}: λ is missing; give the grid a number or auto.")
        mixing = stage.mixing(setup.mixing)
        started = time.perf_counter()
        source, target = stage.mixed(aligned.problem.source, aligned.problem.target, mixing)
        combining = time.perf_counter() - started
        space = Space(source, target, "cosine", self.workplace.device)
        samples = {}
        if setup.key in self.workplace.plan.sampled:
            encoder = self.workplace.encoder(str(setup.lm))
            samples = aligned.sampler.of_stage(stage, space, encoder, tuned=setup.tune)
        seconds = _stage_seconds(stage.report, chosen=setup.mixing == "auto", combining=combining)
        return self._scored(
            setup, aligned, space, seconds, {"stage": stage.report, "mixing": mixing}, samples
        )

    def _scored(
        self,
        setup: Setup,
        aligned: _Aligned,
        space: Space,
        seconds: Mapping[str, float],
        report: Mapping[str, Any],
        samples: Mapping[str, WordSample],
    ) -> Result:
        """The result of a space, with what is known of a stage C2 in it."""
        started = time.perf_counter()
        scored = evaluate(space, aligned.test, train=aligned.problem.seeds, progress=self.progress)
        took = time.perf_counter() - started
        steps = {"fit": aligned.fit.report.fit_seconds, **seconds, "evaluate": took}
        return Result(
            setup=setup,
            status="done",
            evaluation=scored.as_dict(),
            predictions={"forward": scored.forward.predictions, "backward": scored.backward.predictions},
            seconds={step: round(spent, 4) for step, spent in steps.items()},
            report={
                "aligner": as_json(aligned.fit.report.report),
                **({"resumed": True} if aligned.fit.report.resumed else {}),
                **report,
            },
            samples=samples,
        )

    def _attempted(self, setup: Setup, work: Callable[[], Result]) -> Result:
        """The result of a setup, whether it goes well or not."""
        started = now()
        try:
            return replace(work(), **self._circumstances(started))
        except Exception as error:
            return self._failed(setup, error, started)

    def _failed(self, setup: Setup, error: Exception, started: str) -> Result:
        if is_out_of_memory(error) and not self.last_attempt:
            raise FamilyOutOfMemoryError(sentence_of(error)) from error
        lines = traceback.format_exception(error)
        report = {} if isinstance(error, BilexError) else {"traceback": "".join(lines)[-4000:]}
        return Result(
            setup=setup,
            status="failed",
            error=sentence_of(error),
            report=report,
            **self._circumstances(started),
        )

    def _circumstances(self, started: str) -> dict[str, Any]:
        return {
            "gigabytes": self.peak.gigabytes(),
            "gpu_gigabytes": self.peak.gpu_gigabytes(),
            "device": self.workplace.device,
            "environment": self.workplace.environment,
            "started": started,
            "attempts": self.attempt,
        }


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, the machine's or a GPU's, was too small, also where a sentence says so in its place."""
    import torch

    if error.__cause__ is not None and is_out_of_memory(error.__cause__):
        return True
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def sentence_of(error: BaseException) -> str:
    """An error in one sentence, for the results file."""
    if isinstance(error, BilexError):
        # Of memory that ran out the benchmark can say more than the fit can: workers share it.
        cause = error.__cause__
        return sentence_of(cause) if cause is not None and is_out_of_memory(cause) else str(error)
    lines = str(error).strip().splitlines()
    said = f": {lines[0]}" if lines else ""
    if is_out_of_memory(error):
        return (
            f"memory ran out ({type(error).__name__}{said}); use --limit for fewer words, or fewer workers."
        )
    return f"{type(error).__name__}{said}"


def _stage_seconds(report: Mapping[str, Any], *, chosen: bool, combining: float) -> dict[str, float]:
    """The seconds of stage C2 by step; what is neither tuning, encoding nor trial is combining."""
    tune, trial = float(report.get("tune_seconds", 0)), float(report.get("trial_seconds", 0))
    encode = float(report.get("encode_seconds", 0)) + float(report.get("tokenise_seconds", 0))
    rest = max(0.0, float(report.get("seconds", 0)) - tune - trial - encode)
    return {
        "tune": tune,
        "encode": encode,
        "combine": rest + combining,
        **({"trial": trial} if chosen else {}),
    }


class Sampler:
    """The same test pairs, at most 300, taken evenly, looked up wherever both languages have vectors."""

    def __init__(self, source: WordVectors, target: WordVectors, test: Lexicon) -> None:
        self._source, self._target = source, target
        seen: tuple[set[int], set[int]] = (set(), set())
        kept = []
        for a, b in test.index(source.key_to_index, target.key_to_index).tolist():
            if a not in seen[0] and b not in seen[1]:
                seen[0].add(a)
                seen[1].add(b)
                kept.append((a, b))
        chosen = np.linspace(0, len(kept) - 1, min(_MOST_PAIRS, len(kept))).round().astype(np.int64)
        self.rows: npt.NDArray[np.int64] = np.array(kept, np.int64).reshape(-1, 2)[chosen]

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The source and the target words."""
        return (
            tuple(self._source.index_to_key[row] for row in self.rows[:, 0]),
            tuple(self._target.index_to_key[row] for row in self.rows[:, 1]),
        )

    def sample(self, source: Matrix, target: Matrix) -> WordSample:
        """The pairs in matrices with one row per word of the vocabularies."""
        return WordSample(
            *self.words,
            np.array(source[self.rows[:, 0]], np.float32),
            np.array(target[self.rows[:, 1]], np.float32),
        )

    def of_aligner(self, space: Space) -> dict[str, WordSample]:
        """The vectors as they were read, and in the aligner's space."""
        return {
            "static": self.sample(self._source.vectors, self._target.vectors),
            "aligned": self.sample(space.source.vectors, space.target.vectors),
        }

    def of_stage(
        self, stage: FinishedStage, space: Space, encoder: WordEncoder, *, tuned: bool
    ) -> dict[str, WordSample]:
        """The vectors as read, aligned, of the language model before and after tuning, and combined."""
        samples = {
            "static": self.sample(self._source.vectors, self._target.vectors),
            "aligned": self.sample(*stage.static),
            "lm": self.sample(*stage.encoded),
            "combined": self.sample(space.source.vectors, space.target.vectors),
        }
        if tuned:
            from bilex.vectors.stored import unit_rows

            source, target = (unit_rows(encoder.encode(list(side))) for side in self.words)
            samples["lm-tuned"] = samples["lm"]
            samples["lm"] = WordSample(*self.words, source, target)
        return samples
