"""The small versions of the two programs that attack what bilex keeps; see docs/reference/promises.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.slow
@pytest.mark.promise
@pytest.mark.parametrize(
    ("program", "options", "end"),
    [
        ("kill_test.py", ["--kills", "22", "--seed", "5"], "22 kills, 0 faults"),
        ("flip_test.py", ["--changes", "220", "--seed", "5"], "220 changes, 0 faults"),
    ],
)
def test_attacks_find_nothing(program: str, options: list[str], end: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(TOOLS / program), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=1150,  # less than faulthandler_timeout
    )
    assert ended.stdout.splitlines()[-1:] == [end], ended.stdout + ended.stderr
    assert ended.returncode == 0
