"""Translate as one types, why, and the map."""

from __future__ import annotations

import json
import struct
from xml.etree import ElementTree

import pytest
from opened_page import OpenedPage
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow


def test_translations_appear_as_one_types(page: OpenedPage) -> None:
    page.go("translate")
    assert page.run("return document.activeElement.id") == "word"
    page.keys("price")
    answer = page.api("translate?word=price&direction=forward&k=10")
    page.sees(".query-word", "price")
    page.until(lambda: len(page.all(".translation")) == len(answer["translations"]), "all translations")
    first = answer["translations"][0]
    shown = page.text(".translation")
    for part in (first["word"], f"{first['score']:.3f}", f"{first['confidence'] * 100:.0f} %"):
        assert part in shown
    assert page.run("return location.hash") == "#/translate?word=price"


def test_words_are_completed_by_keyboard(page: OpenedPage) -> None:
    page.go("translate")
    page.keys("pric")
    page.one("#word-options li")
    page.keys(Keys.ARROW_DOWN)
    wanted = page.text("#word-options li[aria-selected=true] .word")
    assert wanted.startswith("pric")
    assert page.run("return document.activeElement.getAttribute('aria-activedescendant')") == "word-option-0"
    page.keys(Keys.ENTER)
    page.sees(".query-word", wanted)
    assert not page.one("#word").get_attribute("aria-activedescendant")


def test_suggestions_cover_no_answer(page: OpenedPage) -> None:
    for size in ((1280, 900), (390, 844)):
        page.resize(*size)
        page.go("translate")
        page.keys("price")
        page.one("#word-options li")
        page.one(".translation")
        covered = page.run(
            "const box = document.querySelector('.translation').getBoundingClientRect();"
            "return [...document.querySelectorAll('#word-options, #word-options li')]"
            ".some((e) => e.getBoundingClientRect().bottom > box.top)"
        )
        assert not covered


def test_unknown_words_get_close_spellings(page: OpenedPage) -> None:
    page.go("translate?word=pricee")
    page.sees("#answer", "is not in the vocabulary")
    page.until(lambda: page.all(".suggestion"), "spellings")
    page.keys(Keys.ESCAPE)
    wanted = page.text(".suggestion")
    page.click(".suggestion")
    page.sees(".query-word", wanted)


def test_the_direction_turns_with_the_best_translation(page: OpenedPage) -> None:
    page.go("translate?word=price")
    best = page.text(".translation .answer-word")
    page.press("#direction")
    page.sees(".query-word", best)
    assert page.run("return location.hash").endswith("&direction=backward")
    assert "Finnish → English" in page.text("#direction")


def test_why_shows_the_neighbours_in_both_languages(page: OpenedPage) -> None:
    page.go("translate?word=price")
    target = page.text(".translation .answer-word")
    page.press(".why-button")
    found = page.api(f"why?source=price&target={target}&k=8")
    page.until(lambda: len(page.all(".why .neighbours")) == 4 * len(found["views"]), "four lists a view")
    lists = page.run("return [...document.querySelectorAll('.why .neighbours')].map((l) => l.textContent)")
    names = ("source_neighbours", "source_candidates", "target_neighbours", "target_candidates")
    for text, name in zip(lists, names, strict=False):
        assert all(each["word"] in text for each in found["views"][0][name])
    assert page.all(".neighbours li.marked")


def test_the_map_zooms_and_is_saved(page: OpenedPage) -> None:
    page.go("translate?word=price")
    points = page.api("map?word=price&direction=forward&k=20")
    page.until(lambda: len(page.all(".chart-dot")) == len(points["points"]), "all points")
    assert len(page.all(".chart-line")) == len(points["lines"])
    assert {each["language"] for each in points["points"]} == {"source", "target"}
    page.run("document.querySelector('.chart-frame').focus()")
    named = (
        "const inside = (e) => e.getAttribute('cx') > 0 && e.getAttribute('cx') < 640"
        " && e.getAttribute('cy') > 0 && e.getAttribute('cy') < 480;"
        "const dots = [...document.querySelectorAll('.chart-dot')].filter(inside);"
        "return document.querySelectorAll('.chart-label').length / dots.length"
    )
    labels = page.run(named)
    before = page.one(".chart-dot.query").get_attribute("cx")
    page.keys("+", "+", "+", "+")
    assert (
        page.run(named) >= min(labels, 0.9) and page.all(".chart-dot.query")[0].get_attribute("cx") != before
    )
    page.keys("0")
    assert page.one(".chart-dot.query").get_attribute("cx") == before
    buttons = {each.text: each for each in page.all(".map-inside button")}
    page.run("arguments[0].scrollIntoView({block: 'center'})", buttons["Save SVG"])
    drawn = ElementTree.fromstring(page.downloaded(buttons["Save SVG"].click).read_text(encoding="utf-8"))
    texts = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert "price" in texts
    assert all(
        each.get("fill", "").startswith("rgb") for each in drawn.iter("{http://www.w3.org/2000/svg}circle")
    )
    picture = page.downloaded(buttons["Save PNG"].click).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", picture[16:24]) == (1280, 960)


def test_names_on_the_map_never_overlap_and_the_best_answer_has_one(page: OpenedPage) -> None:
    overlaps = (
        "const boxes = [...document.querySelectorAll('.chart-label')].map((e) => e.getBBox());"
        "return boxes.filter((a, i) => boxes.some((b, j) => i < j && a.x < b.x + b.width"
        " && b.x < a.x + a.width && a.y + 3 < b.y + b.height - 3 && b.y + 3 < a.y + a.height - 3)).length"
    )
    for word in ("price", "coffee", "school", "river"):
        page.go(f"translate?word={word}")
        best = page.text(".translation .answer-word")
        page.one(".chart-label")
        assert {best, word} <= {each.text for each in page.all(".chart-label.strong")}
        assert page.run(overlaps) == 0
        page.run("document.querySelector('.chart-frame').focus()")
        for _ in range(3):
            page.keys("+")
            assert page.run(overlaps) == 0


def test_a_point_of_the_map_leads_to_its_word(page: OpenedPage) -> None:
    page.go("translate?word=price")
    other = page.one(".chart-dot.target")
    word = page.run("return arguments[0].querySelector('title').textContent", other)
    page.run("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", other)
    page.sees(".query-word", word)
    assert json.loads(page.run("return JSON.stringify(location.hash)")).endswith("direction=backward")
