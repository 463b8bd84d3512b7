from __future__ import annotations

import random

import numpy as np
import pytest

from bilex.model import Translator
from bilex.model.storage import StoredModel
from bilex_workbench.statistics import (
    Recalibration,
    Stratum,
    allocate,
    estimate,
    learn,
    more_decisions,
    wilson,
)
from workbench_server import right_answer


def draw(client, size=60, **rest):
    answer = client.post("/api/audit", json={"size": size, "reviewer": "aino", **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()["audit"]


def answer_all(client, bench, wrong_when=lambda number: False):
    while items := client.get("/api/audit/next", params={"reviewer": "aino", "count": 5}).json()["items"]:
        for item in items:
            right = [word for word in item["candidates"] if word == right_answer(bench, item["source"])]
            if wrong_when(item["number"]):
                right = []
            body = {"number": item["number"], "reviewer": "aino", "right": right}
            body["verdict"] = "accept" if right else "none"
            assert client.post("/api/audit/decide", json=body).status_code == 200


def test_a_sample_is_stratified_and_blind(client, bench):
    audit = draw(client)
    assert audit["size"] == 60 == sum(stratum["drawn"] for stratum in audit["strata"])
    assert len(audit["strata"]) > 1 and all(stratum["drawn"] > 0 for stratum in audit["strata"])
    items = client.get("/api/audit/next", params={"reviewer": "aino", "count": 10}).json()["items"]
    assert all(set(item) == {"number", "source", "source_rank", "candidates"} for item in items)
    places = []
    for item in items:
        best = client.get("/api/entry", params={"source": item["source"]}).json()["target"]
        places.append(item["candidates"].index(best))
    assert len(set(places)) > 1  # the model's choice is not always at the same place


def test_the_report_is_about_the_model(client, bench):
    draw(client, 80)
    answer_all(client, bench)
    report = client.get("/api/audit/report", params={"width": 0.02}).json()
    assert report["decided"] == 80
    entries = client.get("/api/entries", params={"limit": 500, "offset": 0}).json()["rows"]
    entries += client.get("/api/entries", params={"limit": 500, "offset": 500}).json()["rows"]
    found = [row["target"] == right_answer(bench, row["source"]) for row in entries if not row["known"]]
    assert report["low"] <= np.mean(found) <= report["high"]
    assert report["width"] == pytest.approx(report["high"] - report["low"])
    assert report["more_decisions"]["decisions"] > 0
    assert sum(group["decided"] for group in report["by_band"]) == 80
    assert sum(group["decided"] for group in report["by_confidence"]) == 80


def test_undo_and_skip(client, bench):
    draw(client, 10)
    (item,) = client.get("/api/audit/next", params={"reviewer": "aino", "count": 1}).json()["items"]
    body = {"number": item["number"], "reviewer": "aino", "verdict": "none"}
    assert client.post("/api/audit/decide", json=body).json()["decided"] == 1
    assert client.post("/api/audit/decide", json=body).status_code == 409
    back = client.post("/api/audit/undo", json={"reviewer": "aino"}).json()
    assert back["item"] == item and back["decided"] == 0
    assert client.get("/api/entry", params={"source": item["source"]}).json()["status"] == "unreviewed"
    assert client.post("/api/audit/undo", json={"reviewer": "aino"}).status_code == 409
    client.post("/api/audit/decide", json={**body, "verdict": "skip"})
    assert client.get("/api/audit").json()["audit"]["skipped"] == 1
    assert client.get("/api/audit/report").json()["decided"] == 0


def test_words_that_were_not_shown_are_refused(client):
    draw(client, 10)
    body = {"number": 1, "reviewer": "a", "verdict": "accept", "right": ["never shown"]}
    assert client.post("/api/audit/decide", json=body).status_code == 400


def test_recalibration_changes_confidences_everywhere_and_back(client, bench):
    assert client.post("/api/audit/recalibrate").status_code == 409
    draw(client, 120)
    answer_all(client, bench, wrong_when=lambda number: number % 4 != 0)  # far worse than the model says
    rows = client.get("/api/entries", params={"sort": "-confidence", "limit": 50}).json()["rows"]
    change = client.post("/api/audit/recalibrate").json()["recalibration"]
    assert change["decisions"] == 120 and change["error_after"] < change["error_before"]
    after = client.get("/api/entries", params={"sort": "-confidence", "limit": 50}).json()["rows"]
    assert np.mean([row["confidence"] for row in after]) < np.mean([row["confidence"] for row in rows])
    said = client.get("/api/translate", params={"word": after[0]["source"]}).json()["translations"][0]
    assert said["confidence"] == pytest.approx(after[0]["confidence"], abs=1e-5)
    client.delete("/api/audit/recalibrate")
    again = client.get("/api/entries", params={"sort": "-confidence", "limit": 50}).json()["rows"]
    assert [row["confidence"] for row in again] == [row["confidence"] for row in rows]


def confidences(model, words):
    answers = Translator.load(model, device="cpu").translate(words, 3)
    return [found.confidence for answer in answers for found in answer]


def test_applied_to_the_model_everybody_has_the_new_confidences(client, bench, model):
    assert client.post("/api/audit/apply").status_code == 409  # nothing was recalibrated
    draw(client, 120)
    answer_all(client, bench, wrong_when=lambda number: number % 4 != 0)
    change = client.post("/api/audit/recalibrate").json()["recalibration"]
    rows = client.get("/api/entries", params={"sort": "-confidence", "limit": 20}).json()["rows"]
    words = [row["source"] for row in rows]
    before = confidences(model, words)
    (model / "README.md").write_text("my own card", encoding="utf-8")
    answer = client.post("/api/audit/apply")
    assert answer.status_code == 200, answer.text
    bench.wait_until_ready()
    after = confidences(model, words)  # checksums are verified
    # Log-odds beyond those of 0.9999 are cut where a page shows them, not in the model.
    compared = [(old, new) for old, new in zip(before, after, strict=True) if 1e-4 < old < 1 - 1e-4]
    assert len(compared) >= 20
    expected = [Recalibration(**change)(old) for old, _ in compared]
    assert [new for _, new in compared] == pytest.approx(expected, abs=1e-5)
    assert (model / "README.md").read_text(encoding="utf-8") == "my own card"
    assert StoredModel.open(model).config["recalibrated"]["decisions"] == 120
    again = client.get("/api/entries", params={"sort": "-confidence", "limit": 20}).json()["rows"]
    assert [row["confidence"] for row in again] == pytest.approx([row["confidence"] for row in rows])
    said = client.get("/api/translate", params={"word": words[0]}).json()["translations"][0]
    assert said["confidence"] == pytest.approx(rows[0]["confidence"], abs=1e-5)
    assert client.get("/api/audit/report").json()["recalibration"] is None
    # What was audited is known in terms of the new confidences: learning it again changes next to nothing.
    more = client.post("/api/audit/recalibrate").json()["recalibration"]
    assert more["decisions"] == 120 and more["slope"] == pytest.approx(1, abs=0.2)
    assert abs(more["shift"]) < 0.2


def test_audits_of_an_earlier_model_do_not_recalibrate(client, bench):
    draw(client, 40)
    answer_all(client, bench)
    with bench.database.writing() as db:
        db.execute("UPDATE audits SET model = 'an earlier one'")
    refused = client.post("/api/audit/recalibrate")
    assert refused.status_code == 409 and "there are 0" in refused.json()["detail"]


def test_intervals_hold_what_they_promise():
    """Of many stratified samples about 95 % have the true share within their interval."""
    rng = random.Random(3)
    strata = [(200, 0.95), (500, 0.7), (1000, 0.3)]
    truth = sum(n * p for n, p in strata) / sum(n for n, _ in strata)
    drawn = allocate([n for n, _ in strata], 90)
    held = 0
    for _ in range(400):
        found = [
            Stratum(n, count, sum(rng.random() < p for _ in range(count)))
            for (n, p), count in zip(strata, drawn, strict=True)
        ]
        interval = estimate(found)
        held += interval.low <= truth <= interval.high
    assert 0.92 <= held / 400 <= 0.99


def test_more_decisions_would_be_enough():
    found = [Stratum(1000, 50, 35), Stratum(2000, 100, 50)]
    more = more_decisions(found, 0.08)
    factor = (150 + more) / 150
    grown = [Stratum(s.entries, round(s.decided * factor), round(s.right * factor)) for s in found]
    assert estimate(grown).width == pytest.approx(0.08, abs=0.004)
    assert more_decisions(found, 0.9) == 0 and more_decisions([], 0.1) is None


def test_wilson_of_a_textbook():
    interval = wilson(0.5, 100)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.4038, 0.5962)
    assert estimate([Stratum(50, 10, 10)]).low < 1  # ten of ten is no certainty


def test_allocation():
    assert sum(allocate([10, 1000, 3], 50)) == 50
    assert allocate([10, 1000, 3], 50)[2] >= 2
    assert allocate([3, 4], 100) == [3, 4]


def test_recalibration_finds_slope_and_shift():
    rng = np.random.default_rng(0)
    said = rng.uniform(0.02, 0.98, 4000)
    true = 1 / (1 + np.exp(-(0.5 * np.log(said / (1 - said)) - 1)))
    found = learn(said, rng.random(4000) < true, "now")
    assert found.slope == pytest.approx(0.5, abs=0.08) and found.shift == pytest.approx(-1, abs=0.1)
