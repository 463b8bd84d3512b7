"""Review from target to source: a queue, candidates, decisions, an audit and exports of its own."""

from __future__ import annotations

import time

import pytest

from bilex_workbench import learn
from bilex_workbench.database import review_file
from workbench_server import opened

BACK = {"direction": "backward"}


@pytest.fixture
def back(client, bench):
    """A client once the table of target words is filled."""
    assert client.get("/api/model").json()["backward"] is None  # nobody asked for it yet
    client.get("/api/review/next", params={"reviewer": "aino", **BACK})
    wait(client)
    return client


def wait(client):
    for _ in range(6_000):
        found = client.get("/api/model").json()["backward"]
        if found and found["complete"]:
            return
        time.sleep(0.02)
    raise AssertionError("the table of target words was not filled in two minutes")


def decide(client, source, accepted, **rest):
    body = {"source": source, "reviewer": "aino", "verdict": "accept", "accepted": accepted, **rest}
    answer = client.post("/api/review/decide", params=BACK, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_table_has_target_words_with_the_models_own_answers(back, bench):
    page = back.get("/api/entries", params={"limit": 500, **BACK}).json()
    assert page["total"] == len(bench.engine.space.target) and page["complete"]
    for row in page["rows"][::50]:
        answer = back.get("/api/translate", params={"word": row["source"], "k": 9, **BACK}).json()
        assert row["target"] == answer["translations"][0]["word"]
        item = back.get("/api/entry", params={"source": row["source"], **BACK}).json()
        assert item["candidates"][0]["word"] in {one["word"] for one in answer["translations"]}
    mutual = [row for row in page["rows"] if row["mutual"]]
    for row in mutual[:20]:
        forward = back.get("/api/translate", params={"word": row["target"], "k": 1}).json()
        assert forward["translations"][0]["word"] == row["source"]
    assert any(row["known"] for row in page["rows"]) and mutual


def test_decisions_on_target_words_are_kept_apart_and_exported(back, bench):
    (item, *_) = back.get("/api/review/next", params={"reviewer": "aino", **BACK}).json()["items"]
    word, best = item["source"], item["candidates"][0]["word"]
    assert word in bench.engine.space.target and best in bench.engine.space.source
    assert decide(back, word, [best])["entry"]["status"] == "accepted"
    assert back.get("/api/review/status").json()["decisions"] == 0
    assert back.get("/api/review/status", params=BACK).json()["decisions"] == 1
    lines = back.get("/api/publish/export", params={"format": "tsv", **BACK}).text.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"{word}\t{best}\t")
    name = back.get("/api/publish/export", params={"format": "csv", **BACK}).headers["content-disposition"]
    assert "backward" in name
    assert back.post("/api/review/undo", params=BACK, json={"reviewer": "aino"}).status_code == 200


def test_both_directions_are_learned_from(back, bench):
    source, target = bench.engine.space.source.index_to_key, bench.engine.space.target.index_to_key
    decide(back, target[300], [source[300]])
    decide(back, target[301], [source[301]])
    assert learn.material(bench, 0.0)["accepted"] == [(source[n], target[n]) for n in (300, 301)]
    body = {"source": source[301], "reviewer": "ben", "verdict": "none", "rejected": [target[301]]}
    assert back.post("/api/review/decide", json=body).status_code == 200
    learned = learn.material(bench, 0.0)  # people disagree about the second pair
    assert learned["accepted"] == [(source[300], target[300])] and learned["rejected"] == []


def test_an_audit_of_target_words_has_its_own_result(back):
    drawn = back.post("/api/audit", params=BACK, json={"size": 10, "reviewer": "aino"}).json()["audit"]
    assert drawn["size"] == 10 and back.get("/api/audit").json()["audit"] is None
    (item, *_) = back.get("/api/audit/next", params={"reviewer": "aino", **BACK}).json()["items"]
    body = {"number": item["number"], "reviewer": "aino", "verdict": "none"}
    assert back.post("/api/audit/decide", params=BACK, json=body).status_code == 200
    assert back.get("/api/audit/report", params=BACK).json()["decided"] == 1


def test_the_review_goes_on_after_a_restart(back, bench, model):
    target = bench.engine.space.target.index_to_key[300]
    decide(back, target, ["x"])
    assert review_file(model, "backward").is_file()
    bench.stop()
    again = opened(model)
    assert again.describe().backward.complete
    with again.backward.database.reading() as db:
        assert db.execute("SELECT count(*) FROM decisions").fetchone()[0] == 1
    again.stop()
