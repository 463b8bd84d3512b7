"""Completion, as three shells ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bilex.cli import run

QUESTIONS = [
    ("bilex tr", {"translate"}),
    ("bilex align --see", {"--seeds"}),
    ("bilex align a b --method pro", {"procrustes"}),
    ("bilex align a b --preset qu", {"quick"}),
    ("bilex translate m --format j", {"jsonl"}),
    ("bilex data g", {"get"}),
]
# What each shell runs after it has read the script: COMMAND stands for the words typed so far.
ASKING = {
    "bash": "COMP_WORDS=(COMMAND); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
    '_bilex_completion bilex; printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": "_describe() { print -l -- ${(P)3} }; compadd() { print -l -- ${(P)@[-1]} }; "
    "words=(COMMAND); CURRENT=${#words}; _bilex_completion",
    "fish": 'complete -C "COMMAND"',
}
BEFORE = {"bash": "", "zsh": "compdef() { : }; ", "fish": ""}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH on which `bilex` is this bilex."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "bilex"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bilex "$@"\n')
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("shell", list(ASKING))
def test_a_shell_completes(shell: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(
            f"{shell} is not installed here, so its completion is NOT tested; install {shell} to test it"
        )
    assert run(["completion", shell]) == 0
    script = tmp_path / f"completion.{shell}"
    script.write_text(capsys.readouterr().out)
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    # One shell answers all questions: each start of Python takes its time.
    lines = [f"{BEFORE[shell]}. {script}"]
    for question, _ in QUESTIONS:
        lines += ["echo NEXT", ASKING[shell].replace("COMMAND", question)]
    done = subprocess.run(
        [program, *options, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
    )
    answers = done.stdout.split("NEXT\n")[1:]
    assert len(answers) == len(QUESTIONS), done.stderr
    for (question, expected), answer in zip(QUESTIONS, answers, strict=True):
        found = {line.split("\t")[0].split(":")[0].removeprefix("plain,") for line in answer.splitlines()}
        assert expected <= found, (question, answer, done.stderr)


def test_an_unknown_shell_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert run(["completion"]) == 2
    assert "name bash, zsh or fish" in capsys.readouterr().err
