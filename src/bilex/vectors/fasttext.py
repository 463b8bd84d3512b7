"""fastText's own .bin models: words, character n-grams and the matrix of both."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import Subwords, WordVectors, ngram_buckets
from bilex.vectors.formats import FASTTEXT_MAGIC, MAX_DIM, MAX_NGRAM, Collector, LoadOptions, LoadReport
from bilex.vectors.stored import FloatMatrix, mapped_file

_VERSIONS = (11, 12)
_ARGUMENTS = struct.Struct("<12id")
_SIZES = struct.Struct("<iiiqq")
_SHAPE = struct.Struct("<?qq")
_SUPERVISED = 3
_END_OF_SENTENCE = b"</s>"
_LONGEST_WORD = 1 << 16
_BLOCK_ROWS, _BLOCK_BYTES = 1024, 1 << 16  # of words at a time


def read(path: Path, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read a .bin model: means of a word's own row and the rows of its n-grams, which stay on the disk."""
    content, name = mapped_file(path), str(path)
    try:
        words, matrix, shortest, longest = _model(content, name)
    except struct.error as error:
        raise _cut_off(name, len(content)) from error
    known, wanted = len(words), words[: options.limit]
    collector = Collector(LoadReport(name, "fasttext", "entry", "entries"), matrix.shape[1], options)
    letters = np.cumsum([len(word) for word in wanted])
    start = 0
    with progress.task(f"reading {path.name}", len(wanted)) as task:
        while start < len(wanted):
            most = int(np.searchsorted(letters, letters[start] + _BLOCK_BYTES))
            block = wanted[start : min(most, start + _BLOCK_ROWS)]
            ngrams, counts = ngram_buckets(block, shortest, longest, len(matrix) - known)
            rows = _means(block, start, ngrams + known, counts, matrix)
            collector.add(block, rows, range(start + 1, start + 1 + len(block)))
            task.advance(len(block))
            start += len(block)
    vectors = collector.finish()
    if len(matrix) > known:
        vectors.subwords = Subwords(matrix[known:], shortest, longest)
    return vectors


def _cut_off(name: str, length: int) -> BilexError:
    return BilexError(f"{name}: is cut off after {length:,} bytes; copy or download it again.")


def _model(content: mmap.mmap, name: str) -> tuple[list[bytes], FloatMatrix, int, int]:
    """The words, the rows of words and n-gram buckets (without a copy), and the lengths of n-grams."""
    if content[:4] != FASTTEXT_MAGIC:
        raise BilexError(f"{name}: is not a fastText .bin model; for word2vec's binary use format binary.")
    (version,) = struct.unpack_from("<i", content, 4)
    if version not in _VERSIONS:
        raise BilexError(f"{name}: has fastText's version {version}; only 11 and 12 can be read.")
    arguments = _ARGUMENTS.unpack_from(content, 8)
    dim, kind, buckets, shortest, longest = arguments[0], *arguments[7:11]
    if version == 11 and kind == _SUPERVISED:
        longest = 0
    words, at = _dictionary(content, 8 + _ARGUMENTS.size, name)
    if not 0 < dim <= MAX_DIM or buckets < 0 or not 0 <= longest <= MAX_NGRAM:
        raise BilexError(f"{name}: its settings (dim {dim}, bucket {buckets}, maxn {longest}) make no sense.")
    quantised, rows, columns = _SHAPE.unpack_from(content, at)
    if quantised:
        raise BilexError(f"{name}: is a quantised (.ftz) model, which cannot be read; use the .bin model.")
    used = len(words) + (buckets if longest > 0 else 0)
    if columns != dim or rows < used:
        raise BilexError(
            f"{name}: its matrix of {rows:,} × {columns:,} does not fit {len(words):,} words, "
            f"{buckets:,} buckets and dimension {dim}; the file is damaged."
        )
    at += _SHAPE.size
    if len(content) - at < 4 * used * dim:
        raise _cut_off(name, len(content))
    return words, np.frombuffer(content, "<f4", used * dim, at).reshape(used, dim), shortest, longest


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


def _means(
    words: list[bytes],
    first: int,
    ngrams: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    matrix: FloatMatrix,
) -> FloatMatrix:
    """The vectors of consecutive words of the dictionary, of which `first` is the first."""
    from scipy.sparse import csr_array

    if _END_OF_SENTENCE in words:  # which has no n-grams
        place = words.index(_END_OF_SENTENCE)
        ngrams = np.delete(ngrams, slice(counts[:place].sum(), counts[: place + 1].sum()))
        counts[place] = 0
    starts = np.cumsum(counts) - counts
    chosen = np.insert(ngrams, starts, np.arange(first, first + len(words)))
    ends = np.concatenate([[0], np.cumsum(counts + 1)])
    weights = csr_array((np.ones(len(chosen), np.float32), chosen, ends), (len(words), len(matrix)))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((weights @ matrix) / (counts + 1).astype(np.float32)[:, None])
