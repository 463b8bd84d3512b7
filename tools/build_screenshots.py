"""Take the pictures of docs/guide/workbench.md: docs/images/workbench-*.png.

    python tools/build_screenshots.py      two minutes on 2 cores; needs chromium, chromedriver, Pillow

The packaged sample is aligned, `bilex serve` is started on it, decisions are made with the sample's test
dictionary as the reviewer, and Chromium takes the pictures: real pages of a real model. The server and the
browser are started as the browser tests start them.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "workbench" / "tests" / "browser"))

from opened_page import OpenedPage, chromium  # noqa: E402
from running_server import TOKEN, serve  # noqa: E402

OUTPUT = REPOSITORY / "docs" / "images"
LARGEST = 80_000
RETRAINING_S = 300.0
DECISIONS = 60
AUDITED = 800
Translations = Mapping[str, Sequence[str]]  # of the words of the test dictionary


def fit(path: Path, method: str) -> None:
    """Align the packaged sample."""
    sample = sample_path()
    source, target = (WordVectors.load(sample / language) for language in ("en", "fi"))
    seeds = Lexicon.load(sample / "seeds.tsv")
    Translator(get_method(method)()).fit(source, target, seeds, languages=("en", "fi")).save(path)


def decide(page: Any, truth: Translations) -> None:
    """Two reviewers who know the test dictionary; the second is strict and accepts one translation only."""
    for place, source in enumerate(list(truth)[:DECISIONS]):
        for reviewer in ("aino", "ben") if place % 4 == 0 else ("aino",):
            entry = page.api(f"entry?source={source}")
            words = [each["word"] for each in entry["candidates"]]
            right = [word for word in words if word in truth[source]]
            accepted = right if reviewer == "aino" else [word for word in right if word == words[0]]
            verdict = "accept" if accepted else "none"
            body = {"source": source, "reviewer": reviewer, "verdict": verdict, "accepted": accepted}
            page.api("review/decide", "POST", {**body, "candidates": words, "note": "", "kind": "review"})


def audit(page: Any, truth: Translations) -> None:
    """A blind audit by somebody who knows the test dictionary and skips every other word."""
    order = {"size": AUDITED, "reviewer": "aino", "random_seed": 1, "min_confidence": None, "max_rank": None}
    page.api("audit", "POST", order)
    for _ in range(AUDITED):
        items = page.api("audit/next?reviewer=aino&count=1")["items"]
        if not items:
            return
        item, known = items[0], truth.get(items[0]["source"], ())
        right = [word for word in item["candidates"] if word in known]
        verdict = "skip" if not known else "accept" if right else "none"
        body = {"number": item["number"], "reviewer": "aino", "right": right, "verdict": verdict}
        page.api("audit/decide", "POST", body)


def picture(page: Any, name: str, output: Path) -> None:
    """Write what the browser shows, in 64 colours; a large picture is an error."""
    shown = Image.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
    packed = io.BytesIO()
    shown.quantize(64, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    taken = packed.getvalue()
    if len(taken) > LARGEST:
        raise BilexError(f"workbench-{name}.png has {len(taken):,} bytes; at most {LARGEST:,} are taken.")
    with atomic_file(output / f"workbench-{name}.png") as file:
        file.write_bytes(taken)
    print(f"workbench-{name}.png: {len(taken):,} bytes")


def take(page: Any, truth: Translations, output: Path) -> None:
    """Take all pictures."""
    page.run("localStorage.setItem('bilex-reviewer', 'aino')")
    page.resize(1100, 940)
    page.go("translate?word=coffee")
    page.until(lambda: page.all(".chart-dot"), "the map")
    picture(page, "translate", output)
    decide(page, truth)
    page.resize(1100, 760)
    page.go("table?sort=-decided&columns=source,target,confidence,source_rank,status,reviewers")
    page.until(lambda: page.all(".grid-body .grid-row:not(.pending)"), "rows")
    picture(page, "table", output)
    page.resize(1100, 840)
    page.go("review")
    page.one(".entry-word")
    page.keys("1", "2", "2", "w")
    page.until(lambda: page.all(".decision .neighbours"), "the neighbours")
    picture(page, "review", output)
    audit(page, truth)
    page.resize(1100, 900)
    page.go("audit")
    page.one("#audit-report h2")
    page.run("document.getElementById('audit-report').scrollIntoView(); scrollBy(0, -80)")
    picture(page, "audit", output)
    page.prefer("dark")
    page.resize(1100, 760)
    page.go("learn")
    page.click("#learn-start")
    page.until(lambda: page.all("#learn-keep"), "the end of the retraining", RETRAINING_S)
    page.until(lambda: page.all(".grid-body .grid-row:not(.pending)"), "changed entries")
    page.run("scrollTo(0, 0); document.querySelectorAll('.notice').forEach((each) => each.remove())")
    picture(page, "learn", output)
    page.click("#learn-discard")
    page.resize(390, 780, mobile=True)
    page.go("review")
    page.one(".entry-word")
    page.click(".candidate")
    page.run("scrollTo(0, 0)")
    picture(page, "phone", output)


def main() -> None:
    """Fit, serve, decide, take the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the folder for the pictures")
    parser.add_argument("--method", default="procrustes", help="the method that aligns the sample")
    given = parser.parse_args()
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        parser.error("chromium and chromedriver are needed; install them first.")
    truth = Lexicon.load(sample_path() / "test.tsv").translations()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit(folder / "en-fi", given.method)
        browser = chromium(folder, binary, driver)
        try:
            with serve([str(folder / "en-fi")], folder) as server:
                page = OpenedPage(browser, server.address, TOKEN, folder)
                take(page, truth, given.output)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
