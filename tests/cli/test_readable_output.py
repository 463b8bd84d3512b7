"""What a newcomer reads on the screen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bilex.cli import run
from cli_files import Files


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


def test_lines_say_how_long_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bilex.core import progress

    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.LineProgress().task("Encoding words", 1_000) as task:
        now += 14  # the first step compiles, and says nothing about the others
        task.advance(100)
        for _ in range(9):
            now += 4
            task.advance(100)
    assert capsys.readouterr().err.splitlines() == [
        "Encoding words: 10% after 14.0 s",
        "Encoding words: 30% after 22.0 s, about 28 s left",
        "Encoding words: done after 50.0 s",
    ]
    with progress.LineProgress().task("Measuring") as task:
        now += 6
        task.advance(3)
    assert capsys.readouterr().err.splitlines() == [
        "Measuring: 3 after 6.0 s",
        "Measuring: done after 6.0 s",
    ]
