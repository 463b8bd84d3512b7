from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_short_fuzz_run_finds_nothing() -> None:
    command = [sys.executable, str(ROOT / "tools" / "fuzz_vectors.py"), "--inputs", "2000", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2,000 inputs" in done.stdout
