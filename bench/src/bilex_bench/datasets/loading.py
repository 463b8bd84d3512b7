"""Reading the vectors of a data set once a machine.

Text has to be parsed, which takes seconds and fills the memory of every process anew; a memory map does
neither. With a cache the first process that needs a language parses its file and leaves it in our folder
format; all others, at the same time or later, open that as a memory map and share its pages.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from dataclasses import replace
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import written_plainly
from bilex.core.locks import one_at_a_time
from bilex.core.progress import SILENT, Progress
from bilex.vectors import WordVectors
from bilex.vectors.folder import CONFIG
from bilex.vectors.formats import WORD_LIST_SUFFIXES
from bilex.vectors.stored import Matrix, StoredRows
from bilex_bench.datasets.folder import DataFolder

_CONTENT_VERSION = 1  # to be raised when the same file would be read into something else


def load_vectors(
    folder: DataFolder,
    language: str,
    limit: int | None = None,
    cache: Path | None = None,
    progress: Progress = SILENT,
    *,
    keep_markers: bool = True,
) -> WordVectors:
    """The vectors of a language as the benchmark uses them: lower-cased, the first occurrence stays.

    Subwords are left out: every word that is asked for stands in the vocabulary.
    """
    path = folder.vectors_path(language)
    if cache is None:
        return _read(path, limit, progress, keep_markers)
    kept = cache / f"{language}-{_fingerprint(path, limit, keep_markers)}"
    if kept.is_dir():
        return _kept(kept, path)
    with written_plainly(cache):
        cache.mkdir(parents=True, exist_ok=True)
    # Two processes that both parse, as where a system has no such locks, cost time and nothing else. The
    # folder's own name is taken when it is written.
    with one_at_a_time(cache / f"{kept.name}.parsing"):
        if kept.is_dir():  # another process was quicker
            return _kept(kept, path)
        vectors = _read(path, limit, progress, keep_markers)
        if _is_mapped(vectors.vectors):
            return vectors
        vectors.save(kept, "safetensors")
    return replace(_kept(kept, path), report=vectors.report)


def _read(path: Path, limit: int | None, progress: Progress, keep_markers: bool) -> WordVectors:
    vectors = WordVectors.load(
        path, limit=limit, lowercase=True, keep_markers=keep_markers, progress=progress
    )
    return replace(vectors, subwords=None)


def _kept(kept: Path, path: Path) -> WordVectors:
    try:
        return WordVectors.load(kept, lowercase=False)
    except BilexError as error:
        raise BilexError(
            f"{kept}: what was kept of {path} is damaged; remove that folder and run again."
        ) from error


def _fingerprint(path: Path, limit: int | None, keep_markers: bool) -> str:
    files = [path / CONFIG] if path.is_dir() else [path]
    if path.suffix == ".npy":
        files += [other for suffix in WORD_LIST_SUFFIXES if (other := path.with_suffix(suffix)).is_file()]
    try:
        seen = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return hashlib.sha256(
        json.dumps([_CONTENT_VERSION, limit, seen, *([] if keep_markers else ["no markers"])]).encode()
    ).hexdigest()[:16]


def _is_mapped(matrix: Matrix) -> bool:
    """Whether a matrix's numbers lie in a file, where all processes share them."""
    base: object = matrix.stored if isinstance(matrix, StoredRows) else matrix
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap)
