"""How timings report accuracy."""

from __future__ import annotations

from bilex.evaluation import evaluate
from bilex.lexicon import Lexicon
from bilex.model.space import Space


def four_metrics(space: Space, lexicon: Lexicon) -> list[float]:
    """P@1 in %: forward nearest neighbour and CSLS, backward likewise."""
    scores = evaluate(space, lexicon, bootstrap=0).as_dict()
    return [
        round(100 * scores[direction][search]["p@1"], 2)
        for direction in ("forward", "backward")
        for search in ("nn", "csls")
    ]
