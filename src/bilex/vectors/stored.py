"""Matrices with one row per word, in memory or in a mapped file: blocks, norms and unit rows."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import opened

FloatMatrix = npt.NDArray[np.float32]
RowChoice: TypeAlias = int | slice | npt.NDArray[Any] | list[int]

SHORTEST, LONGEST = 1e-15, 1e15  # beyond these lengths float32 sums of squares are not to be trusted
_BLOCK_ROWS = 16384

# Files that `check_mapped_files` looks at.
mapped_files: weakref.WeakKeyDictionary[mmap.mmap, Path] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A float16 or int8 matrix that stays in its file; indexing decodes rows to float32.

    A program that goes through it block by block never holds more than the stored bytes and a block;
    `np.asarray` gives all of it at once. int8 has a factor per row in `scales`, of shape (rows, 1). `unit`
    rows are divided by their length after decoding, since rounding has changed it. Errors name the file.
    """

    stored: npt.NDArray[Any]
    scales: FloatMatrix | None = None
    unit: bool = False
    name: str = "the vectors"
    ndim: ClassVar[int] = 2
    dtype: ClassVar[np.dtype[np.float32]] = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self.stored), int(self.stored.shape[1])

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.stored.size

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: RowChoice) -> FloatMatrix:
        """Some rows in float32; of a single one its vector."""
        if isinstance(rows, (int, np.integer)):
            return np.asarray(self[np.array([rows])][0])
        with np.errstate(over="ignore", invalid="ignore"):
            decoded: FloatMatrix = self.stored[rows].astype(np.float32)
            if self.scales is not None:
                decoded *= self.scales[rows]
        if not np.isfinite(decoded).all():
            raise BilexError(f"{self.name}: holds NaN or infinity, so it was damaged; make the folder again.")
        if self.unit:
            decoded /= row_norms(decoded)[:, None]
        return decoded

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All rows as one matrix."""
        whole = np.empty(self.shape, np.float32)
        for block in slices(len(self), _BLOCK_ROWS):
            whole[block] = self[block]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def part(self, rows: slice | npt.NDArray[np.int64]) -> StoredRows:
        """Some rows, not decoded; a slice of them stays in the file."""
        scales = None if self.scales is None else self.scales[rows]
        return replace(self, stored=self.stored[rows], scales=scales)


Matrix: TypeAlias = FloatMatrix | StoredRows


def slices(count: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover a range of `count`."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def part_of(matrix: Matrix, rows: slice | npt.NDArray[np.int64]) -> Matrix:
    """Some rows of a matrix, stored as they are."""
    return matrix.part(rows) if isinstance(matrix, StoredRows) else matrix[rows]


def row_blocks(matrix: Matrix, rows: int = _BLOCK_ROWS) -> Iterator[FloatMatrix]:
    """The rows of a matrix in float32, some at a time."""
    return (np.asarray(matrix[block], np.float32) for block in slices(len(matrix), rows))


def checked_blocks(
    blocks: Iterable[FloatMatrix], words: Sequence[str], dtype: str = "float32"
) -> Iterator[FloatMatrix]:
    """Pass blocks of rows on; refuse the first word whose numbers are not finite or beyond a type."""
    largest = float(np.finfo(np.float16 if dtype == "float16" else np.float32).max)
    first = 0
    for block in blocks:
        found = largest_numbers(block)
        fine = found <= largest
        if not fine.all():
            at = int(np.argmin(fine))
            what = f"a number beyond what {dtype} can hold" if np.isfinite(found[at]) else "NaN or infinity"
            raise BilexError(f"the vector of '{words[first + at]}' holds {what}; leave the word out.")
        first += len(block)
        yield block


def row_norms(matrix: Matrix) -> npt.NDArray[np.float32]:
    """The Euclidean length of each row, summed in float64 block by block; a zero row counts as 1."""
    squares = [np.einsum("ij,ij->i", rows, rows) for rows in (b.astype("f8") for b in row_blocks(matrix))]
    norms: npt.NDArray[np.float32] = np.sqrt(np.concatenate([*squares, np.empty(0)])).astype(np.float32)
    norms[norms == 0] = 1
    return norms


def largest_numbers(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The largest absolute value of each row; NaN for a row that holds NaN."""
    return np.asarray(np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0)))


def unit_rows(rows: npt.ArrayLike) -> FloatMatrix:
    """A copy of rows with each divided by its length (`row_norms`); zero rows stay zero."""
    units = np.array(rows, np.float32)
    units /= row_norms(units)[:, None]
    return units


def unit_rows_float32(rows: FloatMatrix) -> FloatMatrix:
    """Rows divided by lengths that are summed in float32, as torch does; zero rows stay zero.

    The square of 1e30 is infinite in float32 and that of 1e-30 is zero, so a row of such numbers is divided
    by its largest one first.
    """
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    extreme = np.flatnonzero((norms < SHORTEST) | (norms > LONGEST))
    if len(extreme):
        largest = largest_numbers(rows[extreme])[:, None]
        rows = rows.copy()
        rows[extreme] /= np.where(largest == 0, 1, largest)
        norms[extreme] = np.linalg.norm(rows[extreme], axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0, 1, norms), np.float32)


def mapped_file(path: Path) -> mmap.mmap:
    """The bytes of a file, read-only; pages are read when they are touched."""
    with opened(path) as file:
        if path.stat().st_size == 0:
            raise BilexError(f"{path}: is empty; make or download it again.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapped_files[content] = path
    return content


def check_mapped_files() -> None:
    """Refuse a mapped file that was cut off: to read beyond its end would kill the process (SIGBUS)."""
    for content, path in list(mapped_files.items()):
        if not content.closed and content.size() < len(content):
            raise BilexError(f"{path}: was cut off while it was open; copy or make it again.")
