"""LNMap beside a plain transcription of its formulas: P@1 of both programs, over several random seeds.

    python -m research.lnmap_reference DATA --device cuda --jobs ours:0 ours:1 ours:2 plain:0 plain:1 plain:2

DATA has vectors/ and dictionaries/. Each job, a program and a random seed, is a process of its own, and all
run at once: the networks are so small that one leaves most of a GPU idle. Programs:

- plain: the formulas below, which share no code with `bilex.aligners`;
- plain-adam: the same with Adam at 1e-4 for the mappers too;
- plain-mean: the same with squared errors averaged over batch and dimensions;
- ours: `LNMap`; ours-trial: `LNMap` as a trial shortens it.

P@1 in %: forward NN and CSLS in the target's latent space, backward NN and CSLS in the source's, and the same
in the common space; on the test dictionary, and on 5k seeds whose words are in no 1k seed (choose on these).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bilex.lexicon import Lexicon
from research.packed import read_dictionary, read_vectors

Spaces = tuple[Tensor, Tensor, Tensor, Tensor]  # mapped x, own y; own x, mapped y


def unit(rows: Tensor) -> Tensor:
    """Rows of length one."""
    return torch.nn.functional.normalize(rows)


def block(sizes: list[int], drop: float) -> nn.Sequential:
    """Linear layers with PReLU and dropout between, and tanh at the end."""
    a, b, c, d = sizes
    return nn.Sequential(
        *(nn.Linear(a, b), nn.PReLU(), nn.Dropout(drop), nn.Linear(b, c), nn.PReLU(), nn.Dropout(drop)),
        *(nn.Linear(c, d), nn.Tanh()),
    )


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


def autoencoder(rows: Tensor) -> nn.ModuleList:
    """An encoder and a decoder, trained."""
    sizes = [rows.shape[1], 400, 400, 350]
    both = nn.ModuleList([block(sizes, 0.25), block(sizes[::-1], 0.25)]).to(rows.device)
    optimizer = torch.optim.Adam(both.parameters(), 1e-4)
    for _ in range(25):
        for numbers in torch.split(torch.randint(len(rows), (100_000,), device=rows.device), 128):
            loss = ((both[1](both[0](rows[numbers])) - rows[numbers]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return both


def direction(
    a: Tensor,
    z_b: Tensor,
    own: nn.ModuleList,
    g: nn.Sequential,
    f: nn.Sequential,
    seeds: Tensor,
    adam: bool,
    mean: bool,
) -> Tensor:
    """Train mappers, encoder and decoder of a direction in eleven rounds; what the rows are mapped to."""
    of_mappers = [*g.parameters(), *f.parameters()]
    optimizers: list[torch.optim.Optimizer] = [torch.optim.Adam(own.parameters(), 1e-4)]
    optimizers.append(torch.optim.Adam(of_mappers, 1e-4) if adam else torch.optim.SGD(of_mappers, 1e-4))
    for module in (own, g, f):
        module.train()
    for number in range(11):
        learned = seeds
        if number:
            with torch.no_grad():
                found = best_pairs(g(own[0](a[:30_000])), z_b[:30_000])
            learned = torch.cat([seeds, found[: 2000 * number]])
        for _ in range(100):
            for rows in torch.split(learned[torch.randperm(len(learned), device=a.device)], 128):
                z = own[0](a[rows[:, 0]])
                there = g(z)
                back = f(there)
                ends = [there - z_b[rows[:, 1]], back - z, own[1](back) - a[rows[:, 0]]]
                loss = torch.stack(
                    [end.square().mean() if mean else end.square().sum() for end in ends]
                ).sum()
                for optimizer in optimizers:
                    optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                for optimizer in optimizers:
                    optimizer.step()
        print(f"round {number}: {len(learned)} pairs", file=sys.stderr, flush=True)
    for module in (own, g, f):
        module.eval()
    with torch.no_grad():
        mapped: Tensor = g(own[0](a))
    return mapped


def plain(x: Tensor, y: Tensor, seeds: Tensor, *, adam: bool = False, mean: bool = False) -> Spaces:
    """LNMap from the formulas: autoencoders, then A→B, then B→A from where A→B ended."""
    x, y = (unit(unit(side) - unit(side).mean(0)) for side in (x, y))
    of_x, of_y = autoencoder(x), autoencoder(y)
    g, f = (
        nn.Sequential(nn.Linear(350, 400), nn.Tanh(), nn.Dropout(0.1), nn.Linear(400, 350)).to(x.device)
        for _ in range(2)
    )
    with torch.no_grad():
        z_y = of_y[0].eval()(y)
    mapped_x = direction(x, z_y, of_x, g, f, seeds, adam, mean)
    with torch.no_grad():
        z_x = of_x[0](x)
    mapped_y = direction(y, z_x, of_y, f, g, seeds.flip(1), adam, mean)
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
    source, target = (read_vectors(options.data, code, options.limit) for code in options.pair.split("-"))
    places = source.key_to_index, target.key_to_index
    train, many, test = (
        read_dictionary(options.data, options.pair, name)
        for name in ("train.freq.1k", "train.freq.5k", "test.freq.2k")
    )
    sources, targets = {a for a, _ in train.pairs}, {b for _, b in train.pairs}
    held_out = Lexicon([(a, b) for a, b in many.pairs if a not in sources and b not in targets])
    started = time.monotonic()
    if program.startswith("ours"):
        from bilex.aligners.lnmap import LNMap

        aligner = LNMap(device=options.device, seed=int(seed))
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
        spaces = plain(x, y, seeds, adam=program == "plain-adam", mean=program == "plain-mean")
    seconds = round(time.monotonic() - started, 1)
    dictionaries = {"held-out": held_out, "test": test}
    found = {name: scored(spaces, pairs.index(*places)) for name, pairs in dictionaries.items()}
    return {"job": options.job, "seconds": seconds, **found}


def main() -> None:
    """Run the jobs side by side, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pair", default="en-ru")
    parser.add_argument("--limit", type=int, default=10_000, help="words of each language")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", nargs="+", default=["ours:0", "plain:0"], metavar="PROGRAM:SEED")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(one_job(options)), flush=True)
        return
    command = [sys.executable, "-m", "research.lnmap_reference", str(options.data), "--pair", options.pair]
    command += ["--limit", str(options.limit), "--device", options.device, "--job"]
    for process in [subprocess.Popen([*command, job]) for job in options.jobs]:
        process.wait()


if __name__ == "__main__":
    main()
