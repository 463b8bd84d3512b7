"""Two vocabularies in one space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bilex import BilexError
from bilex.aligners.procrustes import Procrustes
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors


def words(prefix: str, vectors: np.ndarray, steps: tuple = ()) -> WordVectors:
    return WordVectors([f"{prefix}{i}" for i in range(len(vectors))], vectors.astype(np.float32), steps)


@pytest.fixture
def random_space() -> Space:
    rng = np.random.default_rng(0)
    return Space(words("s", rng.normal(size=(60, 8))), words("t", rng.normal(size=(50, 8))))


def reference(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and CSLS of every pair, in float64."""
    x = space.source.vectors.astype(np.float64)
    y = space.target.vectors.astype(np.float64)
    cosine = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T
    r_source = np.sort(cosine, axis=1)[:, -10:].mean(axis=1)
    r_target = np.sort(cosine, axis=0)[-10:].mean(axis=0)
    return cosine, 2 * cosine - r_source[:, None] - r_target


def test_rows_are_unit_and_the_input_is_untouched() -> None:
    raw = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32) * 7
    before = raw.copy()
    space = Space(words("s", raw), words("t", raw))
    assert np.allclose(np.linalg.norm(space.source.vectors, axis=1), 1, atol=1e-6)
    assert np.array_equal(raw, before)
    assert space.source.preprocessing == ("unit",)


def test_known_unit_rows_are_not_copied() -> None:
    unit = np.eye(4, dtype=np.float32)
    given = words("s", unit, ("unit",))
    assert Space(given, words("t", unit)).source.vectors is given.vectors


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("method", ["csls", "nn"])
def test_search_equals_the_float64_reference(random_space: Space, direction: Any, method: Any) -> None:
    cosine, csls = reference(random_space)
    table = csls if method == "csls" else cosine
    table = table if direction == "forward" else table.T
    rows = np.array([3, 0, 41])
    scores, found = random_space.search(rows, 5, direction=direction, retrieval=method)
    expected = np.argsort(-table[rows], axis=1, kind="stable")[:, :5]
    assert np.array_equal(found, expected)
    assert np.allclose(scores, np.take_along_axis(table[rows], expected, 1), atol=1e-5)


@pytest.mark.parametrize("method", ["csls", "nn"])
def test_a_vector_is_answered_as_its_row_is(random_space: Space, method: Any) -> None:
    rows = np.array([7, 12])
    by_row = random_space.search(rows, 4, retrieval=method)
    by_vector = random_space.search(random_space.source.vectors[rows] * 3, 4, retrieval=method)
    assert np.array_equal(by_row[1], by_vector[1])
    assert np.allclose(by_row[0], by_vector[0], atol=1e-5)


def test_neighbourhoods_are_computed_once(random_space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    first = random_space.neighbourhoods()
    monkeypatch.setattr("bilex.model.space.neighbourhoods", None)
    assert random_space.neighbourhoods() is first


def test_dot_products_are_taken_as_they_are() -> None:
    x, y = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 0.0]])
    space = Space(words("s", x), words("t", y), "dot")
    scores, rows = space.search(np.array([0]), 2, retrieval="nn")
    assert rows.tolist() == [[1, 0]]
    assert scores.tolist() == [[3.0, 1.0]]


def test_from_aligner_maps_whole_vocabularies() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 6))
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    source, target = words("s", x), words("t", x @ rotation)
    lexicon = Lexicon([(f"s{i}", f"t{i}") for i in range(20)])
    space = Space.from_aligner(Procrustes(device="cpu").fit(source, target, lexicon), source, target)
    _, rows = space.search(np.arange(40), 1, retrieval="nn")
    assert rows[:, 0].tolist() == list(range(40))


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda s: s.search(np.array([0]), 0), "at least 1"),
        (lambda s: s.search(np.array([0]), 1, direction="sideways"), "forward or backward"),
        (lambda s: s.search(np.array([0]), 1, retrieval="dice"), "csls or nn"),
        (lambda s: s.search(np.ones((1, 5), np.float32), 1), "dimension 8"),
        (lambda s: s.set_neighbourhoods(np.ones(3, np.float32), np.ones(50, np.float32)), "do not fit"),
        (lambda s: Space(s.source, words("t", np.ones((2, 3)))), "dimension 8 and 3"),
        (lambda s: Space(s.source, words("t", np.ones((0, 8)))), "at least one word"),
        (lambda s: Space(s.source, s.target, "euclid"), "cosine or dot"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(
    random_space: Space, call: Callable[[Space], Any], part: str
) -> None:
    with pytest.raises(BilexError, match=part):
        call(random_space)


@pytest.mark.parametrize("method", ["csls", "nn"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_searcher_answers_as_search_does(random_space: Space, direction: Any, method: Any) -> None:
    search = random_space.searcher(direction=direction, retrieval=method)
    vectors = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
    for queries in (np.arange(5), np.arange(5, 9), vectors):
        for found, expected in zip(
            search(queries, 3),
            random_space.search(queries, 3, direction=direction, retrieval=method),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)
