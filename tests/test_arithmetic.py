"""Which precision is chosen on which processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from bilex.core.machine import Processor
from bilex.search import arithmetic

PLAIN = Processor("plain", frozenset({"avx2"}), 2)
WITH_BFLOAT16 = Processor("newer", frozenset({"avx2", "avx512_bf16"}), 2)


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing is remembered from other tests or from this machine, nor for other tests."""
    monkeypatch.setenv("BILEX_CACHE", str(tmp_path / "cache"))
    remembering = (arithmetic.outcome, arithmetic.int8_limit, arithmetic._machine)
    for function in remembering:
        function.cache_clear()
    yield
    for function in remembering:
        function.cache_clear()


def pretend(
    monkeypatch: pytest.MonkeyPatch, processor: Processor, times: dict[torch.dtype, float]
) -> list[torch.dtype]:
    """A processor whose products take these times; what is tried is noted."""
    tried: list[torch.dtype] = []
    monkeypatch.setattr(arithmetic, "processor", lambda: processor)
    monkeypatch.setattr(arithmetic, "_block", lambda dtype: dtype)
    monkeypatch.setattr(arithmetic, "_looked_at", lambda dtype: dtype)
    monkeypatch.setattr(arithmetic, "_layer", lambda dtype: dtype)

    def time_of(dtype: torch.dtype, to_beat: float) -> float:
        tried.append(dtype)
        return times[dtype]

    monkeypatch.setattr(arithmetic, "_best_time", time_of)
    return tried


def right(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return out.copy_(a.int() @ b.int())


def added_in_16_bits(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """As processors do that have no instruction of their own: one side made positive, pairs cut off."""
    shifted = a.int() + 128
    total = torch.zeros_like(out)
    for first in range(0, a.shape[1], 2):
        pair = shifted[:, first : first + 2] @ b[first : first + 2].int()
        total += pair.clamp(-32768, 32767)
    return out.copy_(total - 128 * b.int().sum(0))


def missing(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError("no kernel for the CPU")


def of_another_form(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.int() @ b.int()


def always_wrong(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return out.copy_((a.int() @ b.int()).clamp(-32768, 32767))


@pytest.mark.parametrize(
    ("product", "limit"),
    [(right, 127), (added_in_16_bits, 63), (missing, 0), (of_another_form, 0), (always_wrong, 0)],
)
def test_eight_bit_numbers_are_as_large_as_sums_come_out_right(monkeypatch, product, limit) -> None:
    monkeypatch.setattr(torch, "_int_mm", product)
    assert arithmetic.int8_limit() == limit


def test_a_precision_without_instructions_is_never_tried(monkeypatch) -> None:
    tried = pretend(monkeypatch, PLAIN, {torch.float32: 1.0, torch.int8: 2.0, torch.bfloat16: 0.1})
    for job in arithmetic.JOBS:
        assert arithmetic.fastest(job) == torch.float32
    assert torch.bfloat16 not in tried


def test_a_search_counts_what_it_must_look_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with matrix instructions for bfloat16: 8-bit products are faster, searches only with many keys."""
    pretend(monkeypatch, WITH_BFLOAT16, {torch.float32: 1.0, torch.int8: 0.25, torch.bfloat16: 0.37})
    assert arithmetic.fastest_search(keys=20_000, neighbours=10, directions=2) == torch.bfloat16
    assert arithmetic.fastest_search(keys=200_000, neighbours=10, directions=2) == torch.int8
    assert arithmetic.fastest_search(keys=60_000, neighbours=150, directions=2) == torch.bfloat16
    assert arithmetic.fastest("matching") == torch.int8


def test_few_keys_are_not_worth_wide_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, PLAIN, {torch.float32: 1.0, torch.int8: 0.6})
    assert arithmetic.fastest_search(keys=5_000, neighbours=10) == torch.float32
    assert arithmetic.fastest_search(keys=12_000, neighbours=10) == torch.int8
    assert arithmetic.fastest_search(keys=12_000, neighbours=10, directions=2) == torch.float32


def test_the_fastest_product_wins_if_it_wins_clearly(monkeypatch) -> None:
    times = {torch.float32: 1.0, torch.int8: 0.25, torch.bfloat16: 0.5}
    pretend(monkeypatch, WITH_BFLOAT16, times)
    assert {job: found.precision for job, found in arithmetic.outcomes().items()} == {
        "search": "int8",
        "matching": "int8",
        "tuning": "bfloat16",
        "encoding": "bfloat16",
    }
    arithmetic.outcome.cache_clear()
    monkeypatch.setenv("BILEX_CACHE", os.environ["BILEX_CACHE"] + "2")
    pretend(monkeypatch, WITH_BFLOAT16, {torch.float32: 1.0, torch.int8: 0.95, torch.bfloat16: 0.95})
    assert {found.precision for found in arithmetic.outcomes().values()} == {"float32"}


def test_what_was_found_is_remembered_for_this_machine_alone(monkeypatch) -> None:
    tried = pretend(monkeypatch, PLAIN, {torch.float32: 1.0, torch.int8: 0.5})
    assert arithmetic.fastest("search") == torch.int8
    before = len(tried)
    arithmetic.outcome.cache_clear()
    assert arithmetic.fastest("search") == torch.int8
    assert len(tried) == before
    arithmetic.outcome.cache_clear()
    arithmetic._machine.cache_clear()
    pretend(monkeypatch, Processor("another", PLAIN.features, 2), {torch.float32: 1.0, torch.int8: 3.0})
    assert arithmetic.fastest("search") == torch.float32


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}', "[" * 100_000])
def test_a_damaged_memory_costs_no_more_than_a_probe(monkeypatch, content: str) -> None:
    folder = Path(os.environ["BILEX_CACHE"])
    folder.mkdir()
    (folder / "arithmetic.json").write_text(content)
    pretend(monkeypatch, PLAIN, {torch.float32: 1.0, torch.int8: 0.5})
    assert arithmetic.fastest("search") == torch.int8
    assert json.loads((folder / "arithmetic.json").read_text())


def test_a_nonsensical_memory_is_not_believed(monkeypatch) -> None:
    pretend(monkeypatch, PLAIN, {torch.float32: 1.0, torch.int8: 0.5})
    folder = Path(os.environ["BILEX_CACHE"])
    folder.mkdir()
    entry = {"tuning": {"precision": "int8", "ratios": {}}, "search": {"precision": 7, "ratios": {}}}
    (folder / "arithmetic.json").write_text(json.dumps({arithmetic._machine(): entry}))
    assert arithmetic.fastest("tuning") == torch.float32
    assert arithmetic.fastest("search") == torch.int8


def test_a_slow_candidate_is_given_up_after_its_first_products() -> None:
    calls = []
    arithmetic._best_time(lambda: calls.append(1), to_beat=0.0)
    assert len(calls) == 2


IMITATIONS = {
    "as it is": {},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "sse": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
}
NUMBA = {"avx2": "haswell", "sse": "nehalem"}
PROGRAM = """
import hashlib, sys
import numpy as np
from bilex.search import cpu, neighbourhoods, csls_top_k
rng = np.random.default_rng(0)
shared = rng.standard_normal((20, 60))
x, y = (rng.standard_normal((3000, 20)) @ shared + rng.standard_normal((3000, 60)) for _ in "xy")
x, y = (np.float32(v / np.linalg.norm(v, axis=1, keepdims=True)) for v in (x, y))
r = neighbourhoods(x, y, 10, device="cpu")
scores, keys = csls_top_k(x, y, 5, query_mean=r[0], key_mean=r[1], device="cpu")
both = cpu.top_k_both_ways(x, y, 10, 1 << 24)
digest = hashlib.sha256()
for part in (*r, scores, keys, *both):
    digest.update(np.ascontiguousarray(part).tobytes())
print(digest.hexdigest())
"""


def test_searches_give_the_same_bytes_on_every_kind_of_processor(tmp_path: Path) -> None:
    """The same search under imitated processors: other precisions, other instructions, one result."""
    found = {}
    for name, variables in IMITATIONS.items():
        numba = {"NUMBA_CPU_NAME": NUMBA[name], "NUMBA_CPU_FEATURES": ""} if name in NUMBA else {}
        environment = {
            **os.environ,
            **variables,
            **numba,
            "NUMBA_CACHE_DIR": str(tmp_path / name),
            "OMP_NUM_THREADS": "2",
        }
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        found[name] = run.stdout.strip()
    assert len(set(found.values())) == 1, found
