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
    assert "takes about" in page.text("#learn-estimate")
    page.press("#learn-start")
    page.one("#learn-keep")
    waiting = page.api("learn")["waiting"]
    page.sees(".stat", f"{waiting['changed']:,} of {waiting['compared']:,}")
    page.sees("#learn-verdict", "no other word is touched")
    page.sees("#learn-note", waiting["refinement"]["note"])
    learned = waiting["learned_from"]
    page.sees("main", f"{learned['accepted']} accepted and {learned['rejected']} rejected pairs")
    if waiting["changed"]:
        change = page.api("learn/changes?offset=0&limit=1")["rows"][0]
        page.sees(".grid-body", change["source"])
        page.sees(".grid-body", change["after"])
        page.sees(".grid-body .reason", change["reason"])
    page.go("learn")
    page.press("#learn-discard")
    page.one("#learn-start")
    assert page.api("learn")["waiting"] is None
    assert page.api("model")["generation"] == generation


def test_a_retraining_is_kept_and_decisions_stay(decided: OpenedPage) -> None:
    page = decided
    before = page.api("model")["generation"]
    decisions = page.api("review/status")["decisions"]
    page.go("learn")
    page.press("#learn-start")
    page.press("#learn-keep")
    page.sees("main", "The new model is in use")
    page.until(lambda: page.api("model")["state"] == "ready", "the new model")
    assert page.api("model")["generation"] != before
    assert page.api("review/status")["decisions"] == decisions
    source = next(row for row in page.api("entries?status=accepted,corrected&limit=1")["rows"])
    page.go(f"translate?word={quote(source['source'], safe='')}")
    page.sees(".translation", source["accepted"][0])


def test_an_earlier_model_is_restored_by_keyboard(decided: OpenedPage) -> None:
    page = decided
    page.run("window.confirm = () => true")
    if not page.api("models")["earlier"]:
        page.go("learn")
        page.press("#learn-start")
        page.press("#learn-keep")
        page.sees("main", "The new model is in use")
        page.until(lambda: page.api("model")["state"] == "ready", "the new model")
    before = page.api("models")
    wanted = before["earlier"][0]
    page.go("learn")
    page.one(".restore")
    page.run("window.confirm = () => true")
    assert page.violations() == []
    page.press(".restore")
    page.sees("[role=status]", "The earlier model is in use again.")
    page.until(lambda: page.api("models")["current"]["made"] == wanted["made"], "the earlier model")
    assert page.api("models")["earlier"][0]["made"] == before["current"]["made"]
    page.sees("main", "in use")


def test_a_worse_model_is_to_be_discarded(page: OpenedPage) -> None:
    held = {
        "words": 200, "before": 0.6, "after": 0.5,
        "before_interval": [0.53, 0.67], "after_interval": [0.43, 0.57],
        "gained": 5, "lost": 25, "by": "decisions", "verdict": "worse",
    }  # fmt: skip
    found = {
        "seconds": 3, "learned_from": {"seeds": 9, "accepted": 1, "rejected": 1}, "held_out": held,
        "changed": 0, "compared": 10, "made": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    page.go("translate")
    page.run(
        "const [found] = arguments, real = window.fetch;"
        "window.fetch = async (path, given) => path !== '/api/learn' ? real(path, given)"
        " : new Response(JSON.stringify({waiting: found}), {status: 200});"
        "location.hash = '#/learn'",
        found,
    )
    page.sees("#learn-verdict", "Worse")
    assert "primary" in str(page.one("#learn-discard").get_attribute("class"))
    assert "primary" not in str(page.one("#learn-keep").get_attribute("class"))
    page.sees(".stat", "53 %–67 %")
    assert page.violations() == []


def test_a_retraining_is_cancelled(decided: OpenedPage) -> None:
    page = decided
    page.go("learn")
    page.press("#learn-start")
    page.press("#job-cancel")
    page.sees("#last-job", "cancelled")
    assert page.api("learn")["waiting"] is None
