"""Stage C1: accuracy, time and memory.

    python -m research.stage_c1 DATA --pairs en-ru --seeds 5k 1k --target-limit 40000
    python -m research.stage_c1 DATA --pairs fi-ru --seeds 5k --device cpu
    python -m research.stage_c1 DATA --pairs fi-ru --seeds 5k --limit 25000 50000 100000 200000 --no-score
    python -m research.stage_c1 DATA --pairs fi-ru --seeds 5k --seed-count 500 5000 20000 --no-score
    python -m research.stage_c1 DATA --pairs fi-ru --set through_norms=true --set mask_known=true

Each row is one fit: P@1 (forward NN, CSLS; backward NN, CSLS), seconds of the fit, peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch

from bilex.aligners import get_method
from bilex.aligners.c1_settings import C1Report
from bilex.aligners.induction import induce_pairs
from bilex.core.device import resolve_device
from bilex.core.progress import SILENT
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from research.packed import PAIRS, four_metrics, read_dictionary, read_vectors


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS))
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"])
    parser.add_argument("--seed-count", nargs="+", type=int, default=[0], help="use only so many seed pairs")
    parser.add_argument("--method", default="c1")
    parser.add_argument("--limit", nargs="+", type=int, default=[200_000])
    parser.add_argument("--target-limit", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=JSON", help="settings of the method"
    )
    parser.add_argument("--repeat", type=int, default=1, help="fits, of which the last is timed")
    parser.add_argument("--no-score", action="store_true")
    return parser.parse_args(arguments)


def peak_gigabytes(device: torch.device) -> float:
    """Peak memory: the GPU's on a GPU, else that of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def seeds_of_any_number(
    source: WordVectors, target: WordVectors, lexicon: Lexicon, count: int, device: str
) -> Lexicon:
    """The first `count` seed pairs; where there are fewer, induced pairs fill up (good for timing only)."""
    if count <= len(lexicon):
        return lexicon.head(count)
    rough = get_method("procrustes")(device=device).fit(source, target, lexicon)
    induced = induce_pairs(
        rough.source_map_(source.vectors),
        rough.target_map_(target.vectors),
        frequent=count,
        keep=count,
        device=device,
    )
    more = [(source.index_to_key[a], target.index_to_key[b]) for a, b in induced.forward]
    return Lexicon([*lexicon.pairs, *more][:count], f"{count} pairs")


def row(options: argparse.Namespace, pair: str, seeds: str, count: int, limit: int) -> dict[str, Any]:
    """One fit, timed and scored."""
    device = resolve_device(options.device)
    languages = pair.split("-")
    source = read_vectors(options.data, languages[0], limit)
    target = read_vectors(options.data, languages[1], options.target_limit or limit)
    lexicon = read_dictionary(options.data, pair, f"train.freq.{seeds}")
    if count:
        lexicon = seeds_of_any_number(source, target, lexicon, count, options.device)
    overrides = {name: json.loads(value) for name, _, value in (s.partition("=") for s in options.set)}
    for _ in range(options.repeat):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
        started = time.perf_counter()
        aligner = get_method(options.method)(device=options.device, **overrides).fit(
            source, target, lexicon, progress=SILENT
        )
        seconds = time.perf_counter() - started
    found: dict[str, Any] = {"pair": pair, "seeds": count or seeds, "words": limit, "set": options.set}
    if isinstance(aligner.report_, C1Report):
        found |= {"seconds": aligner.report_.seconds, "stopped": aligner.report_.stopped}
    found |= {"peak_gb": round(peak_gigabytes(device), 2), "fit_seconds": round(seconds, 2)}
    if not options.no_score:
        space = Space.from_aligner(aligner, source, target)
        found["p@1"] = four_metrics(space, read_dictionary(options.data, pair, "test.freq.2k"))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print one JSON line a fit."""
    options = parse(arguments)
    for pair in options.pairs:
        for seeds in options.seeds:
            for count in options.seed_count:
                for limit in options.limit:
                    print(json.dumps(row(options, pair, seeds, count, limit)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
