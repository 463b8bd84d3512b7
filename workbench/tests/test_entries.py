"""The table of entries: filters, bulk actions with undo, and people who share the work."""

from __future__ import annotations

from collections import Counter

import pytest

from bilex_workbench.entries import divide


def rows(client, **params):
    answer = client.get("/api/entries", params={"limit": 500, **params})
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


def test_pages_join_to_the_whole(shared_client):
    whole = rows(shared_client)
    parts = [row for offset in range(0, 600, 150) for row in rows(shared_client, offset=offset, limit=150)]
    assert [row["source"] for row in parts[:500]] == [row["source"] for row in whole]
    assert [row["source_rank"] for row in parts] == list(range(1, 601))


@pytest.mark.parametrize(
    "sort", ["confidence", "-confidence", "score", "-score", "target_rank", "source", "-target"]
)
def test_sorting(shared_client, sort):
    name = sort.removeprefix("-")
    values = [row[name] for row in rows(shared_client, sort=sort) if row[name] is not None]
    assert values == sorted(values, reverse=sort.startswith("-"))


def test_filters(shared_client, shared_bench):
    found = rows(shared_client, min_confidence=0.2, max_confidence=0.8)
    assert found and all(0.2 <= row["confidence"] <= 0.8 for row in found)
    mutual = shared_client.get("/api/entries", params={"mutual": True}).json()["total"]
    assert mutual + shared_client.get("/api/entries", params={"mutual": False}).json()["total"] == 600
    ranks = [row["source_rank"] for row in rows(shared_client, min_rank=10, max_rank=20)]
    assert ranks == list(range(10, 21))
    assert shared_client.get("/api/entries", params={"band": "1-600"}).json()["total"] == 600


def test_mutual_is_what_the_translator_says(shared_client, shared_bench):
    induced = shared_bench.engine.translator.lexicon(mutual=True)
    expected = {(entry.source, entry.target) for entry in induced}
    found = [row for offset in (0, 300) for row in rows(shared_client, mutual=True, offset=offset, limit=300)]
    assert {(row["source"], row["target"]) for row in found} == expected


def test_search(shared_client, shared_bench):
    word = shared_bench.engine.space.source.index_to_key[7]
    assert [row["source"] for row in rows(shared_client, q=word, match="exact")] == [word]
    found = rows(shared_client, q=word[:3].upper(), **{"in": "source", "match": "prefix"})
    assert word in [row["source"] for row in found]
    assert all(row["source"].startswith(word[:3]) for row in found)
    inside = rows(shared_client, q=word[1:4], **{"in": "target"})
    assert all(word[1:4] in row["target"] for row in inside)
    assert rows(shared_client, q="' OR 1=1 --") == []


@pytest.mark.parametrize(
    "params",
    [
        {"sort": "row; DROP TABLE entries"},
        {"in": "nowhere", "q": "a"},
        {"match": "x", "q": "a"},
        {"status": "odd"},
        {"band": "7-9"},
    ],
)
def test_parameters_that_are_not_known(shared_client, params):
    refused = shared_client.get("/api/entries", params=params)
    assert refused.status_code in (400, 422) and refused.json()["detail"].endswith(".")


def test_limits(shared_client):
    assert shared_client.get("/api/entries", params={"limit": 501}).status_code == 422
    assert shared_client.get("/api/entries", params={"offset": 100_000}).json()["rows"] == []


def test_entries_without_a_value_come_last_on_every_page(shared_client):
    """Words that the seeds know have no confidence."""
    for sort in ("confidence", "-confidence"):
        found = [
            row["confidence"]
            for at in (0, 300)
            for row in rows(shared_client, sort=sort, offset=at, limit=300)
        ]
        values = [value for value in found if value is not None]
        assert len(found) == 600 and 0 < len(values) < 600
        assert found[: len(values)] == values == sorted(values, reverse=sort.startswith("-"))


def test_counts_follow_what_is_decided(client):
    def total():
        return client.get("/api/entries", params={"status": "accepted"}).json()["total"]

    assert (total(), total()) == (0, 0)
    row = client.get("/api/entries", params={"limit": 1}).json()["rows"][0]
    body = {"source": row["source"], "reviewer": "a", "verdict": "accept", "accepted": [row["target"]]}
    assert client.post("/api/review/decide", json=body).status_code == 200
    assert (total(), total()) == (1, 1)
    client.post("/api/review/undo", json={"reviewer": "a"})
    assert total() == 0


# Several people: entries in parts, progress of each, two opinions, bulk actions with undo.


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


@pytest.mark.parametrize(
    ("route", "body"),
    [("assign", {"people": ["ben"]}), ("mark", {"kind": "function"}), ("mark", {"kind": "inflected"})],
)
def test_a_bulk_action_that_is_undone_leaves_the_table_as_it_was(client, bench, route, body):
    with bench.database.writing() as db:  # forms of another kind keep their headword
        db.execute("UPDATE entries SET kind = 'function', headword = 'head' WHERE row % 5 = 0")

    def table():
        with bench.database.reading() as db:
            query = "SELECT row, kind, priority, headword, assignee FROM entries ORDER BY row"
            return [tuple(row) for row in db.execute(query)]

    before = table()
    assert rows(client, doubtful=True)  # seeds that are offered for another look, behind all content words
    answer = client.post(f"/api/entries/{route}", json={"reviewer": "aino", **body}).json()
    assert table() != before
    assert client.post("/api/entries/undo", json={"batch": answer["batch"]}).status_code == 200
    assert table() == before


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
