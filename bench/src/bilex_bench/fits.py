"""Fitted aligners kept on disk, so that a fit is done once and never again.

A fit is named by the content of everything it depends on (vectors, seeds, recipe, device, version of
bilex): a changed file under an old name is a new fit, not a wrong old one.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from bilex.aligners.checkpoint import fingerprint
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.fit import Fitted, Recipe, fit
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

NAME_LETTERS = 24
UNREADABLE = (BilexError, OSError, KeyError, SafetensorError, TypeError, ValueError)


@dataclass(frozen=True)
class Problem:
    """What is fitted: two vocabularies and seed pairs, None for none."""

    source: WordVectors
    target: WordVectors
    seeds: Lexicon | None

    def identity(self, recipe: Recipe) -> str:
        """The name of a fit, from the content of what it depends on."""
        pairs = np.zeros((0, 2), np.int64)
        if self.seeds is not None:
            pairs = self.seeds.index(self.source.key_to_index, self.target.key_to_index)
        # Fits on a processor are not taken for fits on a GPU; a fingerprint by itself leaves the device out.
        decided_by = recipe.as_dict() | {"where": recipe.device}
        return fingerprint(decided_by, self.source, self.target, pairs)[:NAME_LETTERS]


def fitted(problem: Problem, recipe: Recipe, *, folder: Path, progress: Progress) -> tuple[str, Fitted]:
    """Fit an aligner, or take the fit that an earlier run left in `folder`.

    Args:
        problem: What is fitted.
        recipe: The method with its settings, without a language model; its device is "cpu" or "cuda".
        folder: Where fits are kept.
        progress: Receives how far the work is.

    Returns:
        The name of the fit, and the fit.

    Raises:
        BilexError: The data cannot serve this method.
    """
    name = problem.identity(recipe)
    home, unfinished = folder / name, folder / f"{name}.unfinished"
    with contextlib.suppress(*UNREADABLE):
        return name, Fitted.load(home, problem.source, problem.target, device=recipe.device)
    found = fit(
        recipe,
        problem.source,
        problem.target,
        problem.seeds,
        progress=progress,
        checkpoint=unfinished,
        measure=False,
    )
    found.save(home)
    shutil.rmtree(unfinished, ignore_errors=True)
    return name, found
