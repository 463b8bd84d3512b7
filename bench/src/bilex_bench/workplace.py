"""Where families of setups are worked on: data, folders, device, threads and memory of one process."""

from __future__ import annotations

import contextlib
import functools
import platform
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bilex
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.files import remove_abandoned
from bilex.core.machine import library_versions, peak_memory, processor, total_memory
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex_bench.datasets import NO_SEEDS, DataFolder, load_vectors
from bilex_bench.results import Result, Setup

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

_KEPT_VOCABULARIES = 4
_GIGABYTE = 1 << 30
_CLEAR, _FORGET_PEAK = Path("/proc/self/clear_refs"), "5"


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """What every worker of a run is given, as plain data that can be sent to another machine."""

    folders: Mapping[str, DataFolder]  # each data set, by its name in the grid
    work: str  # the folder for fits, finished stages and encodings; what is in it is never made again
    cache: str  # the folder for vector files in a form that opens at once; one per machine
    device: str = "auto"  # "auto", "cpu" or "cuda"
    threads: int = 1  # how many threads a worker may use
    sampled: frozenset[str] = field(default_factory=frozenset)  # keys of setups whose vectors are kept
    command: str = ""  # the command line that started the run, for the record; empty where there is none
    keep_markers: bool = True  # whether markers such as "</s>" stay in the vocabularies

    def run_family(
        self,
        setups: Sequence[Setup],
        workplace: Workplace,
        *,
        progress: Progress = SILENT,
        attempt: int = 1,
        last_attempt: bool = True,
    ) -> Iterator[Result]:
        """Work on setups that share a fit; see `bilex_bench.work.run_family`."""
        from bilex_bench.work import run_family

        return run_family(setups, workplace, progress=progress, attempt=attempt, last_attempt=last_attempt)


class Workplace:
    """A plan made real in this process; vocabularies stay open from one family to the next."""

    def __init__(self, plan: WorkPlan) -> None:
        self.plan = plan
        self.device = resolve_device(plan.device).type
        self.environment = _machine(self.device) | {"threads": plan.threads}
        if plan.command:
            self.environment["command"] = plan.command
        work = Path(plan.work)
        # Fitted aligners, finished stages C2, and encodings by models that are not tuned.
        self.fits, self.stages, self.encodings = work / "fits", work / "stages", work / "encodings"
        self._encoder: tuple[str, WordEncoder] | None = None
        self._open: dict[tuple[str, str, int | None], WordVectors] = {}

    def vocabularies(self, setup: Setup, progress: Progress = SILENT) -> tuple[WordVectors, WordVectors]:
        """Source and target vectors of a setup, from memory if they were used just before."""
        source, target = setup.languages
        return self._vectors(setup, source, progress), self._vectors(setup, target, progress)

    def dictionaries(self, setup: Setup) -> tuple[Lexicon | None, Lexicon]:
        """The seed pairs (None for a setup without) and the test pairs of a setup."""
        folder = self._folder(setup)
        seeds = None if setup.seeds == NO_SEEDS else folder.seeds(setup.pair, setup.seeds)
        return seeds, folder.test(setup.pair)

    def encoder(self, lm: str, progress: Progress = SILENT) -> WordEncoder:
        """A language model as it came, opened once for families that follow each other."""
        from bilex.encoders.model import WordEncoder

        if self._encoder is None or self._encoder[0] != lm:
            self._encoder = None  # before the next one is opened, for the sake of memory
            self._encoder = (lm, WordEncoder.load(lm, device=self.device, progress=progress))
        return self._encoder[1]

    def _vectors(self, setup: Setup, language: str, progress: Progress) -> WordVectors:
        name = (setup.dataset, language, setup.limit)
        found = self._open.pop(name, None)
        if found is None:
            keep = self.plan.keep_markers
            cache = Path(self.plan.cache)
            found = load_vectors(
                self._folder(setup), language, setup.limit, cache, progress, keep_markers=keep
            )
        self._open[name] = found  # the latest last
        while len(self._open) > _KEPT_VOCABULARIES:
            del self._open[next(iter(self._open))]
        return found

    def _folder(self, setup: Setup) -> DataFolder:
        if setup.dataset not in self.plan.folders:
            raise BilexError(
                f"data set '{setup.dataset}' has no folder; give one with --data {setup.dataset}=FOLDER."
            )
        return self.plan.folders[setup.dataset]


def sweep(work: Path) -> None:
    """Remove what killed workers left half-written in a work folder."""
    for folder in (work, *(inner for inner in work.glob("*") if inner.is_dir())):
        remove_abandoned(folder)


@functools.cache
def _machine(device: str) -> dict[str, Any]:
    """Versions, hardware and host of this process, as plain values."""
    gpu = None
    if device == "cuda":
        import torch

        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
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
        "gpu": gpu,
    }


class PeakMemory:
    """The peak since this object was made; where the system cannot forget, since the process began."""

    def __init__(self, device: str) -> None:
        self._on_gpu = device == "cuda"
        with contextlib.suppress(OSError):  # on other systems than Linux the whole process's peak is reported
            _CLEAR.write_text(_FORGET_PEAK, encoding="ascii")
        if self._on_gpu:
            import torch

            torch.cuda.reset_peak_memory_stats()

    def gigabytes(self) -> float | None:
        """The process's largest resident size so far; None if the system does not say."""
        peak = peak_memory()
        return None if peak is None else round(peak / _GIGABYTE, 3)

    def gpu_gigabytes(self) -> float | None:
        """The most that tensors took of the GPU so far; None without a GPU."""
        if not self._on_gpu:
            return None
        import torch

        return round(torch.cuda.max_memory_allocated() / _GIGABYTE, 3)
