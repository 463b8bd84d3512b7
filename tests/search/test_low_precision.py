"""Which precision is chosen on which processor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from bilex.core.machine import Processor
from bilex.search.low_precision import operands


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Nothing is known from other tests, nor for other tests."""
    operands.int8_limit.cache_clear()
    yield
    operands.int8_limit.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    monkeypatch.setattr(operands, "processor", lambda: Processor("some", frozenset(features), 2))


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
    pretend(monkeypatch, "avx2")
    monkeypatch.setattr(torch, "_int_mm", product)
    assert operands.int8_limit() == limit


@pytest.mark.parametrize(
    ("features", "product", "expected"),
    [
        ((), right, ("float32", "float32")),
        (("avx2",), added_in_16_bits, ("int8", "float32")),
        (("avx2", "avx512_vnni", "avx512_bf16"), right, ("int8", "bfloat16")),
        (("avx2",), missing, ("float32", "float32")),
    ],
)
def test_precisions_follow_from_the_instructions(monkeypatch, features, product, expected) -> None:
    pretend(monkeypatch, *features)
    monkeypatch.setattr(torch, "_int_mm", product)
    found = operands.precisions()
    assert (found["search"], found["matching"]) == (expected[0], expected[0])
    assert (found["tuning"], found["encoding"]) == (expected[1], expected[1])
    assert operands.precision("tuning") == expected[1]


@pytest.mark.parametrize(("limit", "enough"), [(127, 4_000), (63, 8_000)])
def test_few_keys_are_not_worth_wide_bounds(monkeypatch: pytest.MonkeyPatch, limit: int, enough: int) -> None:
    monkeypatch.setattr(operands, "int8_limit", lambda: limit)
    assert not operands.int8_pays(5_000, 2_000, 10)
    assert operands.int8_pays(5_000, enough, 10)
    assert not operands.int8_pays(5_000, enough, 500)
    assert not operands.int8_pays(1, 200_000, 10)


IMITATIONS = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NUMBA_CPU_NAME": "haswell",
    },
    "sse": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "NUMBA_CPU_NAME": "nehalem",
    },
}
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
best = cpu.CpuSearch(y, None, True).top_k(x, 10)
digest = hashlib.sha256()
for part in (*r, scores, keys, *best):
    digest.update(np.ascontiguousarray(part).tobytes())
"""


def test_searches_give_the_same_bytes_on_every_kind_of_processor() -> None:
    """The same search here and under imitated processors: other precisions and instructions, one result."""
    running = {}
    for name, variables in IMITATIONS.items():
        # Numba's usual cache: what it keeps for one processor is not used for another.
        environment = {**os.environ, **variables, "NUMBA_CPU_FEATURES": "", "OMP_NUM_THREADS": "2"}
        command = [sys.executable, "-c", f"{PROGRAM}\nprint(digest.hexdigest())"]
        running[name] = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    here: dict[str, Any] = {}
    exec(PROGRAM, here)
    found = {name: process.communicate()[0].strip() for name, process in running.items()}
    assert set(found.values()) == {here["digest"].hexdigest()}, found
