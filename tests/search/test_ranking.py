from __future__ import annotations

import numpy as np
import pytest

from bilex.search import ranks_of, search


@pytest.mark.parametrize("memory", [1, 2000, 1 << 20])
def test_ranks_are_places_in_a_stable_sort(monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    monkeypatch.setattr(search, "_RANK_MEMORY", memory)
    generator = np.random.default_rng(0)
    queries = generator.integers(-2, 3, (23, 3)).astype(np.float32)  # small whole numbers: many ties
    keys = generator.integers(-2, 3, (31, 3)).astype(np.float32)
    penalty = generator.integers(-2, 3, 31).astype(np.float32)
    chosen = generator.integers(0, 31, 23)
    found = ranks_of(queries, keys, chosen, [None, penalty], device="cpu")
    for ranks, scores in zip(found, (queries @ keys.T, 2 * queries @ keys.T - penalty), strict=True):
        for query in range(23):
            order = sorted(range(31), key=lambda key, query=query, scores=scores: (-scores[query, key], key))
            assert ranks[query] == order.index(chosen[query]) + 1


def test_no_queries() -> None:
    nothing = np.zeros((0, 3), np.float32)
    found = ranks_of(nothing, np.ones((4, 3), np.float32), np.zeros(0, np.int64), [None], device="cpu")
    assert found.shape == (1, 0)
