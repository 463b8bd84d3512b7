"""What a newcomer reads on the screen."""

from __future__ import annotations

import pytest

from bilex.cli import run
from cli_files import Files


def test_help_keeps_the_lines_of_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "bilex translate en-fi dog house" in lines
    assert not any("\\b" in line or "\b" in line for line in lines)


def test_evaluating_a_saved_model_warns_of_nothing(
    files: Files, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    import torch

    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else torch gives each of its warnings only once per process
    try:
        assert run(["evaluate", str(files.model), str(files.test), "--device", "cpu"]) == 0
    finally:
        torch.set_warn_always(always)
    caught = capfd.readouterr()
    assert "P@1" in caught.out
    assert "Warning" not in caught.err and not recwarn.list


def test_lines_say_how_long_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bilex.core import progress

    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.Display().task("Encoding words", 1_000) as task:
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
    with progress.Display().task("Measuring") as task:
        now += 6
        task.advance(3)
    assert capsys.readouterr().err.splitlines() == [
        "Measuring: 3 after 6.0 s",
        "Measuring: done after 6.0 s",
    ]
