"""What decisions of people do to the words that nobody decided, through `Translator.refine`.

    python -m research.refine DATA --models MODELS --out research/results/refine.jsonl
    python -m research.refine DATA --models MODELS --out ... --settings sample en-fi europarl/de-it

DATA has vectors/, europarl/vectors/ and dictionaries/xling/; the setting `sample` needs no data. Each
setting has 10,000 words per language and 1,000 seeds; its model is read from MODELS/SETTING.PRESET, or fitted
and kept there. Decisions are right pairs of words that are no seeds: the rest of the 5k training dictionary
and the test dictionary. The words that were not drawn are judged, forward and backward, by CSLS.

One JSON line per setting, preset, number of decisions and split: P@1 before and after, the change in points
with its 95 % interval (words are drawn, both directions together), changed entries of source words without a
decision, and whether an undo restored every number. A file that exists is continued: cases in it are left
out. `python -m research.limits` judges the file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners.c1 import C1
from bilex.core.progress import SILENT
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Space
from bilex.vectors import WordVectors
from research.packed import read_dictionary, read_vectors

WORDS = 10_000
SETTINGS = (
    "sample",
    "en-fi",
    "europarl/it-fr",
    "en-ru",
    "en-fr",
    "europarl/de-it",
    "fi-ru",
    "europarl/de-fr",
    "ru-fr",
    "fi-fr",
)
PRESETS, COUNTS, SPLITS = ("quick", "auto"), (60, 300, 1000, 10), (0, 1, 2)
FEWEST = 150  # words must be left to judge by


def problem(data: Path, setting: str) -> tuple[WordVectors, WordVectors, Lexicon, Lexicon]:
    """Vectors, seeds, and the pairs of words that are no seeds."""
    if setting == "sample":
        folder = sample_path()
        source, target = (WordVectors.load(folder / language) for language in ("en", "fi"))
        pairs = Lexicon.load(folder / "seeds.tsv").pairs
        order = np.random.default_rng(7).permutation(len(pairs)).tolist()
        seeds = Lexicon([pairs[place] for place in order[:1000]], "seeds")
        rest = [*(pairs[place] for place in order[1000:]), *Lexicon.load(folder / "test.tsv").pairs]
    else:
        family, _, pair = setting.rpartition("/")
        source, target = (read_vectors(data / family, language, WORDS) for language in pair.split("-"))
        seeds, train, test = (
            read_dictionary(data, pair, name) for name in ("train.freq.1k", "train.freq.5k", "test.freq.2k")
        )
        rest = [*train.pairs, *test.pairs]
    places = source.key_to_index, target.key_to_index
    seeds = seeds.covered(*places)
    known = {a for a, _ in seeds.pairs}, {b for _, b in seeds.pairs}
    free = [pair for pair in dict.fromkeys(rest) if pair[0] not in known[0] and pair[1] not in known[1]]
    return source, target, seeds, Lexicon(free).covered(*places)


def hits(space: Space, pairs: Lexicon) -> dict[tuple[str, str], bool]:
    """Whether the first answer to each word of the pairs is right, by direction and word."""
    rows = pairs.index(space.source.key_to_index, space.target.key_to_index)
    found: dict[tuple[str, str], bool] = {}
    for direction, both, names in (
        ("forward", rows, space.source.index_to_key),
        ("backward", rows[:, ::-1], space.target.index_to_key),
    ):
        golds: dict[int, set[int]] = {}
        for query, answer in both.tolist():
            golds.setdefault(query, set()).add(answer)
        queries = np.array(list(golds), np.int64)
        first = space.search(queries, 1, direction=direction)[1][:, 0]  # type: ignore[arg-type]
        for query, answer in zip(queries.tolist(), first.tolist(), strict=True):
            found[direction, names[query]] = answer in golds[query]
    return found


def case(model: Translator, pool: Lexicon, before: dict[Any, bool], count: int, split: int) -> dict[str, Any]:
    """Refine with some decisions, judge the other words, and undo it."""
    words = sorted(pool.translations())
    drawn = set(np.random.default_rng([split, count]).permutation(words)[:count].tolist())
    decided = [pair for pair in pool.pairs if pair[0] in drawn]
    answers = {b for _, b in decided}
    free = Lexicon([pair for pair in pool.pairs if pair[0] not in drawn and pair[1] not in answers])
    rows = np.array(model.space.source.vectors), np.array(model.space.target.vectors)
    started = time.perf_counter()
    report = model.refine(decided, progress=SILENT)
    seconds = round(time.perf_counter() - started, 1)
    after = hits(model.space, free) if report.refitted else {}
    model.undo_refine()
    exact = all(
        np.array_equal(kept, side.vectors)
        for kept, side in zip(rows, (model.space.source, model.space.target), strict=True)
    )
    asked = [("forward", a) for a in free.translations()]
    asked += [("backward", b) for b in dict.fromkeys(b for _, b in free.pairs)]
    old = np.array([before[one] for one in asked], float)
    new = np.array([after[one] for one in asked], float) if report.refitted else old
    error = 196 * float((new - old).std()) / len(asked) ** 0.5
    return {
        "words": len(asked),
        "before": round(100 * float(old.mean()), 2),
        "after": round(100 * float(new.mean()), 2),
        "change": round(100 * float((new - old).mean()), 3),
        "interval": round(error, 3),
        "changed per decision": round(report.changed / count, 3),
        "undo exact": exact,
        "refitted": report.refitted,
        "held out": report.held_out,
        "seconds": seconds,
    }


def opened(data: Path, models: Path, setting: str, preset: str) -> tuple[Translator, Lexicon]:
    """The model of a setting, and the pairs that decisions are drawn from."""
    source, target, seeds, pool = problem(data, setting)
    folder = models / f"{setting.replace('/', '.')}.{preset}"
    if not folder.exists():
        Translator(C1(preset=preset)).fit(source, target, seeds, progress=SILENT).save(folder)
    return Translator.load(folder, verify=False), pool


def main(arguments: list[str] | None = None) -> None:
    """Go through the grid, and write one JSON line per case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--splits", nargs="+", type=int, default=SPLITS)
    options = parser.parse_args(arguments)
    done = set()
    if options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()]
        done = {(row["setting"], row["preset"], row["decided"], row["split"]) for row in rows}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for split in options.splits:
        for setting in options.settings:
            for preset in options.presets:
                cases = [(setting, preset, count, split) for count in options.counts]
                if all(one in done for one in cases):
                    continue
                model, pool = opened(options.data, options.models, setting, preset)
                before = hits(model.space, pool)
                for count in options.counts:
                    enough = len(pool.translations()) >= count + FEWEST
                    if not enough or (setting, preset, count, split) in done:
                        continue
                    about = {"setting": setting, "preset": preset, "decided": count, "split": split}
                    row = {**about, **case(model, pool, before, count, split)}
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
