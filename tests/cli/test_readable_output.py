"""What a newcomer reads on the screen."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_files import Files

from bilex.cli import run


def test_help_keeps_the_lines_of_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "bilex translate en-fi dog house" in lines
    assert not any("\\b" in line or "\b" in line for line in lines)


def test_evaluating_a_saved_model_warns_of_nothing(files: Files) -> None:
    # In a process of its own: torch gives each of its warnings only once a process.
    command = [
        sys.executable,
        "-c",
        "from bilex.cli import main; main()",
        "evaluate",
        files.model,
        files.test,
    ]
    done = subprocess.run([*map(str, command), "--device", "cpu"], capture_output=True, text=True, check=True)
    assert "P@1" in done.stdout
    assert "Warning" not in done.stderr
