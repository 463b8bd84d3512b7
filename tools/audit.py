"""Check the pinned packages for known vulnerabilities, where there is a network.

    python tools/audit.py

Exits with 1 if there is one, and with 0 if there is none or the advisories cannot be read. A package with a
known vulnerability is checked first, because a mirror may list packages without advisories.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_TIMEOUT = 120
_VULNERABLE = "jinja2==2.10"


def main() -> int:
    """Run pip-audit over the lock files."""
    with tempfile.TemporaryDirectory() as name:
        control = Path(name) / "control.txt"
        control.write_text(f"{_VULNERABLE}\n", encoding="utf-8")
        found = _audited("-r", str(control))
    if not any(package.get("vulns") for package in found):
        print(f"pip-audit: nothing was checked, because it reports no vulnerability of {_VULNERABLE}: PyPI's")
        print("JSON interface cannot be reached, or is a mirror without advisories.")
        return 0
    folder = Path(__file__).resolve().parent.parent / "requirements"
    locks = [word for name in ("dev.lock", "torch.lock") for word in ("-r", str(folder / name))]
    found = _audited(*locks)
    skipped = [package["name"] for package in found if "skip_reason" in package]
    known = [(package["name"], one["id"]) for package in found for one in package.get("vulns", ())]
    for name, number in known:
        print(f"pip-audit: {name}: {number}")
    print(f"pip-audit: {len(found)} packages, {len(skipped)} skipped, {len(known)} known vulnerabilities.")
    return 1 if known else 0


def _audited(*requirements: str) -> list[dict[str, Any]]:
    """The report of pip-audit on each package; empty if it cannot reach the service."""
    command = [sys.executable, "-m", "pip_audit", *requirements, "--no-deps", "--disable-pip"]
    command += ["--progress-spinner", "off", "--format", "json", "--timeout", "15"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        return list(json.loads(ended.stdout)["dependencies"])
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError):
        return []


if __name__ == "__main__":
    sys.exit(main())
