"""LNMap beside a plain transcription of its formulas: P@1 of both programs, over three random seeds.

    python -m research.lnmap_compare DATA --out lnmap.jsonl --seconds 400

DATA has vectors/ and dictionaries/. Each job, a program and a random seed, is a process of its own.
`--parallel` of them run at a time, in the given order; each appends one line to `--out` as soon as it is
done. After `--seconds` what still runs is ended. Programs:

- plain: `research.lnmap_reference`; plain-dropout: with dropout while pairs are induced; plain-random: with
  random mappers to begin with, rather than the identity;
- ours: `LNMap`; ours-dropout: with `induction_dropout`; ours-trial: `LNMap` as a trial shortens it.

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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bilex.aligners.lnmap import LNMap
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from research.lnmap_reference import Sizes, Spaces, Way, plain, unit
from research.packed import read_dictionary, read_vectors

_JOBS = [f"{program}:{seed}" for seed in range(3) for program in ("ours", "plain")]
_MORE = ["ours-dropout:0", "plain-dropout:0", "plain-dropout:1"]


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
    """Four metrics in one space per direction, and four in the common space."""
    mapped_x, own_y, own_x, mapped_y = map(unit, spaces)
    x, y = torch.cat([mapped_x, own_x], 1), torch.cat([own_y, mapped_y], 1)
    return {
        "per direction": p_at_1(mapped_x, own_y, pairs) + p_at_1(mapped_y, own_x, pairs[:, ::-1]),
        "common": p_at_1(x, y, pairs) + p_at_1(y, x, pairs[:, ::-1]),
    }


def one_job(options: argparse.Namespace) -> dict[str, Any]:
    """Run one program with one random seed."""
    program, _, seed = options.job.partition(":")
    whole = [read_vectors(options.data, code, options.limit) for code in options.pair.split("-")]
    source, target = (projected(vectors, options.dim) for vectors in whole)
    places = source.key_to_index, target.key_to_index
    train, many, test = (
        read_dictionary(options.data, options.pair, name)
        for name in ("train.freq.1k", "train.freq.5k", "test.freq.2k")
    )
    sources, targets = {a for a, _ in train.pairs}, {b for _, b in train.pairs}
    held_out = Lexicon([(a, b) for a, b in many.pairs if a not in sources and b not in targets])
    widths = round(options.dim * 4 / 3), round(options.dim * 7 / 6)
    sizes = Sizes(*widths, options.autoencoder_epochs, options.samples, options.epochs, options.rounds)
    dropout = program.endswith("-dropout")
    started = time.monotonic()
    if program.startswith("ours"):
        names = ("hidden", "latent", "autoencoder_epochs", "autoencoder_samples", "mapper_epochs", "rounds")
        settings: dict[str, Any] = dict(zip(names, sizes, strict=True))
        aligner = LNMap(device=options.device, seed=int(seed), induction_dropout=dropout, **settings)
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
        way = Way(identity=program != "plain-random", induction_dropout=dropout)
        spaces = plain(x, y, seeds, sizes, way)
    seconds = round(time.monotonic() - started, 1)
    indexed = {name: pairs.index(*places) for name, pairs in (("held-out", held_out), ("test", test))}
    found = {name: scored(spaces, pairs) for name, pairs in indexed.items() if len(pairs)}
    words = {name: len(set(pairs[:, 0])) for name, pairs in indexed.items()}
    return {"job": options.job, "seconds": seconds, "words": words, **found}


def projected(vectors: WordVectors, dim: int) -> WordVectors:
    """The vectors on their first principal components."""
    rows = np.array(vectors.vectors)
    if dim < rows.shape[1]:
        rows = rows - rows.mean(axis=0)
        rows = rows @ np.linalg.eigh(rows.T @ rows)[1][:, -dim:]
    return WordVectors(vectors.index_to_key, rows)


def run_all(options: argparse.Namespace, given: list[str]) -> None:
    """Run the jobs, some at a time, until the time is over."""
    end = time.monotonic() + options.seconds
    command = [sys.executable, "-m", "research.lnmap_compare", *given, "--job"]
    waiting: list[str] = list(options.jobs)
    running: list[subprocess.Popen[bytes]] = []
    while (waiting or running) and time.monotonic() < end:
        while waiting and len(running) < options.parallel:
            running.append(subprocess.Popen([*command, waiting.pop(0)]))
        running = [process for process in running if process.poll() is None]
        time.sleep(0.2)
    for process in running:
        process.terminate()
    if waiting or running:
        print(f"the time is over; {len(running)} jobs were ended, not begun: {waiting}", flush=True)


def main() -> None:
    """Run the jobs, and print and store a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="one JSON line per job is appended")
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--parallel", type=int, default=3, help="jobs at a time")
    parser.add_argument("--pair", default="en-ru")
    parser.add_argument("--limit", type=int, default=10_000, help="words of each language")
    parser.add_argument("--dim", type=int, default=300, help="dimension of the vectors")
    parser.add_argument("--autoencoder-epochs", type=int, default=25)
    parser.add_argument("--samples", type=int, default=100_000, help="words per epoch of the autoencoders")
    parser.add_argument("--epochs", type=int, default=100, help="epochs per round of the mappers")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of the mappers")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", nargs="+", default=_JOBS + _MORE, metavar="PROGRAM:SEED")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is None:
        run_all(options, sys.argv[1:])
        return
    line = json.dumps(one_job(options))
    print(line, flush=True)
    with options.out.open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main()
