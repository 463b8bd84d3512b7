"""The report: one page that loads nothing, shows all text as text, and works in a real browser."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.cli import BAD_INPUT, OK, run
from bilex_bench.report import inline_svg, report_page
from bilex_bench.results import Result
from bilex_bench.store import ResultsStore
from fabricated import HARD_WORDS, LAMBDAS, PAIRS, fabricated_results

pytestmark = pytest.mark.usefixtures("quick_projection")
NASTY = "<img src=x onerror=alert(1)>\"'&amp;"
_EMPTY = ("meta", "input", "br", "link", "img")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    found = fabricated_results(
        ("en-fi", "fi-ru"), ("5k",), words=40, lambdas=(0.0, 0.2, 0.6, 1.0), samples=("en-fi",), failed=True
    )
    named = [
        replace(r, setup=replace(r.setup, label=NASTY)) if r.setup.method == "fipp" else r for r in found
    ]
    caught = {"command": "bilex benchmark run quick -o 'a & b.sqlite'"}
    return [replace(r, environment={**r.environment, **caught}) for r in named]


@pytest.fixture(scope="module")
def page(results: list[Result]) -> str:
    return report_page(results, file_name="results <1>.sqlite")


def test_words_of_a_dictionary_that_may_not_be_passed_on_stay_out(results: list[Result], page: str) -> None:
    samples = [sample for result in results for sample in result.samples.values()]
    pairs = {f"{a} – {b}" for s in samples for a, b in zip(s.source_words, s.target_words, strict=True)}
    bare = report_page(results, file_name="results <1>.sqlite", words=False)
    assert pairs and any(pair in page for pair in pairs) and "Translation examples" in page
    assert not any(pair in bare for pair in pairs) and "Translation examples" not in bare
    assert 'id="tsne' in bare and len(Reader(bare).elements) < len(Reader(page).elements)


class Reader(HTMLParser):
    """Elements of a page, with a check that every one is closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]


@pytest.fixture(scope="module")
def read(page: str) -> Reader:
    return Reader(page)


def test_the_page_loads_nothing(page: str, read: Reader) -> None:
    assert not {"link", "iframe", "object", "embed", "img"} & {tag for tag, _ in read.elements}
    assert not read.attributes("src")
    assert all(address.startswith("#") for address in read.attributes("href"))
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)", page))
    assert "@import" not in page
    assert not re.findall(r"https?://", page)
    policies = [
        a["content"] or "" for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies[0].startswith("default-src 'none'")


def test_names_are_unique_and_links_lead_somewhere(read: Reader) -> None:
    names = Counter(read.attributes("id"))
    assert [name for name, count in names.items() if count > 1] == []
    for address in read.attributes("href"):
        assert address[1:] in names, address


def test_text_is_never_markup(page: str, read: Reader) -> None:
    assert "<img" not in page
    assert NASTY in "".join(read.texts)
    assert any("results <1>" in text for text in read.texts)
    assert any("(12.1 GB <asked>, 8 GB there) & was retried" in text for text in read.texts)
    assert all(not name.startswith("on") for _, attributes in read.elements for name in attributes)


def test_hard_words_reach_the_page_whole(results: list[Result]) -> None:
    """In cells, attributes and data for the script; one label and data set for each word."""
    words = [*HARD_WORDS, NASTY]
    labelled = [
        replace(results[0], setup=replace(results[0].setup, label=word, dataset=word)) for word in words
    ]
    read = Reader(report_page(labelled, file_name="r.sqlite"))
    assert set(words) <= set(read.texts)
    assert all(any(word in text for text in read.attributes("aria-label")) for word in words)
    (block,) = (text for text in read.texts if text.startswith('[{"dataset"'))
    assert [setup["label"] for setup in json.loads(block)] == words


def test_all_that_a_reader_looks_for_is_there(read: Reader) -> None:
    sections = [a["id"] for tag, a in read.elements if tag == "section" and a.get("class") == "part"]
    assert sections == [
        *("overview", "results", "methods", "significance", "words", "cost", "coverage", "pairs"),
        *("setups", "failures", "environment", "commands"),
    ]
    names = set(read.attributes("id"))
    tables = ("main", "ablation", "lambda", "significance", "examples", "cost", "leak-free", "coverage")
    assert {f"table-{name}" for name in tables} <= names
    assert {"heat-map-xling-5k", "lambda-xling-5k-c2-c1", "frequency-xling", "tsne-xling-5k-en-fi"} <= names
    text = "".join(read.texts)
    assert "bilex benchmark run quick -o 'a & b.sqlite'" in text
    assert "bilex benchmark tables 'results <1>.sqlite' -o tables" in text
    assert "laptop <1>" in text
    assert "numpy 2.3.0, torch 2.9.0" in text


def test_every_setup_has_its_row_with_its_scores(page: str, results: list[Result]) -> None:
    block = page[page.index('<section id="table-setups"') :]
    body = block[block.index("<tbody>") : block.index("</tbody>")]
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in body.split("<tr")[1:]]
    done = [result for result in results if result.status == "done"]
    assert len(rows) == len(done)
    auto = next(r for r in done if r.setup.mixing == "auto" and r.setup.pair == "fi-ru")
    scores = [
        100 * (auto.metric(way, retrieval, leak_free=free) or 0)
        for way in ("forward", "backward")
        for retrieval, free in (("nn", False), ("csls", False), ("csls", True))
    ]
    expected = ["C2 (C1), λ auto", "xling", "fi-ru", "5k", "0.30", *(f"{score:.2f}" for score in scores)]
    assert [*expected, "1,052.0", "2.5", "cpu"] in rows


def test_computing_that_is_shared_counts_once(page: str) -> None:
    # 2 pairs: six fits, and for stage C2 tuning, encoding, a trial; combining and scoring for each setup.
    fits = 4 + 9 + 240 + 60 + 30 + 420
    seconds = 2 * (fits + 300 + 80 + 250 + 5 * 2 + 11 * 3.5)
    assert f"<dd>{seconds / 60:.1f} min</dd>" in page


def test_the_same_results_give_the_same_page(results: list[Result], page: str) -> None:
    assert report_page(results, file_name="results <1>.sqlite") == page


def test_svg_for_a_page_is_small_unique_and_coloured_by_the_page() -> None:
    svg = (
        '<?xml version="1.0"?><svg xmlns:xlink="http://www.w3.org/1999/xlink" width="7pt" height="5pt" '
        'viewBox="0 0 7 5" xmlns="http://www.w3.org/2000/svg"><metadata>x</metadata>'
        '<g id="axes_1"><defs><path id="m1" d="M 0 1.23456"/></defs><g clip-path="url(#p1)">'
        '<use xlink:href="#m1" x="1.23456" y="2" style="fill: #0072b2"/>'
        '<use xlink:href="#m1" x="3" y="4" style="fill: #0072b2"/></g>'
        "<text style=\"font-size: 8px; font-family: 'DejaVu Sans'; fill: #1b2430\">1.23456 &lt;</text>"
        "</g></svg>"
    )
    assert inline_svg(svg, "f") == (
        '<svg viewBox="0 0 7 5" aria-hidden="true"><g><defs><path id="f-m1" d="M 0 1.23"/></defs>'
        '<g clip-path="url(#f-p1)" style="fill: var(--f0072b2)"><use href="#f-m1" x="1.23" y="2"/>'
        '<use href="#f-m1" x="3" y="4"/></g>'
        '<text style="font-size: 8px; fill: var(--f1b2430)">1.23456 &lt;</text></g></svg>'
    )


def test_no_results_make_no_page() -> None:
    with pytest.raises(BilexError, match=r"empty\.sqlite: holds no results yet"):
        report_page([], file_name="empty.sqlite")


def test_failures_alone_make_a_page(results: list[Result]) -> None:
    failed = [result for result in results if result.status == "failed"]
    text = "".join(Reader(report_page(failed, file_name="r.sqlite")).texts)
    assert "LNMap, en-fi, 5k seeds" in text
    assert "was retried once alone" in text


@pytest.mark.slow
def test_the_whole_grid_stays_small() -> None:
    many = fabricated_results(PAIRS, words=600, lambdas=LAMBDAS, samples=PAIRS, failed=True)
    assert len(report_page(many, file_name="results.sqlite").encode()) < 5e6


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.sqlite"
    with ResultsStore.open(path) as store:
        for result in fabricated_results(("en-fi",), ("5k",), words=30):
            store.add(result)
    assert run(["benchmark", "report", str(path), "-o", str(tmp_path / "sub" / "r.html")]) == OK
    written = (tmp_path / "sub" / "r.html").read_text(encoding="utf-8")
    assert "bilex benchmark report results.sqlite -o r.html" in written
    assert 'id="table-significance"' in written, "predictions are read from the file"
    assert (
        run(["benchmark", "report", str(tmp_path / "no.sqlite"), "-o", str(tmp_path / "r.html")]) == BAD_INPUT
    )
    assert "no such results file" in capsys.readouterr().err
    assert run(["benchmark", "report", str(path), "-o", str(tmp_path)]) == BAD_INPUT
    assert "is a folder" in capsys.readouterr().err
