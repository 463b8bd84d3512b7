"""Fitted aligners and stages C2 on disk: each is computed once, and a stage is mixed with any λ.

A fit is named by the content of everything it depends on (vectors, seeds, settings, device, version of
bilex): a changed file under an old name is a new fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from bilex.aligners.base import Aligner
from bilex.aligners.checkpoint import fingerprint
from bilex.aligners.maps import maps_from_state, maps_state
from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.manifest import manifest_folder, verify_manifest
from bilex.core.progress import Progress
from bilex.core.typed_json import as_json
from bilex.fit import FitReport, FitResult, fit
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import C2
    from bilex.encoders.stage import Both, Combination

_NAME_LETTERS = 24
_FIT_KIND, _FIT, _MAPS = "bilex-fit-2", "fit.json", "maps.safetensors"
_STAGE_KIND, _STAGE, _TENSORS = "bilex-stage", "stage.json", "stage.safetensors"
_UNREADABLE = (BilexError, OSError, KeyError, SafetensorError, TypeError, ValueError)
_KEPT_BYTES = 16 << 30


@dataclass(frozen=True)
class Problem:
    """What is fitted: two vocabularies and seed pairs, None for none."""

    source: WordVectors
    target: WordVectors
    seeds: Lexicon | None

    def identity(self, aligner: Aligner) -> str:
        """The name of a fit."""
        pairs = np.zeros((0, 2), np.int64)
        if self.seeds is not None:
            pairs = self.seeds.index(self.source.key_to_index, self.target.key_to_index)
        # A fingerprint leaves the device out, but fits on a CPU and on a GPU differ.
        decided_by = {"method": aligner.name, **aligner.settings(), "where": aligner.device}
        return fingerprint(decided_by, self.source, self.target, pairs)[:_NAME_LETTERS]


def fitted(problem: Problem, aligner: Aligner, *, folder: Path, progress: Progress) -> tuple[str, FitResult]:
    """Fit an aligner, or load the fit that an earlier run stored in `folder`; its name and the fit."""
    name = problem.identity(aligner)
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    with contextlib.suppress(*_UNREADABLE):
        return name, _stored_fit(home, aligner, problem)
    found = fit(
        aligner,
        problem.source,
        problem.target,
        problem.seeds,
        calibrate=False,
        progress=progress,
        checkpoint=unfinished,
        measure=False,
    )
    steps, tensors = maps_state(*found.maps)
    with manifest_folder(home, _FIT_KIND) as path:
        save_file(tensors, path / _MAPS)
        write_json(path / _FIT, {**steps, "report": found.report.as_dict()})
    shutil.rmtree(unfinished, ignore_errors=True)
    return name, found


def _stored_fit(home: Path, aligner: Aligner, problem: Problem) -> FitResult:
    if not verify_manifest(home, _FIT_KIND):
        raise BilexError(f"{home}: there is no fit.")
    about = read_json(home / _FIT)
    report = FitReport.from_dict(about["report"], aligner.report_type())
    known = aligner.clone()
    known.source_map_, known.target_map_ = maps_from_state(about, load_file(home / _MAPS))
    known.report_ = report.report
    space = Space.from_aligner(known, problem.source, problem.target)
    seeds = problem.seeds if problem.seeds is not None else Lexicon([], "no seeds")
    return FitResult(known, space, None, Calibration(note="not calibrated"), report, seeds)


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """Everything of a stage C2 that λ does not change."""

    combination: Combination  # its λ is the chosen one if `chooses`
    static: Both  # source and target vectors in the aligner's space, unit rows
    encoded: Both  # source and target vectors of the encoder, unit rows
    chooses: bool  # whether λ was chosen on held-out seeds
    report: Mapping[str, Any]  # of stage C2


def finished_stage(
    problem: Problem,
    settings: C2,
    aligned: tuple[str, FitResult],
    encoder: WordEncoder,
    *,
    folder: Path,
    encodings: Path,
    progress: Progress,
) -> FinishedStage:
    """Run stage C2 on a fit of `fitted`, or load what an earlier run stored in `folder`."""
    fit_name, aligner = aligned[0], aligned[1].aligner
    tuning = asdict(settings.tuning) if settings.tuning else None
    content = {"fit": fit_name, "lm": encoder.fingerprint(), "tune": settings.tune, "tuning": tuning}
    text = json.dumps(content, sort_keys=True, default=str)
    name = hashlib.sha256(text.encode()).hexdigest()[:_NAME_LETTERS]
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    chooses = settings.mixing == "auto"
    stored = _stored_stage(home, aligner, problem)
    if stored is not None and (stored.chooses or not chooses):
        return stored
    found = fit(
        aligner,
        problem.source,
        problem.target,
        problem.seeds,
        aligned=aligned[1],
        encoder=replace(settings, lm=encoder, cache=None if settings.tune else encodings),
        calibrate=False,
        progress=progress,
        checkpoint=unfinished,
        measure=False,
    )
    trial, stage = found.report.trial, found.stage
    assert stage is not None
    report = {
        **as_json(stage.report),
        "mixing_scores": trial.mixing_scores,
        "trial_seconds": trial.seconds,
        "seconds": stage.report.seconds + trial.seconds,
        "resumed": found.report.resumed,
    }
    tensors = {**stage.combination.state(), "source": stage.encoded[0], "target": stage.encoded[1]}
    with manifest_folder(home, _STAGE_KIND) as path:
        save_file({part: np.ascontiguousarray(rows) for part, rows in tensors.items()}, path / _TENSORS)
        write_json(path / _STAGE, {"chooses": chooses, "report": report})
    shutil.rmtree(unfinished, ignore_errors=True)
    prune(folder)
    return FinishedStage(stage.combination, stage.static, stage.encoded, chooses, report)


def _stored_stage(home: Path, aligner: Aligner, problem: Problem) -> FinishedStage | None:
    """The stage in a folder; None if there is none that can be read."""
    from bilex.encoders.stage import Combination, aligned_views

    with contextlib.suppress(*_UNREADABLE):
        if verify_manifest(home, _STAGE_KIND):
            about, tensors = read_json(home / _STAGE), load_file(home / _TENSORS)
            (home / _STAGE).touch()
            combination, encoded = Combination.from_state(tensors), (tensors["source"], tensors["target"])
            static = aligned_views(aligner, problem.source, problem.target)
            return FinishedStage(combination, static, encoded, bool(about["chooses"]), about["report"])
    return None


def prune(folder: Path, limit: int = _KEPT_BYTES) -> None:
    """Remove the least recently used stages while all together take more than `limit` bytes."""
    homes = [home for home in folder.iterdir() if (home / _STAGE).is_file()]
    homes.sort(key=lambda home: (home / _STAGE).stat().st_mtime, reverse=True)
    total = 0
    for number, home in enumerate(homes):
        total += sum(file.stat().st_size for file in home.iterdir())
        if total > limit and number:
            shutil.rmtree(home, ignore_errors=True)
