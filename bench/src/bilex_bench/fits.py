"""Fitted aligners kept on disk, so that a fit is done once and never again.

A fit is named by the content of everything it depends on (vectors, seeds, settings, device, version of
bilex): a changed file under an old name is a new fit, not a wrong old one.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

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
from bilex.fit import FitReport, FitResult, fit
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

NAME_LETTERS = 24
_KIND, _ABOUT, _MAPS = "bilex-fit-2", "fit.json", "maps.safetensors"
UNREADABLE = (BilexError, OSError, KeyError, SafetensorError, TypeError, ValueError)


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
        return name, _stored(home, aligner, problem)
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
    with manifest_folder(home, _KIND) as path:
        save_file(tensors, path / _MAPS)
        write_json(path / _ABOUT, {**steps, "report": found.report.as_dict()})
    shutil.rmtree(unfinished, ignore_errors=True)
    return name, found


def _stored(home: Path, aligner: Aligner, problem: Problem) -> FitResult:
    """The fit that is kept in a folder."""
    if not verify_manifest(home, _KIND):
        raise BilexError(f"{home}: there is no fit.")
    about = read_json(home / _ABOUT)
    report = FitReport.from_dict(about["report"], aligner.report_type())
    known = aligner.clone()
    known.source_map_, known.target_map_ = maps_from_state(about, load_file(home / _MAPS))
    known.report_ = report.report
    space = Space.from_aligner(known, problem.source, problem.target)
    seeds = problem.seeds if problem.seeds is not None else Lexicon([], "no seeds")
    return FitResult(known, space, None, Calibration(note="not calibrated"), report, seeds)
