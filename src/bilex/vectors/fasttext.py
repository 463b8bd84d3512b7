"""fastText's character n-grams, which give vectors to words outside a vocabulary, and its .bin models."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.formats import FASTTEXT_MAGIC, MAX_DIM, MAX_NGRAM, Collector, LoadOptions, LoadReport
from bilex.vectors.stored import FloatMatrix, Matrix, mapped_file

_VERSIONS = (11, 12)
_ARGUMENTS = struct.Struct("<12id")
_SIZES = struct.Struct("<iiiqq")
_SHAPE = struct.Struct("<?qq")
_SUPERVISED = 3
_END_OF_SENTENCE = b"</s>"
_LONGEST_WORD = 1 << 16
_BLOCK_ROWS, _BLOCK_BYTES = 1024, 1 << 16  # of words at a time


@dataclass(frozen=True, eq=False)
class Subwords:
    """One vector per hash bucket of character n-grams; the mean of a word's n-grams is its vector.

    Args:
        rows: The vectors of the buckets. They may be in a read-only memory map.
        shortest: The fewest characters of an n-gram ("minn").
        longest: The most ("maxn"); the marks "<" and ">" at the ends of a word count as characters.
        means: The preprocessing to repeat on each vector, in order: None to make it of length 1
            ("unit"), else the vector to take off ("center"; the mean of the vocabulary).
    """

    rows: Matrix
    shortest: int
    longest: int
    means: tuple[npt.NDArray[np.float32] | None, ...] = ()

    def vector(self, word: str) -> npt.NDArray[np.float32]:
        """The vector of `word` from its n-grams alone, preprocessed as the vocabulary was.

        Raises:
            KeyError: The word is too short to have an n-gram, or its vector is zero or not finite.
        """
        encoded = word.encode("utf-8", "replace")
        buckets, _ = ngram_buckets([encoded], self.shortest, self.longest, len(self.rows))
        if not len(buckets):
            raise KeyError(word)
        with np.errstate(invalid="ignore", over="ignore"):  # rows that are not finite are found below
            vector = np.asarray(self.rows[buckets]).mean(axis=0, dtype=np.float64).astype(np.float32)
        if not np.isfinite(vector).all():
            raise KeyError(word)
        for mean in self.means:
            length = np.float32(np.linalg.norm(vector.astype(np.float64)))
            if mean is None and length == 0:
                raise KeyError(word)
            vector = vector / length if mean is None else vector - mean
        return np.asarray(vector, np.float32)


def ngram_buckets(
    words: Sequence[bytes], shortest: int, longest: int, buckets: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The hash buckets of the character n-grams of each "<word>", in fastText's order, and how many each has.

    Characters are those of UTF-8: a byte 10xxxxxx continues the one before. The marks alone are no n-gram.
    The hash is FNV-1a over the bytes taken as signed, as fastText does by its `int8_t`. All n-grams grow
    together, by one byte at a time.
    """
    lengths = np.array([len(word) + 2 for word in words])
    data = np.frombuffer(b"".join(b"<%b>" % word for word in words), np.uint8)
    begins = np.append(data & 0xC0 != 0x80, True)  # whether a character begins there, or the last one ended
    signed, begun = data.astype(np.int8).astype(np.uint32), begins.astype(np.int32)
    start = np.flatnonzero(begins[:-1] & (longest > 0) & (buckets > 0)).astype(np.int32)
    end = np.repeat(np.cumsum(lengths, dtype=np.int32), lengths)[start]
    at, characters = start, np.zeros_like(start)
    hashes = np.full(len(start), 2166136261, np.uint32)
    found = [(start[:0], hashes[:0])]
    while len(start):
        hashes = (hashes ^ signed[at]) * np.uint32(16777619)
        characters, at = characters + begun[at], at + 1
        whole, last = begins[at], at == end
        kept = whole & (characters >= shortest)
        if shortest < 2:
            kept &= (characters > 1) | ~(last | np.isin(start, np.cumsum(lengths) - lengths))
        found.append((start[kept], hashes[kept]))
        grows = ~last & ~(whole & (characters == longest))
        start, end, at = start[grows], end[grows], at[grows]
        characters, hashes = characters[grows], hashes[grows]
    starts, hashed = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(starts, kind="stable")
    of_word = np.repeat(np.arange(len(words)), lengths)[starts]
    return hashed[order].astype(np.int64) % max(buckets, 1), np.bincount(of_word, minlength=len(words))


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
