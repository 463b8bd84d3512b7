from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from bilex import BilexError
from bilex.core import files
from bilex.core.files import atomic_file, read_json, sha256, write_json, write_text


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def atomic_folder(path: Path) -> AbstractContextManager[Path]:
    return files.atomic_folder(path, own_files=everything)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "a.txt"
    with atomic_file(path) as temporary:
        temporary.write_text("ä")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_text() == "ä"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("trouble", [ValueError("x"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
@pytest.mark.parametrize("old", [None, "old"])
def test_trouble_leaves_no_file_and_keeps_the_old_one(
    tmp_path: Path, trouble: BaseException, old: str | None
) -> None:
    path = tmp_path / "a.txt"
    if old:
        path.write_text(old)
    with pytest.raises(type(trouble)), atomic_file(path) as temporary:
        temporary.write_text("half")
        raise trouble
    assert names(tmp_path) == (["a.txt"] if old else [])
    assert not old or path.read_text() == old


@pytest.mark.parametrize("trouble", [ValueError("x"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
@pytest.mark.parametrize("old", [None, "old"])
def test_trouble_leaves_no_folder_and_keeps_the_old_one(
    tmp_path: Path, trouble: BaseException, old: str | None
) -> None:
    path = tmp_path / "model"
    if old:
        path.mkdir()
        (path / "a").write_text(old)
    with pytest.raises(type(trouble)), atomic_folder(path) as temporary:
        (temporary / "a").write_text("half")
        raise trouble
    assert names(tmp_path) == (["model"] if old else [])
    assert not old or (path / "a").read_text() == old


def test_a_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for content in ("one", "two"):
        with atomic_folder(path) as temporary:
            (temporary / content).write_text(content)
    assert names(tmp_path) == ["model"]
    assert names(path) == ["two"]


@pytest.mark.parametrize("call", [1, 2], ids=["old one put aside", "new one put in its place"])
@pytest.mark.parametrize("trouble", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_trouble_between_the_two_renames_keeps_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException, call: int
) -> None:
    path = tmp_path / "model"
    path.mkdir()
    (path / "a").write_text("old")
    monkeypatch.setattr(files, "exchange", lambda one, other: False)
    real, calls = Path.replace, 0

    def replace(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == call:
            raise trouble
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    expected = BilexError if isinstance(trouble, OSError) else KeyboardInterrupt
    with pytest.raises(expected), atomic_folder(path) as temporary:
        (temporary / "a").write_text("new")
    assert calls >= call
    assert names(tmp_path) == ["model"]
    assert (path / "a").read_text() == "old"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_follow_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        write_text(tmp_path / "a.txt", "x")
        with atomic_folder(tmp_path / "model") as temporary:
            write_text(temporary / "card.md", "x")
            save_file({"a": np.zeros(3, np.float32)}, temporary / "a.safetensors")
            private = temporary / "inner"
            private.mkdir(mode=0o700)
            (private / "b").write_text("x")
            (private / "b").chmod(0o600)
    assert mode(tmp_path / "a.txt") == 0o666 & ~mask
    for name in ("card.md", "a.safetensors", "inner/b"):
        assert mode(tmp_path / "model" / name) == 0o666 & ~mask, name
    for name in ("", "inner"):
        assert mode(tmp_path / "model" / name) == 0o777 & ~mask, name


@pytest.mark.parametrize("writer", [atomic_file, atomic_folder])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_in_one_sentence(tmp_path: Path, writer: type, number: int) -> None:
    path = tmp_path / "out"
    with (
        pytest.raises(BilexError, match=r"out: the disk is full; .* free some space") as caught,
        writer(path),
    ):
        raise OSError(number, os.strerror(number))
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


def test_a_disk_that_refuses_safetensors_is_reported_too(tmp_path: Path) -> None:
    """safetensors raises its own error; a limit on file sizes stands in for the full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(BilexError, match=r"model: cannot be written \(.*large"):  # noqa: SIM117
            with atomic_folder(tmp_path / "model") as temporary:
                save_file({"a": np.zeros(5000, np.float32)}, temporary / "a.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == []


def test_a_full_disk_under_safetensors_is_reported(tmp_path: Path) -> None:
    from safetensors import SafetensorError

    with pytest.raises(BilexError, match="the disk is full"), atomic_folder(tmp_path / "model"):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    with pytest.raises(BilexError, match="cannot be written"), atomic_folder(tmp_path / "model"):
        raise SafetensorError("something else")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BilexError, match=r"file/a.txt: cannot be written"):
        write_text(tmp_path / "file" / "a.txt", "x")


def test_json_round_trip_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"word": "häät", "n": [1, 2.5, None]})
    assert read_json(path) == {"word": "häät", "n": [1, 2.5, None]}
    assert "häät" in path.read_text(encoding="utf-8")
    path.write_text("{")
    with pytest.raises(BilexError, match=r"a\.json: is not valid JSON"):
        read_json(path)
    with pytest.raises(BilexError, match=r"none\.json: cannot be read"):
        read_json(tmp_path / "none.json")
    for text in ("NaN", '{"a": -Infinity}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(BilexError, match="is not valid JSON"):
            read_json(path)
    write_json(path, {"loss": float("nan"), "n": np.float32(1.5), "rows": np.arange(2)})
    assert read_json(path) == {"loss": None, "n": 1.5, "rows": [0, 1]}
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BilexError, match="is not valid JSON"):
        read_json(path)


def test_sha256_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
