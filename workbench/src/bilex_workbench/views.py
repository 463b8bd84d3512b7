"""How a pair looks in each view of the words: the vectors, and the language model where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex.encoders.combine import unit_rows
from bilex.model.encoder import FromEncoder
from bilex.model.space import Floats, Side
from bilex_workbench.engine import Engine
from bilex_workbench.neighbours import named, nearest, neighbours, vector_of

_SIDES: tuple[Side, Side] = ("source", "target")
_POOL = 3  # times as many words as are shown compete in the two views


def views(engine: Engine, source: str, target: str, k: int) -> list[dict[str, Any]]:
    """The neighbours of both words in each view.

    Args:
        engine: The open model.
        source: A source word of the vocabulary.
        target: A target word of the vocabulary.
        k: How many neighbours.

    Returns:
        One view; two, "vectors" and "language model", where a language model is combined with the vectors. A
        model that was retrained since has its vectors only together with the language model.
    """
    reader = next(iter(engine.translator.unknown), None)
    if reader is None or reader.kind == "subwords":
        return [_whole_space(engine, "vectors", source, target, k)]
    pools = _pools(engine, source, target, k)
    if isinstance(reader, FromEncoder):
        encoded = {side: reader.encoded(pools[side]) for side in _SIDES}
        static = {
            side: other_view(_rows(engine, pools[side], side), encoded[side], reader.mixing)
            for side in _SIDES
        }
        return [_view("vectors", pools, static, k), _view("language model", pools, encoded, k)]
    read = {side: reader.vectors(pools[side], side) for side in _SIDES}
    alone = {
        side: np.stack([np.zeros(engine.space.dim, np.float32) if row is None else row for row in read[side]])
        for side in _SIDES
    }
    together = _whole_space(engine, "vectors and language model", source, target, k)
    return [together, _view("language model", pools, alone, k)]


def other_view(combined: Floats, encoded: Floats, mixing: float) -> Floats:
    """The static unit vectors s of which (1−λ)·s + λ·e, made unit, are the combined vectors c.

    A model keeps c only. With t the length before c was made unit, t·c − λ·e has the length 1 − λ, which is a
    quadratic equation for t; its larger root is taken.

    Args:
        combined: Unit rows c.
        encoded: Unit rows e of the same words; zeros where the encoder cannot read a word, and then s is c.
        mixing: λ.
    """
    cosine = np.einsum("ij,ij->i", combined, encoded)
    inside = (mixing * cosine) ** 2 - mixing**2 + (1 - mixing) ** 2
    length = mixing * cosine + np.sqrt(np.maximum(inside, 0))
    static = length[:, None] * combined - mixing * encoded
    readable = np.asarray(encoded.any(axis=1))[:, None]
    return unit_rows(np.where(readable, static, combined))


def _whole_space(engine: Engine, name: str, source: str, target: str, k: int) -> dict[str, Any]:
    """A view of the model's own space, in which all words compete."""
    _, _, x = vector_of(engine, source, "source")
    _, _, y = vector_of(engine, target, "target")
    return {
        "name": name,
        "similarity": float(x @ y),
        "source_neighbours": neighbours(engine, source, "source", k),
        "target_neighbours": neighbours(engine, target, "target", k),
        "source_candidates": named(engine, nearest(engine, x, "target", k), "target"),
        "target_candidates": named(engine, nearest(engine, y, "source", k), "source"),
    }


def _pools(engine: Engine, source: str, target: str, k: int) -> dict[Side, list[str]]:
    """For each language the word itself, first, and the words that the whole model finds near the two."""
    own: dict[Side, str] = {"source": source, "target": target}
    pools: dict[Side, list[str]] = {}
    for wanted in _SIDES:
        near = [
            one["word"]
            for side in _SIDES
            for one in named(
                engine, nearest(engine, vector_of(engine, own[side], side)[2], wanted, _POOL * k), wanted
            )
        ]
        pools[wanted] = list(dict.fromkeys([own[wanted], *near]))
    return pools


def _rows(engine: Engine, words: list[str], side: Side) -> Floats:
    vocabulary = engine.space.source if side == "source" else engine.space.target
    return np.asarray(vocabulary.vectors[vocabulary.rows(words)], np.float32)


def _view(name: str, pools: dict[Side, list[str]], vectors: dict[Side, Floats], k: int) -> dict[str, Any]:
    """A view in which the words of the pools compete; the words themselves are the first of each."""
    x, y = vectors["source"][0], vectors["target"][0]
    return {
        "name": name,
        "similarity": float(x @ y),
        "source_neighbours": _best(pools["source"], vectors["source"], x, k, own=True),
        "target_neighbours": _best(pools["target"], vectors["target"], y, k, own=True),
        "source_candidates": _best(pools["target"], vectors["target"], x, k, own=False),
        "target_candidates": _best(pools["source"], vectors["source"], y, k, own=False),
    }


def _best(words: list[str], vectors: Floats, query: Floats, k: int, *, own: bool) -> list[dict[str, Any]]:
    near = vectors @ query
    order = [int(place) for place in np.argsort(-near, kind="stable") if not (own and place == 0)][:k]
    return [{"word": words[place], "similarity": float(near[place])} for place in order]
