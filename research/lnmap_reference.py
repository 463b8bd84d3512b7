"""LNMap beside a plain transcription of its formulas: P@1 of both programs, over several random seeds.

    python -m research.lnmap_reference DATA --device cuda --jobs ours:0 ours:1 ours:2 plain:0 plain:1 plain:2

DATA has vectors/ and dictionaries/. Each job, a program and a random seed, is a process of its own, and all
run at once: the networks are so small that one leaves most of a GPU idle. Programs:

- plain: the formulas below, which share no code with `bilex.aligners`;
- plain-random: the same with random mappers to begin with, rather than the identity;
- ours: `LNMap`; ours-trial: `LNMap` as a trial shortens it.

P@1 in %: forward NN and CSLS in the target's latent space, backward NN and CSLS in the source's, and the same
in the common space; on the test dictionary, and on 5k seeds whose words are in no 1k seed (choose on these).
`--dim` projects the vectors on their first principal components and shrinks all layers alike, for a CPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from research.packed import read_dictionary, read_vectors

Spaces = tuple[Tensor, Tensor, Tensor, Tensor]  # mapped x, own y; own x, mapped y


def unit(rows: Tensor) -> Tensor:
    """Rows of length one."""
    return torch.nn.functional.normalize(rows)


class Sizes(NamedTuple):
    """Widths of layers, words per epoch of the autoencoders, epochs per round and rounds of the mappers."""

    hidden: int
    latent: int
    samples: int
    epochs: int
    rounds: int


def block(sizes: list[int], *, tanh: bool) -> nn.Sequential:
    """Three linear layers with dropout and PReLU between them."""
    a, b, c, d = sizes
    return nn.Sequential(
        *(nn.Linear(a, b), nn.Dropout(0.25), nn.PReLU(), nn.Linear(b, c), nn.Dropout(0.25), nn.PReLU()),
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


def autoencoder(rows: Tensor, sizes: Sizes) -> Language:
    """An encoder and a decoder, trained."""
    widths = [rows.shape[1], sizes.hidden, sizes.hidden, sizes.latent]
    encode, decode = block(widths, tanh=False).to(rows.device), block(widths[::-1], tanh=True).to(rows.device)
    adam = torch.optim.Adam([*encode.parameters(), *decode.parameters()], 1e-4)
    for _ in range(25):
        for numbers in torch.split(torch.randint(len(rows), (sizes.samples,), device=rows.device), 128):
            loss = (decode(encode(rows[numbers])) - rows[numbers]).square().mean()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
    return Language(rows, encode, decode, adam)


def direction(
    a: Language, b: Language, g: nn.Sequential, f: nn.Sequential, seeds: Tensor, sizes: Sizes
) -> Tensor:
    """Train a direction in all rounds; what its words are mapped to."""
    sgd = torch.optim.SGD([*g.parameters(), *f.parameters()], 1e-4)
    networks = [a.encode, a.decode, b.encode, g, f]
    learned = seeds
    for number in range(sizes.rounds):
        for network in networks:
            network.train()
        for _ in range(sizes.epochs):
            for pairs in torch.split(learned[torch.randperm(len(learned), device=seeds.device)], 128):
                x, y = a.rows[pairs[:, 0]], b.rows[pairs[:, 1]]
                z = a.encode(x)
                there = g(z)
                back = f(there)
                with torch.no_grad():
                    goal = b.encode(y)
                ends = [there - goal, back - z, a.decode(back) - x]
                loss = torch.stack([end.square().mean() for end in ends]).sum()
                a.adam.zero_grad()
                sgd.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                a.adam.step()
                sgd.step()
        print(f"round {number}: {len(learned)} pairs", file=sys.stderr, flush=True)
        for network in networks:
            network.eval()
        with torch.no_grad():
            found = best_pairs(g(a.encode(a.rows[:30_000])), b.encode(b.rows[:30_000]))
        learned = torch.cat([seeds, found[: 2000 * (number + 1)]])
    with torch.no_grad():
        mapped: Tensor = g(a.encode(a.rows))
    return mapped


def plain(x: Tensor, y: Tensor, seeds: Tensor, sizes: Sizes, *, identity: bool = True) -> Spaces:
    """LNMap from the formulas: autoencoders, then A→B, then B→A from where A→B ended."""
    x, y = (unit(unit(side) - unit(side).mean(0)) for side in (x, y))
    a, b = autoencoder(x, sizes), autoencoder(y, sizes)
    g, f = mapper(sizes, identity).to(x.device), mapper(sizes, identity).to(x.device)
    mapped_x = direction(a, b, g, f, seeds, sizes)
    with torch.no_grad():
        z_x, z_y = a.encode(x), b.encode(y)
    mapped_y = direction(b, a, f, g, seeds.flip(1), sizes)
    return mapped_x, z_y, z_x, mapped_y


def p_at_1(x: Tensor, y: Tensor, pairs: np.ndarray) -> list[float]:
    """NN and CSLS, over distinct source words, any translation being right."""
    x, y = unit(x), unit(y)
    gold: dict[int, set[int]] = {}
    for source, target in pairs.tolist():
        gold.setdefault(source, set()).add(target)
    queries = sorted(gold)
    cosines = x[queries] @ y.T
    r_y = (y @ x.T).topk(10).values.mean(1)
    found = [cosines.argmax(1).tolist(), (2 * cosines - r_y).argmax(1).tolist()]
    hits = [sum(b in gold[q] for q, b in zip(queries, best, strict=True)) for best in found]
    return [round(100 * hit / len(queries), 2) for hit in hits]


def scored(spaces: Spaces, pairs: np.ndarray) -> dict[str, list[float]]:
    """Four figures in one space per direction, and four in the common space."""
    mapped_x, own_y, own_x, mapped_y = map(unit, spaces)
    x, y = torch.cat([mapped_x, own_x], 1), torch.cat([own_y, mapped_y], 1)
    return {
        "per direction": p_at_1(mapped_x, own_y, pairs) + p_at_1(mapped_y, own_x, pairs[:, ::-1]),
        "common": p_at_1(x, y, pairs) + p_at_1(y, x, pairs[:, ::-1]),
    }


def one_job(options: argparse.Namespace) -> dict[str, Any]:
    """Run one program with one random seed."""
    program, _, seed = options.job.partition(":")
    codes = options.pair.split("-")
    whole = [read_vectors(options.data, code, options.limit) for code in codes]
    source, target = (projected(vectors, options.dim) for vectors in whole)
    places = source.key_to_index, target.key_to_index
    train, many, test = (
        read_dictionary(options.data, options.pair, name)
        for name in ("train.freq.1k", "train.freq.5k", "test.freq.2k")
    )
    sources, targets = {a for a, _ in train.pairs}, {b for _, b in train.pairs}
    held_out = Lexicon([(a, b) for a, b in many.pairs if a not in sources and b not in targets])
    widths = round(options.dim * 4 / 3), round(options.dim * 7 / 6)
    sizes = Sizes(*widths, options.samples, options.epochs, options.rounds)
    started = time.monotonic()
    if program.startswith("ours"):
        from bilex.aligners.lnmap import LNMap

        small: dict[str, Any] = {"hidden": sizes.hidden, "latent": sizes.latent}
        small |= {"autoencoder_samples": sizes.samples, "mapper_epochs": sizes.epochs, "rounds": sizes.rounds}
        aligner = LNMap(device=options.device, seed=int(seed), **small)
        aligner = aligner.for_trial(len(train), len(source)) if program == "ours-trial" else aligner
        aligner.fit(source, target, train)
        x, y = (
            torch.from_numpy(side).to(options.device)
            for side in (aligner.source_map_(source.vectors), aligner.target_map_(target.vectors))
        )
        half = x.shape[1] // 2
        spaces = x[:, :half], y[:, :half], x[:, half:], y[:, half:]
    else:
        torch.manual_seed(int(seed))
        x, y = (torch.from_numpy(np.array(side.vectors)).to(options.device) for side in (source, target))
        seeds = torch.from_numpy(train.index(*places)).to(options.device)
        spaces = plain(x, y, seeds, sizes, identity=program == "plain")
    seconds = round(time.monotonic() - started, 1)
    dictionaries = {"held-out": held_out, "test": test}
    indexed = {name: pairs.index(*places) for name, pairs in dictionaries.items()}
    found = {name: scored(spaces, pairs) for name, pairs in indexed.items() if len(pairs)}
    return {"job": options.job, "seconds": seconds, **found}


def projected(vectors: WordVectors, dim: int) -> WordVectors:
    """The vectors on their first principal components."""
    rows = np.array(vectors.vectors)
    if dim < rows.shape[1]:
        rows = rows - rows.mean(axis=0)
        rows = rows @ np.linalg.eigh(rows.T @ rows)[1][:, -dim:]
    return WordVectors(vectors.index_to_key, rows)


def main() -> None:
    """Run the jobs side by side, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pair", default="en-ru")
    parser.add_argument("--limit", type=int, default=10_000, help="words of each language")
    parser.add_argument("--dim", type=int, default=300, help="dimension of the vectors")
    parser.add_argument("--samples", type=int, default=100_000, help="words per epoch of the autoencoders")
    parser.add_argument("--epochs", type=int, default=100, help="epochs per round of the mappers")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of the mappers")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", nargs="+", default=["ours:0", "plain:0"], metavar="PROGRAM:SEED")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(one_job(options)), flush=True)
        return
    given = sys.argv[1 : sys.argv.index("--jobs")] if "--jobs" in sys.argv else sys.argv[1:]
    command = [sys.executable, "-m", "research.lnmap_reference", *given, "--job"]
    processes = [subprocess.Popen([*command, job]) for job in options.jobs]
    sys.exit(max(process.wait() for process in processes))


if __name__ == "__main__":
    main()
