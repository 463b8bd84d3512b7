from __future__ import annotations

import io
import json
import zipfile

import pytest

from bilex.lexicon.entries import Dictionary, Entry
from bilex_workbench.site import Cover, ontolex

HOSTILE = "</script><b>"


@pytest.fixture
def published(client, bench):
    """A site with an entry that has a structure, and one that would like to be markup."""
    words = bench.engine.space.source.index_to_key[300:302]
    for source, accepted in zip(words, (["talo", "suku"], [HOSTILE]), strict=True):
        body = {"source": source, "reviewer": "a", "verdict": "accept", "accepted": accepted}
        assert client.post("/api/review/decide", json=body).status_code == 200
    senses = [
        {"gloss": "a building", "translations": [{"target": "talo", "comment": "usual"}]},
        {"gloss": "a family", "labels": ["old"], "translations": [{"target": "suku"}]},
    ]
    senses[0]["examples"] = [{"source": "An old house.", "target": "Vanha talo."}]
    body = {"source": words[0], "reviewer": "a", "article": {"part_of_speech": "noun", "senses": senses}}
    assert client.put("/api/entry/article", json=body).status_code == 200
    asked = {"format": "site", "title": "A <Fine> Dictionary", "authors": "Aino", "licence": "CC BY 4.0"}
    answer = client.get("/api/publish/export", params=asked)
    assert answer.status_code == 200 and "en-fi-site.zip" in answer.headers["content-disposition"]
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    files = {name.removeprefix("dictionary/"): archive.read(name).decode() for name in archive.namelist()}
    return words, files


def test_the_site_is_one_folder_with_a_cover(published):
    _, files = published
    assert set(files) == {"index.html", "style.css", "search.js", "data.js", "print.html"}
    cover = files["index.html"]
    assert "A &lt;Fine&gt; Dictionary" in cover and "English → Finnish" in cover
    for page in (cover, files["print.html"]):
        for fact in ("Aino", "CC BY 4.0", "2 entries, 3 translations", "not audited"):
            assert f"<dd>{fact}</dd>" in page
    assert "http" not in cover + files["print.html"] + files["style.css"]  # nothing is fetched


def test_the_entries_are_data_and_nothing_is_markup(published):
    words, files = published
    text = files["data.js"].removeprefix("window.DICTIONARY = ").rstrip().removesuffix(";")
    entries = {entry["word"]: entry for entry in json.loads(text)["entries"]}
    first = entries[words[0]]
    assert first["speech"] == "noun" and [sense["gloss"] for sense in first["senses"]] == [
        "a building",
        "a family",
    ]
    assert first["senses"][0]["examples"] == [["An old house.", "Vanha talo."]]
    assert first["senses"][0]["translations"] == [{"word": "talo", "comment": "usual", "labels": ""}]
    assert entries[words[1]]["senses"][0]["translations"][0]["word"] == HOSTILE
    assert "</script>" not in files["data.js"] and "<b>" not in files["print.html"]
    assert "Vanha talo." in files["print.html"]
    assert '<h4 lang="fi">suku</h4>' in files["print.html"]  # the other direction, too


def test_the_audit_stands_on_the_cover(client, published):
    client.post("/api/audit", json={"size": 30, "reviewer": "a"})
    item = client.get("/api/audit/next", params={"reviewer": "a"}).json()["items"][0]
    body = {"number": item["number"], "reviewer": "a", "verdict": "accept", "right": item["candidates"]}
    assert client.post("/api/audit/decide", json=body).status_code == 200
    answer = client.get("/api/publish/export", params={"format": "site"})
    cover = zipfile.ZipFile(io.BytesIO(answer.content)).read("dictionary/index.html").decode()
    assert "1 entries judged" in cover and "95 % interval" in cover


def test_control_characters_on_the_cover_are_refused(client, published):
    refused = client.get("/api/publish/export", params={"format": "site", "title": "a\u0007b"})
    assert refused.status_code in (400, 422) and refused.json()["detail"]


def test_linked_data():
    entries = [
        Entry("house", "talo", part_of_speech="noun", gloss="a building"),
        Entry("house", 'su"ku', part_of_speech="noun", gloss="a family", sense=2),
    ]
    text = ontolex(Dictionary(entries, ("en", "fi")), Cover("T", "A", "CC0")).decode()
    assert ':s1 a ontolex:LexicalEntry ; ontolex:canonicalForm [ ontolex:writtenRep "house"@en ]' in text
    assert 'skos:definition "a building"' in text and 'writtenRep "su\\"ku"@fi' in text
    assert text.count("a vartrans:Translation") == 2
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph().parse(data=text, format="turtle")
    assert len(graph) > 20
