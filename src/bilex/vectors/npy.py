"""A numpy matrix with a list of words, one per line, beside it."""

from __future__ import annotations

import contextlib
import io
import math
import mmap
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, check_input, check_output, opened, write_text
from bilex.core.locks import hidden_name, one_at_a_time, try_lock, turn_lock
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.formats import WORD_LIST_SUFFIXES
from bilex.vectors.reading import MARKERS, MAX_DIM, Collector, LoadOptions, LoadReport, check_words
from bilex.vectors.stored import mapped_file, row_blocks

_EARLIER = ".bilex-words"
_BLOCK_ROWS = 8192
_HEADER_BYTES = 1 << 16


def read(path: Path, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read X.npy and the words of the first list there is; a clean float32 matrix is not copied."""
    _finish_interrupted(path)
    lists = [path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES]
    words_path = next((candidate for candidate in lists if candidate.is_file()), None)
    if words_path is None:
        raise BilexError(
            f"{path}: has no word list beside it; put the words, one per line, "
            f"into {lists[0].name} or {lists[1].name}."
        )
    with progress.task(f"reading {path.name}"):
        matrix = _matrix(mapped_file(path), path)
        words = _words(words_path, options.encoding_errors)
        if len(words) != len(matrix):
            raise BilexError(
                f"{words_path}: has {len(words):,} words but {path} has {len(matrix):,} rows; "
                "each row needs the word in the same line of the list."
            )
        words, matrix = words[: options.limit], matrix[: options.limit]
        report = LoadReport(str(path), "row", "npy")
        if matrix.dtype == np.float32 and matrix.flags.c_contiguous and _clean(words, matrix, options):
            report.entries = report.kept = len(words)
            return WordVectors(words, matrix, report=report)
        collector = Collector(report, matrix.shape[1], len(words), options)
        for start in range(0, len(words), _BLOCK_ROWS):
            with np.errstate(over="ignore", invalid="ignore"):
                rows = matrix[start : start + _BLOCK_ROWS].astype(np.float32)
            collector.add(words[start : start + _BLOCK_ROWS], rows, range(start + 1, start + 1 + len(rows)))
        return collector.finish()


def _matrix(content: mmap.mmap, path: Path) -> npt.NDArray[np.floating]:
    """The matrix in the bytes of an .npy file, without a copy."""
    start = io.BytesIO(content[:_HEADER_BYTES])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a header as Python 2 wrote it is as good as any
            old = np.lib.format.read_magic(start) == (1, 0)
            readers = np.lib.format.read_array_header_2_0, np.lib.format.read_array_header_1_0
            shape, by_column, dtype = readers[old](start)
    except Exception as error:  # numpy evaluates the header as Python text, which can fail in any way
        raise BilexError(f"{path}: is not a whole .npy file; make or download it again.") from error
    if len(shape) != 2 or dtype.kind != "f" or not 0 < shape[1] <= MAX_DIM or shape[0] < 1:
        raise BilexError(
            f"{path}: holds {dtype} of shape {shape}; a matrix of floating-point numbers, "
            "one row per word, is needed."
        )
    needed, found = math.prod(shape) * dtype.itemsize, len(content) - start.tell()
    if found < needed:
        raise BilexError(
            f"{path}: is cut off, {found:,} of {needed:,} bytes of its matrix are there; copy it again."
        )
    flat = np.frombuffer(content, dtype, math.prod(shape), start.tell())
    return flat.reshape(shape, order="F" if by_column else "C")


def _words(path: Path, encoding_errors: str) -> list[str]:
    """The words of a list with one word per line."""
    check_input(path)
    with opened(path) as file:
        content = file.read()
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", encoding_errors)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BilexError(
            f"{path}: line {line} is not UTF-8; convert the file to UTF-8, "
            'or read it with encoding_errors="replace" or "ignore".'
        ) from error
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def _clean(words: list[str], matrix: npt.NDArray[np.float32], options: LoadOptions) -> bool:
    """Whether every word and row can be taken as it is."""
    distinct = set(words)
    if len(distinct) != len(words) or "" in distinct or (not options.keep_markers and distinct & MARKERS):
        return False
    if options.lowercase and any(word != word.lower() for word in words):
        return False
    return all(
        np.isfinite(rows).all() and (rows != 0).any(axis=1).all() for rows in row_blocks(matrix, _BLOCK_ROWS)
    )


def write(vectors: WordVectors, path: Path) -> None:
    """Write X.npy, and the words, one per line, as X.txt beside it."""
    check_words(vectors.index_to_key, path, re.compile(r"\n|\r$|^$|^\ufeff"))
    check_output(path)
    _finish_interrupted(path)
    words_path = path.with_suffix(WORD_LIST_SUFFIXES[0])
    if words_path.exists() and not path.exists():
        raise BilexError(
            f"{words_path}: would be overwritten by the word list of {path}; choose another name."
        )
    with _earlier_list_kept(path, words_path), atomic_file(path) as matrix_file:
        with matrix_file.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (len(vectors), vectors.dim)}
            np.lib.format.write_array_header_1_0(file, header)
            for block in row_blocks(vectors.vectors):
                file.write(np.ascontiguousarray(block, "<f4").data)
        write_text(words_path, "".join(f"{word}\n" for word in vectors.index_to_key))


@contextlib.contextmanager
def _earlier_list_kept(path: Path, words_path: Path) -> Iterator[None]:
    """Keep a copy of the word list of the matrix at `path` while both are replaced, one after the other.

    Two files cannot be replaced in one step. The copy's name names the matrix that it belongs to; if the
    process dies while that matrix is still in its place, `_finish_interrupted` puts the old list back.
    """
    kept = path.with_name(_earlier_list_name(path))
    with atomic_file(kept) as temporary:
        if words_path.exists():
            shutil.copyfile(words_path, temporary)
    try:
        with one_at_a_time(path):
            yield
    finally:
        _finish_interrupted(path)


def _earlier_list_name(path: Path) -> str:
    found = path.stat() if path.exists() else None
    owner = f"{found.st_ino:x}-{found.st_mtime_ns:x}" if found else "none"
    return f"{hidden_name(path)}{owner}{_EARLIER}"


def _finish_interrupted(path: Path) -> None:
    """After a save that was cut off between its two files: make the word list that of the matrix."""
    words_path, start = path.with_suffix(WORD_LIST_SUFFIXES[0]), hidden_name(path)
    with contextlib.suppress(OSError):
        names = [file.name for file in path.parent.iterdir() if file.name.endswith(_EARLIER)]
        for kept in (path.with_name(name) for name in names if name.startswith(start)):
            with try_lock(turn_lock(path)) as held:
                if held is False:
                    continue
                if kept.name != _earlier_list_name(
                    path
                ):  # the new matrix is in its place, and so is its list
                    kept.unlink()
                elif path.exists():
                    kept.replace(words_path)
                else:
                    words_path.unlink(missing_ok=True)
                    kept.unlink()
