"""Questions that come together are searched together, whoever asks them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bilex.core.errors import BilexError
from bilex.model import Answer
from bilex.model.answers import Translation
from bilex_workbench.searching import Searches


class Recorded:
    """Translates every word to itself and remembers what it was asked at once."""

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


def test_what_is_asked_together_is_one_search(searches, recorded):
    async def ask_all():
        asked = (searches.answer(str(number), 1 + number % 3, "forward", "csls") for number in range(12))
        return await asyncio.gather(*asked)

    answers = asyncio.run(ask_all())
    assert [(answer.word, len(answer)) for answer in answers] == [(str(n), 1 + n % 3) for n in range(12)]
    assert recorded.batches == [[str(number) for number in range(12)]]


def test_what_is_asked_during_a_search_is_the_next_one(searches, recorded):
    async def ask_all():
        recorded.held.clear()
        first = asyncio.create_task(searches.answer("first", 1, "forward", "csls"))
        async with asyncio.timeout(20):
            while not recorded.batches:
                await asyncio.sleep(0.001)
        others = [asyncio.create_task(searches.answer(word, 1, "forward", "csls")) for word in "abcd"]
        await asyncio.sleep(0.01)
        recorded.held.set()
        await asyncio.gather(first, *others)

    asyncio.run(ask_all())
    assert recorded.batches == [["first"], ["a", "b", "c", "d"]]


def test_directions_and_retrievals_are_kept_apart(searches):
    async def ask_all():
        return await asyncio.gather(
            searches.answer("one", 1, "forward", "csls"),
            searches.answer("one", 1, "backward", "csls"),
            searches.answer("one", 1, "forward", "nn"),
        )

    assert [answer[0].word for answer in asyncio.run(ask_all())] == [
        "0 forward csls",
        "0 backward csls",
        "0 forward nn",
    ]


def test_an_error_reaches_those_who_asked_and_nobody_later(searches):
    with pytest.raises(BilexError, match="broken"):
        asyncio.run(searches.answer("broken", 1, "forward", "csls"))
    with pytest.raises(BilexError, match="broken"):
        searches.ask("broken", 1, "forward", "csls")
    assert searches.ask("whole", 1, "forward", "csls").word == "whole"


def test_threads_and_several_event_loops_at_once(searches):
    def ask(number: int) -> str:
        word = str(number)
        if number % 2:
            return searches.ask(word, 1, "forward", "csls").word
        return asyncio.run(searches.answer(word, 1, "forward", "csls")).word

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))) == [str(number) for number in range(40)]
