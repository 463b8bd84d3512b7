"""Fitted aligners kept on disk, so that a fit is done once and never again.

A fit is named by the content of everything it depends on (vectors, seeds, settings, device, version of
bilex): a changed file under an old name is a new fit, not a wrong old one.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bilex
from bilex.aligners.base import Aligner
from bilex.aligners.checkpoint import fingerprint
from bilex.aligners.maps import maps_from_state, maps_state
from bilex.errors import BilexError
from bilex.files import read_json, write_json
from bilex.lexicon import Lexicon
from bilex.progress import Progress
from bilex.sealed import check_seal, sealed_folder
from bilex.vectors import WordVectors
from bilex_bench.store_codec import plain

_MAPS, _ABOUT = "maps.safetensors", "fit.json"
_KIND = "bilex-fit"
_NAME_LETTERS = 24


@dataclass(frozen=True)
class Fit:
    """A fitted aligner.

    Args:
        aligner: The aligner, with its maps and its report.
        identity: The name of this fit, from the content of what it depends on.
        seconds: What fitting took, whenever it was.
        resumed: Whether it went on from an interrupted one, so that `seconds` tells a part only.
    """

    aligner: Aligner
    identity: str
    seconds: float
    resumed: bool


def fitted(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    *,
    device: str,
    folder: Path,
    progress: Progress,
) -> Fit:
    """Fit an aligner, or take the fit that an earlier run left in `folder`.

    Args:
        aligner: The method with its settings.
        source: Source vectors.
        target: Target vectors.
        lexicon: The seed pairs; None for none.
        device: "cpu" or "cuda": fits on one are not taken for fits on the other.
        folder: Where fits are kept.
        progress: Takes reports of progress.

    Raises:
        BilexError: The data cannot serve this method.
    """
    identity = _identity(aligner, source, target, lexicon, device)
    home = folder / identity
    stored = _stored(aligner, identity, home)
    if stored is not None:
        return stored
    unfinished = folder / f"{identity}.unfinished"
    resumed = unfinished.exists()
    started = time.perf_counter()
    aligner.fit(source, target, lexicon, progress=progress, checkpoint=unfinished)
    fit = Fit(aligner, identity, time.perf_counter() - started, resumed)
    _store(fit, home)
    shutil.rmtree(unfinished, ignore_errors=True)
    return fit


def _identity(
    aligner: Aligner, source: WordVectors, target: WordVectors, lexicon: Lexicon | None, device: str
) -> str:
    pairs = (
        lexicon.index(source.key_to_index, target.key_to_index)
        if lexicon is not None
        else np.zeros((0, 2), np.int64)
    )
    decided_by = {**aligner.settings(), "method": aligner.name, "where": device, "bilex": bilex.__version__}
    return fingerprint(decided_by, source, target, pairs)[:_NAME_LETTERS]


def _store(fit: Fit, home: Path) -> None:
    from safetensors.numpy import save_file

    steps, tensors = maps_state(fit.aligner.source_map_, fit.aligner.target_map_)
    about = {
        **steps,
        "report": plain(fit.aligner.report_),
        "seconds": fit.seconds,
        "resumed": fit.resumed,
    }
    with sealed_folder(home, _KIND) as temporary:
        save_file(tensors, temporary / _MAPS)
        write_json(temporary / _ABOUT, about)


def _stored(aligner: Aligner, identity: str, home: Path) -> Fit | None:
    """The fit in a folder, put into `aligner`; None where there is none that can be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    with contextlib.suppress(BilexError, OSError, KeyError, SafetensorError, TypeError):
        if not check_seal(home, _KIND):
            return None
        about, tensors = read_json(home / _ABOUT), load_file(home / _MAPS)
        source_map, target_map = maps_from_state(about, tensors)
        fit = Fit(aligner, identity, float(about["seconds"]), bool(about["resumed"]))
        aligner.source_map_, aligner.target_map_, aligner.report_ = source_map, target_map, about["report"]
        return fit
    return None
