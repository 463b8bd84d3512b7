"""What the experiments share: vectors that are read once, which words come out right, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.evaluation import evaluate
from bilex.lexicon import Lexicon
from bilex.space import Space
from bilex.vectors import WordVectors
from timings.packed import read_vectors

Row = dict[str, Any]
Hits = dict[str, npt.NDArray[np.bool_]]
COLUMNS = ("forward nn", "forward csls", "backward nn", "backward csls")


@cache
def vectors(data: Path, language: str, limit: int | None) -> WordVectors:
    """The vectors of a language; each process reads them once."""
    return read_vectors(data, language, limit)


def hits(space: Space, lexicon: Lexicon) -> Hits:
    """For each direction and search, which of the words asked for come out right first."""
    found = evaluate(space, lexicon, precision_at=(1,), bootstrap=0)
    sides = {"forward": found.forward.predictions, "backward": found.backward.predictions}
    return {
        column: np.array([prediction.ranks[search] == 1 for prediction in sides[side]])
        for column, (side, search) in ((column, column.split()) for column in COLUMNS)
    }


def percents(found: Hits) -> dict[str, float]:
    """P@1 in % by column."""
    return {column: round(100 * float(right.mean()), 2) for column, right in found.items()}


def lead(ours: Hits, theirs: Hits) -> dict[str, list[float]]:
    """By search, how many points more of the same words are right, mean of both directions, and ± (95 %).

    Both directions ask for the same meanings; the interval takes them as wholly dependent, so it is
    rather too wide than too narrow.
    """
    result = {}
    for search in ("nn", "csls"):
        differences = [
            ours[column].astype(float) - theirs[column] for column in COLUMNS if column.endswith(f" {search}")
        ]
        errors = [float(d.std() / np.sqrt(len(d))) for d in differences]
        mean = float(np.mean([d.mean() for d in differences]))
        result[search] = [round(100 * mean, 2), round(196 * float(np.mean(errors)), 2)]
    return result


def both_ways(figures: dict[str, float], search: str) -> str:
    """The mean of the two directions' P@1, for a table."""
    return f"{(figures[f'forward {search}'] + figures[f'backward {search}']) / 2:.1f}"


def signed(difference: Sequence[float]) -> str:
    """A difference and its uncertainty, for a table."""
    return f"{difference[0]:+.1f} ± {difference[1]:.1f}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
