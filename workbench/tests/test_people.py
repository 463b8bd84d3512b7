"""Several people: entries in parts, progress of each, two opinions, bulk actions with undo."""

from __future__ import annotations

from collections import Counter

import pytest

from bilex_workbench.entries import divide


def rows(client, **query):
    return client.get("/api/entries", params={"limit": 500, **query}).json()["rows"]


@pytest.mark.parametrize("by", ["even", "range", "letter", "kind"])
def test_entries_are_divided_and_the_division_can_be_taken_back(client, by):
    body = {"reviewer": "aino", "people": ["aino", "ben", "clara"], "by": by}
    answer = client.post("/api/entries/assign", params={"max_rank": 300}, json=body).json()
    shares = {one["name"]: one["entries"] for one in answer["people"]}
    assert sum(shares.values()) == answer["changed"] == 300
    found = {name: rows(client, assignee=name) for name in shares}
    assert {name: len(entries) for name, entries in found.items()} == shares
    if by in ("even", "range"):
        assert set(shares.values()) == {100}
    if by == "range":
        ranks = [[row["source_rank"] for row in entries] for entries in found.values()]
        assert max(ranks[0]) < min(ranks[1]) and max(ranks[1]) < min(ranks[2])
    if by == "letter":
        letters = Counter(
            letter for entries in found.values() for letter in {r["source"][0] for r in entries}
        )
        assert set(letters.values()) == {1}
    assert client.post("/api/entries/undo", json={"batch": answer["batch"]}).status_code == 200
    assert not rows(client, assignee="ben")
    (batch,) = client.get("/api/entries/batches").json()["batches"]
    assert batch["changed"] == 300 and batch["undone"] and batch["reviewer"] == "aino"


def test_kinds_are_dealt_out_whole_to_balance_the_load():
    keys = ["content"] * 60 + ["name"] * 30 + ["number"] * 20 + ["function"] * 10
    chosen = divide(keys, 2, "kind")
    assert Counter(chosen) == {0: 60, 1: 60} and len({*zip(keys, chosen, strict=True)}) == 4


def test_progress_per_person(client, bench):
    words = bench.engine.space.source.index_to_key[300:310]
    client.post("/api/entries/mark", json={"reviewer": "aino", "sources": words, "assignee": "ben"})
    for word in (*words[:3], bench.engine.space.source.index_to_key[400]):
        body = {"source": word, "reviewer": "ben", "verdict": "accept", "accepted": ["x"]}
        assert client.post("/api/review/decide", json=body).status_code == 200
    client.post("/api/review/skip", json={"source": words[4], "reviewer": "ben"})
    (ben,) = client.get("/api/review/reviewers").json()["reviewers"]
    assert (ben["decisions"], ben["accepted"], ben["rejected"]) == (4, 4, 0)
    assert (ben["assigned"], ben["done"]) == (10, 3) and ben["last"]
    queue = client.get("/api/review/next", params={"reviewer": "ben", "assignee": "ben", "count": 10}).json()
    assert {item["source"] for item in queue["items"]} == set(words[3:])
