"""Many languages in one space against direct alignment and a pivot, on the data folder.

    python -m timings.many_languages DATA --work WORK direct --family xling --seeds 5k
    python -m timings.many_languages DATA --work WORK joint --family xling --seeds 5k
    python -m timings.many_languages DATA --work WORK joint --family xling --seeds 5k --few fi-ru=none
    python -m timings.many_languages DATA --work WORK join --family xling --seeds 5k --hub en
    python -m timings.many_languages DATA --work WORK pivot --family xling --seeds 5k --hub en
    python -m timings.many_languages DATA --work WORK table

Each call measures one thing and adds JSON lines to WORK/results.jsonl; `table` writes them as Markdown.
`direct` aligns two languages at a time and keeps the models in WORK for `join` and `pivot`; its method is the
joint one for two languages ("two"), or any other (`--method c1 --set preset=quick`). `--few PAIR=1k` or
`PAIR=none` gives one pair fewer seeds than the others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners import get_method
from bilex.errors import BilexError
from bilex.evaluation import evaluate
from bilex.lexicon import Lexicon
from bilex.many.core import ManyLanguages
from bilex.many.fitting import align_languages
from bilex.many.joining import join
from bilex.many.jointly import FREQUENT
from bilex.space import Direction, Retrieval, Space
from bilex.translator import Translator
from bilex.vectors import WordVectors
from timings.packed import read_dictionary, read_vectors

FAMILIES = {"xling": ("en", "fi", "fr", "ru"), "europarl": ("de", "fr", "it")}
FOLDERS = {"xling": "", "europarl": "europarl"}
WORDS = 20_000
SEARCHES: tuple[Retrieval, Retrieval] = ("nn", "csls")
WAYS: tuple[Direction, Direction] = ("forward", "backward")
Two = tuple[str, str]


class Study:
    """The data of one family of languages, and where results go."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.data: Path = options.data
        self.languages = FAMILIES[options.family]
        self.twos = list(itertools.combinations(self.languages, 2))
        self.work: Path = options.work

    def vectors(self, languages: tuple[str, ...]) -> dict[str, WordVectors]:
        """The most frequent words of some languages."""
        folder = self.data / FOLDERS[self.options.family]
        return {code: read_vectors(folder, code, WORDS) for code in languages}

    def dictionary(self, two: Two, name: str) -> Lexicon:
        """A dictionary of XLING with the first language's words first."""
        a, b = two
        try:
            return read_dictionary(self.data, f"{a}-{b}", name)
        except BilexError:
            return read_dictionary(self.data, f"{b}-{a}", name).swapped()

    def seeds(self, two: Two) -> Lexicon | None:
        """The seeds of two languages; None where they shall have none."""
        few = dict(text.split("=") for text in self.options.few)
        size = few.get("-".join(two), self.options.seeds)
        return None if size == "none" else self.dictionary(two, f"train.freq.{size}")

    def report(self, way: str, two: Two, figures: list[float], **more: Any) -> None:
        """Add one line to the results."""
        found = {
            "way": way,
            "family": self.options.family,
            "seeds": self.options.seeds,
            "few": self.options.few,
            "pair": "-".join(two),
            "p@1": figures,
            "mean": round(sum(figures) / len(figures), 2),
            **more,
        }
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)

    def model(self, two: Two) -> Path:
        """Where the direct model of two languages is kept."""
        name = f"{self.options.method}-{self.options.seeds}-{self.options.family}"
        return self.work / name / "-".join(two)


def four_metrics(space: Space, test: Lexicon) -> list[float]:
    """P@1 in %: forward nearest neighbour and CSLS, backward likewise."""
    found = evaluate(space, test, bootstrap=0)
    sides = (found.forward, found.backward)
    return [round(100 * (side.figures[s] or {})["p@1"], 2) for side in sides for s in SEARCHES]


def direct(study: Study) -> None:
    """Each pair by itself, or the pairs that `--pairs` names."""
    options = study.options
    chosen = [two for two in study.twos if not options.pairs or "-".join(two) in options.pairs]
    for two in chosen:
        vectors, seeds = study.vectors(two), study.seeds(two)
        if seeds is None:
            continue
        started = time.perf_counter()
        if options.method == "two":
            model = align_languages(vectors, {two: seeds}, calibrated=options.calibrate).pair(*two)
        else:
            settings = dict(text.split("=") for text in options.set)
            aligner = get_method(options.method)(**settings)
            model = Translator.fit(
                aligner, vectors[two[0]], vectors[two[1]], seeds, calibrate=options.calibrate, languages=two
            )
        seconds = time.perf_counter() - started
        model.save(study.model(two))
        figures = four_metrics(model.space, study.dictionary(two, "test.freq.2k"))
        study.report(f"direct {options.method}", two, figures, seconds=round(seconds, 1))


def joint(study: Study) -> None:
    """All languages together; with `--few`, only the pairs that it names are scored."""
    few = [text.split("=")[0] for text in study.options.few]
    seeds = {two: found for two in study.twos if (found := study.seeds(two)) is not None}
    started = time.perf_counter()
    many = align_languages(
        study.vectors(study.languages), seeds, calibrated=False, frequent=study.options.frequent
    )
    seconds = round(time.perf_counter() - started, 1)
    for two in study.twos:
        if not few or "-".join(two) in few:
            figures = four_metrics(many.pair(*two).space, study.dictionary(two, "test.freq.2k"))
            study.report("joint", two, figures, seconds=seconds, frequent=study.options.frequent)


def joined(study: Study) -> None:
    """The direct models joined: those with the hub, or all if no hub is named."""
    hub = study.options.hub
    models = {
        str(study.model(two)): Translator.load(study.model(two))
        for two in study.twos
        if not hub or hub in two
    }
    many: ManyLanguages = join(models)
    way = f"join {study.options.method} " + (f"hub {hub}" if hub else "all")
    for two in study.twos:
        study.report(way, two, four_metrics(many.pair(*two).space, study.dictionary(two, "test.freq.2k")))


def pivot(study: Study) -> None:
    """The first answer in the hub language, translated on with the direct models."""
    hub = study.options.hub
    for two in study.twos:
        if hub in two:
            continue
        test = study.dictionary(two, "test.freq.2k")
        figures = []
        for way in WAYS:
            a, b = two if way == "forward" else two[::-1]
            golds = (test if way == "forward" else test.swapped()).golds()
            (to_hub, there), (from_hub, onward) = _opened(study, a, hub), _opened(study, hub, b)
            query_side, key_side = to_hub.sides(there)[0], from_hub.sides(onward)[1]
            words = [w for w in golds if w in query_side and any(t in key_side for t in golds[w])]
            for search in SEARCHES:
                _, middle = to_hub.search(query_side.rows(words), 1, direction=there, method=search)
                _, last = from_hub.search(middle[:, 0], 1, direction=onward, method=search)
                right = [
                    key_side.index_to_key[row] in golds[word]
                    for row, word in zip(last[:, 0], words, strict=True)
                ]
                figures.append(round(100 * float(np.mean(right)), 2))
        study.report(f"pivot {study.options.method} through {hub}", two, figures)


def _opened(study: Study, a: str, b: str) -> tuple[Space, Direction]:
    two = (a, b) if (a, b) in study.twos else (b, a)
    return Translator.load(study.model(two)).space, "forward" if two == (a, b) else "backward"


def table(study: Study) -> None:
    """The results as Markdown, one row a way, one column a pair; the last of equal measurements counts."""
    lines = (study.work / "results.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in map(json.loads, lines):
        few = ", ".join(text.split("=")[1] for text in row["few"])
        seeds = row["seeds"] + (f", scored pair {few}" if few else "")
        found.setdefault((row["family"], seeds, row["way"]), {})[row["pair"]] = row["mean"]
    for family, languages in FAMILIES.items():
        pairs = ["-".join(two) for two in itertools.combinations(languages, 2)]
        print(
            f"\n| {family}: seeds | way | {' | '.join(pairs)} | mean |\n|---|---|{'---|' * (len(pairs) + 1)}"
        )
        for (of, seeds, way), row in sorted(found.items()):
            if of == family:
                cells = [f"{row[pair]:.1f}" if pair in row else "–" for pair in pairs]
                mean = sum(row.values()) / len(row)
                print(f"| {seeds} | {way} | {' | '.join(cells)} | {mean:.1f} |")


def main(arguments: list[str] | None = None) -> None:
    """Measure one thing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = {"direct": direct, "joint": joint, "join": joined, "pivot": pivot, "table": table}
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("way", choices=list(ways))
    parser.add_argument("--work", type=Path, required=True, help="a folder for models and results")
    parser.add_argument("--family", choices=list(FAMILIES), default="xling")
    parser.add_argument("--seeds", choices=["5k", "1k"], default="5k")
    parser.add_argument("--few", nargs="+", default=[], metavar="PAIR=1k|none")
    parser.add_argument("--pairs", nargs="+", default=[], help="of direct: only these")
    parser.add_argument("--method", default="two", help="of direct models: two, or a method of bilex")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of that method")
    parser.add_argument("--calibrate", action="store_true", help="of direct: learn confidences too")
    parser.add_argument(
        "--frequent", type=int, default=FREQUENT, help="of joint: how many words look for new pairs"
    )
    parser.add_argument("--hub", default="", help="of join and pivot: the language in the middle")
    options = parser.parse_args(arguments)
    ways[options.way](Study(options))


if __name__ == "__main__":
    main()
