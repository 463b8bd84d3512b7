"""What is replaced, when, and what a killed process leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.core import files
from bilex.core.files import (
    atomic_file,
    atomic_folder,
    check_not_an_input,
    check_writable,
    read_json,
    write_text,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def a_is_ours(folder: Path) -> list[str]:
    return ["a"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    (path / "a").write_text("old")
    return path


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with atomic_folder(tmp_path / "model", own_files=lambda folder: ()) as temporary:
        (temporary / "a").write_text("new")
    assert names(tmp_path / "model") == ["a"]


def test_a_folder_of_somebody_else_is_never_replaced(model: Path) -> None:
    with (
        pytest.raises(BilexError, match=r"model: is a folder with other things in it \('a'\)"),
        atomic_folder(model, own_files=lambda folder: ()),
    ):
        pytest.fail("the block must not run")
    (model / "notes").mkdir()
    (model / "notes" / "thesis.txt").write_text("precious")
    with (
        pytest.raises(BilexError, match=r"holds 'notes/thesis.txt', which bilex did not write"),
        atomic_folder(model, own_files=a_is_ours),
    ):
        pytest.fail("the block must not run")
    assert (model / "notes" / "thesis.txt").read_text() == "precious"
    with (
        pytest.raises(BilexError, match="is a file, a folder is to be written"),
        atomic_folder(model / "a", own_files=a_is_ours),
    ):
        pytest.fail("the block must not run")
    assert (model / "a").read_text() == "old"


def test_what_is_put_into_a_folder_meanwhile_is_not_lost(model: Path) -> None:
    with pytest.raises(BilexError, match="holds 'notes'"), atomic_folder(model, own_files=a_is_ours) as new:
        (new / "a").write_text("new")
        (model / "notes").write_text("precious")
    assert (model / "a").read_text() == "old" and (model / "notes").read_text() == "precious"
    assert names(model.parent) == ["model"]


def test_a_link_stays_a_link_and_what_it_points_to_is_replaced(tmp_path: Path, model: Path) -> None:
    (tmp_path / "link").symlink_to("model")
    (tmp_path / "text").symlink_to("file")
    with atomic_folder(tmp_path / "link", own_files=a_is_ours) as temporary:
        (temporary / "a").write_text("new")
    write_text(tmp_path / "text", "new")
    assert (tmp_path / "link").is_symlink() and (model / "a").read_text() == "new"
    assert (tmp_path / "text").is_symlink() and (tmp_path / "file").read_text() == "new"
    assert names(tmp_path) == ["file", "link", "model", "text"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from bilex.core import files
path, where = Path(sys.argv[1]), sys.argv[2]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if where == "between":
    files.exchange = lambda one, other: False
    real, calls = Path.replace, []
    def replace(self, target):
        calls.append(target)
        return die() if len(calls) == 2 else real(self, target)
    Path.replace = replace
with files.atomic_folder(path, own_files=lambda folder: ["a"]) as temporary:
    (temporary / "a").write_text("new")
    if where == "inside":
        die()
    if where == "after":
        files.sync = lambda place: die() if place == path.parent else None
"""


@pytest.mark.parametrize(("where", "found"), [("inside", "old"), ("between", "old"), ("after", "new")])
def test_a_killed_process_leaves_the_old_or_the_new_folder_and_no_strays(
    model: Path, where: str, found: str
) -> None:
    """ "between" is a system that cannot exchange two folders: the next command puts the old one back."""
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(model), where], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert model.exists() == (where != "between")
    files.restore(model)
    assert (model / "a").read_text() == found
    write_text(model.parent / "beside.txt", "x")
    assert names(model.parent) == ["beside.txt", "model"]


def test_temporaries_of_the_living_are_left_alone(tmp_path: Path) -> None:
    with (
        atomic_folder(tmp_path / "model", own_files=a_is_ours) as folder,
        atomic_file(tmp_path / "a.txt") as file,
    ):
        (folder / "a").write_text("mine")
        file.write_text("mine")
        write_text(tmp_path / "b.txt", "written beside them")
        assert (folder / "a").read_text() == "mine" and file.read_text() == "mine"
    assert names(tmp_path) == ["a.txt", "b.txt", "model"]


def test_files_that_only_look_temporary_are_left_alone(tmp_path: Path) -> None:
    for name in (".notes.tmp", ".a.old", "x.bilex-tmp"):
        (tmp_path / name).write_text("precious")
    write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == [".a.old", ".notes.tmp", "a.txt", "x.bilex-tmp"]


def test_content_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_folder(tmp_path / "model", own_files=a_is_ours) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "a").write_text("x")
    assert sorted(synced[:-1]) == sorted(["a", "inner", temporary.name])
    assert synced[-1] == tmp_path.name
    synced.clear()
    with atomic_file(tmp_path / "a.txt") as file:
        file.write_text("x")
    assert synced == [file.name, tmp_path.name]


@pytest.mark.parametrize("name", ["ä" * 200, "日" * 80, "a" * 250])
def test_long_names_are_written_or_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    if len(name.encode()) > 255:
        for write in (check_writable, lambda path: write_text(path, "x")):
            with pytest.raises(BilexError, match="too long a name"):
                write(tmp_path / name)
        assert names(tmp_path) == []
    else:
        check_writable(tmp_path / name)
        write_text(tmp_path / name, "x")
        assert names(tmp_path) == [name]


def test_outputs_that_cannot_be_written_are_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    check_writable(tmp_path / "new" / "deep" / "a.txt")
    assert names(tmp_path) == ["file"]
    for path in (tmp_path / "file" / "model", Path("/proc/model")):
        with pytest.raises(BilexError, match="cannot be written"):
            check_writable(path)


def test_pipes_are_neither_replaced_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BilexError, match="is a device or a pipe"):
        write_text(tmp_path / "pipe", "x")
    with pytest.raises(BilexError, match="not an ordinary file"):
        read_json(tmp_path / "pipe")


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "hard").hardlink_to(tmp_path / "a")
    for name in ("a", "link", "hard", f"../{tmp_path.name}/a"):
        with pytest.raises(BilexError, match="is an input of this command"):
            check_not_an_input(tmp_path / name, tmp_path / "none", tmp_path / "a")
    check_not_an_input(tmp_path / "b", tmp_path / "a")


def test_numpys_own_words_for_a_full_disk_are_understood(tmp_path: Path) -> None:
    with pytest.raises(BilexError, match="the disk is full"), atomic_file(tmp_path / "a.npy"):
        raise OSError("600000 requested and 551904 written")
