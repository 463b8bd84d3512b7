"""Our rivals beside plain programs of the same formulas, on the same vectors and by the same scoring.

    python -m research.plain_rivals DATA --pairs en-fr en-fi --seeds 5k 1k
    python -m research.plain_rivals DATA --pairs en-fr --seeds 1k --methods vecmap-semi --random-seeds 0 1 2
    python -m research.plain_rivals DATA --pairs en-fr --limit 3000 --held-out --device cpu

The plain programs share no code with `bilex.aligners`: whole matrices in float32 (float64 where small), no
blocks, no early exits. A name with a colon is another reading of the same formula, or another setting.
P@1 in %: forward NN, forward CSLS, backward NN, backward CSLS. Full size is for a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex.aligners import get_method
from bilex.core.device import resolve_device
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from research.packed import four_metrics, read_dictionary, read_vectors
from research.plain_fipp import fipp
from research.plain_rcsls import rcsls, rcsls_void
from research.plain_vecmap import Mapped, Problem, advanced, procrustes, vecmap_semi, vecmap_supervised


@dataclass(frozen=True)
class Rival:
    """A plain program, and the method of ours that it is set beside.

    Args:
        plain: Maps both vocabularies.
        ours: The name of our method.
        settings: Its settings that differ from the defaults.
    """

    plain: Callable[[Problem], Mapped]
    ours: str
    settings: dict[str, Any] = field(default_factory=dict)


RIVALS = {
    "procrustes": Rival(procrustes, "procrustes"),
    "advanced": Rival(advanced, "advanced"),
    "vecmap-supervised": Rival(vecmap_supervised, "vecmap-supervised"),
    "vecmap-semi": Rival(vecmap_semi, "vecmap-semi"),
    "vecmap-semi:own-term": Rival(partial(vecmap_semi, own_term=True), "vecmap-semi"),
    "rcsls": Rival(rcsls, "rcsls"),
    "rcsls:void": Rival(partial(rcsls_void, lowest=True, late=True), "rcsls", {"restore": False}),
    "rcsls:void-at-once": Rival(partial(rcsls_void, lowest=True), "rcsls"),
    "rcsls:void-previous": Rival(rcsls_void, "rcsls"),
    "fipp": Rival(fipp, "fipp"),
    "fipp:centred": Rival(
        partial(fipp, centred=True, greedy=True, frequent=20_000),
        "fipp",
        {"centred": True, "matching": "greedy", "frequent": 20_000},
    ),
    "fipp:squared-weights": Rival(partial(fipp, squared_weights=True), "fipp"),
    "fipp:through-gram": Rival(partial(fipp, through_gram=True), "fipp"),
    "fipp:frequent": Rival(partial(fipp, frequent=20_000), "fipp", {"frequent": 20_000}),
}


@dataclass(frozen=True)
class Setting:
    """The data of one pair and seed size."""

    source: WordVectors
    target: WordVectors
    train: Lexicon
    test: Lexicon
    few_seeds: bool

    @classmethod
    def read(cls, data: Path, pair: str, seeds: str, limit: int | None, held_out: bool) -> Setting:
        """Read vectors and dictionaries; `held_out` scores on a fifth of the 5k seeds, which none learns."""
        source, target = (read_vectors(data, language, limit) for language in pair.split("-"))
        train = read_dictionary(data, pair, f"train.freq.{seeds}")
        if not held_out:
            return cls(source, target, train, read_dictionary(data, pair, "test.freq.2k"), seeds == "1k")
        test = Lexicon(read_dictionary(data, pair, "train.freq.5k").pairs[4::5], "a fifth of the 5k seeds")
        learned = [pair for pair in train.pairs if pair not in set(test.pairs)]
        return cls(source, target, Lexicon(learned, "the other seeds"), test, seeds == "1k")

    def plain(self, rival: Rival, device: str, random_seed: int) -> dict[str, Any]:
        """Fit the plain program: its scores and seconds."""
        where = resolve_device(device)
        x, y = (torch.from_numpy(np.array(words.vectors)).to(where) for words in (self.source, self.target))
        pairs = self.train.index(self.source.key_to_index, self.target.key_to_index)
        problem = Problem(x, y, torch.from_numpy(pairs).to(where), self.few_seeds, random_seed)
        started = time.perf_counter()
        mapped = [rows.float().cpu().numpy() for rows in rival.plain(problem)]
        seconds = time.perf_counter() - started
        source = WordVectors(self.source.index_to_key, mapped[0])
        target = WordVectors(self.target.index_to_key, mapped[1])
        space = Space(source, target, "dot" if rival.ours == "fipp" else "cosine", device)
        return {"p@1": four_metrics(space, self.test), "seconds": round(seconds, 2)}

    def ours(self, rival: Rival, device: str, random_seed: int) -> dict[str, Any]:
        """Fit our method: its scores and seconds."""
        settings = dict(rival.settings, device=device, seed=random_seed)
        if rival.ours == "fipp":
            settings["self_learning"] = self.few_seeds
        aligner = get_method(rival.ours)(**settings)
        started = time.perf_counter()
        aligner.fit(self.source, self.target, self.train)
        seconds = time.perf_counter() - started
        space = Space.from_aligner(aligner, self.source, self.target)
        return {"p@1": four_metrics(space, self.test), "seconds": round(seconds, 2)}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--pairs", nargs="+", default=["en-fr", "en-fi"])
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"], choices=["5k", "1k"])
    parser.add_argument("--methods", nargs="+", default=list(RIVALS), choices=list(RIVALS), metavar="NAME")
    parser.add_argument("--random-seeds", nargs="+", type=int, default=[0], help="seeds of what is random")
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="score on a fifth of the seeds (test words are rare ones)",
    )
    parser.add_argument("--device", default="auto")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Print one JSON line for each pair, seed size, method and random seed."""
    options = parse(arguments)
    for pair in options.pairs:
        for seeds in options.seeds:
            setting = Setting.read(options.data, pair, seeds, options.limit, options.held_out)
            for method in options.methods:
                for random_seed in options.random_seeds:
                    row: dict[str, Any] = {
                        "pair": pair,
                        "seeds": seeds,
                        "method": method,
                        "random_seed": random_seed,
                    }
                    row["plain"] = setting.plain(RIVALS[method], options.device, random_seed)
                    row["ours"] = setting.ours(RIVALS[method], options.device, random_seed)
                    both = zip(row["ours"]["p@1"], row["plain"]["p@1"], strict=True)
                    row["ours - plain"] = [round(ours - plain, 2) for ours, plain in both]
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
