from __future__ import annotations

import pytest

from bilex.model.answers import doubtful_seeds
from bilex_workbench.decisions import Decision, outcome, refresh
from bilex_workbench.review import kappa
from workbench_server import opened, right_answer, serving


def decide(client, item, reviewer="aino", **rest):
    body = {
        "source": item["source"],
        "reviewer": reviewer,
        "verdict": "accept",
        "candidates": [candidate["word"] for candidate in item["candidates"]],
        **rest,
    }
    answer = client.post("/api/review/decide", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def following(client, **params):
    answer = client.get("/api/review/next", params={"reviewer": "aino", **params})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_queue_has_the_uncertain_and_frequent_first(shared_client):
    items = following(shared_client, count=10)["items"]
    priorities = [item["priority"] for item in items]
    assert priorities == sorted(priorities, reverse=True) and len(set(priorities)) > 1
    table = shared_client.get("/api/entries", params={"sort": "-priority", "limit": 10}).json()["rows"]
    assert [row["source"] for row in table] == [item["source"] for item in items]
    assert not any(row["known"] for row in table)


@pytest.mark.parametrize("order", ["frequency", "confidence", "-confidence", "random", "alphabet"])
def test_other_orders(shared_client, order):
    items = following(shared_client, count=10, order=order)["items"]
    assert len(items) == 10
    if order == "frequency":
        assert [item["source_rank"] for item in items] == list(range(1, 11))
    if order == "alphabet":
        assert [item["source"] for item in items] == sorted(item["source"] for item in items)


def test_a_decision_is_kept_and_the_next_word_comes(client, bench):
    first, second = following(client, count=2)["items"]
    answer = decide(client, first, accepted=[first["candidates"][0]["word"]])
    assert answer["entry"]["status"] == "accepted" and answer["left"] == 599
    assert following(client, count=1)["items"][0]["source"] == second["source"]
    assert following(client, count=1, exclude=second["source"])["items"][0]["source"] != second["source"]


def test_decisions_survive_the_server(client, bench, model):
    item = following(client)["items"][0]
    decide(client, item, accepted=["ein freies Wort"], note="typed")
    bench.stop()
    with serving(opened(model)) as again:
        found = again.get("/api/entry", params={"source": item["source"]}).json()
        assert found["status"] == "corrected" and found["accepted"] == ["ein freies Wort"]
        assert found["history"][0]["reviewer"] == "aino" and found["notes"][0]["note"] == "typed"


def test_undo_without_limit(client):
    items = following(client, count=5)["items"]
    for item in items:
        decide(client, item, accepted=[item["candidates"][0]["word"]])
    for item in reversed(items):
        answer = client.post("/api/review/undo", json={"reviewer": "aino"}).json()
        assert answer["undone"]["source"] == item["source"] == answer["item"]["source"]
        assert answer["entry"]["status"] == "unreviewed"
    empty = client.post("/api/review/undo", json={"reviewer": "aino"})
    assert empty.status_code == 409 and "aino" in empty.json()["detail"]
    assert [one["source"] for one in following(client, count=5)["items"]] == [one["source"] for one in items]


def test_undo_brings_back_an_earlier_decision(client):
    item = following(client)["items"][0]
    best = item["candidates"][0]["word"]
    decide(client, item, accepted=[best])
    decide(client, item, verdict="none")
    answer = client.post("/api/review/undo", json={"reviewer": "aino"}).json()
    assert answer["entry"]["status"] == "accepted" and answer["entry"]["accepted"] == [best]


def test_skipped_words_come_last(client):
    first = following(client)["items"][0]
    answer = client.post("/api/review/skip", json={"source": first["source"], "reviewer": "aino"}).json()
    assert answer["entry"]["status"] == "skipped" and answer["left"] == 600
    assert following(client, count=1)["items"][0]["source"] != first["source"]
    skipped = following(client, mode="skipped")["items"]
    assert [item["source"] for item in skipped] == [first["source"]]


def test_notes(client):
    source = following(client)["items"][0]["source"]
    client.post("/api/review/note", json={"source": source, "reviewer": "ben", "note": "<b>rare</b>"})
    rows = client.get("/api/entries", params={"noted": True}).json()["rows"]
    assert [row["source"] for row in rows] == [source]
    client.post("/api/review/note", json={"source": source, "reviewer": "ben", "note": ""})
    assert client.get("/api/entries", params={"noted": True}).json()["total"] == 0


def test_second_review_is_blind_and_disagreements_are_settled(client):
    item = following(client)["items"][0]
    best = item["candidates"][0]["word"]
    decide(client, item, accepted=[best])
    assert following(client, mode="second")["items"] == []  # not one's own
    (again,) = following(client, reviewer="ben", mode="second")["items"]
    assert again["source"] == item["source"] and not again["decided_by"] and again["status"] == "unreviewed"
    answer = decide(client, again, reviewer="ben", verdict="none")
    assert answer["entry"]["status"] == "disagreement" and answer["entry"]["reviewers"] == ["aino", "ben"]
    listed = client.get("/api/review/disagreements").json()
    opinions = [(one["reviewer"], one["verdict"], bool(one["at"])) for one in listed["rows"][0]["decisions"]]
    assert listed["total"] == 1 and opinions == [("aino", "accept", True), ("ben", "none", True)]
    assert client.get("/api/publish/preview").json()["pairs"] == 0
    settled = decide(client, again, reviewer="chair", accepted=[best], kind="resolution")
    assert settled["entry"]["status"] == "accepted"
    assert client.get("/api/review/disagreements").json()["total"] == 0


def test_agreement_of_two_reviewers(client):
    items = following(client, count=4)["items"]
    for number, item in enumerate(items):
        best = item["candidates"][0]["word"]
        decide(client, item, accepted=[best])
        decide(client, item, reviewer="ben", **({"accepted": [best]} if number else {"verdict": "none"}))
    found = client.get("/api/review/agreement").json()
    (pair,) = found["pairs"]
    assert pair["reviewers"] == ["aino", "ben"] and pair["entries"] == 4 and pair["agreed"] == 3
    assert found["overall"]["kappa"] == 0  # aino always says yes: no better than at random
    people = client.get("/api/review/reviewers").json()["reviewers"]
    assert [(one["name"], one["decisions"]) for one in people] == [("aino", 4), ("ben", 4)]


def test_kappa_of_a_textbook():
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa([]) is None and kappa([(True, True)]) is None


def test_unchosen_candidates_are_unknown(client):
    item = following(client)["items"][0]
    words = [candidate["word"] for candidate in item["candidates"]]
    kept = decide(client, item, accepted=[words[2]])["decision"]
    assert kept["rejected"] == kept["unsure"] == [] and kept["candidates"] == words
    kept = decide(client, item, accepted=[words[2]], rejected=words[:1], unsure=words[1:2])["decision"]
    assert (kept["accepted"], kept["rejected"], kept["unsure"]) == (words[2:3], words[:1], words[1:2])
    assert decide(client, item, verdict="none")["decision"]["rejected"] == words


def test_verdicts_without_a_translation_leave_the_entry_in_the_queue(client):
    item = following(client)["items"][0]
    best = item["candidates"][0]["word"]
    answer = decide(client, item, verdict="skip", rejected=[best])
    assert answer["entry"]["status"] == "skipped" and answer["decision"]["rejected"] == [best]
    assert client.get("/api/publish/preview", params={"which": "all"}).json()["pairs"] == 599
    refused = client.post(
        "/api/review/decide",
        json={
            "source": item["source"],
            "reviewer": "a",
            "verdict": "accept",
            "accepted": [best],
            "unsure": [best],
        },
    )
    assert refused.status_code == 400 and "only one" in refused.json()["detail"]


def test_an_entry_with_a_new_first_answer_returns_to_the_queue(client, bench):
    item = following(client)["items"][0]
    source, best = item["source"], item["candidates"][0]["word"]
    decide(client, item, accepted=[best])
    assert source not in [one["source"] for one in following(client, count=10)["items"]]
    with bench.database.writing() as db:  # as a retrained model's table would be filled
        db.execute("UPDATE entries SET target = 'uusi', answer = 'uusi' WHERE source = ?", (source,))
        refresh(db, source)
    again = following(client)["items"][0]
    assert again["source"] == source and again["decisions"][0]["accepted"] == [best]
    shown = client.get("/api/entries", params={"fresh": True}).json()["rows"]
    assert [row["source"] for row in shown] == [source] and shown[0]["accepted"] == [best]
    decide(client, again, accepted=[best], rejected=["uusi"])
    assert client.get("/api/entries", params={"fresh": True}).json()["total"] == 0


def test_outcome_of_several_people():
    one = Decision("w", "a", "accept", ("x",), id=1)
    more = Decision("w", "b", "accept", ("x", "y"), id=2)
    against = Decision("w", "c", "accept", ("y",), ("x",), id=3)
    assert outcome([one], "x").status == "accepted" and outcome([one], "z").status == "corrected"
    assert outcome([one, more], "x").accepted == ("x", "y")
    found = outcome([one, against], "x")  # one accepts what another rejects, whatever else they accept
    assert found.status == "disagreement" and found.accepted == found.rejected == ()
    settled = Decision("w", "chair", "accept", ("y",), ("x",), kind="resolution", id=6)
    assert outcome([one, against, settled], "x").status == "corrected"
    assert outcome([one, against, settled], "x").rejected == ("x",)
    assert outcome([one, Decision("w", "d", "none", rejected=("x",), id=4)], "x").status == "disagreement"
    assert outcome([Decision("w", "d", "skip", id=5)], "x").status == "skipped"


@pytest.mark.parametrize(
    "body",
    [
        {"source": "x", "reviewer": "a", "verdict": "accept"},
        {"source": "x", "reviewer": "", "verdict": "none"},
        {"source": "x", "reviewer": "a", "verdict": "perhaps"},
        {"source": "x", "reviewer": "a", "verdict": "none", "surprise": 1},
        {"source": "x", "reviewer": "a", "verdict": "none", "accepted": ["y"]},
        {"source": "x", "reviewer": "a", "verdict": "accept", "accepted": ["y" * 2000]},
    ],
)
def test_decisions_that_make_no_sense(shared_client, body):
    refused = shared_client.post("/api/review/decide", json=body)
    assert refused.status_code in (400, 422) and refused.json()["detail"]


def test_a_word_that_is_not_in_the_table(shared_client):
    body = {"source": "nosuch", "reviewer": "a", "verdict": "none"}
    assert shared_client.post("/api/review/decide", json=body).status_code == 404


def test_doubtful_seeds_are_a_queue(shared_client, shared_bench):
    expected = [one.source for one in doubtful_seeds(shared_bench.engine.translator, 10)]
    found = [item["source"] for item in following(shared_client, mode="doubtful", count=10)["items"]]
    assert found == list(dict.fromkeys(expected))[:10] and found
    assert all(
        row["known"] for row in shared_client.get("/api/entries", params={"known": True}).json()["rows"]
    )


def test_status_counts(client, bench):
    item = following(client)["items"][0]
    decide(client, item, accepted=[right_answer(bench, item["source"])])
    found = client.get("/api/review/status").json()
    assert found["total"] == 600 and found["accepted"] + found["corrected"] == 1
    assert found["unreviewed"] == 599 and sum(band["decided"] for band in found["by_band"]) == 1
