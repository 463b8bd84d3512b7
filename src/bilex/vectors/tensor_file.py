"""safetensors files of matrices: read as memory maps, written block by block."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.mapped import mapped_file
from bilex.vectors.stored import FloatMatrix

DTYPES = ("float32", "float16", "int8")
_NUMPY_TYPES = {"F32": np.float32, "F16": np.float16, "I8": np.int8}
_NAMES = {"float32": "F32", "float16": "F16", "int8": "I8"}
_ALIGNMENT = 8

Tensors = dict[str, npt.NDArray[Any]]


def read_tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file as read-only memory maps.

    The library checks the file; numpy maps it, because the library would copy.

    Raises:
        BilexError: The file is cut off or damaged, or holds other numbers than bilex writes.
    """
    from safetensors import SafetensorError, safe_open

    content = mapped_file(path)
    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise BilexError(f"{path}: is cut off or damaged; make the folder again.") from error
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    tensors: Tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _NUMPY_TYPES:
            raise BilexError(
                f"{path}: holds {entry['dtype']} numbers, which bilex does not write; make it again."
            )
        dtype = np.dtype(_NUMPY_TYPES[entry["dtype"]])
        begin, end = entry["data_offsets"]
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

    Args:
        path: The file.
        name: The matrix's name.
        blocks: Its rows in order, together `shape`.
        shape: Rows and columns.
        dtype: One of `DTYPES`.
        others: Tensors that go with it.
    """
    scales = np.ones((shape[0], 1), np.float32) if dtype == "int8" else None
    small = {key: np.ascontiguousarray(tensor, np.float32) for key, tensor in (others or {}).items()}
    if scales is not None:
        small[f"{name}.scales"] = scales
    header: dict[str, Any] = {}
    size = 0
    for key, tensor in small.items():
        header[key] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [size, size + tensor.nbytes]}
        size += tensor.nbytes
    bytes_of_matrix = shape[0] * shape[1] * np.dtype(dtype).itemsize
    header[name] = {"dtype": _NAMES[dtype], "shape": shape, "data_offsets": [size, size + bytes_of_matrix]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.seek(size, 1)
        row = 0
        for block in blocks:
            packed, factors = _packed(block, dtype)
            if scales is not None:
                scales[row : row + len(block)] = factors
            file.write(packed.data)
            row += len(block)
        file.seek(8 + len(text))
        for tensor in small.values():
            file.write(tensor.data)


def _packed(block: FloatMatrix, dtype: str) -> tuple[npt.NDArray[Any], FloatMatrix | None]:
    """Rows in the numbers of the file, and for int8 their scales."""
    if dtype != "int8":
        return np.ascontiguousarray(block, dtype=dtype), None
    scales = np.abs(block).max(axis=1, initial=0).astype(np.float32)[:, None] / 127
    scales[scales == 0] = 1
    return np.rint(block / scales).astype(np.int8), scales
