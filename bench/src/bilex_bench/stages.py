"""Fitted aligners and stages C2 on disk: each is computed once, and a stage is mixed with any λ.

Each is stored as a checkpoint, named by the content of everything it depends on (vectors, seeds, settings,
device, version of bilex): a changed file under an old name is a new fit. What cannot be read is computed
again. An interrupted fit continues from `NAME.unfinished`.
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
import torch
from safetensors import SafetensorError

from bilex.aligners.base import Aligner
from bilex.aligners.checkpoint import Checkpoint, fingerprint
from bilex.aligners.maps import maps_from_state, maps_state
from bilex.core.errors import BilexError
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
_STATE, _LAYOUT = "state.json", "checkpoint"  # what a stored fit or stage is
_UNREADABLE = (BilexError, OSError, KeyError, SafetensorError, TypeError, ValueError)
_KEPT_BYTES = 16 << 30


@dataclass(frozen=True, eq=False)
class Aligned:
    """An aligner fitted to two vocabularies with seed pairs, None for none."""

    name: str  # of the stored fit
    source: WordVectors
    target: WordVectors
    seeds: Lexicon | None
    fit: FitResult


def fit_aligner(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    seeds: Lexicon | None,
    *,
    folder: Path,
    progress: Progress,
) -> Aligned:
    """Fit an aligner, or load the fit that an earlier run stored in `folder`."""
    pairs = np.zeros((0, 2), np.int64)
    if seeds is not None:
        pairs = seeds.index(source.key_to_index, target.key_to_index)
    # A fingerprint leaves the device out, but fits on a CPU and on a GPU differ.
    decided_by = {"method": aligner.name, **aligner.settings(), "where": aligner.device, "layout": _LAYOUT}
    name = fingerprint(decided_by, source, target, pairs)[:_NAME_LETTERS]
    stored = Checkpoint(folder / name, name, progress)
    with contextlib.suppress(*_UNREADABLE):
        if kept := stored.load():
            report = FitReport.from_dict(kept.state["report"], aligner.report_type())
            known = aligner.clone()
            known.source_map_, known.target_map_ = maps_from_state(kept.state, _arrays(kept.tensors))
            known.report_ = report.report
            space = Space.from_aligner(known, source, target)
            used = seeds if seeds is not None else Lexicon([], "no seeds")
            found = FitResult(known, space, None, Calibration(note="not calibrated"), report, used)
            return Aligned(name, source, target, seeds, found)
    unfinished = folder / f"{name}.unfinished"
    found = fit(
        aligner,
        source,
        target,
        seeds,
        calibrate=False,
        progress=progress,
        checkpoint=unfinished,
        measure=False,
    )
    steps, maps = maps_state(*found.maps)
    stored.save(_tensors(maps), **steps, report=found.report.as_dict())
    _remove_unfinished(folder, name)
    return Aligned(name, source, target, seeds, found)


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """Everything of a stage C2 that λ does not change."""

    combination: Combination  # its λ is the chosen one if `chooses`
    static: Both  # source and target vectors in the aligner's space, unit rows
    encoded: Both  # source and target vectors of the encoder, unit rows
    chooses: bool  # whether λ was chosen on held-out seeds
    report: Mapping[str, Any]  # of stage C2


def finish_stage(
    aligned: Aligned, settings: C2, encoder: WordEncoder, *, folder: Path, encodings: Path, progress: Progress
) -> FinishedStage:
    """Run stage C2 on a fitted aligner, or load what an earlier run stored in `folder`."""
    from bilex.encoders.stage import Combination, aligned_views

    aligner, chooses = aligned.fit.aligner, settings.mixing == "auto"
    tuning = asdict(settings.tuning) if settings.tuning else None
    content = {
        "layout": _LAYOUT,
        "fit": aligned.name,
        "lm": encoder.fingerprint(),
        "tune": settings.tune,
        "tuning": tuning,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    name = hashlib.sha256(text.encode()).hexdigest()[:_NAME_LETTERS]
    stored = Checkpoint(folder / name, name, progress)
    with contextlib.suppress(*_UNREADABLE):
        if kept := stored.load():
            (folder / name / _STATE).touch()
            arrays, chosen = _arrays(kept.tensors), bool(kept.state["chooses"])
            if chosen or not chooses:
                static = aligned_views(aligner, aligned.source, aligned.target)
                encoded = arrays["source"], arrays["target"]
                return FinishedStage(
                    Combination.from_state(arrays), static, encoded, chosen, kept.state["report"]
                )
    unfinished = folder / f"{name}.unfinished"
    found = fit(
        aligner,
        aligned.source,
        aligned.target,
        aligned.seeds,
        aligned=aligned.fit,
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
    encoded = stage.encoded
    vectors = {**stage.combination.state(), "source": encoded[0], "target": encoded[1]}
    stored.save(_tensors(vectors), chooses=chooses, report=report)
    _remove_unfinished(folder, name)
    prune(folder)
    return FinishedStage(stage.combination, stage.static, encoded, chooses, report)


def _remove_unfinished(folder: Path, name: str) -> None:
    """Remove the checkpoint of work that is stored; it stays if the disk was too full for that."""
    if (folder / name / _STATE).is_file():
        shutil.rmtree(folder / f"{name}.unfinished", ignore_errors=True)


def _tensors(arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Copies: arrays that share memory, as those of LNMap do, cannot be stored as tensors."""
    return {name: torch.tensor(np.ascontiguousarray(array)) for name, array in arrays.items()}


def _arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def prune(folder: Path, limit: int = _KEPT_BYTES) -> None:
    """Remove the least recently used stages while all together take more than `limit` bytes."""
    homes = [state.parent for state in folder.glob(f"*/{_STATE}")]
    homes.sort(key=lambda home: (home / _STATE).stat().st_mtime, reverse=True)
    total = 0
    for number, home in enumerate(homes):
        total += sum(file.stat().st_size for file in home.iterdir())
        if total > limit and number:
            shutil.rmtree(home, ignore_errors=True)
