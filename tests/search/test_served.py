"""Searches against keys that stay: exact, whoever multiplies, however many queries and ties there are."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core import config

from bilex import BilexError
from bilex.core.machine import Processor
from bilex.search import cpu, plain
from bilex.search.cpu import ServedKeys
from bilex.search.low_precision import int8_keys

NEEDS_INSTRUCTION = pytest.mark.skipif(
    not int8_keys.available(), reason="needs a processor with AVX-512 VNNI"
)
BOTH = pytest.mark.parametrize("instruction", [False, pytest.param(True, marks=NEEDS_INSTRUCTION)])


def rows(count: int, width: int, seed: int) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    made[:, 0] *= 20  # one coordinate that outweighs all others, as real vectors have
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def assert_exact(ready: ServedKeys, asked: np.ndarray, k: int, penalty: np.ndarray | None = None) -> None:
    scores, found = ready.top_k(asked, k, penalised=penalty is not None)
    for start in range(0, len(asked), 16):
        at = slice(start, start + 16)
        true_scores, true_rows = plain.top_k(asked[at], ready.keys, k, penalty)
        np.testing.assert_array_equal(found[at], true_rows)
        np.testing.assert_array_equal(scores[at], true_scores)


@BOTH
@pytest.mark.parametrize(
    ("keys", "width", "queries", "k"),
    [(5000, 300, 37, 10), (700, 24, 1, 3), (40, 7, 5, 40), (9001, 30, 33, 7)],
)
def test_the_best_keys_are_those_of_float64(
    keys: int, width: int, queries: int, k: int, instruction: bool
) -> None:
    stay, asked = rows(keys, width, 1), rows(queries, width, 2)
    penalty = np.random.default_rng(3).uniform(0, 0.5, keys).astype(np.float32)
    ready = ServedKeys(stay, penalty, instruction=instruction)
    assert_exact(ready, asked, k, penalty)
    assert_exact(ready, asked, k)


@BOTH
def test_keys_shared_among_more_threads(instruction: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "processor", lambda: Processor("many", frozenset(), 5))
    ready = ServedKeys(rows(30_000, 12, 12), instruction=instruction)
    assert_exact(ready, rows(3, 12, 13), 6)


@BOTH
def test_many_equal_keys_are_given_in_their_order(instruction: bool) -> None:
    stay = np.repeat(rows(3, 16, 4), 1000, axis=0)
    _, found = ServedKeys(stay, instruction=instruction).top_k(stay[1500:1501], 5)
    np.testing.assert_array_equal(found, [[1000, 1001, 1002, 1003, 1004]])


@BOTH
def test_keys_of_very_different_lengths(instruction: bool) -> None:
    stay = rows(900, 20, 5) * np.geomspace(1e-3, 1e3, 900, dtype=np.float32)[:, None]
    assert_exact(ServedKeys(stay, instruction=instruction), rows(4, 20, 6), 6)


def test_whoever_reads_a_file_is_called_after_each_part() -> None:
    reads = []
    ready = ServedKeys(rows(9000, 8, 7), None, lambda: reads.append(1))
    made = len(reads)
    assert made > 1
    ready.top_k(rows(40, 8, 8), 2)
    assert len(reads) > made


def test_a_row_that_is_not_finite_is_named() -> None:
    stay = rows(10, 8, 9)
    stay[6, 2] = np.nan
    with pytest.raises(BilexError, match="row 6"):
        ServedKeys(stay)
    with pytest.raises(BilexError, match="query"):
        ServedKeys(rows(10, 8, 9)).top_k(stay[6:7], 1)


@BOTH
@pytest.mark.parametrize(("keys", "width", "queries"), [(64, 4, 4), (130, 33, 7), (200, 300, 1)])
def test_8_bit_products_are_added_up_without_loss(
    keys: int, width: int, queries: int, instruction: bool
) -> None:
    """Numbers of the largest size, so that any sum that is cut off shows."""
    rng = np.random.default_rng(14)
    stay, asked = (
        np.where(rng.random((count, width)) < 0.5, -127, 127).astype(np.int8) for count in (keys, queries)
    )
    stay[0] = asked[0] = 127
    out = np.empty((queries, keys), np.int32)
    ready = int8_keys.Int8Keys(keys, width, instruction)
    ready.put(stay, 0)
    ready.products(asked, 0, out)
    np.testing.assert_array_equal(out, asked.astype(np.int32) @ stay.T.astype(np.int32))


@pytest.mark.parametrize(
    ("features", "name", "target", "expected"),
    [
        ({"avx2", "avx512_vnni"}, None, None, True),
        ({"avx2"}, None, None, False),
        ({"avx2", "avx512_vnni"}, "haswell", "", False),
        ({"avx2", "avx512_vnni"}, None, "-avx2", False),
    ],
)
def test_the_instruction_is_used_where_processor_and_compiler_have_it(
    monkeypatch: pytest.MonkeyPatch, features: set[str], name: str | None, target: str | None, expected: bool
) -> None:
    monkeypatch.setattr(int8_keys, "processor", lambda: Processor("some", frozenset(features), 2))
    monkeypatch.setattr(int8_keys.llvmlite.binding, "get_host_cpu_features", lambda: {"avx512vnni": True})
    monkeypatch.setattr(config, "CPU_NAME", name)
    monkeypatch.setattr(config, "CPU_FEATURES", target)
    monkeypatch.setattr(config, "ENABLE_AVX", 1)
    assert int8_keys.available() == expected
