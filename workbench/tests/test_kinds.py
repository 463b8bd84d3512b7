from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from starlette.testclient import TestClient

from bilex.aligners import get_method
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex_workbench.kinds import Kinds, kind_by_spelling
from workbench_server import opened, serving

PAIRS = [
    ("the", "se"),
    ("would", "olisi"),
    ("house", "talo"),
    ("houses", "talot"),
    ("alice", "alice"),
    ("price", "hinta"),
    ("prices", "hinnat"),
    ("1999", "1999"),
    ("kg", "kg"),
    ("new york", "new york"),
    ("дом", "koti"),
    ("dog", "koira"),
    ("river", "joki"),
    ("stone", "kivi"),
]


@pytest.fixture(scope="module")
def words_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server of a model of a few real words."""
    folder = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(len(PAIRS), 12)).astype(np.float32)
    source = WordVectors([pair[0] for pair in PAIRS], vectors)
    target = WordVectors([pair[1] for pair in PAIRS], vectors)
    known = Lexicon([("dog", "koira"), ("river", "joki"), ("stone", "kivi")])
    aligner = get_method("procrustes")()
    Translator(aligner).fit(source, target, known, languages=("en", "fi"), progress=False).save(
        folder / "en-fi"
    )
    with serving(opened(folder / "en-fi")) as client:
        yield client


@pytest.mark.parametrize(
    ("languages", "expected"), [(("en", "fi"), [True, False, False, False]), (("xx", "fi"), [True] * 4)]
)
def test_listed_words_are_lemmas_that_the_tables_know(languages, expected):
    words = ["house", "houses", "cities", "grblx"]  # "city" is not there
    vectors = WordVectors(words, np.eye(4, 12, dtype=np.float32))
    found = Kinds(Space(vectors, vectors), languages).listed(np.arange(4))
    assert found.tolist() == expected


def kinds(client: TestClient, **params: object) -> dict[str, str]:
    rows = client.get("/api/entries", params={"limit": 500, **params}).json()["rows"]
    return {row["source"]: row["kind"] for row in rows}


def test_each_kind_is_found(words_client: TestClient) -> None:
    assert kinds(words_client) == {
        "the": "function",
        "would": "function",
        "house": "content",
        "houses": "inflected",
        "alice": "name",
        "price": "content",
        "prices": "inflected",
        "1999": "number",
        "kg": "abbreviation",
        "new york": "phrase",
        "дом": "foreign",
        "dog": "content",
        "river": "content",
        "stone": "content",
    }
    assert kinds(words_client, kind="name,number") == {"alice": "name", "1999": "number"}
    assert words_client.get("/api/entries", params={"kind": "verb"}).status_code == 400


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("42", "number"),
        ("...", "number"),
        ("3rd", "abbreviation"),
        ("e.g.", "abbreviation"),
        ("tv", "abbreviation"),
        ("NATO", "abbreviation"),
        ("ad hoc", "phrase"),
        ("house", ""),
        ("ev", ""),
    ],
)
def test_kinds_by_spelling(word: str, kind: str) -> None:
    assert kind_by_spelling(word) == kind


def queue(client: TestClient, **params: object) -> list[str]:
    answer = client.get("/api/review/next", params={"reviewer": "a", "count": 10, **params})
    assert answer.status_code == 200, answer.text
    return [item["source"] for item in answer.json()["items"]]


def test_content_words_are_asked_first_and_kinds_can_be_chosen(words_client: TestClient) -> None:
    assert set(queue(words_client)[:2]) == {"house", "price"}  # the other content words are seeds
    assert queue(words_client, kind="name") == ["alice"]
    assert set(queue(words_client, mode="seeds")) == {"dog", "river", "stone"}


def test_kinds_are_corrected_in_bulk_and_taken_back(words_client: TestClient) -> None:
    body = {"reviewer": "a", "kind": "content", "sources": ["alice", "houses"]}
    made = words_client.post("/api/entries/mark", json=body).json()
    assert made["changed"] == 2
    assert kinds(words_client)["alice"] == "content" and "alice" in queue(words_client)[:4]
    entry = words_client.get("/api/entry", params={"source": "houses"}).json()
    assert entry["headword"] == "houses"  # a form that is no form is its own headword
    undone = words_client.post("/api/entries/undo", json={"batch": made["batch"]}).json()
    assert undone["changed"] == 2
    assert kinds(words_client)["alice"] == "name" and "alice" not in queue(words_client)[:2]
    assert words_client.get("/api/entry", params={"source": "houses"}).json()["headword"] == "house"
    again = words_client.post("/api/entries/undo", json={"batch": made["batch"]})
    assert again.status_code == 409
    everything = {"reviewer": "a", "assignee": "ben"}
    made = words_client.post("/api/entries/mark", params={"kind": "name"}, json=everything).json()
    assert made["changed"] == 1 and queue(words_client, assignee="ben") == ["alice"]
    assert words_client.post("/api/entries/mark", json={"reviewer": "a"}).status_code == 400
    words_client.post("/api/entries/undo", json={"batch": made["batch"]})


def test_a_decision_counts_for_the_forms_of_a_headword(words_client: TestClient) -> None:
    def entry(source: str) -> dict[str, object]:
        found: dict[str, object] = words_client.get("/api/entry", params={"source": source}).json()
        return found

    item = words_client.get("/api/review/next", params={"reviewer": "a", "count": 10}).json()["items"]
    house = next(one for one in item if one["source"] == "house")
    assert house["forms"] == ["houses"]
    assert [one["word"] for one in house["candidates"]].count("talo") == 1
    talo = next(one for one in house["candidates"] if one["word"] == "talo")
    assert talo["forms"] == ["talot"]
    body = {"source": "house", "reviewer": "a", "verdict": "accept", "accepted": ["talo"]}
    assert words_client.post("/api/review/decide", json=body).json()["entry"]["status"] == "accepted"
    assert entry("houses")["status"] == "covered" and "houses" not in queue(words_client)
    exported = words_client.get("/api/publish/export", params={"format": "tsv"}).text
    assert [line.split("\t")[:2] for line in exported.splitlines()] == [["house", "talo"]]
    body = {"source": "houses", "reviewer": "a", "verdict": "accept", "accepted": ["talot"]}
    words_client.post("/api/review/decide", json=body)
    assert entry("houses")["status"] == "accepted"  # an exception of its own
    assert words_client.get("/api/publish/preview").json()["pairs"] == 2
    words_client.post("/api/review/undo", json={"reviewer": "a"})
    assert entry("houses")["status"] == "covered"
    words_client.post("/api/review/undo", json={"reviewer": "a"})
    assert entry("houses")["status"] == "unreviewed"


def test_kinds_are_left_out_of_exports_and_empty_ones_are_refused(words_client: TestClient) -> None:
    def sources(**params: str) -> set[str]:
        text = words_client.get(
            "/api/publish/export", params={"format": "tsv", "which": "all", **params}
        ).text
        return {line.split("\t")[0] for line in text.splitlines()}

    assert "alice" in sources() and "houses" not in sources()
    assert "houses" in sources(by="form")
    assert not {"alice", "the", "1999"} & sources(without="name,function,number")
    empty = words_client.get("/api/publish/export", params={"format": "tsv"})
    assert empty.status_code == 409 and "review some" in empty.json()["detail"]
    name = words_client.get("/api/publish/export", params={"which": "all"}).headers["content-disposition"]
    assert "en-fi-dictionary.csv" in name


def test_first_answers_are_accepted_in_bulk_and_taken_back(words_client: TestClient) -> None:
    body = {"reviewer": "a", "verdict": "accept"}
    made = words_client.post("/api/entries/decide", params={"kind": "phrase,name"}, json=body).json()
    assert made["changed"] == 2
    assert words_client.get("/api/entries", params={"status": "accepted"}).json()["total"] == 2
    words_client.post("/api/entries/undo", json={"batch": made["batch"]})
    assert words_client.get("/api/entries", params={"status": "accepted"}).json()["total"] == 0
