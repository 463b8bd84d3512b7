"""Translations, why they were found (neighbours in both languages), and a map of the neighbourhood."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from bilex.model.answers import closest_spellings
from bilex.model.space import Direction, Floats, Retrieval, Side
from bilex_workbench.engine import Engine
from bilex_workbench.neighbours import nearest, vector_of
from bilex_workbench.problems import LONGEST_WORD

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
    """All that speaks for and against a pair.

    Args:
        engine: The open model.
        source: A source word.
        target: A target word.
        k: How many neighbours.
    """
    from bilex_workbench.views import views  # brings scipy, which the first page need not wait for

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

    Args:
        engine: The open model.
        word: The word in the middle.
        direction: "forward" for a source word, "backward" for a target word.
        k: How many words of each language.
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
