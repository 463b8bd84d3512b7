"""Steps of maps that are small neural networks (LNMap).

`bilex.aligners` imports this module, so that a saved network is known when it is loaded.
"""

from __future__ import annotations

import numpy as np

from bilex.aligners.maps import Array, MapStep, Unit


class Dense(MapStep):
    """Multiply by a matrix from the right and add a row."""

    kind = "dense"
    parts = ("matrix", "bias")
    matrix: Array
    bias: Array

    def __call__(self, rows: Array) -> Array:
        """Rows times the matrix, plus the bias."""
        return rows @ self.matrix + self.bias


class PReLU(MapStep):
    """Multiply what is negative by a learned slope."""

    kind = "prelu"
    parts = ("slope",)
    slope: Array

    def __call__(self, rows: Array) -> Array:
        """Rows with their negative numbers times the slope."""
        return np.where(rows >= 0, rows, self.slope * rows)


class Tanh(MapStep):
    """Squash into (−1, 1)."""

    kind = "tanh"

    def __call__(self, rows: Array) -> Array:
        """The hyperbolic tangent of each number."""
        return np.tanh(rows)


class _Mapper(MapStep):
    """A network with one hidden layer, tanh in between, and the unit rows before and after it."""

    kind = "mapper"
    parts = ("matrix_in", "bias_in", "matrix_out", "bias_out")
    matrix_in: Array
    bias_in: Array
    matrix_out: Array
    bias_out: Array

    def _before_and_after(self, rows: Array) -> tuple[Array, Array]:
        hidden = np.tanh(rows @ self.matrix_in + self.bias_in)
        unit = Unit()
        return unit(rows), unit(hidden @ self.matrix_out + self.bias_out)


class MappedBesideOwn(_Mapper):
    """Rows carried over by a mapper, then the rows as they were; both of unit length."""

    kind = "mapped-beside-own"

    def __call__(self, rows: Array) -> Array:
        """Twice as wide rows: first what the mapper makes of them, then themselves."""
        own, mapped = self._before_and_after(rows)
        return np.concatenate([mapped, own], axis=1)


class OwnBesideMapped(_Mapper):
    """Rows as they were, then the rows carried over by a mapper; both of unit length."""

    kind = "own-beside-mapped"

    def __call__(self, rows: Array) -> Array:
        """Twice as wide rows: first themselves, then what the mapper makes of them."""
        own, mapped = self._before_and_after(rows)
        return np.concatenate([own, mapped], axis=1)
