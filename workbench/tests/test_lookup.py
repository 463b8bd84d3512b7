"""Looking words up, alone and many at a time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bilex import BilexError, Lexicon, WordVectors
from bilex.encoders import Combination
from bilex.encoders.stage import mixed_views
from bilex.model import Answer, Translation, Translator
from bilex.model.unknown import FromEncoder
from bilex.vectors.stored import unit_rows
from bilex_workbench.api import ProblemError
from bilex_workbench.engine import Searches
from bilex_workbench.lookup import other_view
from workbench_server import opened, right_answer, serving


def test_health_and_model(shared_client, shared_bench):
    health = shared_client.get("/api/health").json()
    assert health["status"] == "ok" and health["ready"]
    model = shared_client.get("/api/model").json()
    assert model["source"]["name"] == "English" and model["target"]["words"] == 600
    assert model["entries"] == {"done": 600, "total": 600, "complete": True}


def test_translate_answers_as_promised(shared_client, shared_bench):
    word = shared_bench.engine.space.source.index_to_key[3]
    answer = shared_client.get("/api/translate", params={"word": word, "direction": "forward", "k": 5}).json()
    assert answer["word"] == word and len(answer["translations"]) == 5
    first = answer["translations"][0]
    assert {"word", "score", "confidence"} <= set(first)
    assert first["word"] == right_answer(shared_bench, word) and first["known"]


def test_stored_and_searched_answers_are_the_same(shared_client, shared_bench):
    for word in shared_bench.engine.space.source.index_to_key[300:320]:
        stored = shared_client.get("/api/translate", params={"word": word, "k": 10}).json()["translations"]
        searched = shared_client.get("/api/translate", params={"word": word, "k": 11}).json()["translations"]
        assert [t["word"] for t in stored] == [t["word"] for t in searched[:10]]
        assert abs(stored[0]["score"] - searched[0]["score"]) < 1e-6


def test_backward_is_the_other_way(shared_client, shared_bench):
    word = shared_bench.engine.space.target.index_to_key[5]
    answer = shared_client.get("/api/translate", params={"word": word, "direction": "backward"}).json()
    assert answer["translations"][0]["word"] == shared_bench.engine.space.source.index_to_key[5]


def test_unknown_words_get_spellings_and_completions(shared_client, shared_bench):
    word = shared_bench.engine.space.source.index_to_key[0]
    answer = shared_client.get("/api/translate", params={"word": word + "x"}).json()
    assert answer["origin"] is None and not answer["translations"] and word in answer["suggestions"]
    found = shared_client.get("/api/suggest", params={"word": word[:3]}).json()
    assert found["completions"] and all(one.startswith(word[:3]) for one in found["completions"])
    assert word in shared_client.get("/api/suggest", params={"word": f"{word}q"}).json()["spellings"]


def test_words_too_long_to_show_are_in_no_answer(tmp_path):
    """Words of more than 1,000 characters, each near a word of the query."""
    rows = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    rows = np.concatenate([rows, rows[:5] * 1.01])
    ends = [f"{n:02}" for n in range(60)] + [f"{n:02}" + "x" * 1001 for n in range(5)]
    sides = [WordVectors([name + end for end in ends], rows) for name in ("src", "tgt")]
    seeds = Lexicon([(f"src{n:02}", f"tgt{n:02}") for n in range(5, 60)])
    Translator("procrustes").fit(*sides, seeds, calibrate=False).save(tmp_path / "model")
    with serving(opened(tmp_path / "model")) as client:
        for path, query in (
            ("translate", {"word": "src00", "k": 20}),
            ("translate", {"word": "src00" + "x" * 990}),
            ("suggest", {"word": "src00"}),
            ("suggest", {"word": "src00" + "x" * 990}),
            ("why", {"source": "src00", "target": "tgt00"}),
            ("entries", {}),
            ("review/next", {"reviewer": "a"}),
        ):
            answer = client.get(f"/api/{path}", params=query)
            assert answer.status_code == 200 and "x" * 1001 not in answer.text, path


def test_why_names_neighbours_of_both_words(shared_client, shared_bench):
    word = shared_bench.engine.space.source.index_to_key[3]
    target = right_answer(shared_bench, word)
    found = shared_client.get("/api/why", params={"source": word, "target": target, "k": 4}).json()
    assert found["rank_of_target"] == 1
    (view,) = found["views"]
    assert len(view["source_neighbours"]) == len(view["target_neighbours"]) == 4
    assert word not in [one["word"] for one in view["source_neighbours"]]
    assert target in [one["word"] for one in view["source_candidates"]]
    missing = shared_client.get("/api/why", params={"source": "nosuchword", "target": target})
    assert missing.status_code == 404 and "nosuchword" in missing.json()["detail"]


def test_map_has_both_languages_and_lines(shared_client, shared_bench):
    word = shared_bench.engine.space.source.index_to_key[3]
    found = shared_client.get("/api/map", params={"word": word, "k": 6}).json()
    assert sum(point["query"] for point in found["points"]) == 1
    assert {point["language"] for point in found["points"]} == {"source", "target"}
    assert all(-1 <= point["x"] <= 1 and -1 <= point["y"] <= 1 for point in found["points"])
    names = {point["id"]: point for point in found["points"]}
    for line in found["lines"]:
        assert names[line["from"]]["language"] == "source" and names[line["to"]]["language"] == "target"
    of_query = next(line for line in found["lines"] if names[line["from"]]["query"])
    assert names[of_query["to"]]["word"] == right_answer(shared_bench, word)


def test_limits_are_one_sentence(shared_client):
    for address in (
        "/api/translate?word=",
        "/api/translate?word=a&k=0",
        "/api/translate?word=a&direction=up",
    ):
        refused = shared_client.get(address)
        assert refused.status_code == 422 and refused.json()["detail"]
    assert shared_client.get("/api/translate", params={"word": "x" * 5000}).status_code == 422
    assert shared_client.get("/api/nothing").json() == {"detail": "There is no such address."}


def test_documentation_lists_every_address(shared_client):
    page = shared_client.get("/docs").text
    for path in shared_client.get("/openapi.json").json()["paths"]:
        assert path in page
    assert "<script" not in page


def test_the_view_of_the_vectors_is_recovered():
    rng = np.random.default_rng(0)
    static, encoded = unit_rows(rng.normal(size=(20, 8))), unit_rows(rng.normal(size=(20, 8)))
    encoded[3] = 0  # a word that the encoder cannot read
    combined = mixed_views(static, encoded, 0.3)
    assert np.allclose(other_view(combined, encoded, 0.3), static, atol=1e-5)


class Letters:
    """An encoder that gives every word a vector by its letters."""

    def encode(self, words):
        return np.stack([np.bincount([ord(c) % 8 for c in word], minlength=8) for word in words]).astype(
            np.float32
        )


def test_both_views_with_a_language_model(client, bench):
    dim = bench.engine.space.dim
    across = np.eye(8, dim, dtype=np.float32)
    combination = Combination(np.eye(dim, dtype=np.float32), across, 0.2)
    bench.engine.translator.unknown = [FromEncoder(Letters, combination, lambda path: None)]
    word = bench.engine.space.source.index_to_key[3]
    params = {"source": word, "target": right_answer(bench, word), "k": 4}
    vectors, language_model = client.get("/api/why", params=params).json()["views"]
    assert (vectors["name"], language_model["name"]) == ("vectors", "language model")
    for view in (vectors, language_model):
        assert len(view["source_neighbours"]) == len(view["target_candidates"]) == 4
        similar = [one["similarity"] for one in view["source_candidates"]]
        assert similar == sorted(similar, reverse=True)


def test_many_at_once_get_what_each_would_get_alone(shared_client, shared_bench):
    words = shared_bench.engine.space.source.index_to_key[300:340]
    alone = Translator.load(shared_bench.folder, device="cpu")

    def ask(word):
        answer = shared_client.get(
            "/api/translate", params={"word": word, "k": 11}
        ).json()  # more than are stored
        return [one["word"] for one in answer["translations"]]

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(ask, words))
    assert found == [[one.word for one in alone.translate(word, 11)] for word in words]


# Queries that arrive together are searched together.


class Recorded:
    """Translates every word to texts about the query, and records which words came together."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.held = threading.Event()
        self.held.set()

    def translate(self, words, k, *, direction, retrieval):
        self.batches.append(list(words))
        self.held.wait(20)
        if "broken" in words:
            raise BilexError("this word is broken.")
        found = tuple(
            Translation(f"{place} {direction} {retrieval}", 1.0, None, place + 1) for place in range(k)
        )
        return [Answer(word, found, "vocabulary") for word in words]


@pytest.fixture
def recorded():
    return Recorded()


@pytest.fixture
def searches(recorded):
    found = Searches(recorded, lambda: None)
    yield found
    recorded.held.set()
    found.close()


def test_queries_that_arrive_during_a_search_share_the_next_one(searches, recorded):
    recorded.held.clear()
    first = searches.submit("first", 1, "forward", "csls")
    while not recorded.batches:
        time.sleep(0.001)
    others = [searches.submit(str(number), 1 + number % 3, "forward", "csls") for number in range(12)]
    recorded.held.set()
    answers = [other.result() for other in others]
    assert first.result().word == "first"
    assert [(answer.word, len(answer)) for answer in answers] == [(str(n), 1 + n % 3) for n in range(12)]
    assert [sorted(batch) for batch in recorded.batches] == [["first"], sorted(map(str, range(12)))]


def test_directions_and_retrievals_are_kept_apart(searches, recorded):
    recorded.held.clear()
    kinds = [("forward", "csls"), ("backward", "csls"), ("forward", "nn")]
    searches.submit("first", 1, "forward", "csls")
    found = [searches.submit("one", 1, *kind) for kind in kinds]
    recorded.held.set()
    assert [one.result()[0].word for one in found] == [f"0 {way} {kind}" for way, kind in kinds]


def test_a_query_that_nobody_waits_for_disturbs_no_other(searches, recorded):
    recorded.held.clear()
    searches.submit("first", 1, "forward", "csls")
    while not recorded.batches:
        time.sleep(0.001)
    left, other = (searches.submit(word, 1, "forward", "csls") for word in ("left", "other"))
    assert left.cancel()
    recorded.held.set()
    assert other.result().word == "other"
    assert recorded.batches == [["first"], ["other"]]


def test_an_error_reaches_its_queries_and_no_later_ones(searches):
    with pytest.raises(BilexError, match="broken"):
        searches.submit("broken", 1, "forward", "csls").result()
    assert searches.submit("whole", 1, "forward", "csls").result().word == "whole"


def test_many_threads_get_their_own_answers(searches):
    with ThreadPoolExecutor(8) as pool:
        words = [str(number) for number in range(40)]
        found = pool.map(lambda word: searches.submit(word, 1, "forward", "csls").result().word, words)
        assert list(found) == words


def test_a_query_after_the_end_is_refused(recorded):
    searches = Searches(recorded, lambda: None)
    searches.close()
    with pytest.raises(ProblemError, match="replaced"):
        searches.submit("late", 1, "forward", "csls")
