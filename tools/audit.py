"""Look the pinned packages up among known weaknesses, where there is a network.

    python tools/audit.py

Exits with 1 if one is known, with 0 and one line if nothing could be asked. An old package with a known
weakness is asked for too: a mirror that lists packages but no weaknesses answers as if there were none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_PATIENCE = 120
_KNOWN_TO_BE_WEAK = "jinja2==2.10"


def main() -> int:
    """Run pip-audit over the lock files."""
    with tempfile.TemporaryDirectory() as name:
        control = Path(name) / "control.txt"
        control.write_text(f"{_KNOWN_TO_BE_WEAK}\n", encoding="utf-8")
        found = _asked("-r", str(control))
    if not any(package.get("vulns") for package in found):
        print(f"pip-audit: nothing is known here, since no weakness of {_KNOWN_TO_BE_WEAK} was reported: the")
        print(
            "advisory service (PyPI's JSON interface) cannot be reached, or is a mirror without advisories."
        )
        return 0
    folder = Path(__file__).resolve().parent.parent / "requirements"
    locks = [word for name in ("dev.lock", "torch.lock") for word in ("-r", str(folder / name))]
    found = _asked(*locks)
    skipped = [package["name"] for package in found if "skip_reason" in package]
    weak = [(package["name"], one["id"]) for package in found for one in package.get("vulns", ())]
    for name, number in weak:
        print(f"pip-audit: {name}: {number}")
    print(f"pip-audit: {len(found)} packages, {len(skipped)} not looked up, {len(weak)} known weaknesses.")
    return 1 if weak else 0


def _asked(*requirements: str) -> list[dict[str, Any]]:
    """What pip-audit reports of each package; nothing if it could not ask."""
    command = [sys.executable, "-m", "pip_audit", *requirements, "--no-deps", "--disable-pip"]
    command += ["--progress-spinner", "off", "--format", "json", "--timeout", "15"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        return list(json.loads(ended.stdout)["dependencies"])
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError):
        return []


if __name__ == "__main__":
    sys.exit(main())
