"""Several reviewers: second reviews, agreement, disagreements and how they are settled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opened_page import OpenedPage
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow


def test_disagreements_are_listed_and_settled(page: OpenedPage, reviewer: Callable[[str], None]) -> None:
    reviewer("aino")
    page.go("review?order=frequency")
    words = []
    for key in ("1", "1", "1"):
        words.append(page.text(".entry-word .word"))
        page.keys(key, Keys.ENTER)
        page.until(lambda: page.text(".entry-word .word") != words[-1], "the next entry")
    reviewer("ben")
    page.go("review?order=frequency&mode=second")
    for key in ("1", "n", "n"):
        source = page.text(".entry-word .word")
        assert source in words
        page.keys(key, *([Keys.ENTER] if key != "n" else []))
        page.until(
            lambda source=source: page.now(".entry-word .word") != source,  # type: ignore[misc]
            "the next entry",
        )
    page.sees("h2", "Nothing is left here")
    agreement = page.api("review/agreement")["overall"]
    page.go("people")
    page.sees(".stats", "Entries reviewed twice")
    page.sees(".stat", f"{agreement['share'] * 100:.0f} %")
    page.sees("h2", "Disagreements (2)")
    assert len(page.all(".disagreement")) == 2
    page.go("table?status=disagreement")
    page.sees("#table-total", "2 entries")
    reviewer("chief")
    page.go("people")
    page.press(".settle")
    page.sees("h2", "Disagreements (1)")
    assert page.api("review/disagreements")["total"] == 1
    page.press(".settle")
    page.sees("main", "Nobody disagrees")


def test_progress_and_reviewers_are_shown(page: OpenedPage) -> None:
    page.api(
        "review/decide",
        "POST",
        {
            "source": "price",
            "reviewer": "dora",
            "verdict": "none",
            "accepted": [],
            "candidates": ["hinta"],
            "note": "",
            "kind": "review",
        },
    )
    page.go("people")
    page.sees("table", "dora")
    status = page.api("review/status")
    page.sees(".stat", f"{status['rejected']}")
    page.go("table?reviewer=dora")
    page.sees("#table-total", "1 entry")
    page.sees(".grid-body", "price")
    page.go("entry?source=price")
    page.sees("main", "none is right")


def test_entries_are_divided_among_people_by_keyboard(
    page: OpenedPage, reviewer: Callable[[str], None]
) -> None:
    reviewer("chief")
    page.go("table?kind=name")
    page.run("window.confirm = () => true")
    page.sees("#table-total", "entr")
    page.press("#bulk summary")
    page.press("#bulk-person", "eeva, paavo")
    page.press("#bulk-assign")
    page.one("#bulk-undo")
    people = {each["name"]: each for each in page.api("review/reviewers")["reviewers"]}
    assert people["eeva"]["assigned"] >= people["paavo"]["assigned"] > 0
    source = page.api("entries?assignee=eeva&limit=1")["rows"][0]["source"]
    reviewer("eeva")
    page.go("review?assigned=mine&order=frequency")
    assert page.text(".entry-word .word") == source
    page.keys("n")
    page.until(lambda: page.now(".entry-word .word") != source, "the next entry")
    page.go("people")
    page.sees("td", f"1 of {people['eeva']['assigned']:,}")
    assert page.violations() == []
