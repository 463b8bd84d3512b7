"""Every view: no serious accessibility violation, light and dark, phone width, keyboard reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opened_page import OpenedPage
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow

VIEWS = [
    "translate?word=price",
    "table",
    "review",
    "audit",
    "learn",
    "publish",
    "people",
    "entry?source=price",
]


def settle(page: OpenedPage, view: str) -> None:
    page.go(view)
    name = view.partition("?")[0]
    loaded = {
        "translate": ".chart-dot",
        "table": ".grid-body .grid-row:not(.pending)",
        "review": ".entry-word",
        "entry": ".chart-dot",
        "publish": "#preview-count",
        "learn": ".learn-place .card",
        "people": ".stats",
        "audit": "#audit-start",
    }
    page.until(lambda: page.all(loaded[name]), f"the view {name}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_violation_in_any_view(
    page: OpenedPage, reviewer: Callable[[str], None], scheme: str
) -> None:
    reviewer("aino")
    page.prefer(scheme)
    for view in VIEWS:
        settle(page, view)
        assert page.violations() == [], view
        ground = page.run("return getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in ground.strip("rgb()").split(","))
        assert brightness > 600 if scheme == "light" else brightness < 150


def test_opened_parts_have_no_serious_violation(page: OpenedPage, reviewer: Callable[[str], None]) -> None:
    reviewer("aino")
    settle(page, "translate?word=price")
    page.click(".why-button")
    page.until(lambda: page.all(".why .neighbours"), "the neighbours")
    page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert page.violations() == []
    settle(page, "table")
    page.click("#more-filters summary")
    page.click("#bulk summary")
    assert page.violations() == []
    settle(page, "review")
    page.keys("1", "m")
    page.keys("note", Keys.ESCAPE, "t")
    page.keys("hin")
    page.one(".options li")
    assert page.violations() == []
    page.click("#key-help")
    page.one("dialog#keys")
    assert page.violations() == []


def test_nothing_is_wider_than_a_phone(page: OpenedPage, reviewer: Callable[[str], None]) -> None:
    reviewer("aino")
    page.resize(360, 740, mobile=True)
    for view in VIEWS:
        settle(page, view)
        assert page.run("return document.documentElement.scrollWidth") <= 360, view
        assert page.violations() == [], view
    settle(page, "review")
    source = page.text(".entry-word .word")
    for button in (".candidate", ".decision-bar .save"):
        box = page.one(button).rect
        assert box["height"] >= 40 and box["width"] >= 40
    page.click(".candidate")
    page.click(".decision-bar .save")
    page.until(lambda: page.text(".entry-word .word") != source, "the next entry")
    page.click(".decision-bar .undo")
    page.until(lambda: page.text(".entry-word .word") == source, "the entry again")


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_selects_are_whole_and_labels_stand_in_line(
    page: OpenedPage, reviewer: Callable[[str], None], size: tuple[int, int]
) -> None:
    reviewer("aino")
    page.resize(*size)
    truncated = (
        "return [...document.querySelectorAll('select')].filter((e) => e.offsetParent).filter((e) => {"
        " const whole = document.createElement('select');"
        " whole.append(new Option(e.selectedOptions[0]?.text));"
        " Object.assign(whole.style, {width: 'auto', minWidth: '0', position: 'absolute'});"
        " e.after(whole); const wanted = whole.offsetWidth; whole.remove();"
        " return wanted > e.offsetWidth + 1; }).map((e) => e.id)"
    )
    crooked = (
        "return [...document.querySelectorAll('.fields')].flatMap((row) => {"
        " const tops = {}; for (const field of row.querySelectorAll(':scope > .field')) {"
        "  const [label, control] = [...field.children]"
        "   .map((e) => Math.round(e.getBoundingClientRect().top));"
        "  (tops[label] ??= new Set()).add(control); }"
        " return Object.values(tops).filter((controls) => controls.size > 1).map(() => row.textContent); })"
    )
    for view in VIEWS:
        settle(page, view)
        page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert page.run(truncated) == [], view
        assert page.run(crooked) == [], view


def test_the_active_tab_is_in_sight_on_a_phone(page: OpenedPage, reviewer: Callable[[str], None]) -> None:
    reviewer("aino")
    page.resize(390, 844, mobile=True)
    for view in VIEWS:
        settle(page, view)
        box = page.one("nav a[aria-current=page]").rect
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, view


def test_the_theme_is_switched_and_remembered(page: OpenedPage) -> None:
    page.go("translate")
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.click("#theme-switch")
    assert page.run(colour) == light and "light" in page.text("#theme-switch")
    page.click("#theme-switch")
    dark = page.run(colour)
    assert dark != light
    page.go("table")
    assert page.run(colour) == dark
    page.click("#theme-switch")
    assert page.run(colour) == light


def test_the_keyboard_reaches_everything_in_order(page: OpenedPage) -> None:
    page.go("translate?word=price")
    page.one(".why-button")
    page.run("document.activeElement.blur()")
    reached = []
    for _ in range(24):
        page.keys(Keys.TAB)
        reached.append(
            page.run("const e = document.activeElement; return e.id || e.className || e.textContent")
        )
        assert page.run(
            "const e = document.activeElement;"
            "return e === document.body || getComputedStyle(e).outlineStyle !== 'none'"
        )
    wanted = [
        "skip-link",
        "brand",
        "Translate",
        "Dictionary",
        "People",
        "key-help",
        "theme-switch",
        "word",
        "direction",
        "retrieval",
    ]
    places = [reached.index(each) for each in wanted]
    assert places == sorted(places)
    assert any("why-button" in each for each in reached)


def test_the_skip_link_leads_to_the_content(page: OpenedPage) -> None:
    page.go("table")
    page.run("document.activeElement.blur()")
    page.keys(Keys.TAB, Keys.ENTER)
    assert page.run("return document.activeElement.id") == "main"
    assert page.run("return location.hash") == "#/table"


def test_views_are_reached_by_links_and_back(page: OpenedPage) -> None:
    page.go("translate")
    page.click("nav a[data-view=publish]")
    page.one("#format")
    assert page.driver.title == "Publish – bilex workbench"
    assert page.run("return document.activeElement.tagName") == "H1"
    assert page.one("nav a[aria-current=page]").text == "Publish"
    page.driver.back()
    page.one("#word")
    page.go("translate")
    page.run("location.hash = '#/no-such-view'")
    page.until(lambda: page.run("return location.hash") == "#/translate", "the first view")


def test_the_page_asks_nobody_else(page: OpenedPage, reviewer: Callable[[str], None]) -> None:
    reviewer("aino")
    for view in VIEWS:
        settle(page, view)
        asked = page.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        assert asked and all(each.startswith((page.address, "blob:")) for each in asked)
    assert not page.all("script:not([src]), style, [style*='url(']")
