"""What the light tuning of stage C2 could cost: settings on held-out seeds, with the tokens that they encode.

    python -m research.light_tuning --random-seeds 5                        # the packaged sample
    python -m research.light_tuning --random-seeds 5 --seeds 1000           # so few that induced pairs join
    python -m research.light_tuning DATA --pairs en-ru fi-fr --limit 40000  # the data folder

A fifth of the seeds is held out of the aligner and of the tuning; no test file is read. Prints, per setting,
the tokens that go forward and backward in a fit (those of frozen layers only forward), and P@1 by CSLS, the
mean of both directions with its standard deviation over random seeds, for several λ.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bilex.data
from bilex import C1, Lexicon, WordVectors
from bilex.encoders.model import WordEncoder
from bilex.encoders.settings import OFFLINE_ENCODER, TuningSettings, lightened
from bilex.encoders.stage import Combination, aligned_views
from bilex.encoders.tuning import Tuner, training_pairs
from bilex.evaluation import evaluate
from bilex.fit.trial import hold_out
from bilex.model.space import Space
from bilex.vectors.stored import unit_rows
from research.packed import read_dictionary, read_vectors

MIXINGS = (0.2, 0.3, 0.4, 0.5)


def settings(light: TuningSettings) -> dict[str, tuple[TuningSettings, int]]:
    """The settings to compare, and how many of the first layers each leaves as they are."""
    twice = replace(light, learning_rate=2 * light.learning_rate)
    free = replace(light, negatives=0, whole_batch=True)
    return {
        "light": (light, 0),
        "4 negatives": (replace(light, negatives=4), 0),
        "2 negatives": (replace(light, negatives=2), 0),
        "1 epoch": (replace(light, epochs=1), 0),
        "1 epoch, 4 negatives, twice the rate": (replace(twice, epochs=1, negatives=4), 0),
        "1,000 induced pairs": (replace(light, induced=1_000), 0),
        "1,000 induced pairs, 4 negatives": (replace(light, induced=1_000, negatives=4), 0),
        "2,500 pairs": (replace(light, max_pairs=2_500), 0),
        "2,500 pairs, 4 negatives": (replace(light, max_pairs=2_500, negatives=4), 0),
        "8 layers frozen, twice the rate": (twice, 8),
        "8 layers frozen, twice the rate, 4 negatives": (replace(twice, negatives=4), 8),
        "each other as negatives, 2 epochs": (free, 0),
        "each other as negatives, 2 epochs, no dropout, twice the rate": (
            replace(free, dropout=0.0, learning_rate=2 * light.learning_rate),
            0,
        ),
        "demo": (lightened(replace(light, learning_rate=light.learning_rate / 2), "demo"), 0),
    }


def study(source: WordVectors, target: WordVectors, seeds: Lexicon, random_seeds: int, device: str) -> None:
    """Print the table of one language pair."""
    rows = source.key_to_index, target.key_to_index
    seeds = seeds.as_units(*rows).covered(*rows)
    encoder = WordEncoder.load(OFFLINE_ENCODER, device=device)
    tokens = encoder.tokenise(source.index_to_key), encoder.tokenise(target.index_to_key)
    light = lightened(encoder.preset.tuning, "light")
    found: dict[str, list[list[float]]] = {}
    cost: dict[str, int] = {}
    for number in range(random_seeds):
        split = hold_out(seeds, 0.2, number)
        if split is None:
            raise SystemExit("too few seeds to hold some out.")
        learned, held_out = split
        aligner = C1(preset="paper", device=device, seed=number).fit(source, target, learned)
        static = aligned_views(aligner, source, target)
        for name, (tuning, frozen) in settings(replace(light, seed=light.seed + number)).items():
            tuned = encoder.copy()
            pairs = training_pairs(*static, learned.index(*rows), tuning, device)
            model: Any = tuned.model
            for part in (model.embeddings, *model.encoder.layer[:frozen]) if frozen else ():
                part.requires_grad_(False)
            tuner = Tuner(tuned, *tokens, pairs, tuning)
            columns = np.array_split(tuner.columns, -(-len(tuner.columns) // tuning.batch_size))
            words = np.concatenate([np.unique(batch) for batch in columns])
            cost[name] = tuning.epochs * int(tuner.tokens.lengths[words].sum())
            tuner.run()
            encoded = unit_rows(tuned.encode(tokens[0])), unit_rows(tuned.encode(tokens[1]))
            combination = Combination.fit(static, encoded, pairs.positives, 0.0)
            found.setdefault(name, []).append([])
            for mixing in MIXINGS:
                sides = combination.with_mixing(mixing).vocabularies(
                    (source.index_to_key, target.index_to_key), static, encoded
                )
                result = evaluate(Space(*sides, "cosine", device), held_out, bootstrap=0)
                share = (result.forward.csls.p_at_1 + result.backward.csls.p_at_1) / 2
                found[name][-1].append(100 * share)
    print("| | tokens |", " | ".join(f"λ = {mixing}" for mixing in MIXINGS), "|")
    for name, shares in found.items():
        means, errors = np.mean(shares, axis=0), np.std(shares, axis=0)
        cells = " | ".join(f"{a:.2f} ± {b:.2f}" for a, b in zip(means, errors, strict=True))
        print(f"| {name} | {cost[name]:,} | {cells} |", flush=True)


def main() -> None:
    """Read the arguments and the data."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", help="the data folder; without it, the sample")
    parser.add_argument("--pairs", nargs="+", default=["en-ru", "fi-fr"])
    parser.add_argument("--limit", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, help="take only so many of the first seed pairs")
    parser.add_argument("--random-seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if options.data is None:
        folder = Path(bilex.data.__file__).parent / "sample"
        source, target = (WordVectors.load(folder / code) for code in ("en", "fi"))
        seeds = Lexicon.load(folder / "seeds.tsv").head(options.seeds)
        study(source, target, seeds, options.random_seeds, options.device)
        return
    for pair in options.pairs:
        print(f"\n{pair}")
        source, target = (read_vectors(options.data, code, options.limit) for code in pair.split("-"))
        seeds = read_dictionary(options.data, pair, "train.freq.5k").head(options.seeds)
        study(source, target, seeds, options.random_seeds, options.device)


if __name__ == "__main__":
    main()
