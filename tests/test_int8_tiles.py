"""8-bit products by the processor's own instructions."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core import config

from bilex.core.machine import Processor, processor
from bilex.search import int8_tiles

KINDS = [
    pytest.param(
        kind,
        marks=pytest.mark.skipif(
            feature not in processor().features, reason=f"needs a processor with {feature}"
        ),
    )
    for kind, feature in (("vnni", "avx512_vnni"), ("avx2", "avx2"))
]


def extreme(rng: np.random.Generator, rows: int, width: int, largest: int) -> np.ndarray:
    """Numbers of the largest size, so that any sum that is cut off shows; the first row of one sign."""
    numbers = np.where(rng.random((rows, width)) < 0.5, -largest, largest).astype(np.int8)
    numbers[0] = largest
    return numbers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("keys", "width", "queries"), [(64, 4, 4), (130, 33, 7), (200, 300, 1)])
def test_8_bit_products_are_added_up_without_loss(
    kind: int8_tiles.Kind, keys: int, width: int, queries: int
) -> None:
    rng = np.random.default_rng(14)
    largest = int8_tiles.LARGEST[kind]
    stay, asked = extreme(rng, keys, width, largest), extreme(rng, queries, width, largest)
    tiles = int8_tiles.empty(keys, width, kind)
    int8_tiles.put(stay, tiles, 0)
    rows = int8_tiles.filled_up(asked, kind)
    cells = np.zeros((len(tiles), len(rows), int8_tiles.LANES), np.int32)
    int8_tiles.add_all(tiles, rows, cells)
    found = cells.transpose(1, 0, 2).reshape(len(rows), -1)[:queries, :keys]
    of_keys = int8_tiles.taken_off(stay, kind, "keys")[:keys]
    of_queries = int8_tiles.taken_off(asked, kind, "queries")[:queries]
    true = asked.astype(np.int32) @ stay.T.astype(np.int32)
    np.testing.assert_array_equal(found - of_queries[:, None] - of_keys, true)
    off = (int8_tiles.taken_off(asked, kind, "queries"), int8_tiles.taken_off(stay, kind, "keys"))
    np.testing.assert_array_equal(int8_tiles.all_products(tiles, rows, *off)[:queries, :keys], true)


@pytest.mark.skipif(int8_tiles.kind() != "vnni", reason="needs a processor with AVX-512 VNNI")
def test_scaled_products() -> None:
    rng = np.random.default_rng(15)
    stay, asked = extreme(rng, 130, 33, 127), extreme(rng, 7, 33, 127)
    scale = np.float32(2.0) ** rng.integers(-3, 4, 192).astype(np.float32)
    tiles = int8_tiles.empty(130, 33)
    int8_tiles.put(stay, tiles, 0)
    out = np.empty((7, 130), np.float32)
    int8_tiles.products(tiles, int8_tiles.filled_up(asked), scale, 0, out)
    np.testing.assert_array_equal(out, (asked.astype(np.int32) @ stay.T.astype(np.int32)) * scale[:130])


@pytest.mark.parametrize(
    ("features", "name", "target", "kind"),
    [
        ({"avx2", "avx512_vnni"}, None, None, "vnni"),
        ({"avx2"}, None, None, "avx2"),
        ({"sse4_2"}, None, None, None),
        ({"avx2", "avx512_vnni"}, "haswell", "", "avx2"),
        ({"avx2"}, "nehalem", "", None),
        ({"avx2"}, None, "-avx2", None),
    ],
)
def test_instructions_are_used_where_processor_and_compiler_have_them(
    monkeypatch: pytest.MonkeyPatch,
    features: set[str],
    name: str | None,
    target: str | None,
    kind: str | None,
) -> None:
    monkeypatch.setattr(int8_tiles, "processor", lambda: Processor("some", frozenset(features), 2))
    monkeypatch.setattr(
        int8_tiles.llvmlite.binding, "get_host_cpu_features", lambda: {"avx2": True, "avx512vnni": True}
    )
    monkeypatch.setattr(config, "CPU_NAME", name)
    monkeypatch.setattr(config, "CPU_FEATURES", target)
    monkeypatch.setattr(config, "ENABLE_AVX", 1)
    assert int8_tiles.kind() == kind
