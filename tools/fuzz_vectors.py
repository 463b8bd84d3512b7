"""The readers of word vectors and of corpora as targets of `tools/fuzz_readers.py`.

Every input is a small valid file of one of the formats with some changes, or random bytes, read as
text, word2vec binary, fastText .bin, npy with its word list, packed text, a safetensors folder, or
whatever the sniffer takes it for; and as the text that `bilex vectors` learns from. What is read
must keep what is promised: vectors are finite and not zero, each word comes once, a report adds up.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT
from bilex.core.reading import FileReport
from bilex.corpus.preparing import read_texts
from bilex.corpus.tokens import Tokeniser
from bilex.vectors import Subwords, WordVectors
from bilex.vectors.formats import LoadOptions, load
from fuzzing import Target
from mutations import mutated, restructured

TEXTS = (
    b"3 2\nthe 0.1 -0.25\nNew York 1e-05 3\n\xd0\xba\xd0\xbe\xd1\x82 .5 5.\n",
    b"a 1 2 3\nb\t4\t5\t6 \r\nc 7 8 9",
    b"\xef\xbb\xbf2 1\nx 0.123456789012345678901234\ny -1E+3\n",
    b"4 2\na 1 2\nA 3 4\na 5 6\nz 0 0\n",
    b"\n".join(b"w%d " % i + b" ".join(b"%.4f" % (i * j) for j in range(1, 9)) for i in range(12)) + b"\n",
)
CORPORA = {
    "corpus.txt": (b"The dog's house, l'eau.\nNew York 3.5\n", "狗と猫 ภาษาไทย\n".encode(), b"a\r\nb\n\n"),
    "corpus.jsonl": (
        b'{"text": "The dog barks."}\n{"text": ["a b", "c"], "id": 3}\n\n{"other": 1}\n{"text": "x y"}\n',
    ),
}
TOKENS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"-", b".", b"1_0", b"0x1p3", b"999999999999", b"-0"),
    *(b" ", b"\t", b"\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"65537", b"1000000000000 300\n", b"e"),
    *(b"2 2\n", b"\xff\xfe", b"\xed\xa0\x80", b"'", b"\xe2\x80\x8d"),
)
OPTIONS = (
    LoadOptions(),
    LoadOptions(limit=1),
    LoadOptions(lowercase=True),
    LoadOptions(encoding_errors="replace"),
    LoadOptions(limit=3, lowercase=True, encoding_errors="ignore"),
)
_STRUCTURED = 0.3

Reader = Callable[[bytes, LoadOptions, random.Random], WordVectors]


class VectorTarget:
    """A reader of vectors with its valid inputs."""

    def __init__(self, name: str, reader: Reader, seeds: Sequence[bytes], *, decoded: bool = True) -> None:
        self.name, self.reader, self.seeds, self.decoded = name, reader, seeds, decoded
        self.content = b""
        with contextlib.suppress(BilexError):
            reader(seeds[0], LoadOptions(), random.Random(0))  # compiles what is compiled

    def make(self, rng: random.Random) -> Mapping[str, bytes]:
        """Change a valid input."""
        self.content = _changed(rng, self.seeds)
        return {"input": self.content}

    def read(self, rng: random.Random) -> None:
        """Read it and check what comes out."""
        vectors = self.reader(self.content, rng.choice(OPTIONS), rng)
        report = vectors.report
        assert report is not None
        assert len(vectors) == report.kept == len(set(vectors.index_to_key)) > 0
        assert vectors.vectors.dtype == np.float32
        left_out = report.left_out.total() + report.markers + report.merged
        assert report.entries == report.kept + left_out
        report.sentences()
        if self.decoded:
            rows = np.asarray(vectors.vectors)
            assert np.isfinite(rows).all()
            assert rows.any(axis=1).all()


class CorpusTarget:
    """Plain, packed or JSON Lines text, read and cut into words."""

    name = "corpus"

    def __init__(self, scratch: Path) -> None:
        self.folder = scratch
        self.path = scratch
        self.tokenisers = [Tokeniser("fr"), Tokeniser("en"), Tokeniser(tokenised=True)]

    def make(self, rng: random.Random) -> Mapping[str, bytes]:
        """Write a changed text."""
        name = rng.choice(list(CORPORA))
        content = _changed(rng, CORPORA[name])
        self.path = self.folder / name
        self.path.write_bytes(content)
        return {name: content}

    def read(self, rng: random.Random) -> None:
        """Read it and cut it into words."""
        report, tokeniser = FileReport(str(self.path)), rng.choice(self.tokenisers)
        with SILENT.task("reading") as task:
            for line in read_texts(self.path, rng.choice((None, None, None, "id")), report, task):
                assert all(token and token == token.strip() for token in tokeniser.tokens(line)), line
        assert all("\n" not in sentence for sentence in report.sentences())


def vector_targets(scratch: Path) -> list[Target]:
    """The readers, with valid inputs of each."""
    floats = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    subwords = Subwords(floats, 1, 3, (floats[0], None))
    words = WordVectors(["a", "b\u00fc", "c"], floats, ("center", "unit"), subwords)
    words.save(scratch / "w.bin")
    word2vec = (scratch / "w.bin").read_bytes()
    fasttexts = tuple(_small_fasttext(longest) for longest in (0, 4))
    matrices = tuple(
        _npy(array) for array in (floats, floats.astype(np.float16), np.asfortranarray(floats * 2.0))
    )
    packed, mapped = _Folder(scratch / "int8", words, "int8"), _Folder(scratch / "float32", words, "float32")
    everything = (*TEXTS, word2vec, *fasttexts, *matrices, gzip.compress(TEXTS[0]))
    chosen = (b"chosen by the reader",)
    return [
        VectorTarget("text", _reader(scratch, "text"), TEXTS),
        VectorTarget("packed text", _reader(scratch, "text", packed=True), TEXTS),
        VectorTarget("binary", _reader(scratch, "binary"), (word2vec, word2vec.replace(b"\n", b"", 2))),
        VectorTarget("fasttext", _reader(scratch, "fasttext"), fasttexts),
        VectorTarget("npy", _reader(scratch, "npy"), matrices),
        VectorTarget("sniffed vectors", _reader(scratch, None), everything),
        VectorTarget("int8 folder", packed.read, chosen, decoded=False),
        VectorTarget("float32 folder", mapped.read, chosen, decoded=False),
        CorpusTarget(scratch),
    ]


def _changed(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < _STRUCTURED:
        return restructured(rng, rng.choice(seeds))
    return mutated(rng, seeds, TOKENS)


def _reader(scratch: Path, kind: str | None, *, packed: bool = False) -> Reader:
    """Reads bytes as a file of a format, a matrix with a word list beside it; None for what it looks like."""

    def read(content: bytes, options: LoadOptions, rng: random.Random) -> WordVectors:
        path = scratch / "input.npy"
        for file in (path, path.with_suffix(".txt")):
            file.unlink(missing_ok=True)  # a mapped file is not written over
        words = b"a\nb\nc\n" if rng.random() < 0.5 else mutated(rng, (b"a\nb\nc\n", b"a\r\nA\r\nb"), TOKENS)
        path.with_suffix(".txt").write_bytes(words)
        path.write_bytes(_packed(content, rng) if packed else content)
        vectors = load(path, options, kind)
        if vectors.subwords is not None:
            with contextlib.suppress(KeyError):
                vectors.subwords.vector("unknown")
        return vectors

    return read


def _packed(content: bytes, rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.6:
        packed = gzip.compress(content, 1, mtime=0)
    else:
        packed = bz2.compress(content, 1) if kind < 0.9 else lzma.compress(content, preset=0)
    return mutated(rng, (packed,), TOKENS) if rng.random() < 0.7 else packed


class _Folder:
    """A safetensors folder of which one file at a time is changed."""

    def __init__(self, path: Path, words: WordVectors, dtype: str) -> None:
        self.path = path
        words.save(path, format="safetensors", dtype=dtype)
        self.files = {file.name: file.read_bytes() for file in sorted(self.path.iterdir())}

    def read(self, _content: bytes, options: LoadOptions, rng: random.Random) -> WordVectors:
        name = rng.choice(list(self.files))
        changed = mutated(rng, (self.files[name],), TOKENS)
        (self.path / name).write_bytes(changed)
        try:
            return load(self.path, options)
        finally:
            (self.path / name).write_bytes(self.files[name])


def _small_fasttext(longest: int) -> bytes:
    """A whole .bin model of three words and five buckets."""
    settings = struct.pack("<12id", 2, 5, 5, 1, 5, 1, 1, 2, 5, 2, longest, 100, 1e-4)
    dictionary = struct.pack("<iiiqq", 3, 3, 0, 10, -1)
    for word in (b"</s>", b"cat", "кот".encode()):
        dictionary += word + b"\0" + struct.pack("<qb", 3, 0)
    rows = 8 if longest else 3
    matrix = struct.pack("<?qq", False, rows, 2) + np.arange(1, 2 * rows + 1, dtype="<f4").tobytes()
    return struct.pack("<ii", 793712314, 12) + settings + dictionary + matrix


def _npy(array: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
