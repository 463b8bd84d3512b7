"""Stage C2 of a family: tuned and encoded once, kept on disk, mixed with any λ for nothing."""

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

from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.manifest import manifest_folder, verify_manifest
from bilex.core.progress import Progress
from bilex.encoders.settings import TuningSettings, lightened
from bilex.fit import FitResult, fit
from bilex.vectors import WordVectors
from bilex_bench.fits import NAME_LETTERS, UNREADABLE, Problem
from bilex_bench.store_codec import plain

if TYPE_CHECKING:
    from bilex.encoders.combine import Both, Combination
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import C2

KEPT_BYTES = 16 << 30
_TENSORS, _ABOUT = "stage.safetensors", "stage.json"
_KIND = "bilex-stage"


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """Everything of a stage C2 that λ does not change.

    Args:
        combination: How static vectors and the encoder's become one; its λ is the chosen one where
            `chooses`, and of no account otherwise.
        static: Source and target vectors in the aligner's space, unit rows.
        encoded: Source and target vectors of the encoder, unit rows.
        chooses: Whether λ was chosen on held-out seeds.
        report: What stage C2 says about itself.
    """

    combination: Combination
    static: Both
    encoded: Both
    chooses: bool
    report: Mapping[str, Any]

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
    from bilex.encoders.combine import aligned_views

    name = _name(aligned[0], encoder, settings)
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    stored = _stored(home)
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
        **plain(stage.report.as_dict()),
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
    homes = [home for home in folder.iterdir() if (home / _ABOUT).is_file()]
    homes.sort(key=lambda home: (home / _ABOUT).stat().st_mtime, reverse=True)
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
    with manifest_folder(home, _KIND) as temporary:
        save_file({name: np.ascontiguousarray(rows) for name, rows in tensors.items()}, temporary / _TENSORS)
        write_json(temporary / _ABOUT, {"chooses": stage.chooses, "report": stage.report})


def _stored(home: Path) -> FinishedStage | None:
    """The stage in a folder without its static vectors, or None where there is none that can be read."""
    from safetensors.numpy import load_file

    from bilex.encoders.combine import Combination

    with contextlib.suppress(*UNREADABLE):
        if not verify_manifest(home, _KIND):
            return None
        about, tensors = read_json(home / _ABOUT), load_file(home / _TENSORS)
        encoded = (tensors["source"], tensors["target"])
        nothing = (np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32))
        (home / _ABOUT).touch()
        combination = Combination.from_state(tensors)
        return FinishedStage(combination, nothing, encoded, bool(about["chooses"]), about["report"])
    return None
