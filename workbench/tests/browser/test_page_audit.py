"""The audit: drawn, reviewed blind by keyboard, reported, recalibrated, applied to the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from opened_page import OpenedPage
from running_server import Server
from selenium.webdriver.common.keys import Keys

from bilex.model import Translator
from bilex_workbench.statistics import Recalibration

pytestmark = pytest.mark.slow

SIZE = 34


@pytest.fixture
def auditor(page: OpenedPage, reviewer: Callable[[str], None]) -> OpenedPage:
    reviewer("aino")
    return page


def test_an_audit_from_drawing_to_recalibration(auditor: OpenedPage) -> None:
    page = auditor
    page.go("audit")
    page.write("#audit-size", str(SIZE))
    page.press("#audit-start")
    page.sees("#audit-progress", f"0 of {SIZE} entries")
    size = page.api("audit")["audit"]["size"]
    assert size == SIZE
    # Blind: no confidence, no score, no rank of a candidate, and the model's choice is not always first.
    assert not page.all(".candidate .confidence, .candidate .badge, .candidate small")
    first_is_best = []
    for number in range(size):
        page.sees("#audit-progress", f"{number} of")
        source = page.text(".entry-word .word")
        if number < 12:
            best = page.api(f"translate?word={source}&k=1")["translations"]
            first_is_best.append(
                bool(best) and best[0]["word"] == page.all(".candidate")[0].get_attribute("data-word")
            )
        page.keys(*(["n"] if number % 3 == 0 else ["1", Keys.ENTER]))
        if number == 1:
            page.sees("#audit-progress", "2 of")
            page.keys("u")
            page.sees("#audit-progress", "1 of")
            assert page.text(".entry-word .word") == source
            page.keys("1", Keys.ENTER)
    assert not all(first_is_best)
    page.one("#audit-report h2")
    report = page.api("audit/report?width=0.1")
    assert report["decided"] == size
    page.sees("#audit-report .stat", f"{report['precision'] * 100:.0f} %")
    page.sees("#audit-report .stat", f"{report['low'] * 100:.0f} % – {report['high'] * 100:.0f} %")
    page.sees("#more-decisions", f"{report['more_decisions']['decisions']:,} more")
    page.write("#wanted-width", f"30{Keys.TAB}")
    wider = page.api("audit/report?width=0.3")["more_decisions"]["decisions"]
    page.sees("#more-decisions", "30 %")
    page.sees("#more-decisions", f"{wider:,} more" if wider else "already")
    assert len(page.all("#audit-report .interval")) > 2
    page.press("#recalibrate")
    page.sees("#audit-report", "Recalibrated from")
    page.press("#recalibrate-undo")
    page.until(
        lambda: page.api("audit/report?width=0.1")["recalibration"] is None, "the model's own confidences"
    )


def test_an_audit_is_continued_after_a_break(auditor: OpenedPage) -> None:
    page = auditor
    page.api(
        "audit",
        "POST",
        {"size": 12, "reviewer": "aino", "random_seed": 3, "min_confidence": None, "max_rank": None},
    )
    page.go("audit")
    page.press("#audit-go")
    page.sees("#audit-progress", "0 of 12")
    page.keys("s")
    page.until(lambda: page.text(".entry-word .word"), "the next entry")
    page.keys("1", Keys.ENTER)
    page.press("#audit-stop")
    page.sees("#audit-go", "Continue")


def confidences(model: Path) -> list[float | None]:
    answers = Translator.load(model, device="cpu").translate(["dog", "water", "house"], 3)
    return [found.confidence for answer in answers for found in answer]


def test_recalibrated_confidences_are_applied_to_the_model(auditor: OpenedPage, server: Server) -> None:
    page, model = auditor, server.folder / "en-fi"
    drawn = {"size": 60, "reviewer": "aino", "random_seed": 4, "min_confidence": None, "max_rank": None}
    page.api("audit", "POST", drawn)
    while items := page.api("audit/next?reviewer=aino&count=10")["items"]:
        for item in items:  # worse than the model says
            page.api(
                "audit/decide", "POST", {"number": item["number"], "reviewer": "aino", "verdict": "none"}
            )
    before = confidences(model)
    page.go("audit")
    assert not page.all("#recalibrate-apply")  # nothing to apply yet
    page.click("#recalibrate")
    page.sees("#audit-report", "Recalibrated from")
    change = Recalibration(**page.api("audit/report?width=0.1")["recalibration"])
    assert confidences(model) == before
    page.click("#recalibrate-apply")
    page.sees("[role=status], [role=alert]", "The model has the recalibrated confidences.")
    page.until(lambda: not page.all("#recalibrate-apply"), "nothing left to apply")
    page.sees("#audit-report", "can correct the confidences")
    after = confidences(model)
    assert after != before
    assert after == pytest.approx([change(one) for one in before], abs=1e-5)
    shown = page.api("translate?word=dog&k=3")["translations"]
    assert [found["confidence"] for found in shown] == pytest.approx(after[:3], abs=1e-5)
