"""The way from a model's space back to the vectors before its maps, where these can be undone.

The advanced mapping weighs the directions of the common space by how well the languages agree there. Learned
again on top of itself, it would weigh them twice, and once more with every retraining; and seeds that it
has seen are no test of it. A map that only turns, stretches and sets lengths to one can be undone: up to its
length, a row times the inverse matrix is the row that it came from.
"""

from __future__ import annotations

import numpy as np

from bilex.aligners.maps import Linear, Map, Unit
from bilex.model.space import Side
from bilex.model.translator import Translator
from bilex.vectors import WordVectors

_MOST_STRETCHED = 1e3  # beyond that ratio of singular values, float32 rows have lost too much to go back


def inverse_map(model: Translator, side: Side) -> Map:
    """The map from a model's space back to a language's own vectors, as unit rows.

    Args:
        model: The present model.
        side: Which language.

    Returns:
        A map without steps where there is no way back: the space holds a language model's view too, the maps
        have other steps than unit lengths and matrices, or a matrix is not square or flattens a direction.
    """
    if model.provenance.language_model is not None:
        return Map([])
    whole = np.eye(model.space.dim)
    for step in reversed((model.source_map if side == "source" else model.target_map).steps):
        if isinstance(step, Linear):
            if step.matrix.shape != whole.shape:
                return Map([])
            whole = step.matrix.astype(np.float64) @ whole
        elif not isinstance(step, Unit):
            return Map([])
    if np.linalg.cond(whole) > _MOST_STRETCHED:
        return Map([])
    return Map([Linear(np.linalg.inv(whole)), Unit()])


def taken_back(words: WordVectors, back: Map) -> WordVectors:
    """The words with the vectors that they had before the present map."""
    return WordVectors(words.index_to_key, back(words.vectors)) if back.steps else words
