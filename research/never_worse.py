"""Is more always better? `auto` against the presets and against fewer seeds, and how long its passes must be.

    python -m research.never_worse DATA --run check --out research/results/never_worse_check.jsonl
    python -m research.never_worse DATA --run passes --out research/results/passes.jsonl

DATA has vectors/ (web text: en, fi, fr, ru), europarl/vectors/ (de, fr, it) and dictionaries/xling/. A
setting is FAMILY/PAIR:SEEDS; "mixed/en-it" pairs web English with parliament Italian; "sample" is the
packaged one.

`check` fits C1 as a user gets it, with "auto" and with each preset, and scores the test dictionary: for the
report, never for a choice. Of "auto" it also says what `bilex align` promises: the expected P@1 with its
interval and the calibration error of confidences (words that are no seeds). `passes` compares first passes
and last passes of several lengths, on held-out seeds and, for the report, on the test dictionary. One JSON
line per fit; `python -m research.limits` judges.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex import C1, Lexicon, Translator, WordVectors
from bilex.aligners.advanced import advanced_maps
from bilex.aligners.c1_settings import MANY_SEEDS, C1Constants, shortened
from bilex.aligners.induction import augmentation, induce_pairs, surest_pairs, without_words_of
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.preparation import UnitRows
from bilex.aligners.starts import first_dictionary
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.data import sample_path
from bilex.fit.calibration import DIRECTIONS, error_by_chance, expected_calibration_error
from bilex.fit.held_out import hold_out
from bilex.model.space import Space, map_words
from research.packed import read_dictionary, read_vectors

Maps = tuple[torch.Tensor, torch.Tensor]
Pairs = np.ndarray
Row = dict[str, Any]
FAMILIES = {  # where the vectors of a pair's two languages lie, for settings that name no folder
    "mixed": {"en": "", "fi": "", "ru": "", "de": "europarl", "it": "europarl", "fr": "europarl"},
}
PAIRS = (
    "en-ru", "fi-ru", "europarl/de-it", "mixed/en-it", "en-fi", "mixed/en-de", "sample", "ru-fr",
    "europarl/de-fr", "en-fr", "europarl/it-fr", "fi-fr", "mixed/fi-it", "mixed/en-fr",
)  # fmt: skip
PRESETS = ("auto", "careful", "best", "paper")


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


def p_at_1(translator: Translator, test: Lexicon) -> Row:
    """P@1 in %: forward NN and CSLS, backward NN and CSLS, and their mean."""
    found = translator.evaluate(test, bootstrap=0)
    parts = (found.nn, found.csls, found.backward.nn, found.backward.csls)
    scores = [round(100 * part.p_at_1, 2) for part in parts]
    return {"p@1": scores, "mean": round(float(np.mean(scores)), 2)}


def promised(translator: Translator, test: Lexicon) -> Row:
    """The expected P@1 with its interval, and the calibration error, by direction."""
    row: Row = {}
    expectation = translator.provenance.expectation
    for direction in DIRECTIONS if expectation.measured else ():
        row[f"expected {direction}"] = [round(100 * value, 1) for value in expectation.of(direction)]
        asked = test if direction == "forward" else test.swapped()
        queries, keys = translator.space.sides(direction)
        known = {pair[direction == "backward"] for pair in translator.seeds.pairs}
        words = asked.covered(queries.key_to_index, keys.key_to_index).translations()
        free = [word for word in words if word not in known]
        answers = translator.translate(free, 1, direction=direction)
        stated = [answer[0].confidence for answer in answers]
        if not free or None in stated:
            continue
        right = [answer[0].word in words[word] for word, answer in zip(free, answers, strict=True)]
        row[f"ece {direction}"] = round(expected_calibration_error(stated, right), 4)  # type: ignore[arg-type]
        row[f"ece by chance {direction}"] = round(error_by_chance(stated), 4)  # type: ignore[arg-type]
    return row


def checked(options: argparse.Namespace, setting: str, preset: str) -> Iterator[Row]:
    """One fit as a user gets it."""
    source, target, seeds, test = read(options.data, setting, options.words)
    started = time.perf_counter()
    translator = Translator(C1(preset=preset, device=options.device))
    row: Row = {"setting": setting, "form": preset}
    try:
        lexicon = seeds if len(seeds) else None
        translator.fit(source, target, lexicon, progress=False, calibrate=preset == "auto")
    except BilexError as error:
        yield {**row, "failed": str(error)}
        return
    row["seconds"] = round(time.perf_counter() - started, 2)
    if preset == "auto":
        trial = translator.provenance.trial
        row["trial"] = {} if trial is None else dict(trial.form_scores)
        row |= promised(translator, test)
    yield row | p_at_1(translator, test)


class Chain:
    """C1 on one problem, pass by pass, with constants of our choice."""

    def __init__(self, source: WordVectors, target: WordVectors, seeds: Lexicon, device: str) -> None:
        self.words, self.device = (source, target), device
        self.seeds = seeds.index(source.key_to_index, target.key_to_index)
        place = resolve_device(device)
        self.rows = UnitRows(source, place), UnitRows(target, place)
        self.size = min(len(source), len(target))

    def constants(self, way: float, seeds: int) -> C1Constants:
        """Those of "best" for some number of seeds, a share of the way."""
        return shortened(C1(preset="best").constants(seeds, self.size), way, "best")

    def passed(self, constants: C1Constants, seeds: Pairs, dictionary: Pairs) -> Maps:
        """The maps after one pass of Algorithm 1 from a dictionary."""
        c1, (x, y) = C1(preset="best", device=self.device), self.rows
        maps: Maps | None = None
        for number in range(constants.warm_up + constants.iterations):
            if maps is not None:
                induced = induce_pairs(
                    *(side.mapped(part) for side, part in zip((x, y), maps, strict=True)),
                    frequent=constants.frequent, keep=constants.augment, full_csls=True, device=x.device,
                )  # fmt: skip
                dictionary = np.concatenate([seeds, augmentation(induced, seeds)])
            found = advanced_maps(x[dictionary[:, 0]], y[dictionary[:, 1]])
            maps = found.source.float(), found.target.float()
            if number < constants.warm_up:
                continue
            contrasted = dictionary if constants.contrast_on_augmented or not len(seeds) else seeds
            contrast = c1.objective(x, y, contrasted, constants)
            for update in range(constants.updates):
                maps, _ = c1.update(contrast, maps, constants.learning_rate * constants.decay**update)
        assert maps is not None
        return maps

    def anchored(self, maps: Maps, anchors: int) -> Pairs:
        """The seeds and the surest pairs that a pass has found."""
        x, y = (rows.mapped(part) for rows, part in zip(self.rows, maps, strict=True))
        found = without_words_of(surest_pairs(x, y, device=x.device), self.seeds)
        return np.concatenate([self.seeds, found[: min(anchors, max(1, self.size // 3))]])

    def translator(self, maps: Maps) -> Translator:
        """A model of these maps."""
        source, target = (Map([Unit(), Linear(one.cpu().numpy()), Unit()]) for one in maps)
        space = Space(
            map_words(self.words[0], source), map_words(self.words[1], target), "cosine", self.device
        )
        return Translator.of_parts(space, source, target)


def passes(options: argparse.Namespace, setting: str, run: str) -> Iterator[Row]:
    """Two passes (three without seeds): ways of the first and of the last, and anchors of the last."""
    source, target, seeds, test = read(options.data, setting, options.words)
    usable = seeds.covered(source.key_to_index, target.key_to_index)
    learned, judged = usable, test
    if run == "held":
        cut = hold_out(usable, 0.1, 0)
        if cut is None:
            return
        learned, judged = cut
    chain, count = Chain(source, target, learned, options.device), len(usable)
    many = count >= MANY_SEEDS
    dictionary = chain.seeds
    if not count:
        own = chain.constants(0.5, 0)
        dictionary = first_dictionary(
            source, target, chain.seeds, frequent=own.frequent, keep=own.augment, device=options.device
        ).pairs
    for early in (0.5,) if not count else (0.5, 0.75, 1.0):
        own = chain.constants(early, count)
        first = chain.passed(replace(own, iterations=1) if many else own, chain.seeds, dictionary)
        if not count:
            fewer = chain.anchored(first, 3_000)
            first = chain.passed(own, fewer, fewer)
        for anchors in (2_500, 5_000):
            more = chain.anchored(first, anchors)
            for way in (0.5, 0.65, 0.75, 1.0):
                maps = chain.passed(chain.constants(way, MANY_SEEDS), more, more)
                about = {"setting": setting, "run": run, "early": early, "anchors": anchors, "way": way}
                yield about | p_at_1(chain.translator(maps), judged)


def work(options: argparse.Namespace, jobs: Any, rows: Any, ends: float) -> None:
    """One process: take jobs until none is left or the time is over."""
    torch.set_num_threads(options.threads)
    while time.time() < ends:
        try:
            setting, part = jobs.get_nowait()
        except Exception:  # the queue is empty
            break
        try:
            for row in (checked if options.run == "check" else passes)(options, setting, part):
                rows.put(row)
        except Exception as error:  # the other jobs go on
            rows.put({"setting": setting, "part": part, "failed": repr(error)})
    rows.put(None)


def main(arguments: list[str] | None = None) -> None:
    """Run the jobs in several processes and write one JSON line per fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", choices=["check", "passes"], required=True)
    parser.add_argument(
        "--settings", nargs="+", default=[f"{p}:{n}" for n in ("5k", "1k", "0") for p in PAIRS]
    )
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--words", type=int, default=21_000, help="of each language")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    ends = time.time() + options.seconds
    context = multiprocessing.get_context("spawn")
    jobs, rows = context.Queue(), context.Queue()
    for setting in options.settings:
        for part in options.presets if options.run == "check" else ("held", "final"):
            jobs.put((setting, part))
    time.sleep(0.5)
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
