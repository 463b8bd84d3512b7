"""Exact top-k and CSLS against a float64 brute force with stable ties."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bilex import BilexError
from bilex.search import (
    KeySearch,
    cpu,
    csls_top_k,
    gpu,
    mean_of_best,
    neighbourhoods,
    ranks_of,
    search,
    top_k,
)
from bilex.search.low_precision import bfloat16, operands

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
INT8 = pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
PLENTY = 1 << 26


def brute_force(queries: Floats, keys: Floats, k: int, penalty: Floats | None = None) -> tuple[Floats, Rows]:
    """All scores in float64, rounded to float32, then a stable sort."""
    scores = queries.astype(np.float64) @ keys.astype(np.float64).T
    if penalty is not None:
        scores = 2 * scores - penalty.astype(np.float64)
    rounded = scores.astype(np.float32)
    order = np.argsort(-rounded, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(rounded, order, axis=1), order


def cpu_top_k(
    queries: Floats, keys: Floats, k: int, penalty: Floats | None, int8: bool | None = None
) -> tuple[Floats, Rows]:
    return cpu.CpuSearch(keys, penalty, int8).top_k(queries, k)


def gpu_top_k(
    queries: torch.Tensor, keys: torch.Tensor, k: int, penalty: torch.Tensor | None, memory: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """What a GPU does, on the CPU."""
    return gpu.GpuSearch(keys, penalty).top_k(queries, k, memory)


def units(count: int, dim: int, seed: int) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def with_duplicates(count: int, dim: int, seed: int) -> Floats:
    """Unit rows of which every third is a copy of an earlier one, so that many scores tie exactly."""
    rows = units(count, dim, seed)
    rng = np.random.default_rng(seed)
    copies = np.arange(2, count, 3)
    rows[copies] = rows[rng.integers(0, np.maximum(copies, 1))]
    return rows


def assert_same(found: tuple[Floats, Rows], expected: tuple[Floats, Rows]) -> None:
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-7, atol=1e-12)


QUERIES, KEYS = units(70, 40, 1), with_duplicates(9000, 40, 2)
PENALTY = np.random.default_rng(3).uniform(0.1, 0.6, 9000).astype(np.float32)


@INT8
@pytest.mark.parametrize("penalty", [None, PENALTY], ids=["plain", "penalty"])
@pytest.mark.parametrize("k", [1, 10, 150])
def test_cpu_search_is_exact_with_ties(k: int, penalty: Floats | None, int8: bool) -> None:
    found = cpu_top_k(QUERIES, KEYS, k, penalty, int8)
    assert_same(found, brute_force(QUERIES, KEYS, k, penalty))


@pytest.mark.parametrize("penalty", [None, PENALTY], ids=["plain", "penalty"])
@pytest.mark.parametrize("k", [1, 10, 150])
def test_torch_search_of_the_gpu_is_exact_with_ties(k: int, penalty: Floats | None) -> None:
    column = None if penalty is None else torch.from_numpy(penalty)
    scores, rows = gpu_top_k(torch.from_numpy(QUERIES), torch.from_numpy(KEYS), k, column, PLENTY)
    assert_same((scores.numpy(), rows.numpy()), brute_force(QUERIES, KEYS, k, penalty))


def test_results_do_not_depend_on_blocks_threads_or_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = with_duplicates(600, 24, 4), with_duplicates(9000, 24, 5)
    penalty = PENALTY[: len(target)]
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for rows in (16, 100, 1024):
                monkeypatch.setattr(cpu, "_BLOCK_ROWS", rows)
                for int8 in (False, True):
                    one_way = cpu_top_k(source, target, 7, penalty, int8)
                    results.append(b"".join(part.tobytes() for part in one_way))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert len(set(results)) == 1


def test_the_torch_search_does_not_depend_on_memory() -> None:
    queries, keys = torch.from_numpy(QUERIES), torch.from_numpy(KEYS)
    few, many = (gpu_top_k(queries, keys, 10, None, memory) for memory in (1, PLENTY))
    assert torch.equal(few[0], many[0])
    assert torch.equal(few[1], many[1])


@INT8
def test_rows_of_any_length(int8: bool) -> None:
    rng = np.random.default_rng(6)
    queries = QUERIES * rng.uniform(0.01, 30, (70, 1)).astype(np.float32)
    keys = KEYS * rng.uniform(0.01, 30, (9000, 1)).astype(np.float32)
    assert_same(cpu_top_k(queries, keys, 10, PENALTY, int8), brute_force(queries, keys, 10, PENALTY))
    scores, rows = gpu_top_k(torch.from_numpy(queries), torch.from_numpy(keys), 10, None, PLENTY)
    assert_same((scores.numpy(), rows.numpy()), brute_force(queries, keys, 10))


@INT8
@pytest.mark.parametrize("k", [1, 150])
def test_all_keys_identical(k: int, int8: bool) -> None:
    keys = np.repeat(units(1, 40, 7), 9000, axis=0)
    scores, rows = cpu_top_k(QUERIES, keys, k, None, int8)
    assert (rows == np.arange(k)).all()
    assert (scores == scores[:, :1]).all()
    _, rows = gpu_top_k(torch.from_numpy(QUERIES[:3]), torch.from_numpy(keys), k, None, PLENTY)
    assert (rows == torch.arange(k)).all()


def test_more_neighbours_than_keys_gives_all_keys() -> None:
    scores, rows = top_k(QUERIES, KEYS[:20], 50, device="cpu")
    assert rows.shape == (70, 20)
    assert_same((scores, rows), brute_force(QUERIES, KEYS[:20], 20))
    scores, rows = top_k(QUERIES, KEYS[:20], 50, key_penalty=PENALTY[:20], device="cpu")
    assert_same((scores, rows), brute_force(QUERIES, KEYS[:20], 20, PENALTY[:20]))


def test_one_row_and_no_rows() -> None:
    assert_same(top_k(QUERIES[:1], KEYS, 3, device="cpu"), brute_force(QUERIES[:1], KEYS, 3))
    assert_same(top_k(QUERIES, KEYS[:1], 3, device="cpu"), brute_force(QUERIES, KEYS[:1], 1))
    for queries, keys, shape in ((QUERIES[:0], KEYS, (0, 3)), (QUERIES, KEYS[:0], (70, 0))):
        scores, rows = top_k(queries, keys, 3, device="cpu")
        assert scores.shape == rows.shape == shape
    none, some = neighbourhoods(QUERIES[:0], KEYS[:5], device="cpu")
    assert none.shape == (0,)
    assert some.shape == (5,)


def test_torch_tensors_and_arrays_give_the_same() -> None:
    of_arrays = top_k(QUERIES, KEYS, 5, device="cpu")
    of_tensors = top_k(torch.from_numpy(QUERIES), torch.from_numpy(KEYS), 5, device="cpu")
    np.testing.assert_array_equal(of_arrays[0], of_tensors[0])
    np.testing.assert_array_equal(of_arrays[1], of_tensors[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_named(bad: float) -> None:
    keys = KEYS.copy()
    keys[8234, 3] = bad
    with pytest.raises(BilexError, match="row 8234 of the vectors holds NaN or infinite values"):
        top_k(QUERIES, keys, 3, device="cpu")
    with pytest.raises(BilexError, match="row 8234 "):
        neighbourhoods(QUERIES, keys, device="cpu")
    with pytest.raises(BilexError, match="row 8234 "):
        gpu_top_k(torch.from_numpy(QUERIES), torch.from_numpy(keys), 3, None, PLENTY)


def test_shapes_and_k_that_make_no_sense() -> None:
    with pytest.raises(BilexError, match="cannot be compared"):
        top_k(QUERIES, KEYS[:, :39], 3)
    with pytest.raises(BilexError, match="cannot be compared"):
        top_k(QUERIES[0], KEYS, 3)
    with pytest.raises(BilexError, match="at least 1, not 0"):
        top_k(QUERIES, KEYS, 0)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_small_problem_with_whole_numbers(data: st.DataObject) -> None:
    """Small whole numbers make nearly every score tie with another; order must still be the brute force's."""
    dim = data.draw(st.integers(1, 5), label="dim")
    seed = data.draw(st.integers(0, 2**31), label="seed")
    rng = np.random.default_rng(seed)
    largest = data.draw(st.sampled_from([1, 3, 300]), label="largest")
    queries = rng.integers(-largest, largest + 1, (data.draw(st.integers(1, 20)), dim)).astype(np.float32)
    keys = rng.integers(-largest, largest + 1, (data.draw(st.integers(1, 400)), dim)).astype(np.float32)
    penalty = rng.integers(-3, 4, len(keys)).astype(np.float32) / 4 if data.draw(st.booleans()) else None
    k = min(len(keys), data.draw(st.integers(1, 90), label="k"))
    expected = brute_force(queries, keys, k, penalty)
    for int8 in (False, True):
        assert_same(cpu_top_k(queries, keys, k, penalty, int8), expected)
    column = None if penalty is None else torch.from_numpy(penalty)
    scores, rows = gpu_top_k(torch.from_numpy(queries), torch.from_numpy(keys), k, column, 1 << 20)
    assert_same((scores.numpy(), rows.numpy()), expected)


@pytest.mark.parametrize("penalty", [None, PENALTY])
def test_keys_made_ready_once_answer_any_queries(penalty: Floats | None) -> None:
    keys = KeySearch(KEYS, key_penalty=penalty, device="cpu")
    for queries in (QUERIES[:1], QUERIES[1:], QUERIES[:0]):
        for k in (1, 7, len(KEYS) + 1):
            expected = top_k(queries, KEYS, k, key_penalty=penalty, device="cpu")
            assert_same(keys.top_k(queries, k), expected)


def test_neighbourhoods_and_csls_follow_their_formulas() -> None:
    source, target = units(300, 16, 8), units(400, 16, 9)
    cosines = source.astype(np.float64) @ target.astype(np.float64).T
    r_source, r_target = np.sort(cosines, 1)[:, -10:].mean(1), np.sort(cosines, 0)[-10:].mean(0)
    found_source, found_target = neighbourhoods(source, target, device="cpu")
    np.testing.assert_allclose(found_source, r_source, rtol=1e-6)
    np.testing.assert_allclose(found_target, r_target, rtol=1e-6)
    np.testing.assert_array_equal(mean_of_best(source, target, device="cpu"), found_source)
    scores, rows = csls_top_k(source, target, 5, query_mean=found_source, key_mean=found_target, device="cpu")
    csls = 2 * cosines - r_source[:, None] - r_target
    order = np.argsort(-csls, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_allclose(scores, np.take_along_axis(csls, order, 1), atol=1e-6)


def adversarial_units(count: int, dim: int, seed: int) -> Floats:
    """Unit rows most of whose entries lie halfway between two bfloat16 numbers: the worst to round."""
    rng = np.random.default_rng(seed)
    size = 2.0 ** np.floor(np.log2(1 / np.sqrt(dim)))
    rows = rng.choice([-1, 1], (count, dim)) * size * (1 + 2.0**-8 * rng.choice([0.999, 1.001], (count, dim)))
    rows[:, -1] = np.sqrt(np.maximum(0, 1 - np.square(rows[:, :-1]).sum(1)))
    return rows.astype(np.float32)


def proposed_scores(left: operands.Operand, right: operands.Operand) -> npt.NDArray[np.float64]:
    products = operands.multiply(*(torch.from_numpy(side.rows) for side in (left, right))).double().numpy()
    return products * left.scale[:, None].astype(np.float64) * right.scale.astype(np.float64)


def operand(rows: Floats, int8: bool) -> operands.Operand:
    return operands.operand(rows, int8=int8)


@pytest.mark.parametrize("length", [1.0, 1.05, 1.2, 1.41, 3.0])
@pytest.mark.parametrize("rows", [units(300, 40, 1), adversarial_units(300, 40, 1)], ids=["random", "worst"])
def test_proposed_scores_lie_within_the_bound(rows: Floats, length: float) -> None:
    queries = rows * np.float32(length)
    keys = np.concatenate([queries, queries + np.float32(0.05) * units(300, 40, 2), -queries])
    true = queries.astype(np.float64) @ keys.astype(np.float64).T
    for int8 in (False, True):
        left, right = (operand(side, int8) for side in (queries, keys))
        off = np.abs(proposed_scores(left, right) - true)
        of_rows, of_columns = operands.quantization_error(left, right)
        assert (off <= of_rows[:, None] + of_columns + operands.float32_error(left, right)[:, None]).all()
    left, right = (bfloat16.operand(torch.from_numpy(side), None, 1.0) for side in (queries, keys))
    proposed = (left.rows @ right.rows.T).double().numpy()
    assert (np.abs(proposed - true) <= bfloat16.error_bound(left, right)[:, None].double().numpy()).all()


def test_unit_rows_lie_within_the_bounds_however_they_round() -> None:
    rows = torch.from_numpy(np.concatenate([adversarial_units(200, 40, 3), units(200, 40, 4)]))
    rows = torch.nn.functional.normalize(rows)
    true = rows.double() @ rows.double().T
    low = bfloat16.rounded_units(rows)
    moved = ((low @ low.T).double() - true).abs()
    assert (moved <= bfloat16.UNIT_ERROR).all()
    assert float(moved.max()) > 0.3 * bfloat16.UNIT_ERROR  # the rows are bad enough to mean something


def test_eight_bit_rows_of_uneven_coordinates_are_rounded_as_finely_as_even_ones() -> None:
    even = units(400, 60, 5)
    uneven = even * np.geomspace(1, 1e-3, 60).astype(np.float32)
    uneven /= np.linalg.norm(uneven, axis=1, keepdims=True)
    errors = [operand(rows, True).error.mean() for rows in (even, uneven)]
    assert errors[1] < 1.3 * errors[0]
    # Without the rotation a few large coordinates would set the step of all.
    limit = operands.int8_limit()
    step = np.abs(uneven).max(1, keepdims=True) / limit
    assert errors[1] < 0.7 * np.linalg.norm(uneven - np.rint(uneven / step) * step, axis=1).mean()


def test_float32_rows_are_not_copied() -> None:
    rows = units(600, 40, 1)
    assert operand(rows, False).rows is rows


def test_the_bound_of_bfloat16_rounding_holds_and_is_reached() -> None:
    for largest in (0.3, 0.999, 1.0, 1.002, 1.0039, 1.1, 1.99, 2.0, 700.0):
        numbers = torch.linspace(0, largest, 200_001)
        moved = float((numbers.bfloat16().double() - numbers.double()).abs().max())
        bound = float(bfloat16.rounding_error(numbers.double()[-1:])[0])
        assert moved <= bound * (1 + 1e-6)
        assert moved >= 0.9 * bound


@pytest.mark.slow
@pytest.mark.promise
def test_memory_stays_bounded() -> None:
    """20,000 × 20,000 scores would be 1.6 GB; the search must rise by far less."""
    program = """
import resource, numpy as np
from bilex.search import neighbourhoods, top_k
rows = np.random.default_rng(0).normal(size=(20_000, 40)).astype(np.float32)
top_k(rows[:10], rows[:5000], 10, device="cpu"); neighbourhoods(rows[:10], rows[:5000], device="cpu")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
top_k(rows, rows, 10, device="cpu")
neighbourhoods(rows, rows, 10, device="cpu")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300 * 1024  # kilobytes


@INT8
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_blocks_that_do_not_divide_the_rows(
    int8: bool, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many ties, lengths far from 1 and a penalty."""
    monkeypatch.setattr(cpu, "COLUMNS", 200)
    queries, keys = with_duplicates(90, 24, 1) * np.float32(scale), with_duplicates(700, 24, 2)
    penalty = np.random.default_rng(3).normal(size=700).astype(np.float32)
    for wanted in (None, penalty):
        found = cpu.CpuSearch(keys, wanted, int8).top_k(queries, 5)
        assert_same(found, brute_force(queries, keys, 5, wanted))


@INT8
def test_rows_that_a_heap_does_not_decide_are_searched_plainly(
    int8: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the queries whose k-th best keys are equal to many others need it."""
    keys = np.concatenate([np.repeat(units(1, 24, 3), 50, axis=0), units(600, 24, 4)])
    queries = np.concatenate([keys[:1], units(40, 24, 5)])
    seen = []
    real = cpu.plain.top_k
    monkeypatch.setattr(cpu.plain, "top_k", lambda some, *rest: seen.append(len(some)) or real(some, *rest))
    assert_same(cpu_top_k(queries, keys, 5, None, int8), brute_force(queries, keys, 5))
    assert sum(seen) < 10


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
