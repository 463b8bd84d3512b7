"""Confidences and the expected accuracy with vocabularies of several sizes.

    python -m research.vocabularies DATA FREEDICT FEATURES --settings en-fi:1k mixed/de-ru:1k …

The trial is fitted on the 20,000 most frequent words of each language and those of the seeds, as it always
is (or on --trial), and the model on the 40,000 most frequent (--fitted). Their maps, which FEATURES keeps,
are then applied to vocabularies of each size; another run starts from the maps that are kept. The answers
to held-out seeds, to the test dictionary and to FreeDict are written to FEATURES/SIZE/, as
research.never_worse does, for research.prior, and one JSON line per size to FEATURES/vocabularies.jsonl:
P@1 of the test words that are no seeds, what was expected, and the calibration error on the words of both
dictionaries.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bilex import C1, Lexicon, WordVectors
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.preparation import small_vocabularies
from bilex.core.progress import SILENT
from bilex.fit.calibration import (
    DIRECTIONS,
    AnswerRecords,
    answer_records,
    learn_confidences,
)
from bilex.fit.trial import WORDS, _Trial, hold_out
from bilex.model.space import Space
from research.never_worse import NOT_TO_PROMISE, Row, independent, listed, read, save_features
from research.prior import promises

_HELD_OUT = 0.1


def head(words: WordVectors, size: int) -> WordVectors:
    """The most frequent words."""
    return WordVectors(words.index_to_key[:size], words.vectors[:size], words.preprocessing)


def some(pairs: Lexicon, words: int) -> Lexicon:
    """The pairs of some source words, drawn at random."""
    return pairs if len(pairs.translations()) <= words else pairs.split(words, 0)[1]


def fits(options: argparse.Namespace, setting: str) -> tuple[C1, C1, Lexicon]:
    """The fit of the trial, that of the model, and the held-out seeds."""
    aligner = C1(device="cpu")
    kept = options.features / f"maps_{options.fitted}_{file_name(setting)}.npz"
    if kept.exists():
        with np.load(kept) as maps:
            held_out = Lexicon([(a, b) for a, b in maps["held_out"].tolist()])
            return of_maps(aligner, "trial", maps), of_maps(aligner, "model", maps), held_out
    source, target, seeds, _ = read(options.data, setting, max(options.sizes))
    usable = seeds.covered(source.key_to_index, target.key_to_index)
    sizes = options.trial, options.fitted
    small, large = (small_vocabularies(source, target, usable, words) for words in sizes)
    split = hold_out(usable, _HELD_OUT, aligner.seed)
    assert split is not None
    trial = _Trial(aligner, *small, usable, split, None, SILENT)
    trial.small = small
    short = aligner.for_trial(len(usable), min(len(source), len(target)))
    tried = short.fit(*small, split[0], progress=SILENT)
    extent, _ = trial._extent(tried)
    fitted = aligner.clone().set_params(extent=extent).fit(*large, usable, progress=SILENT)
    maps = {
        f"{name}_{side}": getattr(one, f"{side}_map_").steps[1].matrix
        for name, one in (("trial", tried), ("model", fitted))
        for side in ("source", "target")
    }
    options.features.mkdir(parents=True, exist_ok=True)
    np.savez(kept, **maps, extent=extent, held_out=np.array(split[1].pairs))
    return tried, fitted, split[1]


def of_maps(aligner: C1, name: str, maps: Mapping[str, np.ndarray]) -> C1:
    """A fitted aligner with maps that were kept."""
    made = aligner.clone()
    for side in ("source", "target"):
        setattr(made, f"{side}_map_", Map([Unit(), Linear(maps[f"{name}_{side}"]), Unit()]))
    return made


def file_name(setting: str) -> str:
    """The name that research.prior reads."""
    return setting.replace("/", "_").replace(":", "_")


def p_at_1(space: Space, pairs: Lexicon, records: AnswerRecords) -> Row:
    """P@1 by CSLS, in %, by direction, where only these pairs are right."""
    row: Row = {}
    for direction in DIRECTIONS:
        keys = space.sides(direction)[1].index_to_key
        golds = (pairs if direction == "forward" else pairs.swapped()).translations()
        rows = records[direction, "csls"].found.rows
        right = [keys[row[0]] in golds[word] for word, row in zip(golds, rows, strict=True)]
        row[f"p@1 {direction}"] = round(100 * float(np.mean(right)), 2)
    return row


def main() -> None:
    """Fit each setting once, and judge it with vocabularies of each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("freedict", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument("--settings", nargs="+", required=True)
    parser.add_argument("--sizes", nargs="+", type=int, default=[20_000, 40_000, 200_000])
    parser.add_argument("--trial", type=int, default=WORDS, help="words that the trial learns on")
    parser.add_argument("--fitted", type=int, default=40_000, help="words that the model learns on")
    parser.add_argument("--judged", type=int, default=1_500, help="words of each dictionary at most")
    options = parser.parse_args()
    for setting in options.settings:
        started = time.perf_counter()
        tried, fitted, held_out = fits(options, setting)
        print(f"{setting}: fitted after {time.perf_counter() - started:.0f} s", flush=True)
        source, target, seeds, test = read(options.data, setting, max(options.sizes))
        usable = seeds.covered(source.key_to_index, target.key_to_index)
        known, done = listed(options, setting, test), None
        most = read(options.data, f"{setting.partition(':')[0]}:5k", 1)[2]
        other = independent(options.freedict, setting, test, most)
        if setting.partition(":")[0] in NOT_TO_PROMISE:
            other = Lexicon([])
        for size in options.sizes:
            sides = head(source, size), head(target, size)
            if (words := [*map(len, sides)]) == done:
                continue
            done = words
            of_trial, of_model = (Space.from_aligner(one, *sides) for one in (tried, fitted))
            judged = {
                kind: some(pairs.covered(*of_model.places), options.judged)
                for kind, pairs in (("test", test.without(usable, by="word")), ("other", other))
            }
            records = answer_records(of_trial, held_out, usable)
            kinds = {
                kind: answer_records(of_model, pairs, known, frequent=False) for kind, pairs in judged.items()
            }
            file = options.features / str(size) / f"{file_name(setting)}.npz"
            save_features(file, {"trial": records, **kinds})
            row: Row = {"setting": setting, "vocabulary": size, "words": words, "fitted": options.fitted}
            row |= p_at_1(of_model, judged["test"], kinds["test"])
            asked = {
                direction: [found[direction, "csls"] for found in kinds.values() if found]
                for direction in DIRECTIONS
            }
            row |= promises(learn_confidences(records, of_auto=True), asked)
            print(json.dumps(row), flush=True)
            with (options.features / "vocabularies.jsonl").open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
