"""A numpy matrix with a list of words, one per line, beside it."""

from __future__ import annotations

import contextlib
import glob
import mmap
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, check_input, check_output, opened, write_errors, write_text
from bilex.core.locks import hidden_name, one_at_a_time
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.formats import MAX_DIM, WORD_LIST_SUFFIXES, Collector, LoadOptions, LoadReport, check_words
from bilex.vectors.stored import mapped_files, row_blocks, slices

_NEW_LIST = ".bilex-words"
_BLOCK_ROWS = 8192


def read(path: Path, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read X.npy and the words of the first list there is; a clean float32 matrix is not copied."""
    lists = [path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES]
    with contextlib.suppress(OSError):
        _finish_save(path)
    words_path = next((candidate for candidate in lists if candidate.is_file()), None)
    if words_path is None:
        raise BilexError(
            f"{path}: has no word list beside it; put the words, one per line, "
            f"into {lists[0].name} or {lists[1].name}."
        )
    with progress.task(f"reading {path.name}"):
        matrix, words = _matrix(path), _words(words_path, options.encoding_errors)
        if len(words) != len(matrix):
            raise BilexError(
                f"{words_path}: has {len(words):,} words but {path} has {len(matrix):,} rows; "
                "each row needs the word in the same line of the list."
            )
        words, matrix = words[: options.limit], matrix[: options.limit]
        report = LoadReport(str(path), "npy", "row", "rows")
        blocks = row_blocks(matrix, _BLOCK_ROWS)
        if (
            matrix.dtype == np.float32
            and matrix.flags.c_contiguous
            and options.keep_all(words)
            and all(np.isfinite(rows).all() and (rows != 0).any(axis=1).all() for rows in blocks)
        ):
            report.entries = report.kept = len(words)
            return WordVectors(words, matrix, report=report)
        collector = Collector(report, matrix.shape[1], options)
        for block in slices(len(words), _BLOCK_ROWS):
            with np.errstate(over="ignore", invalid="ignore"):
                rows = matrix[block].astype(np.float32)
            collector.add(words[block], rows, range(block.start + 1, block.stop + 1))
        return collector.finish()


def _matrix(path: Path) -> npt.NDArray[np.floating]:
    """The matrix of an .npy file, mapped."""
    try:
        with opened(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a header as Python 2 wrote it is as good as any
            mapped = np.lib.format.open_memmap(path, mode="r")
    except BilexError:
        raise
    except Exception as error:  # numpy evaluates the header as Python text, which can fail in any way
        raise BilexError(
            f"{path}: is cut off or is no .npy file of numbers; copy or make it again."
        ) from error
    if mapped.ndim != 2 or mapped.dtype.kind != "f" or not 0 < mapped.shape[1] <= MAX_DIM or not len(mapped):
        raise BilexError(
            f"{path}: holds {mapped.dtype} of shape {mapped.shape}; a matrix of floating-point numbers, "
            "one row per word, is needed."
        )
    assert isinstance(mapped.base, mmap.mmap)
    mapped_files[mapped.base] = path
    return np.asarray(mapped)


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
    return [line.removesuffix("\r") for line in lines]


def write(vectors: WordVectors, path: Path) -> None:
    """Write X.npy, and the words, one per line, as X.txt beside it.

    Two files cannot be replaced in one step. So the new list is first written under a name that says to which
    matrix it belongs. If the process is killed after it replaced the matrix, the next reader finds that list.
    """
    check_words(vectors.index_to_key, path, r"\n|\r$|^$|^\ufeff")
    words_path = path.with_suffix(WORD_LIST_SUFFIXES[0])
    check_output(path)
    check_output(words_path)
    if words_path.exists() and not path.exists():
        raise BilexError(
            f"{words_path}: would be overwritten by the word list of {path}; choose another name."
        )
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(path):
            try:
                _finish_save(path)
                with atomic_file(path) as matrix_file:
                    with matrix_file.open("wb") as file:
                        header = {"descr": "<f4", "fortran_order": False, "shape": vectors.vectors.shape}
                        np.lib.format.write_array_header_1_0(file, header)
                        for block in row_blocks(vectors.vectors):
                            file.write(np.ascontiguousarray(block, "<f4").data)
                    words = "".join(f"{word}\n" for word in vectors.index_to_key)
                    write_text(_new_list(matrix_file, path), words)
            finally:
                _finish_save(path)
                for left in path.parent.glob(f"{glob.escape(hidden_name(path))}*{_NEW_LIST}"):
                    left.unlink(missing_ok=True)


def _finish_save(path: Path) -> None:
    """Put in place the word list of the matrix that is there, if a save was interrupted before that."""
    with contextlib.suppress(FileNotFoundError):
        _new_list(path, path).replace(path.with_suffix(WORD_LIST_SUFFIXES[0]))


def _new_list(matrix: Path, path: Path) -> Path:
    """Where a save keeps the word list of a matrix, until that is at `path`."""
    found = matrix.stat()
    return path.with_name(f"{hidden_name(path)}{found.st_ino:x}-{found.st_mtime_ns:x}{_NEW_LIST}")
