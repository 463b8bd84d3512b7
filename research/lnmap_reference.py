"""LNMap from its formulas, in plain torch: the oracle of `bilex.aligners.lnmap`, without code of it.

`research.lnmap_compare` measures both on real data; `tests/aligners/test_lnmap.py` compares them number by
number on a planted world, with the same random draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bilex.core.cuda_graphs import ReplayedStep

Spaces = tuple[Tensor, Tensor, Tensor, Tensor]  # mapped x, own y; own x, mapped y


def unit(rows: Tensor) -> Tensor:
    """Rows of length one."""
    return torch.nn.functional.normalize(rows)


class Sizes(NamedTuple):
    """Widths of layers, epochs and samples of autoencoders, epochs per round and rounds of mappers."""

    hidden: int = 400
    latent: int = 350
    autoencoder_epochs: int = 25
    samples: int = 100_000
    epochs: int = 100
    rounds: int = 10


class Way(NamedTuple):
    """Where programs may differ.

    Args:
        identity: Whether the mappers' matrices start as the identity, rather than at random.
        induction_dropout: Whether dropout stays on while pairs are induced.
        reseed: Called before each stage and epoch or round with their numbers, for repeatable draws.
    """

    identity: bool = True
    induction_dropout: bool = False
    reseed: Callable[[int, int], object] = lambda stage, number: None


def block(sizes: list[int], *, tanh: bool) -> nn.Sequential:
    """Three linear layers with dropout and one PReLU between them."""
    a, b, c, d = sizes
    slope = nn.PReLU()
    return nn.Sequential(
        *(nn.Linear(a, b), nn.Dropout(0.25), slope, nn.Linear(b, c), nn.Dropout(0.25), slope),
        *(nn.Linear(c, d), *([nn.Tanh()] if tanh else [])),
    )


def mapper(sizes: Sizes, identity: bool) -> nn.Sequential:
    """A hidden layer with dropout and tanh, near the identity to begin with."""
    network = nn.Sequential(
        *(nn.Linear(sizes.latent, sizes.hidden), nn.Dropout(0.1), nn.Tanh()),
        nn.Linear(sizes.hidden, sizes.latent),
    )
    for layer in network:
        if identity and isinstance(layer, nn.Linear):
            nn.init.eye_(layer.weight)
    return network


def best_pairs(x: Tensor, y: Tensor, queries: int = 15_000, k: int = 10) -> Tensor:
    """Mutual best pairs by CSLS among the first words, by falling cosine."""
    x, y = unit(x), unit(y)
    cosines = x @ y.T
    scores = 2 * cosines - cosines.topk(k, 1).values.mean(1)[:, None] - cosines.topk(k, 0).values.mean(0)
    there, back = scores[:queries].argmax(1), scores[:, :queries].argmax(0)
    rows = torch.arange(len(there), device=x.device)
    inside = rows[there < len(back)]
    mutual = inside[back[there[inside]] == inside]
    order = cosines[mutual, there[mutual]].argsort(descending=True)
    return torch.stack([mutual, there[mutual]], 1)[order]


class Language(NamedTuple):
    """A language's rows, its encoder and decoder, and their optimizer."""

    rows: Tensor
    encode: nn.Sequential
    decode: nn.Sequential
    adam: torch.optim.Adam


def update(
    loss: Callable[[Tensor], Tensor], *optimizers: torch.optim.Optimizer
) -> Callable[[Tensor], Tensor]:
    """One step of training on a batch; a GPU replays it, which changes no number."""

    def step(batch: Tensor) -> Tensor:
        value = loss(batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
        return value.detach()

    on_gpu = optimizers[0].param_groups[0]["params"][0].is_cuda
    return ReplayedStep(step, print) if on_gpu else step


def autoencoder(rows: Tensor, sizes: Sizes, way: Way, stage: int) -> Language:
    """An encoder and a decoder, trained."""
    way.reseed(stage, 0)
    widths = [rows.shape[1], sizes.hidden, sizes.hidden, sizes.latent]
    encode, decode = block(widths, tanh=False).to(rows), block(widths[::-1], tanh=True).to(rows)
    adam = torch.optim.Adam([*encode.parameters(), *decode.parameters()], 1e-4, capturable=rows.is_cuda)
    step = update(lambda own: (decode(encode(rows[own])) - rows[own]).square().mean(), adam)
    for epoch in range(sizes.autoencoder_epochs):
        way.reseed(stage, epoch + 1)
        for numbers in torch.split(torch.randint(len(rows), (sizes.samples,), device=rows.device), 128):
            step(numbers)
    return Language(rows, encode, decode, adam)


def direction(
    a: Language,
    b: Language,
    g: nn.Sequential,
    f: nn.Sequential,
    seeds: Tensor,
    sizes: Sizes,
    way: Way,
    stage: int,
) -> Tensor:
    """Train a direction in all rounds; what its words are mapped to."""
    sgd = torch.optim.SGD([*g.parameters(), *f.parameters()], 1e-4)
    networks = nn.ModuleList([a.encode, a.decode, b.encode, g, f])

    def loss(pairs: Tensor) -> Tensor:
        x, y = a.rows[pairs[:, 0]], b.rows[pairs[:, 1]]
        with torch.no_grad():
            goal = b.encode(y)
        z = a.encode(x)
        there = g(z)
        back = f(there)
        hit, returned, decoded = ((end**2).mean() for end in (there - goal, back - z, a.decode(back) - x))
        total: Tensor = hit + returned + decoded
        return total

    step = update(loss, a.adam, sgd)
    for number in range(sizes.rounds):
        way.reseed(stage, number)
        learned = seeds
        if number:
            networks.train(way.induction_dropout)
            with torch.no_grad():
                found = best_pairs(g(a.encode(a.rows[:30_000])), b.encode(b.rows[:30_000]))
            learned = torch.cat([seeds, found[: 2000 * number]])
        networks.train()
        for _ in range(sizes.epochs):
            for pairs in torch.split(learned[torch.randperm(len(learned), device=seeds.device)], 128):
                step(pairs)
        print(f"round {number}: {len(learned)} pairs", file=sys.stderr, flush=True)
    networks.eval()
    with torch.no_grad():
        mapped: Tensor = g(a.encode(a.rows))
    return mapped


def plain(x: Tensor, y: Tensor, seeds: Tensor, sizes: Sizes, way: Way) -> Spaces:
    """LNMap from the formulas: autoencoders, then A→B, then B→A from where A→B ended."""
    x, y = (unit(unit(side) - unit(side).mean(0)) for side in (x, y))
    a, b = autoencoder(x, sizes, way, 0), autoencoder(y, sizes, way, 1)
    way.reseed(4, 0)
    g, f = mapper(sizes, way.identity).to(x), mapper(sizes, way.identity).to(x)
    mapped_x = direction(a, b, g, f, seeds, sizes, way, 2)
    with torch.no_grad():
        z_x, z_y = a.encode(x), b.encode(y)
    mapped_y = direction(b, a, f, g, seeds.flip(1), sizes, way, 3)
    return mapped_x, z_y, z_x, mapped_y
