"""Bad input: one sentence, exit code 2, nothing half-written."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bilex.cli import run
from cli_files import Files

Captured = pytest.CaptureFixture[str]
BILEX = [sys.executable, "-c", "from bilex.cli import main; main()"]


def reported_in_one_sentence(capsys: Captured, *command: object) -> str:
    assert run([str(word) for word in command]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("bilex: error:")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def align(files: Files, tmp_path: Path, capsys: Captured) -> object:
    """Run align with some arguments changed, and return the one sentence."""

    def call(*extra: object, source: object = None, target: object = None, seeds: object = None) -> str:
        before = sorted(tmp_path.iterdir())
        sentence = reported_in_one_sentence(
            capsys,
            *("align", source or files.source, target or files.target, "--seeds", seeds or files.seeds),
            *("-o", tmp_path / "model", "--method", "procrustes", "--device", "cpu", *extra),
        )
        assert sorted(tmp_path.iterdir()) == before
        return sentence

    return call


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("which", ["source", "target", "seeds"])
def test_missing_files(align, which: str) -> None:  # type: ignore[no-untyped-def]
    assert "nowhere.vec: there is no such file" in align(**{which: "nowhere.vec"})


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ("empty",)),
        (b"dog 0.1 0.2\ncat \xff\xfe\xfd 0.1 0.2\n" * 5, ("UTF-8",)),
        (gzip.compress(b"dog 1 2 3\ncat 2 3 4\n" * 500, mtime=0)[:-20], ("bad",)),
        (b"PK\x03\x04 zip", ("zip",)),
    ],
)
def test_unreadable_vectors(align, tmp_path: Path, content: bytes, parts: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    sentence = align(source=write(tmp_path / "bad.vec.gz", content))
    assert "bad.vec.gz" in sentence
    assert all(part in sentence for part in parts)


@pytest.mark.parametrize("content", [b"", b"\xff\xfea\tb\n", b"lonely\nwords\n"])
def test_unreadable_dictionaries(align, tmp_path: Path, content: bytes) -> None:  # type: ignore[no-untyped-def]
    assert "bad.tsv" in align(seeds=write(tmp_path / "bad.tsv", content))


def test_swapped_vectors_are_seen(align, files: Files) -> None:  # type: ignore[no-untyped-def]
    sentence = align(source=files.target, target=files.source)
    assert "only 0 of 400 pairs" in sentence and "swap source and target" in sentence


def test_a_dictionary_of_other_languages(align, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    seeds = write(tmp_path / "other.tsv", "".join(f"woord{i}\tслово{i}\n" for i in range(50)).encode())
    assert "only 0 of 50 pairs" in align(seeds=seeds)


def test_too_few_seeds(align, files: Files, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    seeds = write(tmp_path / "one.tsv", files.seeds.read_bytes().splitlines(keepends=True)[0])
    assert "at least 2 pairs" in align(seeds=seeds)


def test_few_covered_pairs_are_a_warning(files: Files, tmp_path: Path, capsys: Captured) -> None:
    lines = files.seeds.read_text().splitlines(keepends=True)[:100] + [f"x{i}\ty{i}\n" for i in range(150)]
    seeds = write(tmp_path / "thin.tsv", "".join(lines).encode())
    command = [
        "align",
        files.source,
        files.target,
        "--seeds",
        seeds,
        "-o",
        tmp_path / "m",
        "--method",
        "procrustes",
    ]
    assert run([*map(str, command), "--no-calibrate"]) == 0
    assert "warning" in (caught := capsys.readouterr().err) and "100 of 250 pairs" in caught


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        (("--method", "procrustean"), "Did you mean 'procrustes'"),
        (("--set", "sed=3"), "Did you mean 'seed'"),
        (("--device", "cuda:99x"), "device"),
        (("--lambda", "0.3"), "--lm"),
        (("--tuning", "light"), "--lm"),
        (("--tuning", "fast", "--lm", "e5-small-q4"), "'auto', 'paper', 'light'"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_wrong_options(align, extra: tuple[str, ...], part: str) -> None:  # type: ignore[no-untyped-def]
    assert part in align(*extra)


def test_method_without_seeds(files: Files, tmp_path: Path, capsys: Captured) -> None:
    command = ["align", files.source, files.target, "-o", tmp_path / "m", "--method", "procrustes"]
    assert "needs a seed dictionary" in reported_in_one_sentence(capsys, *command)


def test_other_peoples_folders_are_left_alone(align, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "letter.txt").write_text("dear")
    assert "other things" in align()
    assert (tmp_path / "model" / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize("command", ["translate", "evaluate", "lexicon", "info"])
def test_a_flipped_byte_in_a_model(files: Files, tmp_path: Path, capsys: Captured, command: str) -> None:
    import shutil

    model = shutil.copytree(files.model, tmp_path / "model")
    weights = model / "languages" / "source" / "vectors.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 0x10
    weights.write_bytes(bytes(content))
    extra = {"translate": ["word"], "evaluate": [files.test], "info": ["--verify"]}.get(command, [])
    assert "vectors.safetensors" in reported_in_one_sentence(capsys, command, model, *extra)


def test_a_test_dictionary_that_covers_nothing(files: Files, tmp_path: Path, capsys: Captured) -> None:
    other = write(tmp_path / "other.tsv", b"aaa\tbbb\nccc\tddd\n")
    assert "0 of 2 pairs" in reported_in_one_sentence(capsys, "evaluate", files.model, other)


def test_a_command_that_is_none(capsys: Captured) -> None:
    assert "Did you mean 'align'" in reported_in_one_sentence(capsys, "algin")


def test_a_full_disk(files: Files, capsys: Captured) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    command = [*BILEX, "translate", str(files.model), "x", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "disk" in done.stderr and "Traceback" not in done.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom bilex.cli import run\nrun(['--help'])\n"
        "heavy = [m for m in ('torch', 'numpy', 'numba', 'rich', 'scipy') if m in sys.modules]\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "evaluate" in done.stdout


def test_a_closed_pipe_is_quiet(files: Files) -> None:
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*BILEX, "translate", str(files.model), "x", "--json"],
        stdout=written,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(written)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


SLOW_METHOD = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit it ignored
from bilex.aligners.procrustes import Procrustes
def endless(self, *_):
    print("fitting", flush=True)
    while True:
        time.sleep(0.05)
Procrustes._fit = endless
from bilex.cli import main
main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_align_leaves_nothing(
    files: Files, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    command = ["align", files.source, files.target, "--seeds", files.seeds, "-o", tmp_path / "m"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_METHOD, *map(str, command), "--method", "procrustes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "fitting\n"
    process.send_signal(sent)
    _, caught = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in caught
    assert sent is signal.SIGTERM or "bilex: interrupted" in caught
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_during_the_imports_ends_silently(tmp_path: Path) -> None:
    lines = (
        "import os, signal",
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "os.kill(os.getpid(), signal.SIGINT)",
    )
    (tmp_path / "click.py").write_text("\n".join(lines))
    search_path = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-m", "bilex", "--version"],
        env={**os.environ, "PYTHONPATH": search_path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
