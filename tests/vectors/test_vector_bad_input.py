from __future__ import annotations

import errno
import gzip
import json
import os
import struct
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from bilex import BilexError
from bilex.vectors import WordVectors, folder

DATA = Path(__file__).parent / "data"


def refused(path: Path, says: str, **options: Any) -> None:
    """Loading `path` fails with one sentence that names it and says `says`."""
    with pytest.raises(BilexError, match=says) as caught:
        WordVectors.load(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.endswith(".")
    assert "\n" not in message


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(1).standard_normal((50, 6)).astype(np.float32)
    return WordVectors([f"word{i}" for i in range(50)], matrix)


def test_missing_empty_and_unreadable(tmp_path: Path) -> None:
    refused(tmp_path / "no.vec", "there is no such file")
    (tmp_path / "empty.vec").touch()
    refused(tmp_path / "empty.vec", "is empty")
    (tmp_path / "empty.npy").touch()
    refused(tmp_path / "empty.npy", "is empty")
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    refused(tmp_path / "empty.gz", "is empty")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "has no config.json")
    refused(tmp_path / "folder", "cannot be read", format="text")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    (tmp_path / "v.vec").write_text("a 1\n")
    (tmp_path / "v.vec").chmod(0)
    refused(tmp_path / "v.vec", "Permission denied")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_truncated_or_damaged_compression(tmp_path: Path, suffix: str, damage: str) -> None:
    matrix = np.random.default_rng(1).standard_normal((20_000, 6)).astype(np.float32)
    path = tmp_path / f"v.vec{suffix}"
    WordVectors([f"word{i}" for i in range(20_000)], matrix).save(path)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        middle = len(content) // 2
        content[middle : middle + 64] = bytes(byte ^ 0x55 for byte in content[middle : middle + 64])
    path.write_bytes(content)
    refused(path, r"data is cut off or damaged after [\d,]+ unpacked bytes; copy or download")


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_word2vec_binary(vectors: WordVectors, tmp_path: Path, keep: float) -> None:
    path = tmp_path / "v.bin"
    vectors.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep) - 1])
    refused(path, r"is cut off, it ends inside entry \d+ of 50")


def test_binary_headers_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    entry = b"w " + struct.pack("<3f", 1, 2, 3)
    path.write_bytes(b"1000000000000 3\n" + entry)
    refused(path, r"ends inside entry 2 of 1,000,000,000,000")
    path.write_bytes(b"1 900000000000\n" + entry)
    refused(path, "which no file of word vectors has")
    path.write_bytes(b"0 3\n" + entry)
    refused(path, "which no file of word vectors has")
    path.write_bytes(b"2 2\n" + b"x" * 100_000 + b"\0")
    refused(path, "entry 1 has no end of its word", format="binary")
    path.write_bytes(b"no header\n")
    refused(path, "does not begin with the number of words", format="binary")


def test_binary_word_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(b"2 1\na " + struct.pack("<f", 1e-30) + b"\nb\xff " + struct.pack("<f", 2e-30))
    refused(path, "the word of entry 2 is not UTF-8")
    assert WordVectors.load(path, encoding_errors="ignore").index_to_key == ["a", "b"]


def test_npy_problems(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.ones((3, 2), np.float32))
    refused(path, r"has no word list beside it.*v\.txt")
    words = tmp_path / "v.txt"
    words.write_text("a\nb\n")
    with pytest.raises(BilexError, match=r"v\.txt: has 2 words but .* has 3 rows"):
        WordVectors.load(path)
    words.write_bytes(b"a\nb\nc\xff\n")
    with pytest.raises(BilexError, match=r"v\.txt: line 3 is not UTF-8"):
        WordVectors.load(path)
    words.write_text("a\nb\nc\n")
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    refused(path, "is cut off")
    path.write_bytes(content[:20])
    refused(path, "is cut off or is no .npy file")
    np.save(path, np.ones(3))
    refused(path, "a matrix of floating-point numbers")
    np.save(path, np.array([[{}]], dtype=object), allow_pickle=True)
    refused(path, "is no .npy file of numbers")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK\x03\x04....", "zip"),
        (b"\x80\x04\x95", "pickle"),
        ("2 2\na 1 2\n".encode("utf-16"), "UTF-16"),
        (struct.pack("<Q", 60) + b'{"vectors":{"dtype"', "give the folder"),
        (gzip.compress(b"\x93NUMPY", mtime=0), "unpack it first"),
    ],
)
def test_strangers_are_named(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "v").write_bytes(content)
    refused(tmp_path / "v", says)


@pytest.fixture
def saved(vectors: WordVectors, tmp_path: Path) -> Path:
    vectors.save(tmp_path / "v")
    return tmp_path / "v"


def change_config(saved: Path, **changes: Any) -> None:
    path = saved / folder.CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_folder_from_a_newer_version(saved: Path) -> None:
    change_config(saved, version=99)
    refused(saved, "has format version 99, this bilex reads up to 2; install a newer bilex")


def test_folder_of_something_else(saved: Path) -> None:
    change_config(saved, format="other")
    refused(saved, "is not a folder of word vectors")


@pytest.mark.parametrize(
    "changes", [{"words": "x"}, {"version": 1}, {"preprocessing": ["magic"]}, {"dim": None}]
)
def test_folder_with_a_config_that_lacks_something(saved: Path, changes: dict[str, Any]) -> None:
    change_config(saved, **changes)
    refused(saved, "lacks something that belongs there")


def test_folder_whose_parts_do_not_fit(saved: Path) -> None:
    change_config(saved, dim=7)
    refused(saved, "was changed or damaged")
    refused(saved, "do not fit together", verify=False)
    (saved / "SHA256SUMS").write_text("# bilex-vectors\n" + "0" * 64 + "  config.json\n")
    refused(saved, "its checksums are not those of its files")
    (saved / "SHA256SUMS").unlink()
    refused(saved, "is missing or damaged")


def test_folder_with_damaged_parts(saved: Path) -> None:
    vocabulary = saved / folder.VOCABULARY
    original = vocabulary.read_bytes()
    vocabulary.write_bytes(original.replace(b"word1\n", b"word!\n"))
    refused(saved, "was changed or damaged")
    vocabulary.write_bytes(original)
    tensors = saved / folder.VECTORS
    tensors.write_bytes(tensors.read_bytes()[:-10])
    refused(saved, "was changed or damaged")
    with pytest.raises(BilexError, match="is cut off or damaged"):
        WordVectors.load(saved, verify=False)
    tensors.unlink()
    refused(saved, "cannot be read")


def test_settings_that_make_no_sense(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v.vec")
    for options, says in (
        ({"limit": 0}, "limit is 0"),
        ({"encoding_errors": "hope"}, "use strict, replace or ignore"),
        ({"format": "xls"}, "format 'xls' is not known"),
    ):
        with pytest.raises(BilexError, match=says):
            WordVectors.load(tmp_path / "v.vec", **options)
    with pytest.raises(BilexError, match="needs the safetensors format"):
        vectors.save(tmp_path / "x.vec", dtype="int8")
    with pytest.raises(BilexError, match="dtype 'int4' is not known"):
        vectors.save(tmp_path / "x", dtype="int4")
    with pytest.raises(BilexError, match="cannot be written; use text"):
        vectors.save(tmp_path / "x", format="fasttext")


def test_a_vector_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BilexError, match="the vector of 'b' holds NaN"):
        WordVectors(["a", "b"], np.array([[1], [np.inf]], np.float32)).save(tmp_path / "v")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.vec", "v.vec.gz", "v.bin", "v.npy", "v"])
def test_a_full_disk_leaves_nothing_behind(
    vectors: WordVectors, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_kwargs: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    if name == "v.npy":
        monkeypatch.setattr("bilex.vectors.npy.row_blocks", full)
    elif name == "v":
        monkeypatch.setattr("bilex.vectors.folder.write_matrix", full)
    else:
        monkeypatch.setattr("bilex.vectors.word2vec.row_blocks", full)
    with pytest.raises(BilexError, match="the disk is full"):
        vectors.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_packed_folder_with_a_damaged_scale(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v", dtype="int8")
    file = tmp_path / "v" / folder.VECTORS
    scales = np.full((50, 1), np.float32(3e38)).tobytes()
    content = file.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    start = 8 + int.from_bytes(content[:8], "little") + header["vectors.scales"]["data_offsets"][0]
    file.write_bytes(content[:start] + scales + content[start + len(scales) :])
    refused(tmp_path / "v", "was changed or damaged")
    with pytest.raises(BilexError, match="holds NaN or infinity, so it was damaged"):
        WordVectors.load(tmp_path / "v", verify=False)
