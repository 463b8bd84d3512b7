"""A matrix in a file, decoded to float32 as its rows are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError

FloatMatrix = npt.NDArray[np.float32]
RowChoice: TypeAlias = int | slice | npt.NDArray[Any] | list[int]

_BLOCK_ROWS = 16384


class StoredRows:
    """A float16 or int8 matrix, or some rows of any matrix, that stays in its file.

    It is asked for rows as a numpy array would be and hands out float32, so that a program that goes
    through it block by block never holds more than the stored bytes and a block. `np.asarray` gives all
    of it at once.

    Args:
        stored: The matrix as it lies in the file.
        scales: For int8, the factor of each row, of shape (rows, 1).
        unit: Whether rows are brought to length 1 after decoding, which rounding has moved them from.
        chosen: Which rows of `stored` these are, in order; None for all.
        name: The file, for error messages.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        stored: npt.NDArray[Any],
        scales: FloatMatrix | None = None,
        *,
        unit: bool = False,
        chosen: npt.NDArray[np.int64] | None = None,
        name: str = "the vectors",
    ) -> None:
        self.stored, self.scales, self.unit, self.chosen, self.name = stored, scales, unit, chosen, name
        rows = len(stored) if chosen is None else len(chosen)
        self.shape: tuple[int, int] = (rows, int(stored.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """How many numbers."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, rows: RowChoice) -> FloatMatrix:
        """Some rows in float32; of a single one its vector.

        Raises:
            BilexError: A number of these rows is not finite.
        """
        if isinstance(rows, (int, np.integer)):
            return np.asarray(self[np.array([rows])][0])
        where = rows if self.chosen is None else self.chosen[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            decoded: FloatMatrix = self.stored[where].astype(np.float32)
            if self.scales is not None:
                decoded *= self.scales[where]
        if not np.isfinite(decoded).all():
            raise BilexError(f"{self.name}: holds NaN or infinity, so it was damaged; make the folder again.")
        if self.unit:
            norms = np.sqrt(np.einsum("ij,ij->i", decoded, decoded, dtype=np.float64))
            decoded /= np.where(norms == 0, 1, norms)[:, None].astype(np.float32)
        return decoded

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All rows as one matrix."""
        whole = np.empty(self.shape, np.float32)
        for start in range(0, len(self), _BLOCK_ROWS):
            whole[start : start + _BLOCK_ROWS] = self[start : start + _BLOCK_ROWS]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def take(self, rows: npt.NDArray[np.int64]) -> StoredRows:
        """Some of the rows, still in the file."""
        chosen = rows if self.chosen is None else self.chosen[rows]
        return StoredRows(self.stored, self.scales, unit=self.unit, chosen=chosen, name=self.name)

    def head(self, count: int) -> StoredRows:
        """The first rows, still in the file."""
        if self.chosen is not None:
            return self.take(np.arange(min(count, len(self))))
        scales = None if self.scales is None else self.scales[:count]
        return StoredRows(self.stored[:count], scales, unit=self.unit, name=self.name)


Matrix: TypeAlias = FloatMatrix | StoredRows


def row_blocks(matrix: Matrix, rows: int = _BLOCK_ROWS) -> Iterator[FloatMatrix]:
    """The rows of a matrix in float32, some at a time."""
    for start in range(0, len(matrix), rows):
        yield np.asarray(matrix[start : start + rows], np.float32)
