"""Fitting the candidates of a trial, of which any may fail."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bilex.aligners.base import Aligner
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

# What a candidate may end in without ending the fit.
FAILURES = (BilexError, ArithmeticError, ValueError, RuntimeError, np.linalg.LinAlgError)


def fit_each(
    candidates: Mapping[str, Aligner],
    vocabularies: tuple[WordVectors, WordVectors],
    learned: Lexicon,
    failed: dict[str, str],
    progress: Progress,
) -> dict[str, Aligner]:
    """The candidates that can be fitted, fitted.

    Args:
        candidates: The aligners by name.
        vocabularies: The words that they learn on.
        learned: The seed pairs that they learn from.
        failed: Receives why a candidate could not be fitted, by its name.
        progress: Receives how far the work is.
    """
    fits: dict[str, Aligner] = {}
    for name, candidate in candidates.items():
        try:
            fits[name] = candidate.fit(*vocabularies, learned, progress=progress)
        except FAILURES as error:
            failed[name] = str(error)
            progress.say(f"Trial: form {name} could not be fitted and is left out ({error}).")
    return fits
