"""Matrices of rows: their lengths, memory maps, safetensors, and rows decoded as they are asked for."""

from __future__ import annotations

import json
import mmap
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import opened

FloatMatrix = npt.NDArray[np.float32]
RowChoice: TypeAlias = int | slice | npt.NDArray[Any] | list[int]
Tensors = dict[str, npt.NDArray[Any]]

DTYPES = {"float32": "F32", "float16": "F16", "int8": "I8"}  # and their names in safetensors
SHORTEST, LONGEST = 1e-15, 1e15  # beyond these lengths float32 sums of squares are not to be trusted
_ALIGNMENT = 8
_BLOCK_ROWS = 16384

_maps: weakref.WeakKeyDictionary[mmap.mmap, Path] = weakref.WeakKeyDictionary()


class StoredRows:
    """A float16 or int8 matrix, or some rows of any matrix, that stays in its file.

    Indexing decodes rows to float32, so that a program that goes through it block by block never holds
    more than the stored bytes and a block. `np.asarray` gives all of it at once. int8 has a factor per row in
    `scales`, of shape (rows, 1); rows that are to be `unit` are brought to length 1 after decoding, which
    rounding has moved them from; `chosen` says which rows of the file these are, None for all.
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
        """Some rows in float32; of a single one its vector."""
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
            decoded /= row_norms(decoded)[:, None]
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


def row_norms(matrix: Matrix) -> npt.NDArray[np.float32]:
    """The Euclidean length of each row, summed in float64 block by block; a zero row counts as 1."""
    squares = [np.einsum("ij,ij->i", rows, rows) for rows in (b.astype("f8") for b in row_blocks(matrix))]
    norms: npt.NDArray[np.float32] = np.sqrt(np.concatenate([*squares, np.empty(0)])).astype(np.float32)
    norms[norms == 0] = 1
    return norms


def largest_numbers(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The largest absolute value of each row; NaN for a row that holds NaN."""
    if not rows.shape[1]:
        return np.zeros(len(rows), np.float32)
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


def unit_rows(rows: npt.ArrayLike) -> FloatMatrix:
    """A copy of rows with each divided by its length (`row_norms`); zero rows stay zero."""
    units = np.array(rows, np.float32)
    units /= row_norms(units)[:, None]
    return units


def unit_rows_float32(rows: FloatMatrix) -> FloatMatrix:
    """Rows divided by lengths that are summed in float32, as torch does; zero rows stay zero.

    The square of 1e30 is infinite in float32 and that of 1e-30 is zero, so that a row of such numbers is
    divided by its largest one first.
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
    """The bytes of a file, read-only; pages come in when they are touched."""
    with opened(path) as file:
        if path.stat().st_size == 0:
            raise BilexError(f"{path}: is empty; make or download it again.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _maps[content] = path
    return content


def check_mapped_files() -> None:
    """Refuse a mapped file that was cut off: to read beyond its end would kill the process (SIGBUS)."""
    for content, path in list(_maps.items()):
        if not content.closed and content.size() < len(content):
            raise BilexError(f"{path}: was cut off while it was open; copy or make it again.")


def read_tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file; the library checks it, numpy maps it, since the library copies."""
    from safetensors import SafetensorError, safe_open

    content = mapped_file(path)
    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise BilexError(f"{path}: is cut off or damaged; make the folder again.") from error
    length = int.from_bytes(content[:8], "little")
    types = {name: np.dtype(dtype) for dtype, name in DTYPES.items()}
    tensors: Tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in types:
            raise BilexError(
                f"{path}: holds {entry['dtype']} numbers, which bilex does not write; make it again."
            )
        dtype, (begin, end) = types[entry["dtype"]], entry["data_offsets"]
        flat = np.frombuffer(content, dtype, (end - begin) // dtype.itemsize, 8 + length + begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def write_matrix(
    path: Path,
    name: str,
    blocks: Iterable[FloatMatrix],
    shape: tuple[int, int],
    dtype: str,
    others: Tensors | None = None,
) -> None:
    """Write a matrix that comes in blocks of rows, with small float32 tensors before it.

    Only a block is held, and of an int8 matrix the scale of each row, which is the tensor `name`.scales.
    """
    small = {key: np.ascontiguousarray(tensor, np.float32) for key, tensor in (others or {}).items()}
    if dtype == "int8":
        small[f"{name}.scales"] = np.ones((shape[0], 1), np.float32)
    sizes = {key: ("F32", tensor.shape, tensor.nbytes) for key, tensor in small.items()}
    sizes[name] = (DTYPES[dtype], shape, shape[0] * shape[1] * np.dtype(dtype).itemsize)
    header, end = {}, 0
    for key, (kind, extent, size) in sizes.items():
        header[key] = {"dtype": kind, "shape": extent, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.seek(sum(tensor.nbytes for tensor in small.values()), 1)
        row = 0
        for block in blocks:
            if dtype == "int8":
                scales = np.abs(block).max(axis=1, initial=0).astype(np.float32)[:, None] / 127
                scales[scales == 0] = 1
                small[f"{name}.scales"][row : row + len(block)] = scales
                block = np.rint(block / scales)  # noqa: PLW2901
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
            row += len(block)
        file.seek(8 + len(text))
        for tensor in small.values():
            file.write(tensor.data)
