"""The work itself: one family of setups, from vectors to results.

The aligner is fitted once for the whole family, a language model is tuned once for all its λ; both stay in
the work folder, so that an interrupted family continues where it was.
"""

from __future__ import annotations

import contextlib
import platform
import socket
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

import bilex
from bilex.aligners import get_method
from bilex.aligners.base import Aligner
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.machine import library_versions, peak_memory, processor, total_memory
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import as_json
from bilex.encoders.settings import C2, lightened
from bilex.evaluation import evaluate
from bilex.fit.report import now
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex.vectors.stored import Matrix, unit_rows
from bilex_bench.datasets import NO_SEEDS, DataFolder, load_vectors
from bilex_bench.reported import about
from bilex_bench.results import Result, Setup, WordSample, grouped
from bilex_bench.stages import Aligned, FinishedStage, finish_stage, fit_aligner

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

T = TypeVar("T")
ATTEMPTS = 2  # how often a family is tried that runs out of memory or whose worker dies
_OPEN_VOCABULARIES = 4
_SAMPLE_PAIRS = 300
_GIGABYTE = 1 << 30
_CLEAR_REFS, _RESET_PEAK = Path("/proc/self/clear_refs"), "5"


class FamilyOutOfMemoryError(Exception):
    """A family needs more memory than there is; it is tried once more with nothing beside it."""


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """What every worker of a run needs, as plain data that can be sent to another machine."""

    folders: Mapping[str, DataFolder]  # the data sets, by their names in the grid
    work: str  # the folder for fits, stages and encodings
    cache: str  # the folder for vector files in a format that opens at once; one per machine
    device: str = "auto"  # "auto", "cpu" or "cuda"
    threads: int = 1  # per worker
    sampled: frozenset[str] = field(default_factory=frozenset)  # keys of setups whose vectors are kept
    command: str = ""  # the command line that started the run, for the record
    keep_markers: bool = True  # whether markers such as "</s>" stay in the vocabularies

    def run_family(
        self, workplace: Workplace, setups: Sequence[Setup], progress: Progress, attempt: int
    ) -> Iterator[Result]:
        """The work of `Workplace.run`; other plans do other work."""
        workplace.reset_peak_memory()
        return _Family(workplace, setups, progress).results(attempt)


class Workplace:
    """The state of one process: device, open vocabularies and the language model."""

    def __init__(self, plan: WorkPlan) -> None:
        self.plan = plan
        self.device = resolve_device(plan.device).type
        self.environment = _machine(self.device) | {"threads": plan.threads}
        if plan.command:
            self.environment["command"] = plan.command
        work = Path(plan.work)
        self.fits, self.stages, self.encodings = work / "fits", work / "stages", work / "encodings"
        self._encoder: tuple[str, WordEncoder] | None = None
        self._open: dict[tuple[str, str, int | None], WordVectors] = {}

    def run(
        self, setups: Sequence[Setup], *, progress: Progress = SILENT, attempt: int = 1
    ) -> Iterator[Result]:
        """Run the setups of one family, and yield each result as soon as it exists.

        An error becomes the failed result of its setup, and the rest continues.
        """
        return self.plan.run_family(self, setups, progress, attempt)

    def aligner(self, setup: Setup) -> Aligner:
        """The aligner of a setup, not fitted."""
        aligner = get_method(setup.method)(device=self.device, seed=setup.seed)
        return aligner.set_params(**{**about(setup.method).settings, **setup.settings})

    def vocabularies(self, setup: Setup, progress: Progress = SILENT) -> tuple[WordVectors, WordVectors]:
        """Source and target vectors of a setup."""
        source, target = setup.languages
        return self._vectors(setup, source, progress), self._vectors(setup, target, progress)

    def _vectors(self, setup: Setup, language: str, progress: Progress) -> WordVectors:
        name = (setup.dataset, language, setup.limit)
        found = self._open.pop(name, None)
        if found is None:
            folder, cache = self.plan.folders[setup.dataset], Path(self.plan.cache)
            keep = self.plan.keep_markers
            found = load_vectors(folder, language, setup.limit, cache, progress, keep_markers=keep)
        self._open[name] = found  # the most recent last
        while len(self._open) > _OPEN_VOCABULARIES:
            del self._open[next(iter(self._open))]
        return found

    def encoder(self, lm: str, progress: Progress = SILENT) -> WordEncoder:
        """A language model before tuning; the last one stays open."""
        from bilex.encoders.model import WordEncoder

        if self._encoder is None or self._encoder[0] != lm:
            self._encoder = None  # frees the memory before the next one is opened
            self._encoder = (lm, WordEncoder.load(lm, device=self.device, progress=progress))
        return self._encoder[1]

    def reset_peak_memory(self) -> None:
        """Measure peak memory from now on; where the system cannot, since the process began."""
        with contextlib.suppress(OSError):  # only Linux has this file
            _CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
        if self.device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()

    def circumstances(self, started: str, attempt: int) -> dict[str, Any]:
        """The fields of a result that do not depend on its setup."""
        peak, gpu_peak = peak_memory(), None
        if self.device == "cuda":
            import torch

            gpu_peak = torch.cuda.max_memory_allocated()
        return {
            "gigabytes": None if peak is None else round(peak / _GIGABYTE, 3),
            "gpu_gigabytes": None if gpu_peak is None else round(gpu_peak / _GIGABYTE, 3),
            "device": self.device,
            "environment": self.environment,
            "started": started,
            "attempts": attempt,
        }


@cache
def _machine(device: str) -> dict[str, Any]:
    """Versions, hardware and host of this process, as plain values."""
    import torch

    here = processor()
    return {
        "bilex": bilex.__version__,
        "python": platform.python_version(),
        "libraries": library_versions(),
        "system": platform.platform(),
        "host": socket.gethostname(),
        "processor": here.name,
        "cores": here.threads,
        "memory_gigabytes": round(total_memory() / _GIGABYTE, 1),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
    }


def guarded(
    workplace: Workplace, attempt: int, setups: Sequence[Setup], work: Callable[[], T]
) -> Generator[Result, None, T | None]:
    """Do some work; yield its result, or after an error a failed result of every setup that needs it."""
    started = now()
    try:
        done = work()
    except Exception as error:
        if is_out_of_memory(error) and attempt < ATTEMPTS:
            raise FamilyOutOfMemoryError(sentence_of(error)) from error
        lines = traceback.format_exception(error)
        report = {} if isinstance(error, BilexError) else {"traceback": "".join(lines)[-4000:]}
        circumstances = workplace.circumstances(started, attempt)
        for setup in setups:
            failed = Result(setup=setup, status="failed", error=sentence_of(error), report=report)
            yield replace(failed, **circumstances)
        return None
    if isinstance(done, Result):
        yield replace(done, **workplace.circumstances(started, attempt))
    return done


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, the machine's or a GPU's, was too small, also if that is only the cause."""
    import torch

    if error.__cause__ is not None and is_out_of_memory(error.__cause__):
        return True
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def sentence_of(error: BaseException) -> str:
    """An error in one sentence, for the results file."""
    if isinstance(error, BilexError):
        # The benchmark knows more about memory than the fit: workers share it.
        cause = error.__cause__
        return sentence_of(cause) if cause is not None and is_out_of_memory(cause) else str(error)
    lines = str(error).strip().splitlines()
    message = f": {lines[0]}" if lines else ""
    if is_out_of_memory(error):
        kind = f"{type(error).__name__}{message}"
        return f"memory ran out ({kind}); use --limit for fewer words, or fewer workers."
    return f"{type(error).__name__}{message}"


class _Family:
    """The setups of one call of `Workplace.run`, and what they share."""

    aligned: Aligned  # set by `_align`
    test: Lexicon

    def __init__(self, workplace: Workplace, setups: Sequence[Setup], progress: Progress) -> None:
        self.workplace, self.setups, self.progress = workplace, setups, progress

    def results(self, attempt: int) -> Iterator[Result]:
        """The aligner alone first, then one language model after the other."""
        guard = partial(guarded, self.workplace, attempt)
        if not (yield from guard(self.setups, self._align)):
            return
        stages = grouped(self.setups, lambda setup: setup.stage)
        for setup in stages.pop(None, ()):
            yield from guard([setup], partial(self._scored, setup))
        for setups in stages.values():
            stage = yield from guard(setups, partial(self._stage, setups))
            for setup in setups if stage is not None else ():
                yield from guard([setup], partial(self._scored, setup, stage))

    def _align(self) -> bool:
        """Read the data and fit the aligner."""
        setup = self.setups[0]
        vocabularies = self.workplace.vocabularies(setup, self.progress)
        folder = self.workplace.plan.folders[setup.dataset]
        seeds = None if setup.seeds == NO_SEEDS else folder.seeds(setup.pair, setup.seeds)
        aligner, fits = self.workplace.aligner(setup), self.workplace.fits
        self.aligned = fit_aligner(aligner, *vocabularies, seeds, folder=fits, progress=self.progress)
        self.test = folder.test(setup.pair)
        return True

    def _stage(self, setups: Sequence[Setup]) -> FinishedStage:
        """Tune and encode for setups that differ in λ only."""
        first = setups[0]
        encoder = self.workplace.encoder(str(first.lm), self.progress)
        tuning = lightened(encoder.preset.tuning, first.tuning.get("preset", "paper"))
        changed = {name: value for name, value in first.tuning.items() if name != "preset"}
        settings = C2(
            str(first.lm),
            tune=first.tune,
            tuning=replace(tuning, **{"seed": tuning.seed + first.seed, **changed}),
            mixing="auto" if any(setup.mixing == "auto" for setup in setups) else 1.0,
        )
        folders = {"folder": self.workplace.stages, "encodings": self.workplace.encodings}
        return finish_stage(self.aligned, settings, encoder, **folders, progress=self.progress)

    def _scored(self, setup: Setup, stage: FinishedStage | None = None) -> Result:
        """Evaluate the aligner, or what a stage C2 makes of it."""
        made = self.aligned.fit.report
        space, steps = self.aligned.fit.space, {"fit": made.fit_seconds}
        report: dict[str, Any] = {"aligner": as_json(made.report)}
        if made.resumed:
            report["resumed"] = True
        if stage is not None:
            space, mixing, seconds = self._mixed(setup, stage)
            steps |= seconds
            report |= {"stage": stage.report, "mixing": mixing}
        samples = {}
        if setup.key in self.workplace.plan.sampled:
            samples = self._samples(setup, space, stage)
        started = time.perf_counter()
        scored = evaluate(space, self.test, train=self.aligned.seeds, progress=self.progress)
        steps["evaluate"] = time.perf_counter() - started
        return Result(
            setup=setup,
            status="done",
            evaluation=scored.as_dict(),
            predictions={"forward": scored.forward.predictions, "backward": scored.backward.predictions},
            seconds={step: round(spent, 4) for step, spent in steps.items()},
            report=report,
            samples=samples,
        )

    def _mixed(self, setup: Setup, stage: FinishedStage) -> tuple[Space, float, dict[str, float]]:
        """The combined space of a stage at a setup's λ, that λ, and the seconds by step."""
        if setup.mixing is None:
            raise BilexError(f"{setup.sentence()}: λ is missing; give the grid a number or auto.")
        mixing = stage.combination.mixing if setup.mixing == "auto" else float(setup.mixing)
        started = time.perf_counter()
        words = (self.aligned.source.index_to_key, self.aligned.target.index_to_key)
        mixed = stage.combination.with_mixing(mixing).vocabularies(words, stage.static, stage.encoded)
        combining = time.perf_counter() - started
        spent = {name: float(stage.report.get(f"{name}_seconds", 0)) for name in _STAGE_STEPS}
        whole = float(stage.report.get("seconds", 0))
        seconds = {
            "tune": spent["tune"],
            "encode": spent["encode"] + spent["tokenise"],
            "combine": max(0.0, whole - sum(spent.values())) + combining,
        }
        if setup.mixing == "auto":
            seconds["trial"] = spent["trial"]
        return Space(*mixed, "cosine", self.workplace.device), mixing, seconds

    def _samples(self, setup: Setup, space: Space, stage: FinishedStage | None) -> dict[str, WordSample]:
        """Vectors of test pairs at every stage of the method."""
        source, target = self.aligned.source, self.aligned.target
        rows = _sample_rows(source, target, self.test)
        words = (
            tuple(source.index_to_key[row] for row in rows[:, 0]),
            tuple(target.index_to_key[row] for row in rows[:, 1]),
        )

        def sample(one: Matrix, other: Matrix) -> WordSample:
            return WordSample(
                *words, np.array(one[rows[:, 0]], np.float32), np.array(other[rows[:, 1]], np.float32)
            )

        samples = {"static": sample(source.vectors, target.vectors)}
        here = sample(space.source.vectors, space.target.vectors)
        if stage is None:
            return samples | {"aligned": here}
        samples |= {"aligned": sample(*stage.static), "lm": sample(*stage.encoded), "combined": here}
        if setup.tune:
            samples["lm-tuned"] = samples["lm"]
            encoder = self.workplace.encoder(str(setup.lm))
            untuned = (unit_rows(encoder.encode(list(side))) for side in words)
            samples["lm"] = WordSample(*words, *untuned)
        return samples


_STAGE_STEPS = ("tune", "trial", "encode", "tokenise")


def _sample_rows(source: WordVectors, target: WordVectors, test: Lexicon) -> npt.NDArray[np.int64]:
    """At most 300 test pairs that share no word, taken evenly, as rows of both vocabularies."""
    seen: tuple[set[int], set[int]] = (set(), set())
    kept = []
    for a, b in test.index(source.key_to_index, target.key_to_index).tolist():
        if a not in seen[0] and b not in seen[1]:
            seen[0].add(a)
            seen[1].add(b)
            kept.append((a, b))
    chosen = np.linspace(0, len(kept) - 1, min(_SAMPLE_PAIRS, len(kept))).round().astype(np.int64)
    return np.array(kept, np.int64).reshape(-1, 2)[chosen]
