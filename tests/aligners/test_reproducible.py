"""The same input, settings and seed: the same bytes of maps; with other threads the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from c1_worlds import World
from test_settings_fuzz import SMALL

from bilex.aligners import get_method, methods
from bilex.aligners.base import Aligner
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

FEW_UPDATES = {**SMALL, "c1": {"iterations": 1, "updates": 5}, "rcsls": {"iterations": 5}}
# Many small steps of stochastic descent, or matching by random numbers: rounding grows with every step.
ROUNDING_GROWS = {"lnmap", "vecmap-semi", "vecmap-unsupervised", "vecmap-identical"}


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit(name: str, world: World, seeds: int, **settings: Any) -> Aligner:
    known = get_method(name).settings_fields()
    chosen = {key: value for key, value in FEW_UPDATES.get(name, {}).items() if key in known}
    target = world.target
    lexicon: Lexicon | None = world.seeds(seeds)
    if name == "vecmap-identical":
        target = WordVectors(world.source.index_to_key, target.vectors)
        lexicon = None
    return get_method(name)(device="cpu", **{**chosen, **settings}).fit(world.source, target, lexicon)


def content(aligner: Aligner) -> list[bytes]:
    sides = (aligner.source_map_.state("s"), aligner.target_map_.state("t"))
    return [tensor.tobytes() for _, tensors in sides for tensor in tensors.values()]


def answers(aligner: Aligner, world: World) -> Any:
    x, y = aligner.source_map_(world.source.vectors), aligner.target_map_(world.target.vectors)
    return (x @ y.T).argmax(axis=1)


@pytest.mark.parametrize("name", sorted(methods()))
def test_the_same_bytes_come_out_again(name: str) -> None:
    world = World(words=200, dim=24)
    with threads(2):
        assert content(fit(name, world, 60)) == content(fit(name, world, 60))


@pytest.mark.parametrize("name", sorted(set(methods()) - ROUNDING_GROWS))
@pytest.mark.parametrize("seeds", [12, 100], ids=["fewer seeds than dimensions", "enough seeds"])
def test_other_numbers_of_threads_give_the_same_answers(name: str, seeds: int) -> None:
    world = World(words=400, dim=40)
    found = []
    for count in (1, 2):
        with threads(count):
            found.append(answers(fit(name, world, seeds), world))
    assert np.array_equal(found[0], found[1])
