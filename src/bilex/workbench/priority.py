"""In which order reviewing pays most: uncertain and frequent first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bilex.recipe.logistic import Numbers

_HIGHEST = 0.75 * 0.25 ** (1 / 3)


def priorities(confidence: Numbers, ranks: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> Numbers:
    """What a decision about each entry is worth, from 0 to 1.

    A decision that corrects the model teaches it more than one that confirms it: pairs that it is sure of are
    in the dictionary of its next round anyway. But where it has no idea at all, there is often no translation
    to find. So the uncertainty of a confidence p is (1 − p)·∛p, scaled to at most 1, which is highest at one
    quarter. Frequent words have better vectors, so their pairs teach more, and more readers meet them; the
    weight of frequency falls with the logarithm of the rank. Entries that the seeds know come last.

    Args:
        confidence: Of the first translations; NaN where there is none, which counts as one quarter.
        ranks: Frequency ranks of the source words, from 1.
        known: Whether the first translation is known already.
    """
    p = np.where(np.isnan(confidence), 0.25, confidence)
    uncertain = (1 - p) * np.cbrt(p) / _HIGHEST
    frequent = 1 / (1 + np.log10(np.maximum(ranks, 1)))
    value: Numbers = np.where(known, 0.0, uncertain * frequent)
    return value
