"""How far should a round of C1 go? Held-out seeds and FreeDict along its contrastive updates.

    python -m research.rounds DATA --settings mixed/fi-it:1k en-ru:1k --freedict FREEDICT --words 10000

fits `best` with words of identical spelling (one pass) without a fifth or a tenth of the seeds, all updates
whatever the number of pairs, and prints for some updates of each round the mean reciprocal rank of the
held-out seeds and P@1 of words that are neither seeds nor in the test dictionary: FreeDict's and, with 1k
seeds, those of the 5k dictionary (CSLS, both directions, in %). DATA and settings are those of
research.never_worse.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from bilex import C1, Lexicon
from bilex.aligners.c1 import Algorithm1
from bilex.aligners.contrast import Contrast
from bilex.aligners.preparation import UnitRows
from bilex.fit.trial import hold_out, word_scores
from research.never_worse import independent, read


def along(options: argparse.Namespace, setting: str) -> list[tuple[int, float, float]]:
    """The number of updates so far, the mean reciprocal rank of held-out seeds, and P@1 of other words."""
    source, target, seeds, test = read(options.data, setting, options.words)
    places = source.key_to_index, target.key_to_index
    usable = seeds.covered(*places)
    split = hold_out(usable, 0.1, 0)
    if split is None:
        raise SystemExit(f"{setting}: too few seeds are in the vectors")
    other = independent(options.freedict, setting, test, usable)
    if setting.endswith(":1k") and not setting.startswith("sample"):
        more = read(options.data, setting.replace(":1k", ":5k"), 1)[2].without(usable, by="word")
        other = Lexicon([*other.pairs, *more.without(test, by="word").pairs])
    judged = split[1].index(*places), other.covered(*places).index(*places)
    rows = UnitRows(source, torch.device("cpu")), UnitRows(target, torch.device("cpu"))
    found: list[tuple[int, float, float]] = []
    done, step = 0, Algorithm1.update

    def watched(
        self: Algorithm1, contrast: Contrast, w_x: torch.Tensor, w_y: torch.Tensor, rate: float
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        nonlocal done
        if done % options.every == 0:
            x, y = (side.mapped(w.cpu()).numpy() for side, w in zip(rows, (w_x, w_y), strict=True))
            held, free = (np.concatenate(word_scores(x, y, pairs)) for pairs in judged)
            found.append((done, 100 * float(held.mean()), 100 * float((free == 1).mean())))
        done += 1
        return step(self, contrast, w_x, w_y, rate)

    Algorithm1.update = watched  # type: ignore[method-assign]
    try:
        C1(preset="best", spelling=True, device=options.device, size=len(usable)).fit(
            source, target, split[0]
        )
    finally:
        Algorithm1.update = step  # type: ignore[method-assign]
    return found


def main() -> None:
    """Print one line per setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--settings", nargs="+", required=True)
    parser.add_argument("--freedict", type=Path, help="a folder of FreeDict's word pairs")
    parser.add_argument("--words", type=int, default=10_000, help="of each language")
    parser.add_argument("--every", type=int, default=5, help="updates")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    for setting in options.settings:
        line = " ".join(f"{done}: {held:.1f}/{free:.1f}" for done, held, free in along(options, setting))
        print(setting, line, flush=True)


if __name__ == "__main__":
    main()
