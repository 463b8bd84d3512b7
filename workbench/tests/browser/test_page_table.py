"""The dictionary as a table: paging, search, filters, sorting, columns, links."""

from __future__ import annotations

import pytest
from opened_page import OpenedPage
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow

ROWS = ".grid-body .grid-row:not(.pending)"


def sources(page: OpenedPage) -> list[str]:
    """The source words in sight, from the top."""
    return page.run(
        "return [...document.querySelectorAll('.grid-body .grid-row:not(.pending)')]"
        ".sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex'))"
        ".map((row) => row.querySelector('.source .word').textContent)"
    )


def total(page: OpenedPage) -> int:
    return page.api("entries?limit=1&heads=true")["total"]


def test_only_rows_in_sight_exist_and_the_last_is_reached_by_keyboard(page: OpenedPage) -> None:
    page.go("table")
    page.one(ROWS)
    entries = total(page)
    page.sees("#table-total", f"{entries:,} entries")
    assert len(page.all(".grid-row")) < 60 < entries
    page.run("document.querySelector('.grid').focus()")
    page.keys(Keys.END)
    last = page.api(f"entries?heads=true&offset={entries - 1}&limit=1")["rows"][0]["source"]
    index = page.run("return document.querySelector('.grid').getAttribute('aria-rowcount')")
    page.until(lambda: page.all(f"{ROWS}[aria-rowindex='{index}'].active"), "the last row")
    assert last[:50] in page.text(f"{ROWS}[aria-rowindex='{index}'] .source")
    assert len(page.all(".grid-row")) < 60
    page.keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ENTER)
    second = page.api("entries?heads=true&offset=1&limit=1")["rows"][0]["source"]
    page.sees("h1", second)


def test_search_and_filters_are_in_the_link(page: OpenedPage) -> None:
    page.go("table")
    page.keys("/")
    page.keys("pri")
    wanted = page.api("entries?q=pri&limit=100")
    page.sees("#table-total", f"{wanted['total']:,} entr")
    page.until(lambda: sources(page)[:5] == [row["source"] for row in wanted["rows"]][:5], "the found rows")
    page.click("#more-filters summary")
    page.choose("#filter-in", "source")
    page.choose("#filter-mutual", "true")
    wanted = page.api("entries?q=pri&in=source&mutual=true&limit=100")
    page.until(lambda: sources(page) == [row["source"] for row in wanted["rows"]], "the filtered rows")
    link = page.run("return location.hash")
    assert link == "#/table?q=pri&in=source&mutual=true"
    page.go(link.removeprefix("#/"))
    page.until(
        lambda: sources(page) == [row["source"] for row in wanted["rows"]], "the same rows from the link"
    )
    assert page.one("#table-search").get_attribute("value") == "pri"
    page.go("table?q=zzzzqqq")
    page.sees("#table-empty", "No entry matches")
    page.click("#table-empty button")
    page.one(ROWS)


def test_every_column_sorts_both_ways(page: OpenedPage) -> None:
    page.go("table")
    page.one(ROWS)
    for heading, key in (
        ("Confidence", "-confidence"),
        ("Confidence", "confidence"),
        ("English", "source"),
        ("English", "-source"),
    ):
        button = next(each for each in page.all(".grid-head button.sort") if each.text.startswith(heading))
        button.click()
        wanted = [row["source"][:50] for row in page.api(f"entries?heads=true&sort={key}&limit=8")["rows"]]
        page.until(
            lambda wanted=wanted: [each[:50] for each in sources(page)[:8]] == wanted, f"rows by {key}"
        )  # type: ignore[misc]
        assert page.run("return location.hash") == f"#/table?sort={key}"
        direction = "descending" if key.startswith("-") else "ascending"
        assert heading in page.text(f".grid-head [aria-sort={direction}]")
        assert page.run("return document.activeElement.className") == "sort"


def test_columns_are_chosen(page: OpenedPage) -> None:
    page.go("table")
    page.click("#more-filters summary")
    boxes = {each.text: each.find_element("css selector", "input") for each in page.all("#columns .check")}
    assert boxes["Confidence"].is_selected() and not boxes["Score"].is_selected()
    boxes["Score"].click()
    boxes["Status"].click()
    page.sees(".grid-head", "Score")
    assert "Status" not in page.text(".grid-head")
    assert (
        page.run("return location.hash")
        == "#/table?columns=select%2Csource%2Ctarget%2Cconfidence%2Cscore%2Ckind%2Csource_rank"
    )


def test_long_tables_scroll_by_the_bar(page: OpenedPage) -> None:
    page.go("table")
    page.one(ROWS)
    page.run("const s = document.querySelector('.grid-scroll'); s.scrollTop = s.scrollHeight / 2")
    rows = page.until(
        lambda: [e for e in page.all(ROWS) if int(e.get_attribute("aria-rowindex") or 0) > 500],
        "rows of the middle",
    )
    index = int(rows[0].get_attribute("aria-rowindex") or 0) - 2
    assert page.api(f"entries?heads=true&offset={index}&limit=1")["rows"][0]["source"] in rows[0].text


def test_the_kind_of_all_entries_found_is_set_and_taken_back(page: OpenedPage) -> None:
    page.go("table")
    page.run("localStorage.setItem('bilex-reviewer', 'aino'); window.confirm = () => true")
    page.write("#table-search", "price")
    page.until(
        lambda: "entr" in page.text("#table-total") and "2,000" not in page.text("#table-total"), "few"
    )
    page.click("#bulk summary")
    page.choose("#bulk-kind", "phrase")
    page.click("#bulk-set-kind")
    page.until(lambda: page.api("entries?kind=phrase&q=price")["total"] > 0, "another kind")
    page.click("#bulk-undo")
    page.until(lambda: page.api("entries?kind=phrase&q=price")["total"] == 0, "the kind as before")


def test_selected_entries_are_accepted_and_taken_back_by_keyboard(page: OpenedPage) -> None:
    page.go("table")
    page.run("localStorage.setItem('bilex-reviewer', 'aino'); window.confirm = () => true")
    page.one(ROWS)
    page.run("document.querySelector('.grid').focus()")
    page.keys(Keys.SPACE, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.SPACE)
    page.sees("#bulk-scope", "2 selected entries")
    rows = page.api("entries?heads=true&limit=3")["rows"]
    assert len(page.all(f"{ROWS}[aria-selected=true]")) == 2
    page.press("#bulk summary")
    page.press("#bulk-accept")
    page.one("#bulk-undo")
    accepted = page.api("entries?status=accepted")
    assert {row["source"] for row in accepted["rows"] if row["reviewers"]} == {
        rows[0]["source"],
        rows[2]["source"],
    }
    page.press("#bulk-undo")
    page.until(lambda: page.api("entries?status=accepted")["total"] == 0, "nothing accepted")


def test_forms_unfold_in_place(page: OpenedPage) -> None:
    page.go("table")
    page.one(ROWS)
    rows = page.api("entries?heads=true&limit=30")["rows"]
    place, head = next((place, row) for place, row in enumerate(rows) if row["forms"] >= 2)
    found = page.api(f"entries?heads=false&headword={head['source']}")["rows"]
    forms = [row["source"] for row in found]
    page.run("document.querySelector('.grid').focus()")
    page.keys(*[Keys.ARROW_DOWN] * place, Keys.ARROW_RIGHT)
    page.until(
        lambda: (
            sources(page)[place : place + len(forms) + 2]
            == [head["source"], *forms, rows[place + 1]["source"]]
        ),
        "the forms under their headword",
    )
    assert page.all(f"{ROWS}[aria-expanded=true]")[0].get_attribute("aria-level") == "1"
    assert len(page.all(f"{ROWS}[aria-level='2']")) == len(forms)
    assert page.violations() == []
    page.keys(Keys.ARROW_DOWN, Keys.ARROW_LEFT)
    page.until(lambda: sources(page)[place + 1] == rows[place + 1]["source"], "the forms hidden again")
    page.keys(Keys.ARROW_RIGHT)
    page.until(lambda: sources(page)[place + 1] == forms[0], "the forms again")
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.sees("h1", forms[0])


def test_fifteen_rows_are_in_sight(page: OpenedPage) -> None:
    page.resize(1280, 900)
    page.go("table")
    page.until(lambda: page.all(ROWS), "rows")
    whole = page.run(
        "const frame = document.querySelector('.grid-scroll').getBoundingClientRect();"
        "return [...document.querySelectorAll('.grid-body .grid-row')].map((e) => e.getBoundingClientRect())"
        ".filter((box) => box.top >= frame.top && box.bottom <= Math.min(frame.bottom, innerHeight)).length"
    )
    assert whole >= 15 and page.run("return scrollY") == 0


def test_the_whole_head_of_a_column_sorts(page: OpenedPage) -> None:
    page.go("table")
    page.one(ROWS)
    missed = page.run(
        "return [...document.querySelectorAll('.grid-head .cell:has(button)')].filter((cell) => {"
        " const box = cell.getBoundingClientRect();"
        " return [[1, 1], [box.width - 1, box.height - 2]].some(([x, y]) =>"
        "  document.elementFromPoint(box.left + x, box.top + y)?.closest('button') === null); }).length"
    )
    assert missed == 0
