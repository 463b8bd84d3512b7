"""One family of setups, from vectors to results.

The aligner is fitted once for the whole family, a language model is tuned once for all its λ. Both are stored
in the work folder as checkpoints, named by the content of everything they depend on (vectors, seeds,
settings, device, version of bilex): a changed file under an old name is a new fit. What cannot be read is
computed again. Interrupted work continues from `NAME.unfinished`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError

from bilex.aligners.base import Aligner
from bilex.aligners.checkpoint import Checkpoint, fingerprint
from bilex.aligners.maps import maps_from_state, maps_state
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.core.typed_json import as_json
from bilex.encoders.settings import C2, lightened
from bilex.evaluation import evaluate
from bilex.fit import FitReport, FitResult, fit
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex.vectors.stored import Matrix, unit_rows
from bilex_bench.datasets import NO_SEEDS
from bilex_bench.results import Result, Setup, WordSample, grouped
from bilex_bench.work import Workplace, guarded

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.stage import Both, Combination

T = TypeVar("T")
Arrays = Mapping[str, npt.NDArray[Any]]
_NAME_LETTERS = 24
_STATE, _LAYOUT = "state.json", "checkpoint"  # what a stored fit or stage is
_UNREADABLE = (BilexError, OSError, KeyError, SafetensorError, TypeError, ValueError)
_KEPT_BYTES = 16 << 30
_SAMPLE_PAIRS = 300


class Stage(NamedTuple):
    """Everything of a stage C2 that λ does not change, except the aligner's vectors."""

    combination: Combination  # its λ is the chosen one if `chooses`
    encoded: Both  # source and target vectors of the encoder, unit rows
    chooses: bool  # whether λ was chosen on held-out seeds
    report: Mapping[str, Any]


class Family:
    """The setups of one call of `Workplace.run`, and what they share."""

    source: WordVectors  # these are set by `_align`
    target: WordVectors
    seeds: Lexicon | None
    test: Lexicon
    name: str  # of the stored fit
    fitted: FitResult

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
        self.source, self.target = self.workplace.vocabularies(setup, self.progress)
        folder = self.workplace.plan.folders[setup.dataset]
        self.seeds = None if setup.seeds == NO_SEEDS else folder.seeds(setup.pair, setup.seeds)
        aligner = self.workplace.aligner(setup)
        pairs = np.zeros((0, 2), np.int64)
        if self.seeds is not None:
            pairs = self.seeds.index(self.source.key_to_index, self.target.key_to_index)
        # A fingerprint leaves the device out, but fits on a CPU and on a GPU differ.
        decided_by = {
            "method": aligner.name,
            **aligner.settings(),
            "where": aligner.device,
            "layout": _LAYOUT,
        }
        self.name = fingerprint(decided_by, self.source, self.target, pairs)[:_NAME_LETTERS]
        restore, make = partial(self._restored_fit, aligner), partial(self._new_fit, aligner)
        self.fitted = stored_once(self.workplace.fits, self.name, restore, make, self.progress)
        self.test = folder.test(setup.pair)
        return True

    def _restored_fit(self, aligner: Aligner, arrays: Arrays, state: Mapping[str, Any]) -> FitResult:
        report = FitReport.from_dict(state["report"], aligner.report_type())
        known = aligner.clone()
        known.source_map_, known.target_map_ = maps_from_state(state, arrays)
        known.report_ = report.report
        space = Space.from_aligner(known, self.source, self.target)
        seeds = self.seeds or Lexicon([], "no seeds")
        return FitResult(known, space, None, Calibration(note="not calibrated"), report, seeds)

    def _new_fit(self, aligner: Aligner, unfinished: Path) -> tuple[FitResult, Arrays, dict[str, Any]]:
        found = self._fit(aligner, unfinished)
        steps, maps = maps_state(*found.maps)
        return found, maps, {**steps, "report": found.report.as_dict()}

    def _fit(self, aligner: Aligner, unfinished: Path, **more: Any) -> FitResult:
        more |= {"calibrate": False, "measure": False, "progress": self.progress}
        return fit(aligner, self.source, self.target, self.seeds, checkpoint=unfinished, **more)

    def _stage(self, setups: Sequence[Setup]) -> Stage:
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
        content = {
            "layout": _LAYOUT,
            "fit": self.name,
            "lm": encoder.fingerprint(),
            "tune": settings.tune,
            "tuning": asdict(settings.tuning) if settings.tuning else None,
        }
        text = json.dumps(content, sort_keys=True, default=str)
        name = hashlib.sha256(text.encode()).hexdigest()[:_NAME_LETTERS]
        folder = self.workplace.stages
        restore, make = partial(self._restored_stage, settings), partial(self._new_stage, settings, encoder)
        stage = stored_once(folder, name, restore, make, self.progress)
        with contextlib.suppress(OSError):  # another process may prune, too
            (folder / name / _STATE).touch()
            prune(folder)
        return stage

    def _restored_stage(self, settings: C2, arrays: Arrays, state: Mapping[str, Any]) -> Stage | None:
        from bilex.encoders.stage import Combination

        encoded, chooses = (arrays["source"], arrays["target"]), bool(state["chooses"])
        stage = Stage(Combination.from_state(arrays), encoded, chooses, state["report"])
        return stage if chooses or settings.mixing != "auto" else None

    def _new_stage(
        self, settings: C2, encoder: WordEncoder, unfinished: Path
    ) -> tuple[Stage, Arrays, dict[str, Any]]:
        cache = None if settings.tune else self.workplace.encodings
        with_model = replace(settings, lm=encoder, cache=cache)
        found = self._fit(self.fitted.aligner, unfinished, aligned=self.fitted, encoder=with_model)
        trial, made = found.report.trial, found.stage
        assert made is not None
        report = {
            **as_json(made.report),
            "mixing_scores": trial.mixing_scores,
            "trial_seconds": trial.seconds,
            "seconds": made.report.seconds + trial.seconds,
            "resumed": found.report.resumed,
        }
        stage = Stage(made.combination, made.encoded, settings.mixing == "auto", report)
        arrays = {**made.combination.state(), "source": made.encoded[0], "target": made.encoded[1]}
        return stage, arrays, {"chooses": stage.chooses, "report": report}

    @cached_property
    def static(self) -> Both:
        """Source and target vectors in the aligner's space, unit rows."""
        from bilex.encoders.stage import aligned_views

        return aligned_views(self.fitted.aligner, self.source, self.target)

    def _scored(self, setup: Setup, stage: Stage | None = None) -> Result:
        """Evaluate the aligner, or what a stage C2 makes of it."""
        made = self.fitted.report
        space, steps = self.fitted.space, {"fit": made.fit_seconds}
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
        scored = evaluate(space, self.test, train=self.seeds, progress=self.progress)
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

    def _mixed(self, setup: Setup, stage: Stage) -> tuple[Space, float, dict[str, float]]:
        """The combined space of a stage at a setup's λ, that λ, and the seconds by step."""
        if setup.mixing is None:
            raise BilexError(f"{setup.sentence()}: λ is missing; give the grid a number or auto.")
        mixing = stage.combination.mixing if setup.mixing == "auto" else float(setup.mixing)
        static, started = self.static, time.perf_counter()
        words = (self.source.index_to_key, self.target.index_to_key)
        mixed = stage.combination.with_mixing(mixing).vocabularies(words, static, stage.encoded)
        combining = time.perf_counter() - started
        steps = ("tune", "trial", "encode", "tokenise")
        spent = {name: float(stage.report.get(f"{name}_seconds", 0)) for name in steps}
        whole = float(stage.report.get("seconds", 0))
        seconds = {
            "tune": spent["tune"],
            "encode": spent["encode"] + spent["tokenise"],
            "combine": max(0.0, whole - sum(spent.values())) + combining,
        }
        if setup.mixing == "auto":
            seconds["trial"] = spent["trial"]
        return Space(*mixed, "cosine", self.workplace.device), mixing, seconds

    def _samples(self, setup: Setup, space: Space, stage: Stage | None) -> dict[str, WordSample]:
        """Vectors at every stage of the method: of at most 300 test pairs without a common word."""
        kept: dict[int, int] = {}
        targets: set[int] = set()
        for a, b in self.test.index(self.source.key_to_index, self.target.key_to_index).tolist():
            if a not in kept and b not in targets:
                kept[a] = b
                targets.add(b)
        chosen = np.linspace(0, len(kept) - 1, min(_SAMPLE_PAIRS, len(kept))).round().astype(np.int64)
        rows = np.array(list(kept.items()), np.int64).reshape(-1, 2)[chosen]
        words = (
            tuple(self.source.index_to_key[row] for row in rows[:, 0]),
            tuple(self.target.index_to_key[row] for row in rows[:, 1]),
        )

        def sample(one: Matrix, other: Matrix) -> WordSample:
            sides = np.array(one[rows[:, 0]], np.float32), np.array(other[rows[:, 1]], np.float32)
            return WordSample(*words, *sides)

        samples = {"static": sample(self.source.vectors, self.target.vectors)}
        here = sample(space.source.vectors, space.target.vectors)
        if stage is None:
            return samples | {"aligned": here}
        samples |= {"aligned": sample(*self.static), "lm": sample(*stage.encoded), "combined": here}
        if setup.tune:
            samples["lm-tuned"] = samples["lm"]
            encoder = self.workplace.encoder(str(setup.lm))
            untuned = (unit_rows(encoder.encode(list(side))) for side in words)
            samples["lm"] = WordSample(*words, *untuned)
        return samples


def stored_once(
    folder: Path,
    name: str,
    restore: Callable[[Arrays, Mapping[str, Any]], T | None],
    make: Callable[[Path], tuple[T, Arrays, dict[str, Any]]],
    progress: Progress,
) -> T:
    """What `folder` has under a name; otherwise it is made and stored.

    `restore` makes it from what is stored, or gives None if that does not suffice. `make` gets a folder for
    its own checkpoint, and gives what it made and what to store.
    """
    stored, unfinished = Checkpoint(folder / name, name, progress), folder / f"{name}.unfinished"
    with contextlib.suppress(*_UNREADABLE):
        if kept := stored.load():
            known = {key: tensor.numpy() for key, tensor in kept.tensors.items()}
            if (found := restore(known, kept.state)) is not None:
                return found
    made, arrays, state = make(unfinished)
    # Copies: arrays that share memory, as those of LNMap do, cannot be stored as tensors.
    tensors = {key: torch.tensor(np.ascontiguousarray(array)) for key, array in arrays.items()}
    stored.save(tensors, **state)
    if (folder / name / _STATE).is_file():  # not if the disk was too full for that
        shutil.rmtree(unfinished, ignore_errors=True)
    return made


def prune(folder: Path, limit: int = _KEPT_BYTES) -> None:
    """Remove the least recently used stages while all together take more than `limit` bytes."""
    homes = [state.parent for state in folder.glob(f"*/{_STATE}")]
    homes.sort(key=lambda home: (home / _STATE).stat().st_mtime, reverse=True)
    total = 0
    for number, home in enumerate(homes):
        total += sum(file.stat().st_size for file in home.iterdir())
        if total > limit and number:
            shutil.rmtree(home, ignore_errors=True)
