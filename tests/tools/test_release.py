"""What a release says in several places is the same, and the site's links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
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
