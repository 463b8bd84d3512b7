"""Fitted aligners and stages C2 kept on disk: each is made once, and a stage is mixed with any λ for nothing.

A fit is named by the content of everything it depends on (vectors, seeds, settings, device, version of
bilex): a changed file under an old name is a new fit, not a wrong old one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from bilex.encoders.settings import TuningSettings, lightened
from bilex.fit import FitReport, FitResult, fit
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import C2
    from bilex.encoders.stage import Both, Combination


NAME_LETTERS = 24
_FIT_KIND, _FIT, _MAPS = "bilex-fit-2", "fit.json", "maps.safetensors"
UNREADABLE = (BilexError, OSError, KeyError, SafetensorError, TypeError, ValueError)
KEPT_BYTES = 16 << 30
_TENSORS, _STAGE = "stage.safetensors", "stage.json"
_STAGE_KIND = "bilex-stage"


@dataclass(frozen=True)
class Problem:
    """What is fitted: two vocabularies and seed pairs, None for none."""

    source: WordVectors
    target: WordVectors
    seeds: Lexicon | None

    def identity(self, aligner: Aligner) -> str:
        """The name of a fit, from the content of what it depends on."""
        pairs = np.zeros((0, 2), np.int64)
        if self.seeds is not None:
            pairs = self.seeds.index(self.source.key_to_index, self.target.key_to_index)
        # Fits on a processor are not taken for fits on a GPU; a fingerprint by itself leaves the device out.
        decided_by = {"method": aligner.name, **aligner.settings(), "where": aligner.device}
        return fingerprint(decided_by, self.source, self.target, pairs)[:NAME_LETTERS]


def fitted(problem: Problem, aligner: Aligner, *, folder: Path, progress: Progress) -> tuple[str, FitResult]:
    """Fit an aligner, or take the fit that an earlier run left in `folder`."""
    name = problem.identity(aligner)
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    with contextlib.suppress(*UNREADABLE):
        return name, _stored_fit(home, aligner, problem)
    found = fit(
        aligner,
        problem.source,
        problem.target,
        problem.seeds,
        choose_preset=False,
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
    """The fit that is kept in a folder."""
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

    # how static vectors and the encoder's become one; its λ is the chosen one where `chooses`, and of no
    # account otherwise
    combination: Combination
    static: Both  # source and target vectors in the aligner's space, unit rows
    encoded: Both  # source and target vectors of the encoder, unit rows
    chooses: bool  # whether λ was chosen on held-out seeds
    report: Mapping[str, Any]  # what stage C2 says about itself

    def mixing(self, asked: float | Literal["auto"]) -> float:
        """λ as a number: the number itself, or the one chosen on held-out seeds."""
        return self.combination.mixing if asked == "auto" else float(asked)

    def mixed(
        self, source: WordVectors, target: WordVectors, mixing: float
    ) -> tuple[WordVectors, WordVectors]:
        """Both vocabularies in the combined space with λ = `mixing`."""
        words = (source.index_to_key, target.index_to_key)
        return self.combination.with_mixing(mixing).vocabularies(words, self.static, self.encoded)


def tuning_of(encoder: WordEncoder, overrides: Mapping[str, Any], seed: int) -> TuningSettings:
    """The tuning of a setup in every detail."""
    settings = lightened(encoder.preset.tuning, overrides.get("preset", "paper"))
    changed = {name: value for name, value in overrides.items() if name != "preset"}
    try:
        return replace(settings, **{"seed": settings.seed + seed, **changed})
    except TypeError as error:
        raise BilexError(
            f"tuning of {encoder}: {error}; see docs/guide/language-model.md for the settings."
        ) from error


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
    """Run stage C2 on a fit, or take what an earlier run left in `folder`."""
    from bilex.encoders.stage import aligned_views

    name = _name(aligned[0], encoder, settings)
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    stored = _stored_stage(home)
    chooses = settings.mixing == "auto"
    if stored is not None and (stored.chooses or not chooses):
        return replace(stored, static=aligned_views(aligned[1].aligner, problem.source, problem.target))
    found = fit(
        aligned[1].aligner,
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
    if found.stage is None:
        raise BilexError(f"{settings.lm}: stage C2 was not run.")
    trial, stage = found.report.trial, found.stage
    report = {
        **stage.report.as_dict(),
        "mixing_scores": trial.mixing_scores,
        "trial_seconds": trial.seconds,
        "seconds": stage.report.seconds + trial.seconds,
        "resumed": found.report.resumed,
    }
    finished = FinishedStage(stage.combination, stage.static, stage.encoded, chooses, report)
    _store(finished, home)
    shutil.rmtree(unfinished, ignore_errors=True)
    prune(folder)
    return finished


def prune(folder: Path, limit: int = KEPT_BYTES) -> None:
    """Remove the finished stages that were not used for longest while all take more than `limit` bytes."""
    homes = [home for home in folder.iterdir() if (home / _STAGE).is_file()]
    homes.sort(key=lambda home: (home / _STAGE).stat().st_mtime, reverse=True)
    total = 0
    for number, home in enumerate(homes):
        total += sum(file.stat().st_size for file in home.iterdir())
        if total > limit and number:
            shutil.rmtree(home, ignore_errors=True)


def _name(fit_name: str, encoder: WordEncoder, settings: C2) -> str:
    """A name from what the language model computes, whatever it is called, and all else it depends on."""
    tuning = asdict(settings.tuning) if settings.tuning else None
    content = {"fit": fit_name, "lm": encoder.fingerprint(), "tune": settings.tune, "tuning": tuning}
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:NAME_LETTERS]


def _store(stage: FinishedStage, home: Path) -> None:
    from safetensors.numpy import save_file

    source, target = stage.encoded
    tensors = {**stage.combination.state(), "source": source, "target": target}
    with manifest_folder(home, _STAGE_KIND) as temporary:
        save_file({name: np.ascontiguousarray(rows) for name, rows in tensors.items()}, temporary / _TENSORS)
        write_json(temporary / _STAGE, {"chooses": stage.chooses, "report": stage.report})


def _stored_stage(home: Path) -> FinishedStage | None:
    """The stage in a folder without its static vectors, or None where there is none that can be read."""
    from safetensors.numpy import load_file

    from bilex.encoders.stage import Combination

    with contextlib.suppress(*UNREADABLE):
        if not verify_manifest(home, _STAGE_KIND):
            return None
        about, tensors = read_json(home / _STAGE), load_file(home / _TENSORS)
        encoded = (tensors["source"], tensors["target"])
        nothing = (np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32))
        (home / _STAGE).touch()
        combination = Combination.from_state(tensors)
        return FinishedStage(combination, nothing, encoded, bool(about["chooses"]), about["report"])
    return None
