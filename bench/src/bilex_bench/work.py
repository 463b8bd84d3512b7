"""What a worker needs and keeps open, and how its errors become failed results."""

from __future__ import annotations

import contextlib
import platform
import socket
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import bilex
from bilex.aligners import get_method
from bilex.aligners.base import Aligner
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.machine import library_versions, peak_memory, processor, total_memory
from bilex.core.progress import SILENT, Progress
from bilex.fit.report import now
from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder, load_vectors
from bilex_bench.reported import about
from bilex_bench.results import Result, Setup

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

T = TypeVar("T")
ATTEMPTS = 2  # how often a family is tried that runs out of memory or whose worker dies
_OPEN_VOCABULARIES = 4
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
        from bilex_bench.family import Family

        workplace.reset_peak_memory()
        return Family(workplace, setups, progress).results(attempt)


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
        common = {"error": sentence_of(error), "report": report, **workplace.circumstances(started, attempt)}
        for setup in setups:
            yield Result(setup=setup, status="failed", **common)
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
