"""λ = auto against fixed λ, on cut vocabularies.

    python -m research.mixing DATA --freedict FREEDICT --out research/results/mixing.jsonl

For each setting (FAMILY/PAIR:SEEDS, as in research.never_worse), a fit with λ = auto, and P@1 with fixed λ in
the same space: the mean of nearest neighbours and CSLS, forward and backward. Two kinds of words that are no
seeds are judged: those of the test dictionary, and others (of the 5k training dictionary and of FreeDict,
`python -m research.freedict`). One JSON line per case, with the reciprocal ranks of the held-out words under
each λ, so that `choose_mixing` can be judged again without a fit; cases in the file are left out. At the end,
the table of all cases is printed. `python -m research.limits` judges the file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bilex import C1
from bilex.encoders.settings import C2
from bilex.fit import fit, trial
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from research.limits import mixings
from research.never_worse import independent, read
from research.packed import read_dictionary

SETTINGS = tuple(
    f"{pair}:{size}"
    for size in ("1k", "5k")
    for pair in (
        "mixed/en-it", "en-fi", "europarl/de-it", "en-ru", "mixed/en-de", "europarl/it-fr", "fi-fr", "sample",
        "mixed/fi-it",
    )
)  # fmt: skip
GRID = tuple(round(0.05 * step, 2) for step in range(17))


def p_at_1(space: Space, pairs: np.ndarray) -> float:
    """P@1 in %: the mean of both directions, by nearest neighbours and CSLS."""
    found = []
    for direction, both in (("forward", pairs), ("backward", pairs[:, ::-1])):
        translations: dict[int, set[int]] = {}
        for query, answer in both.tolist():
            translations.setdefault(query, set()).add(answer)
        queries = np.array(list(translations), np.int64)
        for retrieval in ("nn", "csls"):
            first = space.search(queries, 1, direction=direction, retrieval=retrieval)[1][:, 0]  # type: ignore[arg-type]
            right = [
                row in translations[query] for query, row in zip(translations, first.tolist(), strict=True)
            ]
            found.append(100 * float(np.mean(right)))
    return float(np.mean(found))


def case(options: argparse.Namespace, setting: str) -> dict[str, object]:
    """Fit one setting with λ = auto, and score fixed λ."""
    source, target, seeds, test = read(options.data, setting, options.words)
    others = [independent(options.freedict, setting)]
    if not setting.startswith("sample"):
        pair = setting.partition(":")[0].rpartition("/")[2]
        others.append(read_dictionary(options.data, pair, "train.freq.5k"))
    other = Lexicon([pair for one in others for pair in one.pairs]).without(test, "word")
    places = source.key_to_index, target.key_to_index
    judged = {
        kind: pairs.without(seeds, "word").covered(*places)
        for kind, pairs in (("test", test), ("other", other))
    }
    curves: list[Mapping[float, np.ndarray]] = []
    chosen = trial.choose_mixing

    def remembered(curve: Mapping[float, np.ndarray], prior: float) -> float:
        curves.append(curve)
        return chosen(curve, prior)

    trial.choose_mixing = remembered
    encoder = C2(options.lm, preset=options.tuning, cache=options.cache)
    try:
        result = fit(C1(device=options.device), source, target, seeds, encoder=encoder, calibrate=False)
    finally:
        trial.choose_mixing = chosen
    assert result.stage is not None
    found = result.report.trial
    fixed: dict[str, dict[str, float]] = {kind: {} for kind, pairs in judged.items() if len(pairs)}
    for mixing in GRID:
        space = Space(*result.stage.mixed(mixing))
        for kind, scores in fixed.items():
            scores[str(mixing)] = round(p_at_1(space, judged[kind].index(*places)), 2)
    return {
        "setting": setting,
        "tuning": options.tuning,
        "held out": found.held_out_words,
        "words": {kind: len(pairs.translations()) for kind, pairs in judged.items()},
        "fixed": fixed,
        "curve": {str(mixing): np.round(words, 3).tolist() for mixing, words in curves[0].items()},
    }


def main(arguments: list[str] | None = None) -> None:
    """Go through the settings, write one JSON line each, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="where encodings are kept")
    parser.add_argument("--freedict", type=Path, help="a folder of FreeDict's word pairs")
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    parser.add_argument("--words", type=int, default=10_000, help="of each language")
    parser.add_argument("--lm", default="e5-small-q4")
    parser.add_argument("--tuning", default="demo", choices=["paper", "light", "demo"])
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    done = set()
    if options.out.exists():
        stored = map(json.loads, options.out.read_text(encoding="utf-8").splitlines())
        done = {row["setting"] for row in stored if row["tuning"] == options.tuning}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for setting in options.settings:
        if setting not in done:
            row = case(options, setting)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print("| setting | tuning | words | λ taken | auto | best fixed λ | without the language model |")
    for line in options.out.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        taken, own, best, place, none = mixings(row)
        words = sum(row["words"].values())
        scores = f"{taken} | {own:.1f} | {best:.1f} ({place}) | {none:.1f}"
        print(f"| {row['setting']} | {row['tuning']} | {words:,} | {scores} |")


if __name__ == "__main__":
    main()
