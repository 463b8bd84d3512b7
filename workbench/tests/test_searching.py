"""Queries that arrive together are searched together."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bilex.core.errors import BilexError
from bilex.model import Answer
from bilex.model.answers import Translation
from bilex_workbench.api import ProblemError
from bilex_workbench.engine import Searches


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
    with ThreadPoolExecutor(13) as pool:
        first = pool.submit(searches.translate, "first", 1, "forward", "csls")
        while not recorded.batches:
            time.sleep(0.001)
        others = [
            pool.submit(searches.translate, str(number), 1 + number % 3, "forward", "csls")
            for number in range(12)
        ]
        while len(searches._waiting) < 12:
            time.sleep(0.001)
        recorded.held.set()
        answers = [other.result() for other in others]
    assert first.result().word == "first"
    assert [(answer.word, len(answer)) for answer in answers] == [(str(n), 1 + n % 3) for n in range(12)]
    assert [sorted(batch) for batch in recorded.batches] == [["first"], sorted(map(str, range(12)))]


def test_directions_and_retrievals_are_kept_apart(searches, recorded):
    recorded.held.clear()
    kinds = [("forward", "csls"), ("backward", "csls"), ("forward", "nn")]
    with ThreadPoolExecutor(4) as pool:
        pool.submit(searches.translate, "first", 1, "forward", "csls")
        asked = [pool.submit(searches.translate, "one", 1, *kind) for kind in kinds]
        recorded.held.set()
        assert [one.result()[0].word for one in asked] == [f"0 {way} {kind}" for way, kind in kinds]


def test_an_error_reaches_its_queries_and_no_later_ones(searches):
    with pytest.raises(BilexError, match="broken"):
        searches.translate("broken", 1, "forward", "csls")
    assert searches.translate("whole", 1, "forward", "csls").word == "whole"


def test_many_threads_get_their_own_answers(searches):
    with ThreadPoolExecutor(8) as pool:
        words = [str(number) for number in range(40)]
        found = pool.map(lambda word: searches.translate(word, 1, "forward", "csls").word, words)
        assert list(found) == words


def test_a_query_after_the_end_is_refused(recorded):
    searches = Searches(recorded, lambda: None)
    searches.close()
    with pytest.raises(ProblemError, match="replaced"):
        searches.translate("late", 1, "forward", "csls")
