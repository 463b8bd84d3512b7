"""Publish: exports, change log, the sheet for a spreadsheet, and its way back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from opened_page import OpenedPage

pytestmark = pytest.mark.slow


def decide(page: OpenedPage, source: str, accepted: list[str], reviewer: str = "aino") -> None:
    candidates = [each["word"] for each in page.api(f"translate?word={source}&k=9")["translations"]]
    body = {
        "source": source,
        "reviewer": reviewer,
        "verdict": "accept" if accepted else "none",
        "accepted": accepted,
        "candidates": candidates,
        "note": "",
        "kind": "review",
    }
    page.api("review/decide", "POST", body)


def test_the_dictionary_is_previewed_and_downloaded(page: OpenedPage) -> None:
    decide(page, "price", ["hinta"])
    decide(page, "buy", ["ostaa", "hankkia"])
    decide(page, "red", [])
    page.go("publish")
    page.sees("#preview-count", "3 pairs, 3 of them confirmed")
    page.sees("#preview table", "hankkia")
    page.choose("#format", "csv")
    text = page.downloaded(lambda: page.click("#download")).read_text(encoding="utf-8")
    assert all(word in text for word in ("price", "hinta", "ostaa", "hankkia")) and "red" not in text
    page.click("input[type=radio][value=all]")
    wanted = page.api("publish/preview?which=all")["pairs"]
    page.sees("#preview-count", f"{wanted:,} pairs")
    page.click("input[type=radio][value=confident]")
    wanted = page.api("publish/preview?which=confident&min_confidence=0.8")["pairs"]
    page.sees("#preview-count", f"{wanted:,} pairs")


def test_the_change_log_says_who_decided_what(page: OpenedPage) -> None:
    decide(page, "hello", ["hei"], "ben")
    page.go("publish")
    lines = page.downloaded(lambda: page.click("#log-jsonl")).read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    assert any(
        each["source"] == "hello" and each["reviewer"] == "ben" and each["accepted"] == ["hei"]
        for each in found
    )
    assert "hello" in page.downloaded(lambda: page.click("#log-csv")).read_text(encoding="utf-8")


def test_a_sheet_goes_out_and_comes_back(page: OpenedPage, tmp_path: Path) -> None:
    page.go("publish")
    sheet = page.downloaded(lambda: page.click("#sheet-open"))
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        names = reader.fieldnames or []
    chosen = [row for row in rows if row["source"].isalpha()][:3]
    for row, verdict in zip(chosen, ("yes", "no", "yes"), strict=True):
        row["verdict"] = verdict
    filled = tmp_path / "filled.csv"
    with filled.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(chosen)
    page.one("#import-file").send_keys(str(filled))
    page.write("#import-reviewer", "spreadsheet")
    before = page.api("review/status")["decisions"]
    page.click("#import-go")
    page.sees("#import-result", "Would be taken over: 2 accepted, 1 rejected")
    assert page.api("review/status")["decisions"] == before
    page.click("#import-trial")
    page.click("#import-go")
    page.sees("#import-result", "Taken over: 2 accepted, 1 rejected")
    statuses = [page.api(f"entry?source={row['source']}")["status"] for row in chosen]
    assert statuses == ["accepted", "rejected", "accepted"]


def test_a_file_that_is_no_sheet_is_refused_in_a_sentence(page: OpenedPage, tmp_path: Path) -> None:
    page.go("publish")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n", encoding="utf-8")
    page.one("#import-file").send_keys(str(wrong))
    page.write("#import-reviewer", "spreadsheet")
    page.expect_failed_request(400)
    page.expect_failed_request(422)
    page.click("#import-go")
    page.until(
        lambda: page.all("[role=alert] .notice, #import-result .problems"), "a sentence about the file"
    )
