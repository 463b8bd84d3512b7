"""One translator, many askers: threads, forked and spawned processes, pickles."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.aligners import Map
from bilex.encoders import Combination
from bilex.model import Translator
from bilex.model.unknown import FromEncoder
from planted import Planted

Found = list[list[tuple[str, float]]]


def answers(translator: Translator, words: list[str]) -> Found:
    return [[(found.word, found.score) for found in answer] for answer in translator.translate(words, 3)]


@pytest.fixture
def saved(translator: Translator, tmp_path: Path) -> Path:
    translator.save(tmp_path / "model")
    return tmp_path / "model"


def test_eight_threads_get_the_answers_of_one(saved: Path, world: Planted) -> None:
    words = world.source.index_to_key[:300]
    expected = answers(Translator.load(saved), words)
    fresh = Translator.load(saved)  # nothing has been computed yet that the threads could find ready
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: answers(fresh, words), range(16)))
    assert all(one == expected for one in found)


_FORKED = """
import os, sys, torch
from bilex.model import Translator
torch.set_num_threads(4)
torch.ones(500, 500) @ torch.ones(500, 500)
translator = Translator.load(sys.argv[1], device="cpu")
words = translator.space.source.index_to_key
expected = [[found.word for found in answer] for answer in translator.translate(words, 3)]
child = os.fork()
if child == 0:
    again = [[found.word for found in answer] for answer in translator.translate(words, 3)]
    os._exit(0 if again == expected and torch.get_num_threads() == 1 else 7)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_it_goes_on_in_a_forked_child(saved: Path) -> None:
    """Without care the child waits for threads of its parent until the end of time."""
    ended = subprocess.run([sys.executable, "-c", _FORKED, str(saved)], check=False, timeout=120)
    assert ended.returncode == 0


def test_pickled_and_spawned_it_gives_the_same_answers(saved: Path, world: Planted) -> None:
    words = world.source.index_to_key[:50]
    translator = Translator.load(saved, device="cpu")
    expected = answers(translator, words)
    assert answers(pickle.loads(pickle.dumps(translator)), words) == expected
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        [found] = pool.starmap(_in_child, [(translator, words)])
    assert [[word for word, _ in one] for one in found] == [[word for word, _ in one] for one in expected]


def _in_child(translator: Translator, words: list[str]) -> Found:
    return answers(translator, words)


def test_with_a_language_model_it_says_why_it_cannot_be_pickled(translator: Translator) -> None:
    def never(*_: object) -> None:
        pytest.fail("nothing is opened")

    eye = Map([])
    reader = FromEncoder(never, Combination(*(translator.space.source.vectors[:2, :2],) * 2, 0.5), never)  # type: ignore[arg-type]
    with_encoder = Translator.of_parts(translator.space, eye, eye, unknown=[reader])
    with pytest.raises(BilexError, match=r"cannot be pickled; save it with Translator\.save"):
        pickle.dumps(with_encoder)
