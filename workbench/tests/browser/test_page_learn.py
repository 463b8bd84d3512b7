"""Learn from decisions: progress, cancel, comparison, keep and discard."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from opened_page import OpenedPage

pytestmark = pytest.mark.slow


@pytest.fixture
def decided(page: OpenedPage) -> OpenedPage:
    """Some decisions, made through the interface: half accepted, half rejected."""
    if page.api("review/status")["decisions"] == 0:
        for number, item in enumerate(
            page.api("review/next?reviewer=aino&order=frequency&count=10")["items"]
        ):
            words = [each["word"] for each in item["candidates"]]
            accept = number % 2 == 0
            body = {
                "source": item["source"], "reviewer": "aino", "verdict": "accept" if accept else "none",
                "accepted": words[1:2] if accept else [], "candidates": words, "note": "", "kind": "review",
            }  # fmt: skip
            page.api("review/decide", "POST", body)
    return page


def test_a_retraining_is_followed_compared_and_discarded(decided: OpenedPage) -> None:
    page = decided
    generation = page.api("model")["generation"]
    page.go("learn")
    page.click("#learn-start")
    page.one("#learn-keep")
    waiting = page.api("learn")["waiting"]
    page.sees(".stat", f"{waiting['changed']:,} of {waiting['compared']:,}")
    learned = waiting["learned_from"]
    page.sees("main", f"{learned['accepted']} accepted and {learned['rejected']} rejected pairs")
    if waiting["changed"]:
        change = page.api("learn/changes?offset=0&limit=1")["rows"][0]
        page.sees(".grid-body", change["source"])
        page.sees(".grid-body", change["after"])
    page.go("learn")
    page.click("#learn-discard")
    page.one("#learn-start")
    assert page.api("learn")["waiting"] is None
    assert page.api("model")["generation"] == generation


def test_a_retraining_is_kept_and_decisions_stay(decided: OpenedPage) -> None:
    page = decided
    before = page.api("model")["generation"]
    decisions = page.api("review/status")["decisions"]
    page.go("learn")
    page.click("#learn-start")
    page.click("#learn-keep")
    page.sees("main", "The new model is in use")
    page.until(lambda: page.api("model")["state"] == "ready", "the new model")
    assert page.api("model")["generation"] != before
    assert page.api("review/status")["decisions"] == decisions
    source = next(row for row in page.api("entries?status=accepted,corrected&limit=1")["rows"])
    page.go(f"translate?word={quote(source['source'], safe='')}")
    page.sees(".translation", source["accepted"][0])


def test_a_retraining_is_cancelled(decided: OpenedPage) -> None:
    page = decided
    page.go("learn")
    page.click("#learn-start")
    page.click("#job-cancel")
    page.sees("#last-job", "cancelled")
    assert page.api("learn")["waiting"] is None
