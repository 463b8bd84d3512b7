"""How commands start: as a module, with what version, and without what they do not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bilex
from bilex.cli import run
from bilex.cli.group import SUMMARIES
from bilex.core import machine
from cli_files import Files

Captured = pytest.CaptureFixture[str]
MODULE = [sys.executable, "-m", "bilex"]


def run_in_process(*arguments: object, then: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a new process, and then some code in the same process."""
    code = f"import sys\nfrom bilex.cli import run\nassert run({[*map(str, arguments)]!r}) == 0\n{then}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_as_a_module_and_with_its_version() -> None:
    done = subprocess.run([*MODULE, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"bilex, version {bilex.__version__}"


def test_the_version_stands_in_one_place() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    import tomllib

    described = tomllib.loads(project.read_text(encoding="utf-8"))
    assert "version" not in described["project"]
    assert described["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "bilex.__version__"}


def test_a_method_is_loaded_without_the_others() -> None:
    code = (
        "import sys\n"
        "from bilex.aligners import get_method, method_names\n"
        "assert 'lnmap' in method_names() and 'torch' not in sys.modules\n"
        "assert get_method('procrustes').name == 'procrustes'\n"
        "others = ('c1', 'vecmap', 'lnmap', 'fipp', 'rcsls', 'advanced')\n"
        "assert not [name for name in others if f'bilex.aligners.{name}' in sys.modules]\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_is_shown_without_reading_formats_or_plugins() -> None:
    then = (
        f"for name in {list(SUMMARIES)}:\n    assert run([name, '--help']) == 0\n"
        "found = {'numpy', 'rich', 'importlib.metadata', 'torch'} & set(sys.modules)\nassert not found, found"
    )
    done = run_in_process("align", "--help", then=then)
    assert done.returncode == 0, done.stderr


def test_commands_have_their_options_where_python_strips_docstrings() -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "bilex", "lexicon", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--min-confidence" in done.stdout and "Leave out:" in done.stdout, done.stderr


@pytest.mark.parametrize("what", ["model", "source", "seeds"])
def test_files_are_described_without_torch(what: str, files: Files) -> None:
    then = "assert 'torch' not in sys.modules, 'torch was loaded'"
    done = run_in_process("info", getattr(files, what), "--json", then=then)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(getattr(files, what))


def test_a_word_is_translated_without_torch_and_numba(files: Files, capsys: Captured) -> None:
    word = files.seeds.read_text(encoding="utf-8").split("\t")[0]
    then = "assert not {'torch', 'numba', 'scipy'} & set(sys.modules), 'a heavy library was loaded'"
    done = run_in_process("translate", files.model, word, "--json", then=then)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["word"] == word
    assert len(answer["translations"]) == 5
    assert run(["translate", str(files.model), word, "--json", "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_the_machine_is_described_for_a_bug_report(capsys: Captured) -> None:
    assert run(["info", "--machine", "--json"]) == 0
    caught = json.loads(capsys.readouterr().out)
    here = machine.processor()
    assert caught["bilex"] == bilex.__version__
    assert caught["processor"] == here.name
    assert set(caught["vector_instructions"]) == here.features
    assert caught["threads"] == here.threads
    assert 0 < caught["memory_available_gigabytes"] <= caught["memory_gigabytes"]
    assert caught["libraries"]["numpy"] == numpy.__version__
    assert caught["gpu"] is None or caught["gpu"]["memory_gigabytes"] > 0
    assert run(["info", "--machine"]) == 0
    shown = capsys.readouterr().out
    for fact in (here.name, "vector instructions", "memory gigabytes", "cache folder", "torch: 2."):
        assert fact in shown


@pytest.mark.parametrize("arguments", [["info"], ["info", "--machine", "."]])
def test_either_a_file_or_the_machine_is_described(arguments: list[str], capsys: Captured) -> None:
    assert run(arguments) == 2
    assert "name one file or folder, or give --machine" in capsys.readouterr().err
