"""First dictionaries that need no seed pairs: shared words, shared numbers, shapes of the two spaces."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import scipy.linalg

from bilex.aligners.base import Pairs
from bilex.aligners.maps import Array
from bilex.aligners.preparation import unit_center_unit
from bilex.core.errors import BilexError
from bilex.search import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

_NUMERAL = re.compile(r"[0-9]+")


def identical_strings(source: WordVectors, target: WordVectors) -> Pairs:
    """Pair each source word with the target word of the same spelling, if there is one.

    Returns:
        (source row, target row) pairs in the order of the source vocabulary; maybe none.

    """
    shared = [
        (row, target.key_to_index[word]) for row, word in enumerate(source.index_to_key) if word in target
    ]
    return np.array(shared, np.int64).reshape(-1, 2)


def numerals(source: WordVectors, target: WordVectors) -> Pairs:
    """Pair the words that consist of the digits 0 to 9 alone and stand in both vocabularies.

    Languages in different scripts share few words, but most share their numbers.

    Returns:
        (source row, target row) pairs in the order of the source vocabulary; maybe none.

    """
    pairs = identical_strings(source, target)
    keep = [bool(_NUMERAL.fullmatch(source.index_to_key[row])) for row in pairs[:, 0]]
    return np.asarray(pairs[np.array(keep, bool)])


def unsupervised_similarity_distributions(
    source: WordVectors, target: WordVectors, *, frequent: int = 4000, k: int = 10, device: str = "auto"
) -> Pairs:
    """Pair words whose similarities to the other words of their own language are distributed alike.

    VecMap's unsupervised start. Each frequent word is described by its row of the square root of the
    language's similarity matrix, sorted, so that the description does not depend on which word is
    which; descriptions are made unit, centred and unit again, and matched by CSLS both ways. The
    dictionary is poor, but better than chance for languages whose spaces have like shapes.

    Args:
        source: Source vectors, as they came from their file.
        target: Target vectors likewise.
        frequent: How many of the most frequent words of each language are described (fewer if a
            vocabulary is smaller); memory grows with its square.
        k: Neighbours in CSLS.
        device: "auto", "cpu" or "cuda".

    Returns:
        The forward pairs, one for each described source word, then the backward ones.

    Raises:
        BilexError: A vocabulary has fewer than two words.

    """
    size = min(frequent, len(source), len(target))
    if size < 2:
        raise BilexError("the unsupervised start needs at least two words in each language.")
    shape_x = _sorted_root_similarities(unit_center_unit(source.vectors).rows[:size])
    shape_y = _sorted_root_similarities(unit_center_unit(target.vectors).rows[:size])
    return _match_both_ways(shape_x, shape_y, min(k, size), device)


def _sorted_root_similarities(rows: Array) -> Array:
    """Each row of (XXᵀ)^½ = U S Uᵀ in rising order, then unit, centred, unit."""
    u, singular, _ = scipy.linalg.svd(rows, full_matrices=False)
    root = (u * singular) @ u.T
    root.sort(axis=1)
    return unit_center_unit(root).rows


def _match_both_ways(source: Array, target: Array, k: int, device: str) -> Pairs:
    """Each source row with its best target row by CSLS, then each target row with its best source row."""
    source_mean, target_mean = neighbourhoods(source, target, k, device=device)
    _, forward = csls_top_k(source, target, 1, query_mean=source_mean, key_mean=target_mean, device=device)
    _, backward = csls_top_k(target, source, 1, query_mean=target_mean, key_mean=source_mean, device=device)
    return np.concatenate(
        [_pairs(np.arange(len(source)), forward[:, 0]), _pairs(backward[:, 0], np.arange(len(target)))]
    )


def _pairs(source_rows: npt.NDArray[np.int64], target_rows: npt.NDArray[np.int64]) -> Pairs:
    return np.stack([source_rows, target_rows], axis=1).astype(np.int64)
