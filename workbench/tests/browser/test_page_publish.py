"""Publish: exports, change log, the sheet for a spreadsheet, and its way back."""

from __future__ import annotations

import csv
import json
import threading
import zipfile
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opened_page import OpenedPage
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """A web server without a log, and without a complaint about the icon that no page has."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()


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
    text = page.downloaded(lambda: page.press("#download")).read_text(encoding="utf-8")
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
    sheet = page.downloaded(lambda: page.press("#sheet-open"))
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
    page.press("#import-go")
    page.sees("#import-result", "Would be imported: 2 accepted, 1 rejected")
    assert page.api("review/status")["decisions"] == before
    page.press("#import-trial", Keys.SPACE)
    page.press("#import-go")
    page.sees("#import-result", "Imported: 2 accepted, 1 rejected")
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


def test_the_published_site_is_searched_without_a_server(
    page: OpenedPage, reviewer: Callable[[str], None], tmp_path: Path
) -> None:
    reviewer("aino")
    page.go("publish")
    page.click("input[type=radio][value=all]")
    page.choose("#format", "site")
    page.write("#cover-title", "The Little Dictionary")
    page.until(lambda: "title=The+Little" in str(page.one("#download").get_attribute("href")), "the title")
    found = page.downloaded(lambda: page.press("#download"))
    assert found.name == "en-fi-site.zip"
    with zipfile.ZipFile(found) as archive:
        archive.extractall(tmp_path)
    page.driver.get((tmp_path / "dictionary" / "index.html").as_uri())
    page.sees("h1", "The Little Dictionary")
    for typed in ("price", "prcie"):  # also with a slip of the fingers
        page.write("#query", typed)
        page.sees("article h2", "price")
    translation = page.run(
        "return [...document.querySelectorAll('article')].find((e) => e.querySelector('h2').textContent"
        " === 'price').querySelector('li bdi').textContent"
    )
    for direction in ("", "1"):
        page.choose("#direction", direction)
        page.write("#query", translation)
        page.sees("article li bdi", "price")
    serve = partial(Quiet, directory=str(tmp_path / "dictionary"))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as web:  # axe-core fetches style sheets itself
        threading.Thread(target=web.serve_forever, daemon=True).start()
        for name in ("index.html", "print.html"):
            page.driver.get(f"http://127.0.0.1:{web.server_port}/{name}")
            page.sees(
                "article h4" if name == "print.html" else "article h2",
                "price" if name == "print.html" else "",
            )
            for scheme in ("light", "dark"):
                page.prefer(scheme)
                assert page.violations() == []
                if name == "print.html":
                    assert page.run("return document.querySelectorAll('.part').length") == 2
        web.shutdown()
