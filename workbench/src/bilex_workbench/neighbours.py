"""Words near a word or a vector, in either language."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex.model.space import Floats, Side
from bilex_workbench.engine import Engine
from bilex_workbench.problems import LONGEST_WORD, ProblemError


def vector_of(engine: Engine, word: str, side: Side) -> tuple[str, int, Floats]:
    """A word as its vocabulary spells it, its row, and its vector.

    Raises:
        ProblemError: It has none.
    """
    row = engine.row(word, "forward" if side == "source" else "backward")
    if row is None:
        raise ProblemError(404, f"'{word[:100]}' is not in the {side} vocabulary.")
    words = engine.space.source if side == "source" else engine.space.target
    return words.index_to_key[row], row, np.array(words.vectors[row], np.float32)


def nearest(engine: Engine, vector: Floats, side: Side, k: int) -> list[tuple[int, float]]:
    """The rows of one language nearest to a vector, with their similarity."""
    scores, rows = engine.space.keys[side].top_k(np.ascontiguousarray(vector[None]), k, penalised=False)
    return list(zip(rows[0].tolist(), scores[0].tolist(), strict=True))


def neighbours(engine: Engine, word: str, side: Side, k: int) -> list[dict[str, Any]]:
    """The nearest other words of a word's own language."""
    _, own, vector = vector_of(engine, word, side)
    return named(
        engine, [(row, near) for row, near in nearest(engine, vector, side, k + 1) if row != own][:k], side
    )


def named(engine: Engine, found: list[tuple[int, float]], side: Side) -> list[dict[str, Any]]:
    """Rows with their words instead of their numbers; words too long to show are left out."""
    words = (engine.space.source if side == "source" else engine.space.target).index_to_key
    return [
        {"word": words[row], "similarity": near} for row, near in found if len(words[row]) <= LONGEST_WORD
    ]
