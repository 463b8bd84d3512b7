"""How well what is known without a test dictionary predicts the accuracy on one.

    python -m research.without_gold DATA --work WORK judge --family xling
    python -m research.without_gold DATA --work WORK table

`judge` fits every pair of a family with every method and number of seeds, with confidences, and adds JSON
lines to WORK/without_gold.jsonl: for each direction, every measure of `bilex.evaluation.without_gold` beside
P@1 (CSLS) on XLING's test dictionary, in per cent. `table` writes, for each measure, its correlation with
that P@1, how far it is off, and how often its interval holds it; some by family, method and seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners import get_method
from bilex.evaluation import evaluate
from bilex.evaluation.without_gold import judge
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Direction
from research.many_languages import Study, parser

DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
METHODS = ("c1", "procrustes", "vecmap-supervised", "rcsls")
MEASURES = {
    "on_dictionary": "expected on a test dictionary",
    "expected": "expected",
    "expected_test": "expected, words of the test dictionary",
    "held_out": "held-out seeds",
    "predicted": "seeds predicted by the others",
    "mutual": "first answers that answer back",
}
BY_PART = ("on_dictionary", "held_out", "predicted")


def judge_models(options: argparse.Namespace) -> None:
    """Add what is known, and what is true, of the models of one family."""
    study = Study(options)
    for name in options.methods:
        for size in options.sizes:
            for two in study.language_pairs:
                if options.pairs and "-".join(two) not in options.pairs:
                    continue
                settings = study.aligner().settings() if name == "c1" else {"device": options.device}
                seeds = study.seeds({two: size})[two]
                source, target = (study.vectors[code] for code in two)
                aligner = get_method(name)(**settings)
                model = Translator(aligner).fit(source, target, seeds, languages=two, progress=False)
                for row in _rows_of(model, study.test(two)):
                    _add(study, {"method": name, "seeds": size, "pair": "-".join(two), **row})


def _rows_of(model: Translator, test: Lexicon) -> list[dict[str, Any]]:
    """What is known and what is true of a model, by direction, in per cent."""
    true = evaluate(model.space, test, bootstrap=0, precision_at=(1,))
    named = judge(model, words={direction: _covered(model, test, direction) for direction in DIRECTIONS})
    frequent = judge(model)
    rows = []
    for direction in DIRECTIONS:
        found = asdict(getattr(frequent, direction))
        found["expected_test"] = asdict(getattr(named, direction))["expected"]
        share = getattr(true, direction).metrics["csls"]["p@1"]
        known = {name: _per_cent(found[name]) for name in MEASURES}
        rows.append({"direction": direction, "true": round(100 * share, 2), **known})
    return rows


def _add(study: Study, row: dict[str, Any]) -> None:
    study.work.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"family": study.options.family, **row})
    with (study.work / "without_gold.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)


def _covered(model: Translator, test: Lexicon, direction: Direction) -> list[str]:
    """The words of a test dictionary that have a translation in the vectors."""
    query_side, key_side = model.space.sides(direction)
    pairs = test if direction == "forward" else test.swapped()
    return list(pairs.covered(query_side.key_to_index, key_side.key_to_index).translations())


def _per_cent(share: dict[str, Any] | None) -> list[float] | None:
    return None if share is None else [round(100 * share[name], 2) for name in ("share", "low", "high")]


def table(work: Path) -> None:
    """Correlation and errors of each measure, as Markdown; the last of equal measurements counts."""
    lines = (work / "without_gold.jsonl").read_text(encoding="utf-8").splitlines()
    keys = ("family", "method", "seeds", "pair", "direction")
    rows = list({tuple(row[key] for key in keys): row for row in map(json.loads, lines)}.values())
    print("| on | measure | directions | correlation | mean error | mean absolute error | interval holds |")
    print("|---|---|---|---|---|---|---|")
    _print_rows("all", rows, MEASURES)
    for key in ("family", "method", "seeds"):
        for value in sorted({row[key] for row in rows}):
            _print_rows(value, [row for row in rows if row[key] == value], BY_PART)


def _print_rows(label: str, rows: list[dict[str, Any]], measures: Iterable[str]) -> None:
    """The rows of some measures on some directions."""
    for name in measures:
        known = [row for row in rows if row[name] is not None]
        if len(known) > 1:
            print(f"| {label} | {MEASURES[name]} | {_compared(known, name)} |")


def _compared(rows: list[dict[str, Any]], name: str) -> str:
    """The cells of a row of the table."""
    true = np.array([row["true"] for row in rows])
    share, low, high = np.array([row[name] for row in rows]).T
    error = share - true
    held = int(np.sum((low <= true) & (true <= high)))
    correlation = np.corrcoef(share, true)[0, 1]
    cells = (len(rows), f"{correlation:.2f}", f"{error.mean():+.1f}", f"{np.abs(error).mean():.1f}", held)
    return " | ".join(map(str, cells))


def main(arguments: list[str] | None = None) -> None:
    """Judge models, or show the table."""
    made = parser(__doc__)
    made.add_argument("way", choices=["judge", "table"])
    made.add_argument("--methods", nargs="+", default=list(METHODS))
    made.add_argument("--sizes", nargs="+", default=["5k", "1k"])
    made.add_argument("--pairs", nargs="+", default=[], help="only these")
    options = made.parse_args(arguments)
    if options.way == "table":
        table(options.work)
    else:
        judge_models(options)


if __name__ == "__main__":
    main()
