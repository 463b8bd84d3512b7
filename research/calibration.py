"""How far confidences and the expected accuracy are off on test dictionaries, over three families of vectors.

    python -m research.calibration DATA --pairs en-ru europarl/it-fr sample --seeds 5k --methods procrustes

A word that is a seed has a known answer and no confidence, so that it is left out of the calibration error
(ECE). "by chance" is the ECE of exactly true confidences on as many words. The expected accuracy is compared
with P@1 over all words of the test dictionary. Test dictionaries serve this table only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bilex import Lexicon, Translator, WordVectors, get_method
from bilex.data import sample_path
from bilex.fit.calibration import DIRECTIONS, error_by_chance, expected_calibration_error
from research.packed import read_dictionary, read_vectors

Problem = tuple[WordVectors, WordVectors, Lexicon, Lexicon]


def read(data: Path, pair: str, seeds: str, limit: int) -> Problem:
    """Vectors, seeds and test dictionary of "en-ru", "europarl/it-fr" or "sample"."""
    if pair == "sample":
        folder = sample_path()
        source, target = (WordVectors.load(folder / language) for language in ("en", "fi"))
        return source, target, Lexicon.load(folder / "seeds.tsv"), Lexicon.load(folder / "test.tsv")
    family, _, two = pair.rpartition("/")
    source, target = (read_vectors(data / family, language, limit) for language in two.split("-"))
    train, test = (read_dictionary(data, two, name) for name in (f"train.freq.{seeds}", "test.freq.2k"))
    return source, target, train, test


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line for each model and direction, and the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", nargs="+", default=["en-ru", "en-fr", "europarl/it-fr", "sample"])
    parser.add_argument("--methods", nargs="+", default=["procrustes"])
    parser.add_argument("--seeds", nargs="+", choices=["1k", "5k"], default=["5k"])
    parser.add_argument("--limit", type=int, default=40_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    rows = []
    print(
        "model                               direction words   ECE chance  bias |  P@1 expected    from  to"
    )
    for pair in options.pairs:
        for seeds in options.seeds[: 1 if pair == "sample" else None]:
            source, target, train, test = read(options.data, pair, seeds, options.limit)
            for method in options.methods:
                aligner = get_method(method)(device=options.device)
                translator = Translator(aligner).fit(source, target, train, progress=False)
                rows += _measure(translator, test, f"{pair} {seeds} {method}")
    for number, direction in enumerate(DIRECTIONS):
        error, chance, bias, held = np.mean(rows[number::2], axis=0)
        print(f"{direction}: ECE {error:.3f}, by chance {chance:.3f}, |bias| {bias:.3f}, in range {held:.0%}")
    return 0


def _measure(translator: Translator, test: Lexicon, name: str) -> list[tuple[float, float, float, float]]:
    """ECE, that by chance, the bias, and whether P@1 lies in the expected range, by direction."""
    rows = []
    found = translator.evaluate(test.without(translator.seeds), bootstrap=0)
    for direction in DIRECTIONS:
        query_side, key_side = translator.space.sides(direction)
        pairs = test if direction == "forward" else test.swapped()
        known = translator.seeds if direction == "forward" else translator.seeds.swapped()
        new = pairs.without(known, by="source")
        golds = new.covered(query_side.key_to_index, key_side.key_to_index).translations()
        answers = translator.translate(golds, 1, direction=direction)
        sure = np.array([answer[0].confidence for answer in answers], np.float64)
        right = np.array([answer[0].word in golds[answer.word] for answer in answers])
        error, chance = expected_calibration_error(sure, right), error_by_chance(sure, draws=50)
        bias, true = float(sure.mean() - right.mean()), getattr(found, direction).csls.p_at_1
        share, low, high = translator.provenance.expectation.of(direction)
        numbers = f"{len(golds):5} {error:5.3f}  {chance:5.3f} {bias:+5.2f}"
        expected = f"{true:5.1%} {share:5.1%} {low:5.1%} {high:5.1%}"
        print(f"{name:35} {direction:9} {numbers} | {expected}", flush=True)
        rows.append((error, chance, abs(bias), float(low <= true <= high)))
    return rows


if __name__ == "__main__":
    sys.exit(main())
