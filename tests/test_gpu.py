"""What runs on a GPU: the fused kernels and the searches, against the same in float64 on the CPU.

These tests need an NVIDIA GPU with Triton. Elsewhere they are skipped, and the end of the run says so. The
kernels alone can also be checked without a GPU, by Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest
import torch

from bilex.aligners.advanced import advanced_maps
from bilex.aligners.c1 import C1
from bilex.aligners.contrast import Contrast, Words, forbidden_partners
from bilex.aligners.maps import Linear, Map, Unit
from bilex.model.space import map_words
from bilex.search import csls_top_k, mean_of_best, neighbourhoods, top_k
from bilex.search.negatives_gpu import GpuHardNegatives
from planted import planted

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed here"),
]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU here")
kernel = pytest.mark.skipif(
    not (INTERPRETED or torch.cuda.is_available()), reason="there is no CUDA GPU here, nor TRITON_INTERPRET=1"
)
QUERIES, WORDS, POOL, NEAREST = 61, 997, 75, 33  # no multiples of the kernels' blocks
DIMENSIONS = [40, 64, 300]


def rows(count: int, dim: int, seed: int) -> torch.Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


@kernel
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_pooled_scores_are_scaled_products_and_barred_keys_get_none(dim: int) -> None:
    from bilex.search.negatives_triton import score_pools

    queries, keys = rows(QUERIES, dim, 0), rows(WORDS, dim, 1)
    inverse = keys.norm(dim=1).reciprocal()
    pool = torch.randint(WORDS, (QUERIES, POOL), generator=torch.Generator().manual_seed(2)).to(DEVICE)
    barred = pool % 7 == 0
    wanted = torch.arange(0, QUERIES, 2).to(DEVICE)
    scores = torch.full((QUERIES, POOL), 5.0).to(DEVICE)
    score_pools(queries, keys, inverse, pool, barred, wanted, scores)
    expected = (keys.double()[pool] * queries.double()[:, None]).sum(2) * inverse.double()[pool]
    expected[barred] = -torch.inf
    torch.testing.assert_close(scores[wanted].double(), expected[wanted], atol=1e-4, rtol=1e-5)
    assert (scores[1::2] == 5.0).all(), "queries that were not wanted are left alone"


@kernel
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_weights_and_weighted_rows_are_those_of_the_softmax(dim: int) -> None:
    from bilex.search.negatives_triton import weigh_nearest

    keys = rows(WORDS, dim, 3)
    inverse = keys.norm(dim=1).reciprocal()
    index = torch.randint(WORDS, (QUERIES, NEAREST), generator=torch.Generator().manual_seed(4)).to(DEVICE)
    score = 2 * torch.rand(QUERIES, NEAREST, generator=torch.Generator().manual_seed(5)).to(DEVICE) - 1
    total, context = torch.zeros(QUERIES).to(DEVICE), torch.zeros(QUERIES, dim).to(DEVICE)
    weigh_nearest(keys, inverse, index, score, torch.arange(QUERIES).to(DEVICE), total, context, 0.5)
    weight = (score.double() / 0.5).exp()
    torch.testing.assert_close(total.double(), weight.sum(1), atol=1e-4, rtol=1e-5)
    scaled = (weight * inverse.double()[index])[:, :, None] * keys.double()[index]
    torch.testing.assert_close(context.double(), scaled.sum(1), atol=1e-4, rtol=1e-4)


@on_gpu
def test_fused_hard_negatives_are_those_of_a_brute_force_at_every_update() -> None:
    world = planted(2000, 40, 0.4)
    x, y = (
        torch.nn.functional.normalize(torch.from_numpy(words.vectors)).to(DEVICE)
        for words in (world.source, world.target)
    )
    pairs = np.stack([np.arange(300)] * 2, axis=1)
    forbidden = forbidden_partners(pairs, len(x), all_known=False)
    contrast = Contrast(
        Words.of(x, pairs[:, 0], len(x)), Words.of(y, pairs[:, 1], len(y)), *forbidden, NEAREST
    )
    assert all(isinstance(part, GpuHardNegatives) and part.fused for part in contrast.search)
    start = advanced_maps(x[:300], y[:300])
    maps = [start.source.float(), start.target.float()]
    own = torch.arange(300).to(DEVICE)
    for update in range(20):
        step = contrast.step(*maps)
        images = [part.double() @ w.double() for part, w in zip((x, y), maps, strict=True)]
        for side in (0, 1):
            queries = torch.nn.functional.normalize(images[1 - side][:300])
            scores = queries @ torch.nn.functional.normalize(images[side]).T
            scores[own, own] = -torch.inf
            chosen = contrast.search[side].output.key
            worst = scores.gather(1, chosen).amin(1)
            best_other = scores.scatter(1, chosen, -torch.inf).amax(1)
            assert (best_other < worst + 1e-6).all(), f"update {update}, side {side}"
        maps = [maps[0] - 0.05 * step.source, maps[1] - 0.05 * step.target]


@on_gpu
def test_searches_give_what_the_cpu_gives() -> None:
    world = planted(3000, 50, 1.0)
    x, y = (
        words.vectors / np.linalg.norm(words.vectors, axis=1, keepdims=True) for words in vars(world).values()
    )
    for call in (
        lambda device: top_k(x, y, 7, device=device),
        lambda device: (mean_of_best(x, y, 10, device=device),),
        lambda device: neighbourhoods(x, y, 10, device=device),
    ):
        for ours, theirs in zip(call("cuda"), call("cpu"), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-6)
    source, target = neighbourhoods(x, y, 10, device="cpu")
    means = {"query_mean": source, "key_mean": target}
    ours, theirs = (csls_top_k(x, y, 5, **means, device=device)[1] for device in ("cuda", "cpu"))
    np.testing.assert_array_equal(ours, theirs)


@on_gpu
def test_a_vocabulary_is_mapped_as_on_the_cpu() -> None:
    world = planted(3000, 50, 1.0)
    into = Map([Unit(), Linear(np.random.default_rng(0).normal(size=(50, 50))), Unit()])
    for metric in ("cosine", "dot"):
        ours, theirs = (map_words(world.source, into, metric, device) for device in ("cuda", "cpu"))
        np.testing.assert_allclose(ours.vectors, theirs.vectors, atol=2e-6)
        assert ours.preprocessing == theirs.preprocessing


@on_gpu
def test_c1_learns_on_the_gpu_what_it_learns_on_the_cpu() -> None:
    world = planted(1200, 30, 0.8)
    settings = {"iterations": 2, "updates": 20, "negatives": 20}
    right = {}
    for device in ("cuda", "cpu"):
        fitted = C1(device=device, **settings).fit(world.source, world.target, world.pairs(0, 200))
        x, y = fitted.source_map_(world.source.vectors), fitted.target_map_(world.target.vectors)
        best = top_k(x[200:], y, 1, device="cpu")[1][:, 0]
        right[device] = float((best == np.arange(200, 1200)).mean())
    assert right["cuda"] == pytest.approx(right["cpu"], abs=0.02)
    assert right["cuda"] > 0.5
