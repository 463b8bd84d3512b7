"""Look the pinned packages up among known weaknesses, where there is a network.

    python tools/audit.py

Exits with 1 if one is known, with 0 and one line if nothing could be asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_PATIENCE = 120


def main() -> int:
    """Run pip-audit over the lock files."""
    folder = Path(__file__).resolve().parent.parent / "requirements"
    locks = [word for name in ("dev.lock", "torch.lock") for word in ("-r", str(folder / name))]
    command = [sys.executable, "-m", "pip_audit", *locks, "--no-deps", "--disable-pip"]
    command += ["--progress-spinner", "off", "--format", "json", "--timeout", "15"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        found = json.loads(ended.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError):
        print("pip-audit: skipped, the list of known weaknesses cannot be reached from here.")
        return 0
    weak = [(package["name"], one["id"]) for package in found for one in package.get("vulns", ())]
    for name, number in weak:
        print(f"pip-audit: {name}: {number}")
    print(f"pip-audit: {len(found)} packages, {len(weak)} known weaknesses.")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
