from __future__ import annotations

import csv
import io
import json

import pytest

from bilex.lexicon import Lexicon

ARTICLE = {
    "part_of_speech": "noun",
    "senses": [
        {
            "gloss": "a building",
            "labels": ["general"],
            "translations": [{"target": "talo", "comment": "the usual word", "labels": []}],
            "examples": [{"source": "The house is old.", "target": "Talo on vanha."}],
        },
        {
            "gloss": "a family",
            "labels": ["history"],
            "translations": [{"target": "suku", "comment": "", "labels": ["formal"]}],
            "examples": [],
        },
    ],
    "notes": "line one\nline two",
}


@pytest.fixture
def written(client, bench):
    """An entry with two accepted translations and an article about them."""
    source = bench.engine.space.source.index_to_key[310]
    body = {"source": source, "reviewer": "aino", "verdict": "accept", "accepted": ["talo", "suku"]}
    assert client.post("/api/review/decide", json=body).status_code == 200
    body = {"source": source, "reviewer": "aino", "article": ARTICLE}
    answer = client.put("/api/entry/article", json=body)
    assert answer.status_code == 200, answer.text
    return source


def exported(client, form):
    answer = client.get("/api/publish/export", params={"format": form})
    assert answer.status_code == 200, answer.text
    return answer.text


def test_an_article_is_kept(client, written):
    assert client.get("/api/entry", params={"source": written}).json()["article"] == ARTICLE


def test_exports_that_can_carry_it_do(client, written, tmp_path):
    rows = list(csv.DictReader(io.StringIO(exported(client, "csv"))))
    assert [(row["target"], row["sense"], row["gloss"], row["labels"]) for row in rows] == [
        ("talo", "1", "a building", "general"),
        ("suku", "2", "a family", "history, formal"),
    ]
    assert rows[0]["comment"] == "the usual word" and rows[0]["part_of_speech"] == "noun"
    assert rows[0]["example"] == "The house is old. || Talo on vanha."
    lines = [json.loads(line) for line in exported(client, "jsonl").splitlines()]
    assert [line["gloss"] for line in lines] == ["a building", "a family"]
    tei = exported(client, "tei")
    assert "<def>a building</def><usg>general</usg>" in tei and "<quote>Talo on vanha.</quote>" in tei
    assert '<descrip type="definition">a family</descrip>' in exported(client, "tbx")


@pytest.mark.parametrize("form", ["tei", "csv", "jsonl", "tbx"])
def test_what_was_exported_is_read_back(client, written, tmp_path, form):
    from bilex.lexicon.formats import read

    path = tmp_path / f"dictionary.{form}"
    path.write_text(exported(client, form), encoding="utf-8")
    assert Lexicon.load(path).pairs == [(written, "talo"), (written, "suku")]
    first = read(path).entries[0]
    assert (first.gloss, first.labels, first.comment) == ("a building", "general", "the usual word")
    assert first.example == "The house is old. || Talo on vanha."


def test_a_sheet_carries_it_out_and_in(client, written, bench):
    sheet = client.get("/api/publish/sheet", params={"status": "accepted,corrected"}).text
    assert "a building" in sheet
    other = bench.engine.space.source.index_to_key[311]
    text = (
        "source,target,verdict,part_of_speech,sense,gloss,labels,comment,example\n"
        f"{other},puu,yes,noun,1,a plant,botany,tall,A tree fell. || Puu kaatui.\n"
        f"{other},metsä,yes,noun,2,many of them,,,\n"
    )
    answer = client.post("/api/publish/import", params={"reviewer": "ben"}, content=text.encode())
    assert answer.status_code == 200 and answer.json()["problems"] == []
    article = client.get("/api/entry", params={"source": other}).json()["article"]
    assert article["part_of_speech"] == "noun"
    assert [sense["gloss"] for sense in article["senses"]] == ["a plant", "many of them"]
    assert article["senses"][0]["examples"] == [{"source": "A tree fell.", "target": "Puu kaatui."}]
    back = client.post("/api/publish/import", params={"reviewer": "aino"}, content=sheet.encode())
    assert back.json()["unchanged"] >= 1
    assert client.get("/api/entry", params={"source": written}).json()["article"] == ARTICLE


def test_a_sheet_with_many_senses_keeps_all_its_verdicts(client, bench):
    """An exported sheet has a row for each sense of each translation."""
    word, targets = bench.engine.space.source.index_to_key[314], [f"t{number}" for number in range(5)]
    rows = [f"{word},{target},yes,{sense},g{sense}\n" for target in targets for sense in range(1, 51)]
    text = "source,target,verdict,sense,gloss\n" + "".join(rows) + f"{word},other,no,,\n"
    client.post("/api/publish/import", params={"reviewer": "ben"}, content=text.encode())
    (decision,) = client.get("/api/entry", params={"source": word}).json()["history"]
    assert decision["accepted"] == targets and decision["rejected"] == ["other"]


def test_rows_of_a_sheet_that_are_too_many_for_a_word_are_reported(client, bench):
    word = bench.engine.space.source.index_to_key[315]
    text = "source,target,verdict\n" + f"{word},t,yes\n" * 5001
    sent = {"params": {"reviewer": "ben", "dry_run": True}, "content": text.encode()}
    answer = client.post("/api/publish/import", **sent).json()
    assert answer["accepted"] == 1
    assert answer["problems"] == [f"line 5002: '{word}' has more than 5,000 rows; this one is left out."]


@pytest.mark.parametrize("number", ["51", "9" * 5000])
def test_a_sheet_with_an_absurd_sense_keeps_its_verdict(client, bench, number):
    words = bench.engine.space.source.index_to_key[312:314]
    text = (
        "source,target,verdict,sense,gloss\n"
        + f"{words[0]},puu,yes,{number},a plant\n{words[1]},maa,yes,1,soil\n"
    )
    answer = client.post("/api/publish/import", params={"reviewer": "ben"}, content=text.encode())
    assert answer.status_code == 200 and answer.json()["accepted"] == 2
    (problem,) = answer.json()["problems"]
    assert problem.startswith(f"'{words[0]}': Sense ") and "50 senses" in problem and len(problem) < 200
    found = [client.get("/api/entry", params={"source": word}).json()["article"] for word in words]
    assert not (found[0] or {}).get("senses") and found[1]["senses"][0]["gloss"] == "soil"


@pytest.mark.parametrize(
    "article",
    [
        {"part_of_speech": "no\u0007un"},
        {"part_of_speech": "n" * 61},
        {"senses": [{"translations": [{"target": ""}]}]},
        {"senses": [{}] * 51},
        {"surprise": 1},
    ],
)
def test_articles_that_make_no_sense_are_refused(shared_client, shared_bench, article):
    source = shared_bench.engine.space.source.index_to_key[0]
    body = {"source": source, "reviewer": "a", "article": article}
    refused = shared_client.put("/api/entry/article", json=body)
    assert refused.status_code == 422 and refused.json()["detail"]
    assert (
        shared_client.put("/api/entry/article", json={**body, "source": "nosuch", "article": {}}).status_code
        == 404
    )
