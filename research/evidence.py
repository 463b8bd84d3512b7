"""Is what the trial chooses right? Its form of C1 against each by name, its λ against every fixed one.

    python -m research.evidence DATA --settings fi-ru:5k europarl/de-it:1k --forms paper best careful auto
    python -m research.evidence DATA --settings all --forms auto --lm e5-small-q4 --out c2.jsonl
    python -m research.evidence DATA --settings fi-ru:0 fi-ru:50 en-ru:0 --forms paper auto

A setting is a pair and how many seeds: 5k or 1k (the files of XLING), or a number (so many of the 5k file,
the most frequent first; 0 for none). Each line is one whole fit through `bilex.fit.fit`, as `bilex align`
does it: P@1 on the test dictionary (forward NN, CSLS; backward NN, CSLS), the mean, the seconds of the whole
fit and of the trial in it, what was chosen. Confidences are learned where the form is auto, as by default;
a form by name is fitted alone. With --lm also the mean for every fixed λ, from the same tuned encoder.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from bilex.aligners.c1 import C1
from bilex.encoders.settings import C2
from bilex.fit import FitResult, fit
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from research.packed import PAIRS, read_dictionary, read_vectors
from research.scoring import four_metrics

EUROPARL = ("de-it", "de-fr", "it-fr")
ALL = [
    f"{pair}:{seeds}"
    for pair in (*PAIRS, *(f"europarl/{pair}" for pair in EUROPARL))
    for seeds in ("5k", "1k")
]
MIXINGS = tuple(round(0.1 * step, 1) for step in range(9))


def seeds_of(data: Path, pair: str, size: str) -> Lexicon | None:
    """The seeds of a setting."""
    if size in ("5k", "1k"):
        return read_dictionary(data, pair, f"train.freq.{size}")
    pairs = read_dictionary(data, pair, "train.freq.5k").pairs
    return Lexicon(pairs[: int(size)], f"{size} seeds") if int(size) else None


class Problem(NamedTuple):
    """Two vocabularies, seeds and a test dictionary."""

    source: WordVectors
    target: WordVectors
    seeds: Lexicon | None
    test: Lexicon


def read_problem(data: Path, setting: str, limit: int | None = None) -> Problem:
    """What a setting such as fi-ru:5k or europarl/de-it:0 names.

    Args:
        data: The folder with vectors/, europarl/ and dictionaries/.
        setting: The family if it is not the first, the pair and how many seeds.
        limit: Only so many of the most frequent words of each language.
    """
    place, _, size = setting.partition(":")
    family, _, pair = place.rpartition("/")
    source, target = (read_vectors(data / family, language, limit) for language in pair.split("-"))
    return Problem(source, target, seeds_of(data, pair, size), read_dictionary(data, pair, "test.freq.2k"))


def rows(options: argparse.Namespace, setting: str) -> Iterator[dict[str, Any]]:
    """One row a form."""
    source, target, seeds, test = read_problem(options.data, setting, options.limit)
    for form in options.forms:
        aligner = C1(preset=form, device=options.device)
        encoder = None if options.lm is None else C2(options.lm)
        calibrate = form == "auto" and seeds is not None
        started = time.perf_counter()
        fitted = fit(aligner, source, target, seeds, encoder=encoder, calibrate=calibrate)
        seconds = time.perf_counter() - started
        yield {
            "setting": setting,
            "form": form,
            **measured(fitted, test),
            "seconds": round(seconds, 2),
            **decided(fitted),
            **({} if options.lm is None else {"fixed": fixed_mixings(fitted, test, options.device)}),
        }


def measured(fitted: FitResult, test: Lexicon) -> dict[str, Any]:
    """P@1 of a fit."""
    metrics = four_metrics(fitted.space, test)
    return {"p@1": metrics, "mean": round(mean(metrics), 2)}


def decided(fitted: FitResult) -> dict[str, Any]:
    """What the trial says of itself."""
    trial = fitted.report.trial
    return {} if trial is None else {"trial": trial.as_dict()}


def fixed_mixings(fitted: FitResult, test: Lexicon, device: str) -> dict[str, float]:
    """The mean P@1 for each fixed λ."""
    if fitted.stage is None:
        return {}
    return {
        str(mixing): round(mean(four_metrics(Space(*fitted.stage.mixed(mixing), device=device), test)), 2)
        for mixing in MIXINGS
    }


def main(arguments: list[str] | None = None) -> None:
    """Print one JSON line a fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/, europarl/ and dictionaries/")
    parser.add_argument(
        "--settings", nargs="+", default=["all"], help="as fi-ru:5k; all for the 18 of both families"
    )
    parser.add_argument("--forms", nargs="+", default=["paper", "best", "careful", "auto"])
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument("--lm", help="a language model for stage C2")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="add each line to this file as well")
    options = parser.parse_args(arguments)
    for setting in ALL if options.settings == ["all"] else options.settings:
        for row in rows(options, setting):
            line = json.dumps(row, ensure_ascii=False)
            print(line, flush=True)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
