"""Where families of setups are worked on: data, folders, device and threads of one process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.files import remove_abandoned
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex_bench.datasets import NO_SEEDS, DataFolder, load_vectors
from bilex_bench.environment import environment
from bilex_bench.setups import Setup

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder
    from bilex_bench.results import Result

_KEPT_VOCABULARIES = 4


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """What every worker of a run is given, as plain data that can be sent to another machine.

    Args:
        folders: Each data set, by its name in the grid.
        work: The folder for fits, finished stages and encodings; what is in it is never made again.
        cache: The folder for vector files in a form that opens at once; one per machine.
        device: "auto", "cpu" or "cuda".
        threads: How many threads a worker may use.
        sampled: The keys of the setups whose word vectors are kept for pictures.
        command: The command line that started the run, for the record; empty where there is none.
        keep_markers: Whether markers such as "</s>" stay in the vocabularies.
    """

    folders: Mapping[str, DataFolder]
    work: str
    cache: str
    device: str = "auto"
    threads: int = 1
    sampled: frozenset[str] = field(default_factory=frozenset)
    command: str = ""
    keep_markers: bool = True

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
    """A plan made real in this process; vocabularies stay open from one family to the next.

    Args:
        plan: What the run is about.
    """

    def __init__(self, plan: WorkPlan) -> None:
        self.plan = plan
        self.device = resolve_device(plan.device).type
        self.environment: dict[str, Any] = environment(self.device, plan.threads)
        if plan.command:
            self.environment["command"] = plan.command
        self._encoder: tuple[str, WordEncoder] | None = None
        self._open: OrderedDict[tuple[str, str, int | None], WordVectors] = OrderedDict()

    @property
    def fits(self) -> Path:
        """The folder of fitted aligners."""
        return Path(self.plan.work) / "fits"

    @property
    def stages(self) -> Path:
        """The folder of finished stages C2."""
        return Path(self.plan.work) / "stages"

    @property
    def encodings(self) -> Path:
        """The folder of encodings by models that are not tuned."""
        return Path(self.plan.work) / "encodings"

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
        if name not in self._open:
            folder, cache = self._folder(setup), Path(self.plan.cache)
            self._open[name] = load_vectors(
                folder, language, setup.limit, cache, progress, keep_markers=self.plan.keep_markers
            )
            while len(self._open) > _KEPT_VOCABULARIES:
                self._open.popitem(last=False)
        self._open.move_to_end(name)
        return self._open[name]

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
