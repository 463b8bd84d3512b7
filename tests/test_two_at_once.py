"""Two processes, or two threads, that want the same folder: one waits or is refused by name."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bilex import C1, BilexError
from bilex.cli import run
from bilex.core.files import atomic_file, atomic_folder
from bilex.core.locks import LOCK, exclusive_lock, hidden_name, try_lock
from planted import planted


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


_HOLDER = """
import sys, time
from bilex.core.locks import exclusive_lock
with exclusive_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_by_name_and_a_dead_one_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state"
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    with (
        pytest.raises(BilexError, match=rf"state: is in use by another process \({other.pid}\)"),
        exclusive_lock(path),
    ):
        pytest.fail("both use it")
    other.kill()
    other.wait()
    assert len(names(path.parent)) == 1  # its lock
    with exclusive_lock(path):
        assert len(names(path.parent)) == 1
    assert names(tmp_path / "deep") == []


def test_a_lock_leaves_nothing_behind_and_works_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name in ("x", ""):
        with (
            exclusive_lock(tmp_path / "real" / name),
            pytest.raises(BilexError, match="is in use"),
            exclusive_lock(tmp_path / "link" / name),
        ):
            pytest.fail("both use it")
    with exclusive_lock(tmp_path / "a" / "b" / "c"):
        assert (tmp_path / "a" / "b").is_dir()
    assert names(tmp_path) == ["link", "real"] and names(tmp_path / "real") == []


def test_two_fits_never_share_a_checkpoint(tmp_path: Path) -> None:
    world = planted(200, 10)
    data = world.source, world.target, world.pairs(0, 50)
    with exclusive_lock(tmp_path / "state"), pytest.raises(BilexError, match="state: is in use"):
        C1(device="cpu", iterations=1, updates=1).fit(*data, checkpoint=tmp_path / "state")
    C1(device="cpu", iterations=1, updates=1).fit(*data, checkpoint=tmp_path / "state")
    assert names(tmp_path) == ["state"]


def test_two_commands_never_write_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world = planted(200, 10)
    world.source.save("a.vec")
    world.target.save("b.vec")
    Path("seeds.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in world.pairs(0, 60).pairs))
    line = ["align", "a.vec", "b.vec", "--seeds", "seeds.tsv", "-o", "model", "--method", "procrustes"]
    with exclusive_lock("model"):
        assert run(line) == 2
    assert "model: is in use by another process" in capsys.readouterr().err
    assert run(line) == 0
    assert names(tmp_path) == ["a.vec", "b.vec", "model", "seeds.tsv"]


def write(path: Path, number: int, start: threading.Barrier | None = None) -> None:
    with atomic_folder(path, own_files=lambda folder: ["a", "b"]) as folder:
        for name in "ab":
            (folder / name).write_text(f"{number}")
        if start is not None:
            start.wait()


def test_writers_that_finish_together_leave_one_whole_folder(tmp_path: Path) -> None:
    for first in ("none", "an earlier one"):
        path = tmp_path / first
        if first != "none":
            write(path, 9)
        start = threading.Barrier(4)
        writers = [threading.Thread(target=write, args=(path, number, start)) for number in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert (path / "a").read_text() == (path / "b").read_text() != "9"
    assert names(tmp_path) == ["an earlier one", "none"]


def _write_often(path: str, number: int) -> None:
    for _ in range(20):
        write(Path(path), number)


def test_processes_that_write_one_folder_never_mix(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn" if os.name == "nt" else "fork")
    path = tmp_path / "folder"
    writers = [context.Process(target=_write_often, args=(str(path), number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert (path / "a").read_text() == (path / "b").read_text()
    assert names(tmp_path) == ["folder"]


def test_a_new_temporary_waits_for_a_writer_that_looks_at_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its lock, the next writer would take it for one of a dead process and remove it."""
    monkeypatch.setattr("secrets.token_hex", lambda count: "0" * 8)
    lock = tmp_path / f"{hidden_name(tmp_path / 'new')}00000000{LOCK}"
    looking = threading.Event()

    def look() -> None:
        with try_lock(lock):
            looking.set()
            time.sleep(0.1)

    other = threading.Thread(target=look)
    other.start()
    looking.wait()
    with atomic_file(tmp_path / "new") as temporary:
        other.join()
        with try_lock(lock) as free:
            assert free is False, "the writer holds it"
        temporary.write_text("whole")
    assert (tmp_path / "new").read_text() == "whole" and names(tmp_path) == ["new"]
