"""What a command may never write: its own inputs, and whatever belongs to a model."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.cli import run
from bilex.core.files import atomic_file, atomic_folder, write_json, write_text
from bilex.core.manifest import manifest_folder, verify_manifest
from cli_files import Files

BESIDE = ("-wal", "-shm", "-journal")


@pytest.fixture
def model(files: Files, tmp_path: Path) -> Path:
    """A model with the files that the workbench keeps beside it."""
    shutil.copytree(files.model, tmp_path / "model")
    reviews = tmp_path / "model.review.sqlite"
    with sqlite3.connect(reviews) as connection:
        connection.execute("CREATE TABLE decisions (word TEXT)")
    for part in BESIDE:
        reviews.with_name(reviews.name + part).write_bytes(b"")
    shutil.copytree(files.model, tmp_path / "model.previous")
    return tmp_path / "model"


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


OF_A_MODEL = (
    "model.review.sqlite",
    *(f"model.review.sqlite{part}" for part in BESIDE),
    "MODEL.REVIEW.SQLITE",
    "other.review.sqlite",
    "model.previous",
    "model.retrained",
    "model/config.json",
    "model/SHA256SUMS",
    "model/README.md",
    "model/new.tsv",
    "model/languages/source/vocabulary.txt",
    "model/new/deep.tsv",
    "model.previous/config.json",
    "link/config.json",
    ".model.12345678.in-use.bilex-tmp",
)


@pytest.mark.parametrize("name", OF_A_MODEL)
def test_a_dictionary_is_never_written_over_a_part_of_a_model(
    model: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (model.parent / "link").symlink_to("model")
    before = content(model.parent)
    output = model.parent / name
    for arguments in (
        ["lexicon", str(model), "-o", str(output), "--format", "tsv"],
        ["convert", str(model / "languages" / "source"), "-o", str(output), "--to", "text"],
        ["convert", str(model / "languages" / "source"), "-o", str(output), "--to", "safetensors"],
    ):
        assert run(arguments) == 2, arguments
        said = capsys.readouterr().err.strip()
        assert said.count("\n") == 0 and "choose another name" in said
        assert Path(name).name in said
    assert content(model.parent) == before


def test_every_command_refuses_to_write_over_the_reviews(
    files: Files,
    model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reviews = f"{model}.review.sqlite"
    before = content(model.parent)
    corpus = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    corpus.write_text("a b c d\n" * 50)
    align = ["align", str(files.source), str(files.target), "--seeds", str(files.seeds), "--force", "-o"]
    for command in (
        ["review", "export", str(model), "-o", reviews, "--format", "csv"],
        ["review", "export", str(model), "--what", "sheet", "-o", reviews],
        ["review", "export", str(model), "-o", str(model / "config.json")],
        ["vectors", str(corpus), "-o", str(model / "new.vec"), "--dim", "4"],
        [*align, reviews],
        [*align, f"{model}.previous"],
        [*align, f"{model}.retrained"],
        [*align, str(model / "languages" / "source")],
        ["join", str(model), "-o", reviews, "--force"],
        ["demo", "-o", str(model)],
        ["benchmark", "grids", "quick", "-o", reviews],
        ["benchmark", "merge", reviews, reviews],
        ["benchmark", "run", "quick", "-o", reviews],
        ["benchmark", "run", "quick", "-o", str(model / "new.sqlite")],
    ):
        assert run(command) == 2, command
        assert capsys.readouterr().err.strip().count("\n") == 0, command
    assert content(model.parent) == before


def test_an_input_is_never_the_output(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under its own name, through a link and as a hard link, also where an option names the input."""
    words, tags = tmp_path / "stop.txt", tmp_path / "tags.tsv"
    words.write_text("s1\n")
    tags.write_text("s1\tNOUN\n")
    (tmp_path / "link.txt").symlink_to(words)
    (tmp_path / "hard.txt").hardlink_to(words)
    tests = tmp_path / "tests"
    tests.mkdir()
    shutil.copy(files.test, tests / "en-fi.tsv")
    seeds = tmp_path / "seeds.tsv"
    shutil.copy(files.seeds, seeds)
    assert run(["convert", str(seeds), "-o", str(tmp_path / "d.ifo"), "--to", "stardict"]) == 0
    assert run(["convert", str(files.source), "-o", str(tmp_path / "v.npy")]) == 0
    model = str(files.model)
    before = content(tmp_path)
    for command in (
        *(["lexicon", model, "--stop-words", str(words), "--format", "tsv", "-o", str(tmp_path / name)]
          for name in ("stop.txt", "link.txt", "hard.txt", "tests/../stop.txt")),
        ["lexicon", model, "--tags", str(tags), "--pos", "NOUN", "-o", str(tags)],
        ["convert", str(seeds), "-o", str(seeds), "--to", "csv"],
        ["convert", str(seeds), str(seeds)],
        ["convert", str(tmp_path / "d.ifo"), "-o", str(tmp_path / "d.idx"), "--to", "tsv"],
        ["convert", str(tmp_path / "d.ifo"), "-o", str(tmp_path / "d.dict.dz"), "--to", "tsv"],
        ["convert", str(tmp_path / "v.npy"), "-o", str(tmp_path / "v.txt")],
        ["vectors", str(words), "-o", str(words)],
        ["align", str(files.source), str(files.target), "--seeds", str(seeds), "-o", str(seeds), "--force"],
    ):  # fmt: skip
        capsys.readouterr()
        assert run(command) == 2, command
        assert capsys.readouterr().err.strip().count("\n") == 0, command
    assert content(tmp_path) == before
    for name in ("stop.txt", "seeds.tsv"):  # a later command may write what this one did not read
        assert run(["lexicon", model, "--format", "tsv", "-o", str(tmp_path / name)]) == 0


def test_no_writer_replaces_a_database_or_writes_into_a_folder_of_ours(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.execute("CREATE TABLE results (setup TEXT)")
    with manifest_folder(tmp_path / "encoder", "bilex-encoder") as folder:
        write_text(folder / "card.md", "inside a folder that is being made everything may be written")
        write_json(folder / "config.json", {})
    before = content(tmp_path)
    inside = ("encoder/new.txt", "encoder/card.md", "encoder/a/b.txt")
    for name in ("results.db", "results.db-wal", *inside):
        with pytest.raises(BilexError, match="choose another name"), atomic_file(tmp_path / name):
            pytest.fail("the block must not run")
    for name in inside:
        with (
            pytest.raises(BilexError, match="choose another name"),
            atomic_folder(tmp_path / name, own_files=lambda _: ()),
        ):
            pytest.fail("the block must not run")
    assert content(tmp_path) == before


@pytest.mark.parametrize("output", [".", "/"])
def test_an_output_without_a_name_is_refused(
    files: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    output: str,
) -> None:
    """Nothing can be made beside it and renamed; the command ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    for command in (["convert", str(files.source), output], ["lexicon", str(files.model), "-o", output]):
        assert run(command) == 2, command
        assert "choose another name" in capsys.readouterr().err
    with pytest.raises(BilexError, match="without a name"), atomic_folder(output, own_files=lambda _: ()):
        pytest.fail("the block must not run")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_listed_by_an_earlier_version_is_checked_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with manifest_folder(folder, "bilex-checkpoint") as made:
        write_text(made / "state.json", "{}")
    sums, name = (folder / "SHA256SUMS").read_text().splitlines()[1].split("  ")
    (folder / "SHA256SUMS").unlink()
    stored = {"format": "bilex-checkpoint", "sha256": {name: sums}}
    (folder / "bilex-files.json").write_text(json.dumps(stored))
    assert verify_manifest(folder, "bilex-checkpoint")
    with pytest.raises(BilexError, match="another kind"):
        verify_manifest(folder, "bilex-encoder")
    (folder / "state.json").write_text("[]")
    with pytest.raises(BilexError, match=r"state\.json: was changed or damaged .*; remove"):
        verify_manifest(folder, "bilex-checkpoint")
    with manifest_folder(folder, "bilex-checkpoint") as made:
        write_text(made / "state.json", "{}")
    assert sorted(file.name for file in folder.iterdir()) == ["SHA256SUMS", "state.json"]


def test_a_users_own_list_of_checksums_does_not_make_a_folder_ours(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  image.iso\n")
    with atomic_file(tmp_path / "new.txt") as file:
        file.write_text("written")
    assert (tmp_path / "new.txt").read_text() == "written"
