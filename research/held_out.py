"""Settings of a method compared on held-out seed pairs: how defaults were chosen, without test data.

    python -m research.held_out DATA --pairs en-ru fi-fr en-fi --seeds 5k 1k
    python -m research.held_out DATA --pairs en-ru --set through_norms=true full_csls=true
    python -m research.held_out DATA --pairs en-fr --seeds 5k --method lnmap --set rounds=3

The method is C1 unless another is named; its preset `best` was chosen so. A fifth of the seed words is held
out with all their pairs; the method learns from the pairs that share no word with them. Each line is one
fit: P@1 on the held-out pairs (forward NN, CSLS; backward NN, CSLS) and its mean.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bilex.aligners import get_method
from bilex.model.space import Space
from research.packed import PAIRS, four_metrics, read_dictionary, read_vectors

SHARE, SEED = 0.2, 1


def row(options: argparse.Namespace, pair: str, seeds: str) -> dict[str, Any]:
    """One fit, scored on the seed pairs that it has not seen."""
    source, target = (read_vectors(options.data, language, options.limit) for language in pair.split("-"))
    learned, held_out = read_dictionary(options.data, pair, f"train.freq.{seeds}").split(SHARE, seed=SEED)
    overrides = {name: json.loads(value) for name, _, value in (text.partition("=") for text in options.set)}
    aligner = get_method(options.method)(device=options.device, **overrides).fit(source, target, learned)
    figures = four_metrics(Space.from_aligner(aligner, source, target), held_out)
    return {
        "pair": pair,
        "seeds": seeds,
        "set": options.set,
        "learned from": len(learned),
        "held out": len(held_out),
        "p@1": figures,
        "mean": round(sum(figures) / len(figures), 2),
    }


def main(arguments: list[str] | None = None) -> None:
    """Print one JSON line a fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS))
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"])
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--method", default="c1")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=JSON", help="settings of the method"
    )
    options = parser.parse_args(arguments)
    for pair in options.pairs:
        for seeds in options.seeds:
            print(json.dumps(row(options, pair, seeds), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
