"""λ = auto against fixed λ, on cut vocabularies.

    python -m research.mixing DATA --out research/results/mixing.jsonl --cache CACHE

For each setting (FAMILY/PAIR:SEEDS, as in research.never_worse) and aligner, a fit with λ = auto, and P@1
with fixed λ in the same space: the mean of nearest neighbours and CSLS, forward and backward, over the words
of the 5k training and the test dictionary that are no seeds. By default the language model is not tuned,
which takes minutes on a CPU; `--tune` tunes it. One JSON line per case; cases in the file are left out.
`python -m research.limits` judges the file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from bilex.aligners import get_method
from bilex.encoders.settings import C2
from bilex.fit import fit
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from research.never_worse import read
from research.packed import read_dictionary

SETTINGS = tuple(
    f"{pair}:{size}"
    for size in ("1k", "5k")
    for pair in ("en-fi", "europarl/de-it", "mixed/en-it", "en-ru", "europarl/it-fr", "mixed/en-de", "fi-ru")
)
GRID = tuple(round(0.1 * step, 1) for step in range(1, 8))


def p_at_1(space: Space, pairs: np.ndarray) -> float:
    """P@1 in %: the mean of both directions, by nearest neighbours and CSLS."""
    found = []
    for direction, both in (("forward", pairs), ("backward", pairs[:, ::-1])):
        golds: dict[int, set[int]] = {}
        for query, answer in both.tolist():
            golds.setdefault(query, set()).add(answer)
        queries = np.array(list(golds), np.int64)
        for retrieval in ("nn", "csls"):
            first = space.search(queries, 1, direction=direction, retrieval=retrieval)[1][:, 0]  # type: ignore[arg-type]
            right = [row in golds[query] for query, row in zip(golds, first.tolist(), strict=True)]
            found.append(100 * float(np.mean(right)))
    return float(np.mean(found))


def main(arguments: list[str] | None = None) -> None:
    """Fit each setting once, and score auto and the fixed λ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="where encodings are kept")
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    parser.add_argument("--aligners", nargs="+", default=["advanced"], help='such as "advanced" or "c1"')
    parser.add_argument("--words", type=int, default=5_000, help="of each language")
    parser.add_argument("--lm", default="e5-small-q4")
    parser.add_argument("--tune", action="store_true")
    options = parser.parse_args(arguments)
    done = set()
    if options.out.exists():
        lines = options.out.read_text(encoding="utf-8").splitlines()
        done = {(row["setting"], row["aligner"], row["tuned"]) for row in map(json.loads, lines)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for aligner in options.aligners:
        for setting in options.settings:
            if (setting, aligner, options.tune) in done:
                continue
            source, target, seeds, test = read(options.data, setting, options.words)
            pair = setting.partition(":")[0].rpartition("/")[2]
            more = read_dictionary(options.data, pair, "train.freq.5k")
            judged = Lexicon([*more.pairs, *test.pairs]).without(seeds, "word")
            judged = judged.covered(source.key_to_index, target.key_to_index)
            if not len(judged):
                print(f"{setting}: no words are left to judge by; raise --words", flush=True)
                continue
            encoder = C2(options.lm, tune=options.tune, preset="demo", cache=options.cache)
            result = fit(get_method(aligner)(), source, target, seeds, encoder=encoder, calibrate=False)
            assert result.stage is not None and result.report.trial is not None
            pairs = judged.index(source.key_to_index, target.key_to_index)
            fixed = {
                str(mixing): round(p_at_1(Space(*result.stage.mixed(mixing)), pairs), 2) for mixing in GRID
            }
            trial = result.report.trial
            row = {
                "setting": setting,
                "aligner": aligner,
                "tuned": options.tune,
                "words": len(judged.translations()),
                "held out": trial.held_out_words,
                "mixing": trial.mixing,
                "auto": round(p_at_1(result.space, pairs), 2),
                "fixed": fixed,
                "scores": trial.mixing_scores,
            }
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
