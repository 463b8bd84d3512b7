"""Our own format: a folder with vectors.safetensors, vocabulary.txt and config.json."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.errors import BilexError
from bilex.files import atomic_folder, check_replaceable, json_text, read_json, sha256
from bilex.progress import SILENT, Progress
from bilex.vectors.core import FloatMatrix, Step, WordVectors, lowercased_first, row_norms
from bilex.vectors.mapped import mapped_file
from bilex.vectors.options import MAX_NGRAM, LoadOptions
from bilex.vectors.report import LoadReport
from bilex.vectors.subwords import Subwords

FORMAT, VERSION = "bilex-vectors", 1
CONFIG, VOCABULARY, VECTORS, SUBWORDS = (
    "config.json",
    "vocabulary.txt",
    "vectors.safetensors",
    "subwords.safetensors",
)
DTYPES = ("float32", "float16", "int8")
_NUMPY_TYPES = {"F32": np.float32, "F16": np.float16, "I8": np.int8}
_BLOCK_ROWS = 8192
_ESCAPE = re.compile(r"\\(.)")

Tensors = dict[str, npt.NDArray[Any]]


def write(vectors: WordVectors, path: Path, dtype: str = "float32") -> None:
    """Write the folder, whole or not at all.

    Args:
        vectors: What to write; its preprocessing and its subwords go with it.
        path: The folder; an earlier one of this format is replaced if nothing else is in it.
        dtype: "float32", "float16", or "int8" with a scale a row.

    Raises:
        BilexError: The dtype is not known, a number is not finite, or the folder cannot be written, or holds
            something else.
    """
    from safetensors.numpy import save_file

    if dtype not in DTYPES:
        raise BilexError(f"dtype '{dtype}' is not known; use {', '.join(DTYPES)}.")
    check_replaceable(path, own_files)
    _refuse_not_finite(vectors, path)
    with atomic_folder(path, own_files=own_files) as folder:
        save_file(_packed("vectors", np.asarray(vectors.vectors), dtype), folder / VECTORS)
        (folder / VOCABULARY).write_bytes(_escaped(vectors.index_to_key, path))
        config: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "words": len(vectors),
            "dim": vectors.dim,
            "dtype": dtype,
            "preprocessing": list(vectors.preprocessing),
        }
        if vectors.subwords is not None:
            save_file(_subword_tensors(vectors.subwords, dtype), folder / SUBWORDS)
            config["subwords"] = {
                "shortest": vectors.subwords.shortest,
                "longest": vectors.subwords.longest,
                "steps": ["unit" if mean is None else "center" for mean in vectors.subwords.means],
            }
        config["sha256"] = {file.name: sha256(file) for file in sorted(folder.iterdir())}
        (folder / CONFIG).write_text(json_text(config), encoding="utf-8")


def own_files(path: Path) -> Collection[str]:
    """The files of this format in a folder; none if its config.json does not say that it is one."""
    try:
        config = read_json(path / CONFIG)
    except BilexError:
        return ()
    ours = isinstance(config, dict) and config.get("format") == FORMAT
    return (CONFIG, VOCABULARY, VECTORS, SUBWORDS) if ours else ()


def read(path: Path, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Open the folder; a float32 matrix stays on disk until its rows are used.

    Every file is compared with its checksum first, unless `options.verify` is False.

    Raises:
        BilexError: The folder is not whole, was changed, or comes from a newer version.
    """
    if options.verify:
        verify(path)
    config = _config(path)
    words = _vocabulary(path)
    tensors = _tensors(path / VECTORS)
    steps: tuple[Step, ...] = tuple(config["preprocessing"])
    matrix = _unpacked("vectors", tensors, path / VECTORS, options.limit)
    if len(words) != config["words"] or matrix.shape != (
        min(len(words), options.limit or len(words)),
        config["dim"],
    ):
        raise BilexError(
            f"{path}: its vectors, vocabulary and {CONFIG} do not fit together; make the folder again."
        )
    if steps and steps[-1] == "unit" and tensors["vectors"].dtype != np.float32:
        matrix /= row_norms(matrix)[:, None]
    words = words[: len(matrix)]
    report = LoadReport(str(path), "row", "safetensors", entries=len(words))
    if options.lowercase:
        words, rows = lowercased_first(words)
        report.merged = len(matrix) - len(words)
        matrix = matrix[rows] if report.merged else matrix
    report.kept = len(words)
    progress.say(f"opened {path}")
    return WordVectors(words, matrix, steps, _read_subwords(path, config), report)


def verify(path: Path) -> None:
    """Read every file of the folder and compare it with its checksum.

    Raises:
        BilexError: A file was changed or is missing.
    """
    config = _config(path)
    needed = {VECTORS, VOCABULARY} | ({SUBWORDS} if config.get("subwords") is not None else set())
    sums = config["sha256"]
    if set(sums) != needed:
        raise BilexError(f"{path / CONFIG}: does not list the folder's files; make the folder again.")
    for name in sorted(needed):
        try:
            found = sha256(path / name)
        except OSError as error:
            raise BilexError(f"{path / name}: cannot be read ({error.strerror or error}).") from error
        if found != sums[name]:
            raise BilexError(
                f"{path / name}: was changed or damaged since it was saved; make the folder again."
            )


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
    kinds = {"words": int, "dim": int, "preprocessing": list, "sha256": dict}
    if any(not isinstance(config.get(key), kind) for key, kind in kinds.items()) or not (
        set(map(str, config["preprocessing"])) <= {"unit", "center"}
    ):
        raise BilexError(f"{path / CONFIG}: lacks something that belongs there; make the folder again.")
    return config


def _vocabulary(path: Path) -> list[str]:
    file = path / VOCABULARY
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise BilexError(f"{file}: cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise BilexError(f"{file}: is not UTF-8; make the folder again.") from error
    words = text.split("\n")[:-1]
    return [_ESCAPE.sub(_unescaped, word) for word in words] if "\\" in text else words


def _unescaped(escape: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r"}.get(escape[1], escape[1])


def _escaped(words: list[str], path: Path) -> bytes:
    r"""One word a line; a backslash, newline or carriage return in a word becomes \\, \n or \r."""
    lines = [word.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") for word in words]
    try:
        return "".join(f"{line}\n" for line in lines).encode("utf-8")
    except UnicodeEncodeError as error:
        raise BilexError(
            f"{path}: a word cannot be written as UTF-8 ({error.object[error.start]!r})."
        ) from error


def _refuse_not_finite(vectors: WordVectors, path: Path) -> None:
    for start in range(0, len(vectors), _BLOCK_ROWS):
        finite = np.isfinite(vectors.vectors[start : start + _BLOCK_ROWS]).all(axis=1)
        if not finite.all():
            word = vectors.index_to_key[start + int(np.argmin(finite))]
            raise BilexError(
                f"{path}: the vector of '{word}' holds NaN or infinity; leave the word out to save."
            )


def _packed(name: str, matrix: npt.NDArray[Any], dtype: str) -> Tensors:
    """A matrix as tensors to save: itself, or int8 with a scale a row."""
    if dtype != "int8":
        return {name: np.ascontiguousarray(matrix, dtype=dtype)}
    scales = np.abs(matrix).max(axis=1, initial=0).astype(np.float32)[:, None] / 127
    scales[scales == 0] = 1
    packed = np.empty(matrix.shape, np.int8)
    for start in range(0, len(matrix), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        packed[block] = np.rint(matrix[block] / scales[block])
    return {name: packed, f"{name}.scales": scales}


def _unpacked(name: str, tensors: Tensors, path: Path, limit: int | None = None) -> FloatMatrix:
    """The float32 matrix that `_packed` made into tensors; a memory map if it was float32."""
    matrix, scales = tensors.get(name), tensors.get(f"{name}.scales")
    if matrix is None or matrix.ndim != 2 or (matrix.dtype == np.int8) != (scales is not None):
        raise BilexError(f"{path}: lacks the matrix '{name}'; make the folder again.")
    if matrix.dtype == np.float32:
        return matrix[:limit]
    unpacked: FloatMatrix = matrix[:limit].astype(np.float32)
    if scales is not None:
        if scales.shape != (len(matrix), 1) or scales.dtype != np.float32:
            raise BilexError(f"{path}: lacks a scale for each row of '{name}'; make the folder again.")
        with np.errstate(over="ignore", invalid="ignore"):
            unpacked *= scales[:limit]
    if not np.isfinite(unpacked).all():
        raise BilexError(f"{path}: holds NaN or infinity, so it was damaged; make the folder again.")
    return unpacked


def _tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file as read-only memory maps.

    The library checks the file; numpy maps it, because the library would copy.
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


def _subword_tensors(subwords: Subwords, dtype: str) -> Tensors:
    means = {f"mean.{step}": mean for step, mean in enumerate(subwords.means) if mean is not None}
    return _packed("rows", np.asarray(subwords.rows), dtype) | means


def _read_subwords(path: Path, config: Mapping[str, Any]) -> Subwords | None:
    settings = config.get("subwords")
    if settings is None:
        return None
    tensors = _tensors(path / SUBWORDS)
    rows = _unpacked("rows", tensors, path / SUBWORDS)
    try:
        means = tuple(
            None
            if step == "unit"
            else np.asarray(tensors[f"mean.{index}"], np.float32).reshape(rows.shape[1])
            for index, step in enumerate(settings["steps"])
        )
        subwords = Subwords(rows, int(settings["shortest"]), int(settings["longest"]), means)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BilexError(
            f"{path}: what {CONFIG} says of the subwords is not whole; make it again."
        ) from error
    if rows.shape[1] != config["dim"] or not 0 < subwords.longest <= MAX_NGRAM:
        raise BilexError(f"{path}: its subwords do not fit its vectors; make the folder again.")
    return subwords
