from __future__ import annotations

import gzip

import pytest

from bilex import BilexError
from bilex_workbench.examples import corpus_file, opened_corpus

ENGLISH = [
    "The house on the hill is very old.",
    "house house house",
    "He bought two houses and a boat last year.",
    "A dog sleeps in the garden.",
]
FINNISH = [
    "Talo mäellä on hyvin vanha.",
    "talo talo talo",
    "Hän osti viime vuonna kaksi taloa ja veneen.",
    "Koira nukkuu puutarhassa.",
]
FORMS = (["house", "houses"], ["talo", "taloa"])


def texts(result, name, side):
    return [one[side]["text"] for one in result[name]]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "en.txt").write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    with gzip.open(tmp_path / "fi.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(FINNISH) + "\n")
    found = opened_corpus(tmp_path / "en-fi", str(tmp_path / "en.txt"), str(tmp_path / "fi.gz"))
    assert found is not None
    yield found
    found.close()


def test_whole_sentences_of_typical_length_come_first(corpus):
    found = corpus.examples(FORMS, (set(), set()), 2)
    assert set(texts(found, "source", "source")) == {ENGLISH[0], ENGLISH[2]}
    near = corpus.examples(FORMS, ({"boat", "year"}, set()), 1)
    assert texts(near, "source", "source") == [ENGLISH[2]]


def test_parallel_sentences_have_both_words_marked(corpus):
    assert corpus.parallel
    found = corpus.examples(FORMS, (set(), set()))["parallel"]
    pairs = {(one["source"]["text"], one["target"]["text"]) for one in found}
    assert (ENGLISH[2], FINNISH[2]) in pairs
    first = next(one for one in found if one["source"]["text"] == ENGLISH[2])
    assert [ENGLISH[2][a:b] for a, b in first["source"]["marks"]] == ["houses"]
    assert [FINNISH[2][a:b] for a, b in first["target"]["marks"]] == ["taloa"]


def test_words_of_several_tokens_are_found_whole_and_marked(tmp_path):
    lines = ["The train leaves at 7 o'clock.", "Is the clock of Mr. O slow?", "He went to New York by ship."]
    (tmp_path / "en.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = opened_corpus(tmp_path / "m", str(tmp_path / "en.txt"), None)
    assert found is not None
    for word, line in (("o'clock", lines[0]), ("new york", lines[2]), ("new_york", lines[2])):
        (one,) = found.examples(([word], []), (set(), set()))["source"]
        start, end = one["source"]["marks"][0]
        assert one["source"]["text"] == line
        assert line[start:end].lower() == word.replace("_", " ")
    found.close()


def test_one_side_alone_and_folders(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text(ENGLISH[0] + "\n", encoding="utf-8")
    (folder / "b.txt").write_text(ENGLISH[2] + "\n", encoding="utf-8")
    found = opened_corpus(tmp_path / "m", str(folder), None)
    assert found is not None and not found.parallel
    answer = found.examples(FORMS, (set(), set()))
    assert len(answer["source"]) == 2 and answer["target"] == answer["parallel"] == []
    assert found.examples((['"odd', "NEAR", "*"], []), (set(), set()))["source"] == []
    found.close()


def test_the_index_is_built_once_and_again_for_other_files(tmp_path, corpus):
    built = corpus_file(tmp_path / "en-fi").stat().st_ino
    names = (str(tmp_path / "en.txt"), str(tmp_path / "fi.gz"))
    opened_corpus(tmp_path / "en-fi", *names).close()
    opened_corpus(tmp_path / "en-fi", None, None).close()
    assert corpus_file(tmp_path / "en-fi").stat().st_ino == built
    (tmp_path / "en.txt").write_text("A house of cards fell down today.\n", encoding="utf-8")
    again = opened_corpus(tmp_path / "en-fi", *names)
    assert texts(again.examples(FORMS, (set(), set())), "source", "source") == [
        "A house of cards fell down today."
    ]
    again.close()


def test_texts_that_are_not_there(tmp_path):
    with pytest.raises(BilexError, match="no text file"):
        opened_corpus(tmp_path / "m", str(tmp_path / "nosuch"), None)
    assert opened_corpus(tmp_path / "m", None, None) is None


def test_sentences_are_offered_and_chosen(client, bench, tmp_path):
    words = [side.index_to_key[320] for side in (bench.engine.space.source, bench.engine.space.target)]
    for name, word in zip(("s.txt", "t.txt"), words, strict=True):
        (tmp_path / name).write_text(f"This is a sentence with {word} in it.\n", encoding="utf-8")
    asked = {"source": words[0], "target": words[1]}
    assert client.get("/api/examples", params=asked).json()["corpus"] is False
    bench.corpus = opened_corpus(tmp_path / "m", str(tmp_path / "s.txt"), str(tmp_path / "t.txt"))
    (found,) = client.get("/api/examples", params=asked).json()["parallel"]
    example = {side: found[side]["text"] for side in ("source", "target")}
    body = {"source": words[0], "reviewer": "a", "target": words[1], "example": example}
    article = client.post("/api/entry/example", json=body).json()["article"]
    assert article["senses"][0]["examples"] == [example]
    assert client.post("/api/entry/example", json={**body, "example": {}}).status_code == 400
