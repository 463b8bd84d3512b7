"""Translations, neighbours in both languages and in each view, and a map of the neighbourhood."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from bilex.model.answers import closest_spellings
from bilex.model.space import Direction, Floats, Retrieval, Side
from bilex_workbench.engine import Engine
from bilex_workbench.problems import LONGEST_WORD, ProblemError

_DEEPEST_RANK = 100
_SIDES: tuple[Side, Side] = ("source", "target")


async def translations(
    engine: Engine, word: str, direction: Direction, k: int, retrieval: Retrieval
) -> dict[str, Any]:
    """What `GET /api/translate` answers: the best translations, or closest spellings of an unknown word."""
    answer = await engine.answer(word, k, direction, retrieval)
    row = engine.row(word, direction)
    return {
        "word": word,
        "origin": answer.origin,
        "rank": None if row is None else row + 1,
        "translations": [vars(found) for found in answer],
        "suggestions": [] if answer.known else await run_in_threadpool(lambda: answer.suggestions),
    }


def why(engine: Engine, source: str, target: str, k: int) -> dict[str, Any]:
    """All that speaks for and against a pair."""
    source, source_row, x = vector_of(engine, source, "source")
    target, target_row, y = vector_of(engine, target, "target")
    engine.open_encoder()
    forward = engine.translate(source, _DEEPEST_RANK)
    backward = engine.translate(target, _DEEPEST_RANK, "backward")
    place = _place([t.word for t in forward], target)
    back = _place([t.word for t in backward], source)
    shown = forward[place - 1] if place else None
    score = engine.space.scores(np.array([source_row]), np.array([target_row]))[0]
    return {
        "source": {"word": source, "rank": source_row + 1},
        "target": {"word": target, "rank": target_row + 1},
        "score": float(score),
        "similarity": float(x @ y),
        "confidence": shown.confidence if shown else None,
        "known": bool(shown and shown.known),
        "rank_of_target": place,
        "rank_of_source": back,
        "mutual": place == 1 and back == 1,
        "views": views(engine, source, target, k),
    }


def _place(words: list[str], wanted: str) -> int | None:
    return words.index(wanted) + 1 if wanted in words else None


def neighbourhood_map(engine: Engine, word: str, direction: Direction, k: int) -> dict[str, Any]:
    """A word, its nearest words in both languages, and their places in two dimensions.

    The places are the two main directions of the words' vectors (principal components), so that words that
    are near in the space are near on the map as far as two dimensions can show it.
    """
    side: Side = "source" if direction == "forward" else "target"
    word, row, vector = vector_of(engine, word, side)
    found: dict[Side, list[int]] = {}
    for language in _SIDES:
        rows = [near for near, _ in nearest(engine, vector, language, k)]
        found[language] = [row, *(r for r in rows if r != row)][:k] if language == side else rows
    source = np.array(engine.space.source.vectors[found["source"]], np.float32)
    target = np.array(engine.space.target.vectors[found["target"]], np.float32)
    places = _two_dimensions(np.concatenate([source, target]))
    points: list[dict[str, Any]] = []
    for language in _SIDES:
        words = (engine.space.source if language == "source" else engine.space.target).index_to_key
        for at in found[language]:
            number = len(points)
            points.append(
                {
                    "id": number,
                    "word": words[at],
                    "language": language,
                    "x": float(places[number, 0]),
                    "y": float(places[number, 1]),
                    "rank": at + 1,
                    "query": language == side and at == row,
                }
            )
    return {"word": word, "direction": direction, "points": points, "lines": _lines(engine, found)}


def _lines(engine: Engine, found: dict[Side, list[int]]) -> list[dict[str, Any]]:
    """Each source word with its best translation among the points, by CSLS."""
    sources, targets = np.array(found["source"]), np.array(found["target"])
    grid = engine.space.scores(np.repeat(sources, len(targets)), np.tile(targets, len(sources)))
    grid = grid.reshape(len(sources), len(targets))
    best = grid.argmax(axis=1)
    return [
        {"from": number, "to": len(sources) + int(best[number]), "score": float(grid[number, best[number]])}
        for number in range(len(sources))
    ]


def _two_dimensions(vectors: Floats) -> Floats:
    """The first two principal components, within −1 and 1."""
    centred = vectors - vectors.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(vectors), 2), np.float32)
    width = min(2, len(s))
    places[:, :width] = (u * s)[:, :width]
    largest = float(np.abs(places).max())
    return places / largest if largest else places


def suggest(engine: Engine, text: str, direction: Direction, k: int) -> dict[str, Any]:
    """Words that begin with a text, and closest spellings where it is no word itself."""
    typed = text.lower() if engine.translator.lowercase else text
    known = engine.row(text, direction) is not None
    vocabulary = engine.space.sides(direction)[0].index_to_key
    completions = engine.completions(direction)(typed, k) if typed else []
    # Comparing spellings takes longest, and who has typed the beginning of many words needs none.
    spellings = [] if known or not text or len(completions) >= k else closest_spellings(typed, vocabulary, k)
    return {
        "word": text,
        "known": known,
        "completions": completions,
        "spellings": [word for word in spellings if len(word) <= LONGEST_WORD],
    }


def vector_of(engine: Engine, word: str, side: Side) -> tuple[str, int, Floats]:
    """A word as its vocabulary spells it, its row, and its vector."""
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


_POOL = 3  # times as many words as are shown compete in the two views


def views(engine: Engine, source: str, target: str, k: int) -> list[dict[str, Any]]:
    """The neighbours of both words in each view."""
    from bilex.model.encoder import FromEncoder  # brings scipy, which the first page need not wait for

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
    """
    from bilex.encoders.combine import unit_rows

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
