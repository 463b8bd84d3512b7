"""Combining two views of the same words: the aligner's space and the language model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Aligner, Pairs
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows

Floats = npt.NDArray[np.float32]
Both = tuple[Floats, Floats]
_ROWS = 16_384


def aligned_views(aligner: Aligner, source: WordVectors, target: WordVectors) -> Both:
    """Both vocabularies in a fitted aligner's space, unit rows."""
    return unit_rows(aligner.source_map_(source.vectors)), unit_rows(aligner.target_map_(target.vectors))


def generalised_procrustes(views: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Maps with orthonormal rows or columns that bring two views of the same words together.

    With the SVD of viewsᵀ·others = USVᵀ the map from the smaller space into the larger one is U[I,0]Vᵀ; the
    larger space stays as it is, so that one of the two maps is the identity.
    """
    import scipy.linalg  # here, so that a model is described and words are translated without it

    product = views.astype(np.float64).T @ others.astype(np.float64)
    u, _, vt = scipy.linalg.svd(product, full_matrices=False)
    across = (u @ vt).astype(np.float32)
    first, second = across.shape
    if first <= second:
        return across, np.eye(second, dtype=np.float32)
    return np.eye(first, dtype=np.float32), np.ascontiguousarray(across.T)


@dataclass(frozen=True, eq=False)
class Combination:
    """How a static vector and an encoder's vector of one word become one vector.

    Args:
        static_map: From the aligner's space into the combined one.
        encoder_map: From the encoder's space into the combined one.
        mixing: λ, the weight of the encoder; 0 leaves the static vectors alone, 1 the encoder.
    """

    static_map: Floats
    encoder_map: Floats
    mixing: float

    @classmethod
    def fit(cls, static: Both, encoded: Both, pairs: Pairs, mixing: float) -> Combination:
        """Learn the maps from the words of the training pairs.

        The rows are all source words of the pairs, then all target words, repeats kept; each word stands
        against itself in the other space. All vectors are unit rows.
        """
        words = (pairs[:, 0], pairs[:, 1])
        views = np.concatenate([side[rows] for side, rows in zip(static, words, strict=True)])
        others = np.concatenate([side[rows] for side, rows in zip(encoded, words, strict=True)])
        return cls(*generalised_procrustes(views, others), mixing)

    @property
    def dim(self) -> int:
        """The length of a combined vector."""
        return int(self.static_map.shape[1])

    def with_mixing(self, mixing: float) -> Combination:
        """The same maps with another λ."""
        return Combination(self.static_map, self.encoder_map, mixing)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The maps and λ as tensors, for a safetensors file; `from_state` reads them."""
        return {
            "static_map": np.ascontiguousarray(self.static_map),
            "encoder_map": np.ascontiguousarray(self.encoder_map),
            "mixing": np.array([self.mixing], np.float64),
        }

    @classmethod
    def from_state(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> Combination:
        """What `state` gave; a missing tensor is a KeyError."""
        return cls(tensors["static_map"], tensors["encoder_map"], float(tensors["mixing"][0]))

    def __call__(self, static: Floats | None, encoded: Floats) -> Floats:
        """Unit rows (1−λ)·static + λ·encoder in the combined space.

        A row of zeros in either view (a word that one of them does not know) leaves the other alone, and
        so does None for all static rows.
        """
        rows = np.empty((len(encoded), self.dim), np.float32)
        for start in range(0, len(encoded), _ROWS):
            block = slice(start, start + _ROWS)
            known = None if static is None else static[block]
            rows[block] = mixed_views(*self.views(known, encoded[block]), self.mixing)
        return rows

    def vocabularies(
        self, words: tuple[list[str], list[str]], static: Both, encoded: Both
    ) -> tuple[WordVectors, WordVectors]:
        """Source and target words with their combined vectors, from both views of each language."""
        source, target = (
            WordVectors(w, self(s, e), ("unit",)) for w, s, e in zip(words, static, encoded, strict=True)
        )
        return source, target

    def views(self, static: Floats | None, encoded: Floats) -> tuple[Floats | None, Floats]:
        """Both views of the words in the combined space, unit rows: what `mixed_views` takes with any λ."""
        known = None if static is None else unit_rows(_through(static, self.static_map))
        return known, unit_rows(_through(encoded, self.encoder_map))


def mixed_views(static: Floats | None, encoded: Floats, mixing: float) -> Floats:
    """Unit rows (1−λ)·static + λ·encoder of two views in one space, `mixing` being λ."""
    rows = np.empty_like(encoded)
    for start in range(0, len(encoded), _ROWS):
        block = slice(start, start + _ROWS)
        mixed = mixing * encoded[block]
        if static is not None:
            mixed += (1 - mixing) * static[block]
        rows[block] = unit_rows(mixed)
    return rows


def _through(rows: Floats, across: Floats) -> Floats:
    """Rows times a map; the identity, as one of the two maps is, costs nothing."""
    return rows if np.array_equal(across, np.eye(*across.shape)) else rows @ across
