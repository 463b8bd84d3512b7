"""How well what is known without a test dictionary predicts the accuracy on one.

    python -m timings.many_languages DATA --work WORK direct --family xling --seeds 5k --calibrate
    python -m timings.without_gold DATA --work WORK judge --family xling --seeds 5k
    python -m timings.without_gold DATA --work WORK table

`judge` reads the models that `timings.many_languages direct` left in WORK and adds JSON lines to
WORK/without_gold.jsonl for those that are not in it yet: for each direction, every measure of
`bilex.evaluation.without_gold` beside P@1 (CSLS) on XLING's test dictionary, in per cent. `table` writes, for
each measure, its correlation with that P@1, how far it is off, and how often its interval holds it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bilex.evaluation import evaluate
from bilex.evaluation.without_gold import judge
from bilex.lexicon import Lexicon
from bilex.space import Direction
from bilex.translator import Translator
from timings.many_languages import FAMILIES, Study

DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
MEASURES = {
    "expected": "expected, frequent words",
    "expected_test": "expected, words of the test dictionary",
    "held_out": "held-out seeds",
    "predicted": "seeds predicted by the others",
    "mutual": "first answers that answer back",
}


def judge_models(options: argparse.Namespace) -> None:
    """Add what is known, and what is true, of the models of one family and number of seeds."""
    study = Study(options)
    done = {(row["family"], row["seeds"], row["pair"]) for row in _rows(options.work)}
    for two in study.twos:
        if (options.family, options.seeds, "-".join(two)) in done:
            continue
        model = Translator.load(study.model(two))
        test = study.dictionary(two, "test.freq.2k")
        true = evaluate(model.space, test, bootstrap=0, precision_at=(1,))
        known = {direction: _covered(model, test, direction) for direction in DIRECTIONS}
        named = judge(model, words=known)
        frequent = judge(model)
        for direction in DIRECTIONS:
            found = asdict(getattr(frequent, direction))
            found["expected_test"] = asdict(getattr(named, direction))["expected"]
            share = getattr(true, direction).figures["csls"]["p@1"]
            row = {
                "family": options.family,
                "seeds": options.seeds,
                "pair": "-".join(two),
                "direction": direction,
                "true": round(100 * share, 2),
                **{name: _per_cent(found[name]) for name in MEASURES},
            }
            with (study.work / "without_gold.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


def _rows(work: Path) -> list[dict[str, Any]]:
    """What was measured so far."""
    path = work / "without_gold.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def _covered(model: Translator, test: Lexicon, direction: Direction) -> list[str]:
    """The words of a test dictionary that have a translation in the vectors."""
    query_side, key_side = model.space.sides(direction)
    pairs = test if direction == "forward" else test.swapped()
    return list(pairs.covered(query_side.key_to_index, key_side.key_to_index).golds())


def _per_cent(share: dict[str, Any] | None) -> list[float] | None:
    return None if share is None else [round(100 * share[name], 2) for name in ("share", "low", "high")]


def table(options: argparse.Namespace) -> None:
    """Correlation and errors of each measure, as Markdown."""
    rows = list(
        {(r["family"], r["seeds"], r["pair"], r["direction"]): r for r in _rows(options.work)}.values()
    )
    print("| measure | directions | correlation | mean error | mean absolute error | spread | in interval |")
    print("|---|---|---|---|---|---|---|")
    for name, label in MEASURES.items():
        kept = [row for row in rows if row[name] is not None]
        true = np.array([row["true"] for row in kept])
        found = np.array([row[name][0] for row in kept])
        inside = np.mean([row[name][1] <= row["true"] <= row[name][2] for row in kept])
        error = found - true
        print(
            f"| {label} | {len(kept)} | {np.corrcoef(found, true)[0, 1]:.2f} | {error.mean():+.1f} "
            f"| {np.abs(error).mean():.1f} | {error.std():.1f} | {inside:.0%} |"
        )


def main(arguments: list[str] | None = None) -> None:
    """Judge models, or show the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("what", choices=["judge", "table"])
    parser.add_argument("--work", type=Path, required=True, help="the folder with the models")
    parser.add_argument("--family", choices=list(FAMILIES), default="xling")
    parser.add_argument("--seeds", choices=["5k", "1k"], default="5k")
    parser.add_argument("--method", default="two", help="the method of the models")
    options = parser.parse_args(arguments)
    if options.what == "judge":
        judge_models(options)
    else:
        table(options)


if __name__ == "__main__":
    main()
