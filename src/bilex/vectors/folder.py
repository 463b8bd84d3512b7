r"""Our own format: a folder with vectors.safetensors, vocabulary.txt, config.json and SHA256SUMS.

The vocabulary has one word per line; a backslash, newline or carriage return in a word is \\, \n or \r.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import atomic_folder, json_text, opened, read_json, stored_format
from bilex.core.manifest import CHECKSUMS, ModelFiles, checksums, write_checksums
from bilex.core.progress import SILENT, Progress
from bilex.vectors import stored
from bilex.vectors.core import Step, WordVectors
from bilex.vectors.fasttext import Subwords
from bilex.vectors.formats import MAX_NGRAM, LoadOptions, LoadReport
from bilex.vectors.stored import FloatMatrix, Matrix, StoredRows, part_of

Tensors = dict[str, npt.NDArray[Any]]

FORMAT, VERSION = "bilex-vectors", 2  # the first version had its checksums in config.json
CONFIG, VOCABULARY = "config.json", "vocabulary.txt"
VECTORS, SUBWORDS = "vectors.safetensors", "subwords.safetensors"
DTYPES = {"float32": "F32", "float16": "F16", "int8": "I8"}  # and their names in safetensors
_AGAIN = "make the folder again"
_ALIGNMENT = 8
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
_ESCAPED = re.compile(r"\\(.)")


def write_blocks(
    path: Path,
    words: list[str],
    dim: int,
    blocks: Iterable[FloatMatrix],
    *,
    dtype: str = "float32",
    preprocessing: Sequence[Step] = (),
    subwords: Subwords | None = None,
) -> None:
    """Write a folder of vectors that come block by block, so that no more than a block need exist.

    An earlier folder of this format is replaced if nothing else is in it. `dtype` is "float32", "float16", or
    "int8" with a scale per row; `preprocessing` are steps already applied to the rows.
    """
    if dtype not in DTYPES:
        raise BilexError(f"dtype '{dtype}' is not known; use {', '.join(DTYPES)}.")
    with atomic_folder(path, own_files=_own_files) as folder:
        shape = len(words), dim
        write_matrix(folder / VECTORS, "vectors", stored.checked_blocks(blocks, words, dtype), shape, dtype)
        lines = (word.translate(_ESCAPES) + "\n" for word in words)
        try:
            (folder / VOCABULARY).write_bytes("".join(lines).encode("utf-8"))
        except UnicodeEncodeError as error:
            wrong = error.object[error.start]
            raise BilexError(f"{path}: a word cannot be written as UTF-8 ({wrong!r}).") from error
        config: dict[str, Any] = {"format": FORMAT, "version": VERSION, "words": len(words), "dim": dim}
        config |= {"dtype": dtype, "preprocessing": list(preprocessing)}
        if subwords is not None:
            means = {f"mean.{step}": mean for step, mean in enumerate(subwords.means) if mean is not None}
            rows = subwords.rows
            write_matrix(folder / SUBWORDS, "rows", stored.row_blocks(rows), rows.shape, dtype, means)
            steps = ["unit" if mean is None else "center" for mean in subwords.means]
            lengths = {"shortest": subwords.shortest, "longest": subwords.longest}
            config["subwords"] = {**lengths, "steps": steps}
        (folder / CONFIG).write_text(json_text(config), encoding="utf-8")
        write_checksums(folder, kind=FORMAT)


def _own_files(path: Path) -> Collection[str]:
    """The files of this format in a folder; none if its config.json does not say that it is one."""
    ours = stored_format(path) == FORMAT
    return (CONFIG, VOCABULARY, VECTORS, SUBWORDS, CHECKSUMS) if ours else ()


def write_matrix(
    path: Path,
    name: str,
    blocks: Iterable[FloatMatrix],
    shape: tuple[int, int],
    dtype: str,
    others: Tensors | None = None,
) -> None:
    """Write a safetensors file: small float32 tensors, then a matrix that comes in blocks of rows.

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


def read(path: Path, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Open the folder and, unless `verify` is off, compare its checksums; the matrix stays on disk."""
    config = _config(path)
    if options.verify:
        sums = config["sha256"] if config["version"] == 1 else checksums(path, FORMAT, _AGAIN)
        needed = {VECTORS, VOCABULARY} | ({SUBWORDS} if config.get("subwords") is not None else set())
        if set(sums) - {CONFIG} != needed:
            raise _damaged(path, "its checksums are not those of its files")
        ModelFiles(path, sums, _AGAIN).compare(path)
    words = _vocabulary(path / VOCABULARY)
    steps: tuple[Step, ...] = tuple(config["preprocessing"])
    matrix = _matrix("vectors", read_tensors(path / VECTORS), path / VECTORS, unit=steps[-1:] == ("unit",))
    if len(words) != config["words"] or matrix.shape != (len(words), config["dim"]):
        raise _damaged(path, f"its vectors, vocabulary and {CONFIG} do not fit together")
    words, matrix = words[: options.limit], part_of(matrix, slice(options.limit))
    report = LoadReport(str(path), "safetensors", "row", "rows", len(words))
    if options.lowercase:
        first: dict[str, int] = {}
        for row, word in enumerate(words):
            first.setdefault(word.lower(), row)
        words, report.merged = list(first), len(words) - len(first)
        if report.merged:
            matrix = part_of(matrix, np.fromiter(first.values(), np.int64))
    report.kept = len(words)
    progress.log(f"opened {path}")
    subwords = None if config.get("subwords") is None else _subwords(path, config)
    return WordVectors(words, matrix, steps, subwords, report)


def word_count(path: Path) -> int:
    """How many words a folder holds by its config.json; its vectors are not opened."""
    return int(_config(path)["words"])


def _config(path: Path) -> dict[str, Any]:
    if not (path / CONFIG).is_file():
        raise BilexError(
            f"{path}: has no {CONFIG}, so it is not a folder of word vectors; give the file or folder itself."
        )
    config = read_json(path / CONFIG)
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise BilexError(f"{path}: is not a folder of word vectors; its {CONFIG} does not say {FORMAT}.")
    version = config.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise BilexError(
            f"{path}: has format version {version}, this bilex reads up to {VERSION}; install a newer bilex."
        )
    kinds = {"words": int, "dim": int, "preprocessing": list} | ({"sha256": dict} if version == 1 else {})
    whole = all(isinstance(config.get(key), kind) for key, kind in kinds.items())
    if not whole or not set(map(str, config["preprocessing"])) <= {"unit", "center"}:
        raise _damaged(path / CONFIG, "lacks something that belongs there")
    own = config.pop("config_sha256", None)  # of the first version
    if own and own != hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest():
        raise _damaged(path / CONFIG, "was changed or damaged since it was saved")
    return config


def _vocabulary(path: Path) -> list[str]:
    try:
        with opened(path) as file:
            words = file.read().decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise _damaged(path, "is not UTF-8") from error
    named = {"n": "\n", "r": "\r"}
    return [
        _ESCAPED.sub(lambda escape: named.get(escape[1], escape[1]), word) if "\\" in word else word
        for word in words
    ]


def read_tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file; the library checks it, numpy maps it, since the library copies."""
    from safetensors import SafetensorError, safe_open

    content = stored.mapped_file(path)
    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, "is cut off or damaged") from error
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    types = {name: np.dtype(dtype) for dtype, name in DTYPES.items()}
    tensors: Tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in types:
            raise BilexError(
                f"{path}: holds {entry['dtype']} numbers, which bilex does not write; make it again."
            )
        dtype, (begin, end) = types[entry["dtype"]], entry["data_offsets"]
        flat = np.frombuffer(content, dtype, (end - begin) // dtype.itemsize, 8 + length + begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def _matrix(name: str, tensors: Tensors, path: Path, *, unit: bool = False) -> Matrix:
    """The matrix of that name: a float32 one as it is, others to be decoded when their rows are used."""
    matrix, scales = tensors.get(name), tensors.get(f"{name}.scales")
    if matrix is None or matrix.ndim != 2 or (matrix.dtype == np.int8) != (scales is not None):
        raise _damaged(path, f"lacks the matrix '{name}'")
    if matrix.dtype == np.float32:
        return matrix
    if scales is not None and (scales.shape != (len(matrix), 1) or scales.dtype != np.float32):
        raise _damaged(path, f"lacks a scale for each row of '{name}'")
    if scales is not None and not bool((np.abs(scales) < np.finfo(np.float32).max / 128).all()):
        raise _damaged(path, "holds NaN or infinity, so it was damaged")
    return StoredRows(matrix, scales, unit=unit, name=str(path))


def _subwords(path: Path, config: dict[str, Any]) -> Subwords:
    settings, tensors = config["subwords"], read_tensors(path / SUBWORDS)
    rows = _matrix("rows", tensors, path / SUBWORDS)
    means: list[npt.NDArray[np.float32] | None] = []
    try:
        for index, step in enumerate(settings["steps"]):
            mean = None if step == "unit" else np.asarray(tensors[f"mean.{index}"], np.float32)
            means.append(mean if mean is None else mean.reshape(rows.shape[1]))
        subwords = Subwords(rows, int(settings["shortest"]), int(settings["longest"]), tuple(means))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"its {CONFIG} does not describe the subwords completely") from error
    if rows.shape[1] != config["dim"] or not 0 < subwords.longest <= MAX_NGRAM:
        raise _damaged(path, "its subwords do not fit its vectors")
    return subwords


def _damaged(path: Path, what: str) -> BilexError:
    return BilexError(f"{path}: {what}; {_AGAIN}.")
