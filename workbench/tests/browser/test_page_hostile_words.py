"""Words of the web are shown as text: markup, control and direction characters, right-to-left, a megabyte."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hostile_words import HOSTILE
from opened_page import OpenedPage

pytestmark = pytest.mark.slow

LONGEST_SHOWN = 200


def last_words(page: OpenedPage) -> None:
    """The table scrolled to the end, where the hostile words stand."""
    page.go("table")
    page.one(".grid-body .grid-row:not(.pending)")
    page.run("const s = document.querySelector('.grid-scroll'); s.scrollTop = s.scrollHeight")
    page.until(
        lambda: page.all(".grid-body .grid-row:not(.pending) .source .word[title]"), "the longest word"
    )


def test_the_table_shows_them_as_text(page: OpenedPage) -> None:
    last_words(page)
    cells = page.run(
        "return [...document.querySelectorAll('.grid-row .source .word')].map((e) => e.textContent)"
    )
    assert HOSTILE["markup"] in cells and HOSTILE["image"] in cells
    assert "invoice\\u202egnp.exe" in cells and "bell\\x07\\x1b[31m" in cells
    assert HOSTILE["right-to-left"] in cells and HOSTILE["joiner"] in cells
    assert "x" * 120 + "…" in cells and max(map(len, cells)) <= LONGEST_SHOWN
    assert page.driver.title == "Dictionary – bilex workbench"
    assert page.run("return document.querySelectorAll('main script, main img').length") == 0
    assert page.run("return document.documentElement.outerHTML.length") < 500_000


def test_right_to_left_words_are_isolated(page: OpenedPage) -> None:
    last_words(page)
    script = (
        "const e = [...document.querySelectorAll('bdi')].find((e) => e.textContent === arguments[0]);"
        "return [e.dir, getComputedStyle(e).direction]"
    )
    assert page.run(script, HOSTILE["right-to-left"]) == ["auto", "rtl"]
    assert page.run(script, HOSTILE["image"]) == ["auto", "ltr"]


@pytest.mark.parametrize("name", ["markup", "image", "bidi", "right-to-left", "joiner", "marks"])
def test_an_entry_of_each_can_be_opened(page: OpenedPage, name: str) -> None:
    page.go(f"entry?source={quote(HOSTILE[name], safe='')}")
    page.one(".entry-facts")
    shown = page.text("h1 .word")
    assert not set(shown) & set("\x07\x1b\u202e")
    assert "broken" not in page.driver.title
    page.until(lambda: page.all(".chart-dot"), "the map")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    heights = page.run(
        "return [...document.querySelectorAll('h1, .candidate')].map((e) => e.getBoundingClientRect().height)"
    )
    assert max(heights) < 120


def test_control_characters_in_an_address_are_refused_in_words(page: OpenedPage) -> None:
    page.expect_failed_request(400)
    page.go(f"entry?source={quote(HOSTILE['control'], safe='')}")
    page.sees(".lead", "control characters")
    assert not set(page.text("h1")) & set("\x07\x1b")


def test_a_typed_word_is_not_obeyed(page: OpenedPage) -> None:
    page.go(f"translate?word={quote('<b>x</b><script>1</script>', safe='')}")
    page.sees("#answer", "<b>x</b><script>1</script> is not in the vocabulary")
    assert not page.all("#answer b, #answer script")
