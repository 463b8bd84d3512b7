"""Many languages in one space against direct alignment and a pivot, on the data folder.

    python -m research.many_languages DATA --work WORK full --family xling
    python -m research.many_languages DATA --work WORK few --family xling --pairs fi-ru --sizes none 1k
    python -m research.many_languages DATA --work WORK table

`full` gives every pair 5,000 seeds: each pair by itself with c1 (direct), through a pivot, the direct models
joined (all of them, and those with the hub), and all languages aligned together (joint). `few` gives each of
`--pairs` in turn 1,000 seeds or none and all others 5,000: all languages together, the pair by itself, and
for a pair without seeds the other models joined. Each adds JSON lines to WORK/results.jsonl; `full` also
writes the matrix of the joint model as WORK/matrix-FAMILY.svg; `table` writes the results as Markdown. P@1 is
that on XLING's test dictionaries. The models of two languages are kept in WORK and are not fitted again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners.c1 import C1
from bilex.core.errors import BilexError
from bilex.evaluation import evaluate
from bilex.evaluation.matrix import evaluate_pairs
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.joining import join
from bilex.model.jointly import FREQUENT, align_languages
from bilex.model.many import ManyLanguages
from bilex.model.space import Direction, Retrieval, Space
from bilex.vectors import WordVectors
from research.packed import read_dictionary, read_vectors

FAMILIES = {"xling": ("en", "fi", "fr", "ru"), "europarl": ("de", "fr", "it")}
FOLDERS = {"xling": "", "europarl": "europarl"}
HUBS = {"xling": "en", "europarl": "fr"}
SEARCHES: tuple[Retrieval, Retrieval] = ("nn", "csls")
WAYS: tuple[Direction, Direction] = ("forward", "backward")
Two = tuple[str, str]
FULL_ROWS = (
    ("direct", "5k", "direct"),
    ("`align-many`", "5k", "joint"),
    ("`join`, all", "5k", "join, all"),
    ("`join`, hub", "5k", "join, hub"),
    ("pivot", "5k", "pivot"),
)
FEW_ROWS = (
    ("5,000 seeds, direct", "5k", "direct"),
    ("1,000 seeds, direct", "1k", "direct"),
    ("1,000 seeds, `align-many`", "1k", "joint"),
    ("no seeds, direct", "none", "direct"),
    ("no seeds, `align-many`", "none", "joint"),
    ("no seeds, `join` of the others", "none", "join, all others"),
)


class Study:
    """The data of one family of languages, and where results go."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.data: Path = options.data
        self.work: Path = options.work
        self.languages = FAMILIES[options.family]
        self.hub = HUBS[options.family]
        self.language_pairs = list(itertools.combinations(self.languages, 2))
        folder = self.data / FOLDERS[options.family]
        self.vectors: dict[str, WordVectors] = {
            code: read_vectors(folder, code, options.words) for code in self.languages
        }

    def aligner(self) -> C1:
        """C1 as it was asked for."""
        updates = {} if self.options.updates is None else {"updates": self.options.updates}
        return C1(preset=self.options.preset, device=self.options.device, **updates)

    def dictionary(self, two: Two, name: str) -> Lexicon:
        """A dictionary of XLING with the first language's words first."""
        a, b = two
        try:
            return read_dictionary(self.data, f"{a}-{b}", name)
        except BilexError:
            return read_dictionary(self.data, f"{b}-{a}", name).swapped()

    def test(self, two: Two) -> Lexicon:
        """What two languages are scored on."""
        return self.dictionary(two, "test.freq.2k")

    def seeds(self, few: Mapping[Two, str] | None = None) -> dict[Two, Lexicon]:
        """The seeds of all pairs: 5,000, or what `few` says."""
        sizes = {two: (few or {}).get(two, "5k") for two in self.language_pairs}
        return {two: self.dictionary(two, f"train.freq.{s}") for two, s in sizes.items() if s != "none"}

    def direct(self, two: Two, size: str = "5k") -> Translator:
        """The model of two languages by themselves; without seeds C1 finds its own start."""
        folder = self.work / f"{self.options.family}-{self.options.preset}-{size}" / "-".join(two)
        if not folder.exists():
            seeds = self.seeds({two: size}).get(two)
            source, target = (self.vectors[code] for code in two)
            model = Translator(self.aligner()).fit(
                source, target, seeds, calibrate=self.options.calibrate, languages=two
            )
            model.save(folder)
        return Translator.load(folder, device=self.options.device)

    def joint(self, few: Mapping[Two, str] | None = None) -> ManyLanguages:
        """All languages aligned together."""
        return align_languages(
            self.vectors, self.seeds(few), self.aligner(), calibrated=False, frequent=self.options.frequent
        )

    def report(self, way: str, two: Two, figures: list[float], size: str = "5k", **more: Any) -> None:
        """Add one line to the results."""
        found = {
            "way": way,
            "family": self.options.family,
            "seeds": size,
            "pair": "-".join(two),
            "p@1": figures,
            "mean": round(sum(figures) / len(figures), 2),
            **more,
        }
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)

    def scored(self, space: Space, two: Two) -> list[float]:
        """P@1 in %: forward nearest neighbour and CSLS, backward likewise."""
        found = evaluate(space, self.test(two), bootstrap=0)
        sides = (found.forward, found.backward)
        return [round(100 * metrics.p_at_1, 2) for side in sides for metrics in (side.nn, side.csls)]


def full(study: Study) -> None:
    """Every pair with 5,000 seeds, all ways."""
    direct: dict[str, Translator] = {}
    for two in study.language_pairs:
        started = time.perf_counter()
        direct["-".join(two)] = study.direct(two)
        seconds = round(time.perf_counter() - started, 1)
        study.report("direct", two, study.scored(direct["-".join(two)].space, two), seconds=seconds)
    for two in study.language_pairs:
        if study.hub not in two:
            study.report("pivot", two, _through_the_hub(study, two))
    with_hub = {name: model for name, model in direct.items() if study.hub in name.split("-")}
    for way, models in (("join, all", direct), ("join, hub", with_hub)):
        many = join(models)
        for two in study.language_pairs:
            study.report(way, two, study.scored(many.pair(*two).space, two))
    started = time.perf_counter()
    many = study.joint()
    seconds = round(time.perf_counter() - started, 1)
    for two in study.language_pairs:
        study.report("joint", two, study.scored(many.pair(*two).space, two), seconds=seconds)
    matrix = evaluate_pairs(many, {two: study.test(two) for two in study.language_pairs}, bootstrap=0)
    (study.work / f"matrix-{study.options.family}.svg").write_text(matrix.svg(), encoding="utf-8")


def few(study: Study) -> None:
    """Each of some pairs in turn with fewer seeds than the others."""
    chosen = [
        two for two in study.language_pairs if not study.options.pairs or "-".join(two) in study.options.pairs
    ]
    cells = list(itertools.product(study.options.sizes, chosen))
    for size, two in cells if "joint" in study.options.ways else []:
        started = time.perf_counter()
        many = study.joint({two: size})
        seconds = round(time.perf_counter() - started, 1)
        figures = study.scored(many.pair(*two).space, two)
        study.report("joint", two, figures, size, seconds=seconds)
    for size, two in cells if "direct" in study.options.ways else []:
        try:
            model = study.direct(two, size)
        except BilexError as refused:
            print(f"{'-'.join(two)} with {size} seeds is refused: {refused}", flush=True)
            continue
        study.report("direct", two, study.scored(model.space, two), size)
    for two in chosen if "none" in study.options.sizes and "others" in study.options.ways else []:
        others = join({"-".join(t): study.direct(t) for t in study.language_pairs if t != two})
        study.report("join, all others", two, study.scored(others.pair(*two).space, two), "none")


def _through_the_hub(study: Study, two: Two) -> list[float]:
    """The first answer in the hub language, translated on with the direct models."""
    figures = []
    for way in WAYS:
        a, b = two if way == "forward" else two[::-1]
        golds = (study.test(two) if way == "forward" else study.test(two).swapped()).translations()
        (to_hub, there), (from_hub, onward) = _opened(study, a, study.hub), _opened(study, study.hub, b)
        query_side, key_side = to_hub.sides(there)[0], from_hub.sides(onward)[1]
        words = [w for w in golds if w in query_side and any(t in key_side for t in golds[w])]
        for search in SEARCHES:
            _, middle = to_hub.search(query_side.rows(words), 1, direction=there, retrieval=search)
            _, last = from_hub.search(middle[:, 0], 1, direction=onward, retrieval=search)
            answers = [key_side.index_to_key[row] for row in last[:, 0]]
            right = [answer in golds[word] for answer, word in zip(answers, words, strict=True)]
            figures.append(round(100 * float(np.mean(right)), 2))
    return figures


def _opened(study: Study, a: str, b: str) -> tuple[Space, Direction]:
    two = (a, b) if (a, b) in study.language_pairs else (b, a)
    return study.direct(two).space, "forward" if two == (a, b) else "backward"


def table(work: Path) -> None:
    """The results as the tables of research/many_languages.md; the last of equal measurements counts."""
    lines = (work / "results.jsonl").read_text(encoding="utf-8").splitlines()
    found = {(row["family"], row["seeds"], row["way"], row["pair"]): row for row in map(json.loads, lines)}
    for title, rows in (("5,000 seeds a pair", FULL_ROWS), ("the pair has …", FEW_ROWS)):
        for family, languages in FAMILIES.items():
            pairs = ["-".join(two) for two in itertools.combinations(languages, 2)]
            print(f"\n| {family}: {title} | {' | '.join(pairs)} | mean |\n|---|{'---|' * (len(pairs) + 1)}")
            for label, size, way in rows:
                cells = [
                    found[family, size, way, p]["mean"] for p in pairs if (family, size, way, p) in found
                ]
                shown = [
                    f"{found[family, size, way, p]['mean']:.1f}" if (family, size, way, p) in found else ""
                    for p in pairs
                ]
                mean = f"{sum(cells) / len(cells):.1f}" if len(cells) == len(pairs) else ""
                if cells:
                    print(f"| {label} | {' | '.join(shown)} | {mean} |")
    for family, languages in FAMILIES.items():
        _print_matrix(found, family, languages)


def _print_matrix(found: Mapping[tuple[str, str, str, str], Any], family: str, codes: Sequence[str]) -> None:
    """P@1 with CSLS from each language to each other, all aligned together with 5,000 seeds a pair."""
    cells = {}
    for a, b in itertools.combinations(codes, 2):
        if row := found.get((family, "5k", "joint", f"{a}-{b}")):
            cells[a, b], cells[b, a] = row["p@1"][1], row["p@1"][3]
    if cells:
        print(f"\n| {family}: from \\ to | {' | '.join(codes)} |\n|---|{'---|' * len(codes)}")
        for a in codes:
            shown = [f"{cells[a, b]:.1f}" if (a, b) in cells else "" for b in codes]
            print(f"| {a} | {' | '.join(shown)} |")


def parser(description: str) -> argparse.ArgumentParser:
    """The options that choose data and method."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    made.add_argument("--work", type=Path, required=True, help="a folder for models and results")
    made.add_argument("--family", choices=list(FAMILIES), default="xling")
    made.add_argument("--words", type=int, default=20_000, help="of each language")
    made.add_argument("--preset", default="best", help="of c1, in all ways")
    made.add_argument("--updates", type=int, help="of c1, where not those of the preset")
    made.add_argument("--device", default="auto")
    made.add_argument("--calibrate", action="store_true", help="the direct models learn confidences too")
    return made


def main(arguments: list[str] | None = None) -> None:
    """Measure one thing."""
    made = parser(__doc__)
    made.add_argument("way", choices=["full", "few", "table"])
    made.add_argument("--pairs", nargs="+", default=[], help="of few: only these")
    made.add_argument("--sizes", nargs="+", default=["none", "1k"], help="of few: seeds of the pair")
    made.add_argument("--ways", nargs="+", default=["joint", "direct", "others"], help="of few: only these")
    made.add_argument("--frequent", type=int, default=FREQUENT, help="words that take part in a joint fit")
    options = made.parse_args(arguments)
    if options.way == "table":
        table(options.work)
    else:
        {"full": full, "few": few}[options.way](Study(options))


if __name__ == "__main__":
    main()
