"""Is more evidence always better? `auto` against the presets and fewer seeds, and what its parts are worth.

    python -m research.never_worse DATA --run check --out research/results/never_worse_check.jsonl
    python -m research.never_worse DATA --run parts --freedict FREEDICT --out research/results/parts.jsonl
    python -m research.never_worse DATA --run curve --freedict FREEDICT --out research/results/curve.jsonl \
        --forms auto --settings en-fi:100 en-fi:300 en-fi:1000

DATA has vectors/ (web text: en, fi, fr, ru), europarl/vectors/ (de, fr, it), dictionaries/xling/ and, from
`python -m research.glove` and `python -m research.trained`, glove/vectors/, trained/vectors/ and
trainedsg/vectors/. A setting is FAMILY/PAIR:SEEDS; "mixed/en-it" pairs web English with parliament Italian,
"trained/en-it" and "trainedsg/en-it" English of our own with it; "sample" is the packaged one. FREEDICT has
word pairs of FreeDict as en-fi.tsv and so on (see `python -m research.freedict`).

`check` fits C1 as a user gets it, with "auto" and with each preset, and scores the test dictionary: for the
report, never for a choice. `parts` compares settings of C1 on pairs that took part in nothing: held-out
seeds, and FreeDict's pairs without words of the test dictionary. `curve` does the same with any number of
seeds, drawn from the larger dictionary, and judges all numbers by the same words. One JSON line per fit;
`python -m research.limits` judges. What `bilex align` promises is checked by `research.vocabularies`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex import C1, Lexicon, Translator, WordVectors
from bilex.core.errors import BilexError
from bilex.data import sample_path
from bilex.fit import trial
from bilex.fit.calibration import (
    AnswerRecords,
    Answers,
    Candidates,
)
from research.packed import read_dictionary, read_vectors

Row = dict[str, Any]
_MIXED = {"en": "", "fi": "", "ru": "", "de": "europarl", "it": "europarl", "fr": "europarl"}
# Where the vectors of a pair's two languages lie, for families that are no folder.
FAMILIES = {"mixed": _MIXED} | {name: {**_MIXED, "en": name} for name in ("trained", "trainedsg")}
PAIRS = (
    "en-ru", "fi-ru", "europarl/de-it", "mixed/en-it", "en-fi", "mixed/en-de", "sample", "ru-fr",
    "europarl/de-fr", "en-fr", "europarl/it-fr", "fi-fr", "mixed/fi-it", "mixed/en-fr",
    "glove/en-de", "glove/en-it", "glove/en-fi", "glove/en-ru", "glove/en-fr", "mixed/de-ru", "mixed/ru-it",
    "trained/en-it", "trained/en-de", "trained/en-fi", "trainedsg/en-it", "trainedsg/en-fr",
)  # fmt: skip
# Where other words than the test's do not judge promises: the sample's own dictionaries are of FreeDict, and
# most words of en-ru are of Mueller's dictionary, on which P@1 is half of what XLING and FreeDict say.
NOT_TO_PROMISE = ("sample", "en-ru", "glove/en-ru")
PRESETS = ("auto", "careful", "best", "paper")
_WHOLE = {"preset": "best", "passes": 3, "spelling": True}
PARTS: dict[str, dict[str, Any]] = {
    "auto": {},
    "extent 0.65": {"extent": 0.65},
    "no damping": {"damping": 0.0},
    "damping 3": {"damping": 3.0},
    "shorter early rounds": {"early_extent": 2 / 3},
    "all updates on few pairs": {"enough_pairs": 0},
    "two passes": {"passes": 2},
    "no spelling": {"spelling": False},
    "joined": {"start": "joined"},
    "warm-up": {"warm_up": 1},
    "constants of many seeds": {"size": 2_236},
    "whole rounds": _WHOLE,
    "best": {"preset": "best"},
}


def read(data: Path, setting: str, limit: int) -> tuple[WordVectors, WordVectors, Lexicon, Lexicon]:
    """Vectors, seeds and test pairs of a setting."""
    place, _, size = setting.partition(":")
    if place == "sample":
        folder = sample_path()
        source, target = (WordVectors.load(folder / language) for language in ("en", "fi"))
        pairs = list(Lexicon.load(folder / "seeds.tsv").pairs)
        order = np.random.default_rng(7).permutation(len(pairs)).tolist()
        count = {"5k": len(pairs), "1k": 1000, "0": 0}[size]
        chosen = pairs if count == len(pairs) else [pairs[number] for number in order[:count]]
        return source, target, Lexicon(chosen), Lexicon.load(folder / "test.tsv")
    family, _, pair = place.rpartition("/")
    folders = FAMILIES.get(family)
    source, target = (
        read_vectors(data / (folders[language] if folders else family), language, limit)
        for language in pair.split("-")
    )
    seeds = read_dictionary(data, pair, f"train.freq.{size}") if size != "0" else Lexicon([])
    return source, target, seeds, read_dictionary(data, pair, "test.freq.2k")


def independent(folder: Path | None, setting: str, *others: Lexicon) -> Lexicon:
    """FreeDict's pairs of a setting that share no word with other dictionaries."""
    pair = setting.partition(":")[0].rpartition("/")[2].replace("sample", "en-fi")
    file = None if folder is None else folder / f"{pair}.tsv"
    found = Lexicon.load(file) if file is not None and file.exists() else Lexicon([])
    for other in others:
        found = found.without(other, by="word")
    return found


def listed(options: argparse.Namespace, setting: str, test: Lexicon) -> Lexicon:
    """All that the dictionaries of a setting say about its words, its larger training dictionary included."""
    most = read(options.data, f"{setting.partition(':')[0]}:5k", 1)[2]
    return Lexicon([*test.pairs, *most.pairs, *independent(options.freedict, setting).pairs])


def p_at_1(translator: Translator, test: Lexicon) -> list[float]:
    """P@1 in %: forward NN and CSLS, backward NN and CSLS."""
    found = translator.evaluate(test, bootstrap=0)
    parts = (found.nn, found.csls, found.backward.nn, found.backward.csls)
    return [round(100 * part.p_at_1, 2) for part in parts]


def save_features(file: Path, kinds: dict[str, AnswerRecords]) -> None:
    """Write records of answers as arrays, which are named KIND.DIRECTION.RETRIEVAL.PART."""
    arrays: dict[str, Any] = {}
    for kind, records in kinds.items():
        for (direction, retrieval), asked in records.items():
            parts = {"right": asked.right} | asked.found._asdict()
            parts |= {f"frequent {name}": part for name, part in asked.frequent._asdict().items()}
            arrays |= {f"{kind}.{direction}.{retrieval}.{name}": part for name, part in parts.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file, **arrays)


def read_features(file: Path) -> dict[str, dict[tuple[str, str], Answers]]:
    """What `save_features` wrote, by kind."""
    found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    with np.load(file) as arrays:
        for name in arrays:
            kind, direction, retrieval, part = name.split(".")
            found.setdefault(kind, {}).setdefault((direction, retrieval), {})[part] = arrays[name]

    def answers(parts: dict[str, Any]) -> Answers:
        asked, frequent = (
            Candidates(*(parts[start + name] for name in Candidates._fields)) for start in ("", "frequent ")
        )
        return Answers(asked, parts["right"], frequent)

    return {kind: {key: answers(parts) for key, parts in records.items()} for kind, records in found.items()}


def checked(options: argparse.Namespace, setting: str, preset: str) -> Row:
    """One fit as a user gets it."""
    source, target, seeds, test = read(options.data, setting, options.words)
    started = time.perf_counter()
    translator = Translator(C1(preset=preset, device=options.device))
    row: Row = {"setting": setting, "vocabulary": options.words, "form": preset}
    translator.fit(source, target, seeds if len(seeds) else None, progress=False, calibrate=False)
    row["seconds"] = round(time.perf_counter() - started, 2)
    most = read(options.data, f"{setting.partition(':')[0]}:5k", 1)[2]
    other = independent(options.freedict, setting, test, most)  # the same words with any number of seeds
    row["p@1"] = p_at_1(translator, test)
    row["mean"] = round(float(np.mean(row["p@1"])), 2)
    counted = [judged.covered(source.key_to_index, target.key_to_index) for judged in (test, other)]
    row["words"] = [len(judged.translations()) for judged in counted]
    if len(counted[1]):
        row["other"] = round(float(np.mean(p_at_1(translator, other))), 2)
    return row


def parts(options: argparse.Namespace, setting: str, name: str) -> Row:
    """Some settings of C1, judged by pairs that took part in nothing."""
    source, target, seeds, test = read(options.data, setting, options.words)
    usable = seeds.covered(source.key_to_index, target.key_to_index)
    learned, judged = usable, {}
    if setting.endswith(":5k") and (split := trial.hold_out(usable, 0.15, 1)) is not None:
        learned, judged["held out"] = split
    elif not setting.startswith("sample"):
        more = read(options.data, setting.partition(":")[0] + ":5k", 1)[2]
        judged["held out"] = more.without(usable, by="word")
    judged["other"] = independent(options.freedict, setting, test, usable)
    return {"setting": setting, "form": name} | judged_fit(options, name, (source, target), learned, judged)


def curve(options: argparse.Namespace, setting: str, name: str) -> Row:
    """Some settings of C1 with a number of seeds; the same fifth of the larger dictionary is held out."""
    pair, _, count = setting.partition(":")
    source, target, seeds, test = read(options.data, f"{pair}:5k", options.words)
    split = trial.hold_out(seeds.covered(source.key_to_index, target.key_to_index), 0.2, 1)
    assert split is not None
    order = np.random.default_rng(options.draw).permutation(len(split[0])).tolist()[: int(count)]
    learned = Lexicon([split[0].pairs[number] for number in order])
    judged = {"held out": split[1], "other": independent(options.freedict, setting, test, seeds)}
    row: Row = {"setting": setting, "form": name, "seeds": len(learned), "vocabulary": options.words}
    row["draw"] = options.draw
    return row | judged_fit(options, name, (source, target), learned, judged)


def judged_fit(
    options: argparse.Namespace,
    name: str,
    sides: tuple[WordVectors, WordVectors],
    learned: Lexicon,
    judged: dict[str, Lexicon],
) -> Row:
    """P@1 on each kind of pairs, and the number of their words."""
    translator = Translator(C1(device=options.device, **PARTS[name]))
    translator.fit(*sides, learned if len(learned) else None, progress=False, calibrate=False)
    row: Row = {}
    for kind, pairs in judged.items():
        if len(covered := pairs.covered(*(side.key_to_index for side in sides))):
            row |= {kind: p_at_1(translator, covered), f"{kind} words": len(covered.translations())}
    return row


RUNS = {"check": checked, "parts": parts, "curve": curve}


def work(options: argparse.Namespace, jobs: Any, rows: Any, ends: float) -> None:
    """One process: take jobs until none is left or the time is over."""
    torch.set_num_threads(options.threads)
    while time.time() < ends:
        try:
            setting, part = jobs.get(timeout=1)
        except Exception:  # the queue is empty
            break
        try:
            rows.put(RUNS[options.run](options, setting, part))
        except (BilexError, OSError, RuntimeError, ValueError) as error:  # the other jobs go on
            rows.put({"setting": setting, "form": part, "failed": str(error) or repr(error)})
    rows.put(None)


def main(arguments: list[str] | None = None) -> None:
    """Run the jobs in several processes and write one JSON line per fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", choices=RUNS, required=True)
    parser.add_argument(
        "--settings", nargs="+", default=[f"{p}:{n}" for n in ("5k", "1k", "0") for p in PAIRS]
    )
    parser.add_argument("--forms", nargs="+", help="presets of check, or names of parts (PARTS)")
    parser.add_argument("--freedict", type=Path, help="a folder of FreeDict's word pairs")
    parser.add_argument("--words", type=int, default=21_000, help="of each language")
    parser.add_argument("--draw", type=int, default=5, help="random seed of the seeds that curve draws")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    ends = time.time() + options.seconds
    context = multiprocessing.get_context("spawn")
    jobs, rows = context.Queue(), context.Queue()
    for part in options.forms or (PRESETS if options.run == "check" else PARTS):
        for setting in options.settings:
            jobs.put((setting, part))
    arguments_of_work = (options, jobs, rows, ends)
    workers = [context.Process(target=work, args=arguments_of_work) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    running = len(workers)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        while running:
            row = rows.get()
            if row is None:
                running -= 1
                continue
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
