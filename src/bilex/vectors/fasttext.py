"""fastText's own .bin models: words, character n-grams and the matrix of both."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import Subwords, WordVectors, ngram_buckets
from bilex.vectors.formats import FASTTEXT_MAGIC
from bilex.vectors.reading import MAX_DIM, MAX_NGRAM, Collector, LoadOptions, LoadReport
from bilex.vectors.stored import FloatMatrix, mapped_file

_VERSIONS = (11, 12)
_ARGUMENTS = struct.Struct("<12id")
_SIZES = struct.Struct("<iiiqq")
_SUPERVISED = 3
_END_OF_SENTENCE = b"</s>"
_LONGEST_WORD = 1 << 16
_BLOCK_ROWS, _BLOCK_BYTES = 1024, 1 << 16  # of words at a time


class _Model(NamedTuple):
    """What the beginning of a .bin file says."""

    dim: int
    buckets: int
    shortest: int
    longest: int
    words: list[bytes]
    matrix_at: int


def read(path: Path, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read a .bin model: means of a word's own row and the rows of its n-grams, which stay on the disk."""
    content, name = mapped_file(path), str(path)
    try:
        model = _model(content, name)
        matrix = _matrix(content, model, name)
    except struct.error as error:
        raise _cut_off(name, len(content)) from error
    words = model.words[: options.limit]
    report = LoadReport(name, "entry", "fasttext")
    collector = Collector(report, model.dim, len(words), options)
    letters = np.cumsum([len(word) for word in words])
    start = 0
    with progress.task(f"reading {path.name}", len(words)) as task:
        while start < len(words):
            most = int(np.searchsorted(letters, letters[start] + _BLOCK_BYTES))
            block = words[start : min(most, start + _BLOCK_ROWS)]
            rows = _means(block, start, matrix, model)
            collector.add(block, rows, range(start + 1, start + 1 + len(block)))
            task.advance(len(block))
            start += len(block)
    vectors = collector.finish()
    if model.buckets and model.longest > 0:
        vectors.subwords = Subwords(matrix[len(model.words) :], model.shortest, model.longest)
    return vectors


def _cut_off(name: str, length: int) -> BilexError:
    return BilexError(f"{name}: is cut off after {length:,} bytes; copy or download it again.")


def _model(content: mmap.mmap, name: str) -> _Model:
    if content[:4] != FASTTEXT_MAGIC:
        raise BilexError(f"{name}: is not a fastText .bin model; for word2vec's binary use format binary.")
    (version,) = struct.unpack_from("<i", content, 4)
    if version not in _VERSIONS:
        raise BilexError(f"{name}: has fastText's version {version}; only 11 and 12 can be read.")
    arguments = _ARGUMENTS.unpack_from(content, 8)
    dim, kind, buckets, shortest, longest = arguments[0], arguments[7], *arguments[8:11]
    if version == 11 and kind == _SUPERVISED:
        longest = 0
    words, at = _dictionary(content, 8 + _ARGUMENTS.size, name)
    if not 0 < dim <= MAX_DIM or buckets < 0 or not 0 <= longest <= MAX_NGRAM:
        raise BilexError(f"{name}: its settings (dim {dim}, bucket {buckets}, maxn {longest}) make no sense.")
    return _Model(dim, buckets, shortest, longest, words, at)


def _dictionary(content: mmap.mmap, at: int, name: str) -> tuple[list[bytes], int]:
    """The words (labels left out) and where the dictionary ends."""
    size, count, labels, _tokens, pruned = _SIZES.unpack_from(content, at)
    at += _SIZES.size
    if count < 1 or labels < 0 or size != count + labels:
        raise BilexError(f"{name}: its dictionary says {size} entries, {count} words and {labels} labels.")
    if pruned >= 0:
        raise BilexError(f"{name}: is a pruned model, as only quantised (.ftz) ones are; use the .bin model.")
    words = []
    for entry in range(size):
        end = content.find(b"\0", at, at + _LONGEST_WORD)
        if end < 0 or end + 10 > len(content):
            raise _cut_off(name, len(content))
        if entry < count:
            words.append(content[at:end])
        at = end + 10
    return words, at


def _matrix(content: mmap.mmap, model: _Model, name: str) -> FloatMatrix:
    """The rows of the words and of the n-gram buckets, without a copy."""
    quantised, rows, columns = struct.unpack_from("<?qq", content, model.matrix_at)
    if quantised:
        raise BilexError(f"{name}: is a quantised (.ftz) model, which cannot be read; use the .bin model.")
    used_rows = len(model.words) + (model.buckets if model.longest > 0 else 0)
    if columns != model.dim or rows < used_rows:
        raise BilexError(
            f"{name}: its matrix of {rows:,} × {columns:,} does not fit {len(model.words):,} words, "
            f"{model.buckets:,} buckets and dimension {model.dim}; the file is damaged."
        )
    start = model.matrix_at + 17
    if len(content) - start < 4 * used_rows * columns:
        raise _cut_off(name, len(content))
    return np.frombuffer(content, "<f4", used_rows * columns, start).reshape(used_rows, columns)


def _means(words: list[bytes], first: int, matrix: FloatMatrix, model: _Model) -> FloatMatrix:
    """The vectors of consecutive words of the dictionary."""
    from bilex.vectors.kernels import mean_rows

    buckets = len(matrix) - len(model.words)
    rows, counts = ngram_buckets(words, model.shortest, model.longest, buckets)
    if _END_OF_SENTENCE in words:  # which has no n-grams
        place = words.index(_END_OF_SENTENCE)
        rows = np.delete(rows, slice(counts[:place].sum(), counts[: place + 1].sum()))
        counts[place] = 0
    own = np.arange(first, first + len(words))
    chosen = np.insert(rows + len(model.words), np.cumsum(counts) - counts, own)
    means: FloatMatrix = mean_rows(matrix, chosen, np.cumsum(counts + 1))
    return means
