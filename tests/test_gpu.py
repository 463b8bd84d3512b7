"""What runs on a GPU, against the same on the CPU, or in float64.

These tests need an NVIDIA GPU. Elsewhere they are skipped, and the end of the run says so.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bilex import C1
from bilex.aligners import Map
from bilex.aligners.advanced import advanced_maps
from bilex.aligners.contrast import Contrast
from bilex.aligners.maps import Linear, Unit
from bilex.model.space import map_words
from bilex.search import csls_top_k, mean_of_best, neighbourhoods, plain, top_k
from bilex.search.matching import StochasticMatcher
from bilex.search.negatives import Forbidden, HardNegatives, Moment
from bilex.vectors.stored import unit_rows
from planted import planted

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU here"),
]
DEVICE, NEAREST = "cuda", 33


def test_hard_negatives_are_those_of_a_brute_force_at_every_update() -> None:
    world = planted(2000, 40, 0.4)
    x, y = (
        torch.nn.functional.normalize(torch.from_numpy(words.vectors)).to(DEVICE)
        for words in (world.source, world.target)
    )
    pairs = np.stack([np.arange(300)] * 2, axis=1)
    contrast = Contrast(x, y, pairs, len(x), NEAREST)
    searches = contrast.source.search, contrast.target.search
    assert all(search.on_gpu for search in searches)
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
            chosen = searches[side].key
            worst = scores.gather(1, chosen).amin(1)
            best_other = scores.scatter(1, chosen, -torch.inf).amax(1)
            assert (best_other < worst + 1e-6).all(), f"update {update}, side {side}"
        maps = [maps[0] - 0.05 * step.source, maps[1] - 0.05 * step.target]


def test_many_equal_keys_are_searched_exactly() -> None:
    keys = torch.nn.functional.normalize(torch.ones(500, 40)).to(DEVICE)
    queries = torch.nn.functional.normalize(torch.randn(25, 40)).to(DEVICE)
    search = HardNegatives(keys, NEAREST, 1.0, Forbidden(np.arange(26), np.arange(25)))
    still = Moment(queries, torch.ones_like(keys[:, 0]), queries, keys, 0 * queries[:, 0], 0 * keys[0, 0])
    for query, chosen in enumerate(search.nearest(still).key.tolist()):
        assert len(set(chosen)) == NEAREST and query not in chosen


def test_matching_gives_what_the_plain_version_gives() -> None:
    world = planted(1501, 50, 1.0)
    x, y = (unit_rows(words.vectors) for words in (world.source, world.target))
    found = StochasticMatcher(device=DEVICE)(x, y, 1.0)
    everything = np.ones((len(x), len(y)), bool)
    forward, backward, objective = plain.match(x, y, 10, (everything, everything.T))
    assert (found.forward.cpu().numpy() == forward).mean() > 0.99
    assert (found.backward.cpu().numpy() == backward).mean() > 0.99
    assert found.objective == pytest.approx(objective, abs=1e-5)
    hidden = StochasticMatcher(device=DEVICE)(x, y, 0.5)
    assert 0.3 < float((hidden.forward == found.forward).double().mean()) < 0.7


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


def test_a_vocabulary_is_mapped_as_on_the_cpu() -> None:
    world = planted(3000, 50, 1.0)
    into = Map([Unit(), Linear(np.random.default_rng(0).normal(size=(50, 50))), Unit()])
    for metric in ("cosine", "dot"):
        ours, theirs = (map_words(world.source, into, metric, device) for device in ("cuda", "cpu"))
        np.testing.assert_allclose(ours.vectors, theirs.vectors, atol=2e-6)
        assert ours.preprocessing == theirs.preprocessing


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
