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

from bilex.errors import BilexError
from bilex.files import read_json, write_json
from bilex.lexicon import Lexicon
from bilex.progress import Progress
from bilex.sealed import check_seal, sealed_folder
from bilex.vectors import WordVectors
from bilex_bench.fits import Fit
from bilex_bench.store_codec import plain

if TYPE_CHECKING:
    from bilex.encoders.combine import Both, Combination
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.stage import StageC2

KEPT_BYTES = 16 << 30
_TENSORS, _ABOUT = "stage.safetensors", "stage.json"
_KIND = "bilex-stage"
_NAME_LETTERS = 24


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """Everything of a stage C2 that λ does not change.

    Args:
        combination: How static vectors and the encoder's become one; its λ is the chosen one where
            `chooses`, and of no account otherwise.
        static: Source and target vectors in the aligner's space, unit rows.
        encoded: Source and target vectors of the encoder, unit rows.
        chooses: Whether λ was chosen on held-out seeds.
        report: What stage C2 tells about itself.
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


def stage_settings(
    encoder: WordEncoder,
    *,
    tune: bool,
    tuning: Mapping[str, Any],
    seed: int,
    chooses: bool,
    device: str,
    cache: Path,
) -> StageC2:
    """Settings of stage C2 from those of a setup.

    Args:
        encoder: The language model as it came.
        tune: Whether it is tuned.
        tuning: What differs from the model's preset; "preset" names one of the lighter presets.
        seed: Of the setup; added to that of tuning, so that 0 is the paper's.
        chooses: Whether λ is chosen on held-out seeds.
        device: "cpu" or "cuda".
        cache: A folder for encodings of models as they are, which serve all families.

    Raises:
        BilexError: A setting of tuning is not known or makes no sense.
    """
    from bilex.encoders.presets import lightened
    from bilex.encoders.stage import StageC2

    overrides = dict(tuning)
    settings = lightened(encoder.preset.tuning, overrides.pop("preset", "paper"))
    settings = replace(settings, seed=settings.seed + seed)
    try:
        settings = replace(settings, **overrides)
    except TypeError as error:
        raise BilexError(f"tuning of {encoder}: {error}; see docs/stage-c2.md for the settings.") from error
    return StageC2(
        lm=encoder,
        mixing="auto" if chooses else 1.0,
        tune=tune,
        tuning=settings,
        device=device,
        cache=None if tune else cache,
    )


def finished_stage(
    fit: Fit,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2,
    *,
    folder: Path,
    progress: Progress,
) -> FinishedStage:
    """Run stage C2 on a fit, or take what an earlier run left in `folder`.

    Args:
        fit: The fitted aligner.
        source: Source vectors as the aligner was given them.
        target: Target vectors likewise.
        lexicon: The seed pairs.
        stage: The settings.
        folder: Where finished stages are kept, and the state of unfinished ones.
        progress: Takes reports of progress.

    Raises:
        BilexError: The encoder cannot be had, or there are too few pairs.
    """
    from bilex.encoders.combine import aligned_views
    from bilex.encoders.stage import run_stage_c2
    from bilex.recipe.decisions import TrialReport
    from bilex.recipe.settings import Recipe
    from bilex.recipe.trial import decide

    name = _name(fit, stage)
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    stored = _stored(home)
    chooses = stage.mixing == "auto"
    if stored is not None and (stored.chooses or not chooses):
        return replace(stored, static=aligned_views(fit.aligner, source, target))
    resumed = unfinished.exists()
    found = TrialReport()
    if chooses:
        recipe = Recipe.of(fit.aligner, stage, calibrate=False)
        decisions = decide(
            recipe, fit.aligner, source, target, lexicon, stage=stage, chooses_form=False, progress=progress
        )
        stage, found = replace(stage, mixing=decisions.mixing), decisions.report
    result = run_stage_c2(
        fit.aligner, source, target, lexicon, stage, progress=progress, checkpoint=unfinished
    )
    report = {
        **plain(result.report.as_dict()),
        "mixing_scores": found.mixing_scores,
        "trial_seconds": found.seconds,
        "seconds": result.report.seconds + found.seconds,
        "resumed": resumed,
    }
    finished = FinishedStage(result.combination, result.static, result.encoded, chooses, report)
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


def _name(fit: Fit, stage: StageC2) -> str:
    content = {
        "fit": fit.identity,
        "lm": _content_of(stage),
        "tune": stage.tune,
        "tuning": asdict(stage.tuning) if stage.tuning else None,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_NAME_LETTERS]


def _content_of(stage: StageC2) -> str:
    """What the language model computes, whatever it is called."""
    from bilex.encoders.model import WordEncoder

    encoder = stage.lm if isinstance(stage.lm, WordEncoder) else stage.open()
    return encoder.fingerprint()


def _store(stage: FinishedStage, home: Path) -> None:
    from safetensors.numpy import save_file

    tensors = {
        **stage.combination.state(),
        "source": stage.encoded[0],
        "target": stage.encoded[1],
    }
    about = {"chooses": stage.chooses, "report": stage.report}
    with sealed_folder(home, _KIND) as temporary:
        save_file({name: np.ascontiguousarray(rows) for name, rows in tensors.items()}, temporary / _TENSORS)
        write_json(temporary / _ABOUT, about)


def _stored(home: Path) -> FinishedStage | None:
    """The stage in a folder without its static vectors, or None where there is none that can be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from bilex.encoders.combine import Combination

    with contextlib.suppress(BilexError, OSError, KeyError, SafetensorError, TypeError):
        if not check_seal(home, _KIND):
            return None
        about, tensors = read_json(home / _ABOUT), load_file(home / _TENSORS)
        combination = Combination.from_state(tensors)
        encoded = (tensors["source"], tensors["target"])
        nothing = (np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32))
        (home / _ABOUT).touch()
        return FinishedStage(combination, nothing, encoded, bool(about["chooses"]), about["report"])
    return None
