"""The formats of word vectors: recognised by what a file holds, read and written; what all readers share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import check_input, restore
from bilex.core.progress import SILENT, Progress
from bilex.core.reading import PACKED_SUFFIXES, UTF16, ZIP, FileReport, Source, open_source
from bilex.vectors.core import WordVectors
from bilex.vectors.stored import FloatMatrix, row_blocks

FORMATS = ("text", "binary", "fasttext", "npy", "safetensors")
WORD_LIST_SUFFIXES = (".txt", ".words", ".vocab")
FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
_NPY_MAGIC = b"\x93NUMPY"
_BY_SUFFIX = {".vec": "text", ".txt": "text", ".bin": "binary", ".npy": "npy", "": "safetensors"}
_HEADER = re.compile(rb"\s*\d+[ \t]+\d+[ \t\r]*\n")
_ENDS_IN_NUMBER = re.compile(rb"[ \t][-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t\r]*$")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LINES = 5
_PICKLE = "a Python pickle, such as gensim's save() writes; use gensim's save_word2vec_format instead"
_UNREADABLE = {
    ZIP: "a zip or npz archive; take out the matrix as .npy with a word list beside it",
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), _PICKLE),
    **dict.fromkeys(UTF16, "UTF-16 text; convert it to UTF-8"),
    b"\x89HDF": "an HDF5 file; write its vectors as text or .npy instead",
}
EncodingErrors = Literal["strict", "replace", "ignore"]

NO_VECTOR = "broken"
MAX_DIM = 65536
MAX_NGRAM = 255
_GROWTH = 1.1
# What trainers and tokenizers put among the words: ends of sentences, unknown words, padding, masks.
_MARKERS = """
    </s> <s> <unk> <UNK> <unknown> <UNKNOWN> <pad> <PAD> <mask> <MASK> <bos> <BOS> <eos> <EOS> <cls> <CLS>
    <sep> <SEP> [UNK] [PAD] [MASK] [CLS] [SEP] [BOS] [EOS] <|endoftext|> <|startoftext|> <|padding|>
    UNK *UNK* *unknown* _UNK_ _unk_ __UNK__ __unk__ -UNK-
"""
MARKERS = frozenset(_MARKERS.split())


def sniff(source: Source) -> str:
    """The format of an opened file, from its first bytes: "text", "binary", "fasttext" or "npy"."""
    head = source.head
    for start, what in _UNREADABLE.items():
        if head.startswith(start):
            raise BilexError(f"{source.name}: is {what}.")
    if head[8:10] == b'{"':
        raise BilexError(f"{source.name}: is a safetensors file; give the folder that holds it.")
    for kind, start in (("npy", _NPY_MAGIC), ("fasttext", FASTTEXT_MAGIC)):
        if head.startswith(start) and source.compression:
            raise BilexError(f"{source.name}: is a {kind} file inside {source.compression}; unpack it first.")
        if head.startswith(start):
            return kind
    return "binary" if _is_word2vec_binary(head) else "text"


def _is_word2vec_binary(head: bytes) -> bool:
    """Whether a header of two numbers is followed by something that is no text.

    A text file shows itself by a line that ends in a number, which bytes of floats practically
    never do; a broken text file by having no control bytes.
    """
    header = _HEADER.match(head)
    if header is None:
        return False
    body = head[header.end() :]
    if any(_ENDS_IN_NUMBER.search(line[-64:]) for line in body.split(b"\n", _LINES)[:_LINES]):
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_off = error.start >= len(body) - 3 and len(body) > 3
        return not cut_off or bool(_CONTROL.search(body))
    return bool(_CONTROL.search(body))


def load(
    path: Path, options: LoadOptions, format: str | None = None, progress: Progress = SILENT
) -> WordVectors:
    """Read word vectors; see `WordVectors.load`."""
    from bilex.vectors import fasttext, folder, npy, word2vec

    if format is not None and format not in FORMATS:
        raise BilexError(f"format '{format}' is not known; use {', '.join(FORMATS)}.")
    restore(path)
    if not path.exists():
        raise BilexError(f"{path}: there is no such file; check the name.")
    check_input(path)
    kind = format or ("safetensors" if path.is_dir() else None)
    if kind in (None, "text", "binary"):
        with open_source(path) as source:
            kind = kind or sniff(source)
            if kind in ("text", "binary"):
                reader = word2vec.read_text if kind == "text" else word2vec.read_binary
                return reader(source, options, progress)
    readers = {"fasttext": fasttext.read, "npy": npy.read, "safetensors": folder.read}
    return readers[str(kind)](path, options, progress)


def save(vectors: WordVectors, path: Path, format: str | None = None, dtype: str = "float32") -> None:
    """Write word vectors; see `WordVectors.save`."""
    from bilex.vectors import folder, npy, word2vec

    kind = format or format_of_name(path)
    if kind == "safetensors":
        others: dict[str, Any] = {"preprocessing": vectors.preprocessing, "subwords": vectors.subwords}
        blocks = row_blocks(vectors.vectors)
        folder.write_blocks(path, vectors.index_to_key, vectors.dim, blocks, dtype=dtype, **others)
    elif dtype != "float32":
        raise BilexError(f"{path}: dtype {dtype} needs the safetensors format; {kind} holds float32.")
    elif kind in ("text", "binary"):
        word2vec.write(vectors, path, binary=kind == "binary")
    elif kind == "npy":
        npy.write(vectors, path)
    else:
        raise BilexError(f"{path}: format '{kind}' cannot be written; use text, binary, npy or safetensors.")


def files_written(path: Path, format: str | None = None) -> list[Path]:
    """The files, or the folder, that `save` would write."""
    lists = [path.with_suffix(WORD_LIST_SUFFIXES[0])] if (format or format_of_name(path)) == "npy" else []
    return [path, *lists]


def files_read(path: Path) -> list[Path]:
    """The files that `load` may read for a path."""
    lists = [path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES] if path.suffix == ".npy" else []
    return [path, *(other for other in lists if other.exists())]


def format_of_name(path: Path) -> str:
    """The format that the suffix of a file to be written means; an error if it means none."""
    suffixes = [suffix.lower() for suffix in path.suffixes] or [""]
    packed = suffixes[-1] in PACKED_SUFFIXES
    kind = _BY_SUFFIX.get(suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1])
    if kind is None or (packed and kind != "text"):
        raise BilexError(
            f"{path}: its suffix names no format; use .vec, .txt (both also with .gz, .bz2 or .xz), .bin, "
            ".npy, or none for a safetensors folder."
        )
    return kind


@dataclass(frozen=True)
class LoadOptions:
    """How to read; see `WordVectors.load`."""

    limit: int | None = None
    lowercase: bool = False
    encoding_errors: EncodingErrors = "strict"
    verify: bool = True
    keep_markers: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise BilexError(f"limit is {self.limit}; it must be at least 1, or None for every word.")
        if self.encoding_errors not in ("strict", "replace", "ignore"):
            raise BilexError(f"encoding_errors is '{self.encoding_errors}'; use strict, replace or ignore.")

    def keep_all(self, words: list[str]) -> bool:
        """Whether each of these words stays, and stays as it is."""
        distinct = set(words)
        as_they_are = not self.lowercase or all(word == word.lower() for word in words)
        markers = set() if self.keep_markers else distinct & MARKERS
        return as_they_are and len(distinct) == len(words) and "" not in distinct and not markers


@dataclass
class LoadReport(FileReport):
    """What a reader of word vectors found in a file, left out or changed.

    Attributes:
        kept: How many words have a vector in the result.
        markers: Entries that are no words but markers of a trainer, such as "</s>"; left out.
        merged: Entries left out because lower-casing made their word one that had come before.
    """

    kept: int = 0
    markers: int = 0
    merged: int = 0

    def sentences(self) -> list[str]:
        """One sentence for each thing worth a warning; none for a clean file."""
        words = "1 word was" if self.merged == 1 else f"{self.merged:,} words were"
        merged = [f"{self.source}: {words} merged into an earlier word by lower-casing."]
        return super().sentences() + merged * bool(self.merged)


class Collector:
    """Takes words and rows block by block; keeps the first good vector of each word.

    The matrix grows in place, so that at no time a second copy of it is needed. `limit` is how many entries
    of the file to take, not counting broken ones.
    """

    def __init__(self, report: LoadReport, dim: int, options: LoadOptions, limit: int | None = None) -> None:
        self.report, self.dim, self.remaining, self._options = report, dim, limit, options
        self._words: dict[str, None] = {}  # in order
        self._spelt: set[str] = set()  # as they were in the file, if they are lower-cased
        self._matrix: FloatMatrix = np.empty((0, dim), np.float32)

    def add(self, words: Sequence[bytes | str], rows: FloatMatrix, places: Sequence[int]) -> None:
        """Take the next entries of the file, at most `remaining`, with their numbers from 1.

        Bytes are decoded; an empty word makes its entry a broken one.
        """
        self.report.entries += len(words)
        self.remaining = None if self.remaining is None else self.remaining - len(words)
        finite: list[bool] = np.asarray(np.isfinite(rows).all(axis=1)).tolist()
        nonzero: list[bool] = np.asarray((rows != 0).any(axis=1)).tolist()
        entries = enumerate(zip(words, finite, nonzero, places, strict=True))
        kept = [index for index, entry in entries if self._wanted(*entry)]
        end = len(self._words)
        if end > len(self._matrix):
            # ndarray.resize lets the C library enlarge the memory where it is, without a copy.
            self._matrix.resize((max(end, int(len(self._matrix) * _GROWTH)), self.dim), refcheck=False)
        self._matrix[end - len(kept) : end] = rows if len(kept) == len(rows) else rows[kept]

    def _wanted(self, given: bytes | str, finite: bool, nonzero: bool, place: int) -> bool:
        """Whether an entry goes into the matrix; if not, the report says why."""
        report, lowercase = self.report, self._options.lowercase
        try:
            word = given if isinstance(given, str) else given.decode("utf-8", self._options.encoding_errors)
        except UnicodeDecodeError as error:
            where = f"{'in' if report.unit == 'line' else 'of'} {report.unit} {place:,}"
            raise BilexError(
                f"{report.source}: the word {where} is not UTF-8; convert the file to UTF-8, or read it "
                'with encoding_errors="replace" or "ignore".'
            ) from error
        key = word.lower() if lowercase else word
        if not word:
            report.leave_out(place, NO_VECTOR)
        elif not finite:
            report.leave_out(place, "NaN or infinity")
        elif not nonzero:
            report.leave_out(place, "only zeros")
        elif word in MARKERS and not self._options.keep_markers:
            report.markers += 1
        elif key not in self._words:
            self._words[key] = None
            if lowercase:
                self._spelt.add(word)
            return True
        elif lowercase and word not in self._spelt:
            report.merged += 1
            self._spelt.add(word)
        else:
            report.leave_out(place, "the word is repeated")
        return False

    def finish(self) -> WordVectors:
        """The words and vectors gathered; an error if most entries were broken, or nothing was left."""
        report, broken = self.report, self.report.left_out[NO_VECTOR]
        report.kept = len(self._words)
        if broken * 2 > report.entries:
            raise BilexError(
                f"{report.source}: {broken:,} of {report.entries:,} {report.units} do not hold a word "
                f"and {self.dim} numbers, the first is {report.unit} {report.places[NO_VECTOR][0]}; check "
                "that this is a file of word vectors."
            )
        if not self._words:
            raise BilexError(f"{report.source}: holds no usable vector (all are zero, NaN or infinite).")
        self._spelt.clear()
        self._matrix.resize((len(self._words), self.dim), refcheck=False)
        return WordVectors(list(self._words), self._matrix, report=report)


def check_words(words: list[str], path: Path, forbidden: str) -> None:
    """Refuse words that a format could not give back: those that match a pattern or are not UTF-8."""
    unfit = re.compile(rf"{forbidden}|[\ud800-\udfff]")
    for word in words:
        if unfit.search(word):
            raise BilexError(
                f"{path}: the word {word!r} cannot be written in this format; "
                "save a safetensors folder instead."
            )
