"""Feed the readers of word vectors damaged and random input; only `BilexError` may come out.

    python tools/fuzz_vectors.py [--inputs 1000000] [--seed 0]

Every input is a small valid file of one of the formats, changed in a few places, or random bytes, read
in this process: as text, word2vec binary, fastText .bin, npy with its word list, packed text, a
safetensors folder, or whatever the sniffer takes it for. An input fails the run if its reader raises
anything but `BilexError`, warns, takes more than two seconds of processor time, asks for more than
2 GB, or returns vectors that break a promise (finite, not zero, each word once, a report that adds up).
The failing input is printed.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import io
import lzma
import random
import resource
import signal
import struct
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bilex.errors import BilexError
from bilex.vectors import Subwords, WordVectors, binary, fasttext, folder, npy, text
from bilex.vectors.options import LoadOptions
from bilex.vectors.sniff import sniff_source
from bilex.vectors.source import memory_source
from fuzzing import check_sentence, guard_memory, memory_folder, mutated, ring, time_limit

TEXTS = (
    b"3 2\nthe 0.1 -0.25\nNew York 1e-05 3\n\xd0\xba\xd0\xbe\xd1\x82 .5 5.\n",
    b"a 1 2 3\nb\t4\t5\t6 \r\nc 7 8 9",
    b"\xef\xbb\xbf2 1\nx 0.123456789012345678901234\ny -1E+3\n",
    b"4 2\na 1 2\nA 3 4\na 5 6\nz 0 0\n",
    b"\n".join(b"w%d " % i + b" ".join(b"%.4f" % (i * j) for j in range(1, 9)) for i in range(12)) + b"\n",
)
TOKENS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"-", b".", b"1_0", b"0x1p3", b"999999999999", b"-0"),
    *(
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"65537",
        b"1000000000000 300\n",
        b"e",
        b"2 2\n",
    ),
)
OPTIONS = (
    LoadOptions(),
    LoadOptions(limit=1),
    LoadOptions(lowercase=True),
    LoadOptions(encoding_errors="replace"),
    LoadOptions(limit=3, lowercase=True, encoding_errors="ignore"),
)

Reader = Callable[[bytes, LoadOptions, random.Random], WordVectors]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print how many inputs each reader took and refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    read, refused = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as scratch:
        targets = _targets(Path(scratch))
        for reader, seeds, _ in targets.values():
            with contextlib.suppress(BilexError):
                reader(seeds[0], LoadOptions(), random.Random(0))  # compiles before the clock starts
        start, before = time.perf_counter(), guard_memory()
        signal.signal(signal.SIGPROF, ring)
        warnings.simplefilter("error")
        for number in range(options.inputs):
            rng = random.Random(f"{options.seed}/{number}")
            name = rng.choices(list(targets), [weight for _, _, weight in targets.values()])[0]
            reader, seeds, _ = targets[name]
            content = mutated(rng, seeds, TOKENS)
            try:
                _try(reader, content, rng, check_rows="folder" not in name)
                read[name] += 1
            except BilexError as error:
                refused[name] += 1
                check_sentence(str(error))
            except BaseException:
                print(f"input {number} of seed {options.seed}, reader {name}:\n{content!r}")
                raise
    seconds = time.perf_counter() - start
    rise = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    for name in targets:
        total = read[name] + refused[name]
        print(f"{name:14} {total:9,} inputs: {read[name]:9,} read, {refused[name]:9,} refused")
    print(f"{options.inputs:,} inputs in {seconds:.0f} s, no failure; memory rose by {rise:.0f} MB")
    return 0


def _try(reader: Reader, content: bytes, rng: random.Random, *, check_rows: bool) -> None:
    with time_limit():
        vectors = reader(content, rng.choice(OPTIONS), rng)
    report = vectors.report
    assert report is not None
    assert len(vectors) == report.kept == len(set(vectors.index_to_key)) > 0
    assert vectors.vectors.dtype == np.float32
    left_out = sum(
        tally.count for tally in (report.broken, report.duplicates, report.not_finite, report.zero)
    )
    assert report.entries == report.kept + left_out + report.merged
    report.sentences()
    if check_rows:
        rows = np.asarray(vectors.vectors)
        assert np.isfinite(rows).all()
        assert rows.any(axis=1).all()


def _targets(scratch: Path) -> dict[str, tuple[Reader, tuple[bytes, ...], int]]:
    """The readers, the seeds of each, and how often it is chosen."""
    floats = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    subwords = Subwords(floats, 1, 3).followed_by(floats[0]).followed_by(None)
    words = WordVectors(["a", "b\u00fc", "c"], floats, ("center", "unit"), subwords)
    words.save(scratch / "w.bin")
    word2vec = (scratch / "w.bin").read_bytes()
    fasttexts = tuple(_small_fasttext(longest) for longest in (0, 4))
    matrices = tuple(
        _npy(array) for array in (floats, floats.astype(np.float16), np.asfortranarray(floats * 2.0))
    )
    packed, mapped = _Folder(scratch / "int8", words, "int8"), _Folder(scratch / "float32", words, "float32")
    everything = (*TEXTS, word2vec, *fasttexts, *matrices, gzip.compress(TEXTS[0]))
    return {
        "text": (_read_text, TEXTS, 36),
        "packed": (_read_packed, TEXTS, 8),
        "binary": (_read_binary, (word2vec, word2vec.replace(b"\n", b"", 2)), 16),
        "fasttext": (_read_fasttext, fasttexts, 14),
        "npy": (_read_npy, matrices, 12),
        "sniffed": (_read_sniffed, everything, 12),
        "int8 folder": (packed.read, (b"chosen by the reader",), 2),
        "float32 folder": (mapped.read, (b"chosen by the reader",), 2),
    }


def _read_text(content: bytes, options: LoadOptions, _rng: random.Random) -> WordVectors:
    return text.read(memory_source(content), options)


def _read_binary(content: bytes, options: LoadOptions, _rng: random.Random) -> WordVectors:
    return binary.read(memory_source(content), options)


def _read_fasttext(content: bytes, options: LoadOptions, _rng: random.Random) -> WordVectors:
    vectors = fasttext.parse(content, options, "memory")
    if vectors.subwords is not None:
        with contextlib.suppress(KeyError):
            vectors.subwords.vector("unknown")
    return vectors


def _read_npy(content: bytes, options: LoadOptions, rng: random.Random) -> WordVectors:
    words = b"a\nb\nc\n" if rng.random() < 0.5 else mutated(rng, (b"a\nb\nc\n", b"a\r\nA\r\nb"), TOKENS)
    return npy.parse(content, words, options, "memory", "memory")


def _read_packed(content: bytes, options: LoadOptions, rng: random.Random) -> WordVectors:
    packed = rng.choice(
        (gzip.compress(content, 1), bz2.compress(content, 1), lzma.compress(content, preset=0))
    )
    return text.read(
        memory_source(mutated(rng, (packed,), TOKENS) if rng.random() < 0.7 else packed), options
    )


def _read_sniffed(content: bytes, options: LoadOptions, rng: random.Random) -> WordVectors:
    source = memory_source(content)
    kind = sniff_source(source)
    if kind in ("text", "binary"):
        return text.read(source, options) if kind == "text" else binary.read(source, options)
    return (_read_npy if kind == "npy" else _read_fasttext)(content, options, rng)


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
            return folder.read(self.path, options)
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


if __name__ == "__main__":
    raise SystemExit(main())
