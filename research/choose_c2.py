"""How the light presets of stage C2, and their λ, are chosen: on held-out seed pairs, never on test data.

    python -m research.choose_c2 DATA --tuning light --pairs en-ru fi-fr --limit ru=40000 --seeds 5k
    python -m research.choose_c2 DATA --tuning demo --pairs sample

A fifth of the seed words is held out with all their pairs; aligner and encoder learn from the pairs that
share no word with them. Each line is one way of tuning: how many words go through the encoder, which is
what it costs on a CPU; the seconds; and the mean P@1 on held-out pairs (nearest neighbour and CSLS, both
directions) for several λ. "sample" is the packaged sample. The λ of the full setting comes from `stage_c2`,
which prints how each λ does on held-out seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners import get_method
from bilex.data import sample_path
from bilex.encoders.combine import mixed_views
from bilex.encoders.model import WordEncoder
from bilex.encoders.presets import OFFLINE_ENCODER, TuningPreset, lightened
from bilex.encoders.settings import C2
from bilex.encoders.stage import run_stage_c2
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from research.packed import read_dictionary, read_vectors
from research.stage_c2 import score

SHARE, SEED = 0.2, 1
MIXINGS = (0.2, 0.3, 0.4, 0.5)
OWN: dict[str, Any] = {"whole_batch": False}
# What differs from the preset as it is.
CANDIDATES: dict[TuningPreset, list[dict[str, Any]]] = {
    "light": [
        {},
        {"whole_batch": True},
        {"learning_rate": 2e-5},
        {"learning_rate": 8e-5},
        {"epochs": 1},
        {"negatives": 4},
        {"negatives": 4, "epochs": 1},
        {"negatives": 4, "epochs": 3},
    ],
    "demo": [
        {},
        OWN,
        {"learning_rate": 2e-5},
        {"learning_rate": 8e-5},
        {"negatives": 2, "epochs": 2},
        {"negatives": 2, "max_pairs": 2_000},
        {"negatives": 8, "max_pairs": 500},
    ],
}
Task = tuple[str, WordVectors, WordVectors, Lexicon]


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Name, both vocabularies and the seed pairs of everything to try."""
    limits = dict(entry.split("=") for entry in options.limit)
    for pair in options.pairs:
        if pair == "sample":
            sample = sample_path()
            seeds = Lexicon.load(sample / "seeds.tsv")
            yield pair, WordVectors.load(sample / "en"), WordVectors.load(sample / "fi"), seeds
            continue
        source, target = (
            read_vectors(options.data, language, int(limits.get(language, 0)) or None)
            for language in pair.split("-")
        )
        for seeds_name in options.seeds:
            seeds = read_dictionary(options.data, pair, f"train.freq.{seeds_name}")
            yield f"{pair} {seeds_name}", source, target, seeds


def try_all(options: argparse.Namespace, encoder: WordEncoder, task: Task) -> dict[str, list[float]]:
    """The held-out figures of every candidate, one a λ."""
    name, source, target, seeds = task
    covered = seeds.covered(source.key_to_index, target.key_to_index)
    learned, held_out = covered.split(SHARE, SEED)
    aligner = get_method(options.aligner)(device=options.device).fit(source, target, learned)
    words = (source.index_to_key, target.index_to_key)
    alone = np.mean(score(Space.from_aligner(aligner, source, target), held_out))
    print(f"{name}: learned from {len(learned)} pairs, {len(held_out)} held out, aligner alone {alone:.2f}")
    found = {}
    for changes in CANDIDATES[options.tuning]:
        settings = replace(lightened(encoder.preset.tuning, options.tuning), **changes)
        stage = C2(encoder, mixing=0.5, tuning=settings, device=options.device)
        result = run_stage_c2(aligner, source, target, learned, stage)
        views = [result.combination.views(s, e) for s, e in zip(result.static, result.encoded, strict=True)]
        means = []
        for mixing in MIXINGS:
            left, right = (
                WordVectors(w, mixed_views(*view, mixing), ("unit",))
                for w, view in zip(words, views, strict=True)
            )
            means.append(float(np.mean(score(Space(left, right, device=options.device), held_out))))
        candidate = ", ".join(f"{key} {value}" for key, value in changes.items()) or "as it is"
        found[candidate] = means
        through = result.report.pairs * settings.epochs * (2 + 2 * settings.negatives)
        print(
            f"  {candidate:30} {through:8} words {result.report.tune_seconds:7.1f} s   {_figures(means)}",
            flush=True,
        )
    return found


def _figures(means: list[float]) -> str:
    return "  ".join(f"λ={mixing}: {mean:.2f}" for mixing, mean in zip(MIXINGS, means, strict=True))


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, try everything, and print the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--tuning", choices=list(CANDIDATES), default="light")
    parser.add_argument("--pairs", nargs="+", default=["en-ru", "fi-fr"], help="as en-ru; or sample")
    parser.add_argument("--seeds", nargs="+", default=["5k"])
    parser.add_argument("--limit", nargs="*", default=[], help="words of a language, as ru=40000")
    parser.add_argument("--lm", default=OFFLINE_ENCODER)
    parser.add_argument("--aligner", default="c1")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    encoder = WordEncoder.load(options.lm, device=options.device)
    results = [try_all(options, encoder, task) for task in tasks(options)]
    print(f"means over {len(results)}")
    for candidate in results[0]:
        means = np.mean([found[candidate] for found in results], axis=0)
        print(f"  {candidate:30} {_figures(list(means))}")


if __name__ == "__main__":
    main()
