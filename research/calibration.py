"""Whether confidences are true: their error on held-out seeds beside their error on test dictionaries.

    python -m research.calibration DATA_FOLDER [--pairs en-ru en-fi] [--method procrustes] [--limit 40000]

The confidences are learned on held-out seeds; the test dictionary is only looked at here, to judge them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bilex import Lexicon, Translator, WordVectors, get_method
from bilex.fit.calibration import DIRECTIONS, RETRIEVALS
from bilex.fit.logistic import error_by_chance, expected_calibration_error


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line for each pair, direction and retrieval."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", nargs="+", default=["en-ru", "en-fi", "en-fr"])
    parser.add_argument("--method", default="procrustes")
    parser.add_argument("--seeds", choices=["1k", "5k"], default="5k")
    parser.add_argument("--limit", type=int, default=40_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    print(
        "pair   direction search | held out: words   ECE chance | test: words   ECE chance   P@1  confidence"
    )
    with tempfile.TemporaryDirectory() as folder:
        languages = sorted({language for pair in options.pairs for language in pair.split("-")})
        limit = ["--limit", str(options.limit)]
        unpack = [sys.executable, str(options.data / "unpack_vectors"), folder, *limit, "--langs", *languages]
        subprocess.run(unpack, check=True, stdout=subprocess.DEVNULL)
        for pair in options.pairs:
            _measure(Path(folder), pair, options)
    return 0


def _measure(folder: Path, pair: str, options: argparse.Namespace) -> None:
    source, target = (WordVectors.load(folder / f"{language}.npy") for language in pair.split("-"))
    dictionaries = options.data / "dictionaries" / "xling" / pair
    seeds = Lexicon.load(dictionaries / f"yacle.train.freq.{options.seeds}.{pair}.tsv")
    test = Lexicon.load(dictionaries / f"yacle.test.freq.2k.{pair}.tsv").without(seeds)
    aligner = get_method(options.method)(device=options.device)
    translator = Translator(aligner).fit(source, target, seeds)
    for direction in DIRECTIONS:
        query_side, key_side = translator.space.sides(direction)
        pairs = test if direction == "forward" else test.swapped()
        golds = pairs.covered(query_side.key_to_index, key_side.key_to_index).translations()
        for method in RETRIEVALS:
            answers = translator.translate(golds, 1, direction=direction, retrieval=method)
            stated = np.array([answer[0].confidence for answer in answers], np.float64)
            right = np.array([answer[0].word in golds[answer.word] for answer in answers])
            part = translator.calibration.parts[direction, method]
            held_out = f"{part.words:15} {part.error:5.3f}  {part.error_by_chance:5.3f}"
            errors = f"{expected_calibration_error(stated, right):5.3f}  {error_by_chance(stated):5.3f}"
            tested = f"{len(golds):11} {errors} {right.mean():6.1%} {stated.mean():6.1%}"
            print(f"{pair:6} {direction:9} {method:6} | {held_out} | {tested}")


if __name__ == "__main__":
    sys.exit(main())
