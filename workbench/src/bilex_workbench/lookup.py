"""The model: what it is, translations, spellings, neighbours in each view, and a map of the neighbourhood."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

import bilex
from bilex.model.answers import Translation, closest_spellings
from bilex.model.space import Direction, Floats, Retrieval, Side
from bilex_workbench import interface as api
from bilex_workbench.engine import QUERIES, Engine, ServedSpace
from bilex_workbench.state import Bench, ModelAnswer, WatchedBench

router = APIRouter(tags=["look"])
_DEEPEST_RANK = 100
_POOL = 3  # times as many words as are shown compete in the two views
Way = Annotated[Direction, Query()]
_SIDES: tuple[Side, Side] = ("source", "target")


class TranslationAnswer(Translation):
    """A translation of a word."""

    __pydantic_config__: ClassVar[Any] = api.ANSWERED


class RankedWord(api.Answer):
    """A word and its rank."""

    word: str
    rank: int


class NearWord(api.Answer):
    """A word and how similar it is."""

    word: str
    similarity: float


class ViewAnswer(api.Answer):
    """The neighbours of both words in one view."""

    name: str
    similarity: float
    source_neighbours: list[NearWord]
    target_neighbours: list[NearWord]
    source_candidates: list[NearWord]
    target_candidates: list[NearWord]


class WhyAnswer(api.Answer):
    """What speaks for a pair."""

    source: RankedWord
    target: RankedWord
    score: float
    similarity: float
    confidence: float | None
    known: bool
    rank_of_target: int | None
    rank_of_source: int | None
    mutual: bool
    views: list[ViewAnswer]


class Point(api.Answer):
    """A word on the map."""

    id: int
    word: str
    language: Side
    x: float
    y: float
    rank: int
    query: bool


class Line(api.Answer):
    """From a source word to its best translation on the map."""

    model_config = ConfigDict(populate_by_name=True)
    start: int = Field(alias="from")
    to: int
    score: float


Health = api.answer(
    "Health",
    status=Literal["ok"],
    version=str,
    model=Literal["none", "loading", "ready", "failed"],
    ready=bool,
)
TranslateAnswer = api.answer(
    "TranslateAnswer",
    word=str,
    origin=str | None,
    rank=int | None,
    translations=list[TranslationAnswer],
    suggestions=list[str],
)
SuggestAnswer = api.answer("SuggestAnswer", word=str, known=bool, completions=list[str], spellings=list[str])
MapAnswer = api.answer("MapAnswer", word=str, direction=Direction, points=list[Point], lines=list[Line])


@router.get("/api/health", response_model=Health)
async def health(bench: WatchedBench) -> Any:
    """Whether the server runs and a model is open; needs no token."""
    ready = bench.state == "ready"
    return {"status": "ok", "version": bilex.__version__, "model": bench.state, "ready": ready}


@router.get("/api/model")
def model(bench: WatchedBench) -> ModelAnswer:
    """The model that is open, and how far its table is filled."""
    return bench.describe()


@router.get("/api/translate", response_model=TranslateAnswer)
async def translate(
    bench: Bench,
    word: api.WordQuery,
    direction: Way = "forward",
    k: api.K = 5,
    retrieval: Annotated[Retrieval, Query()] = "csls",
) -> Any:
    """The best translations of a word; a word outside the vocabulary waits for the language model."""
    return JSONResponse(await translations(bench.engine, word, direction, k, retrieval))


async def translations(
    engine: Engine, word: str, direction: Direction, k: int, retrieval: Retrieval
) -> dict[str, Any]:
    """What `GET /api/translate` answers: the best translations, or closest spellings of an unknown word."""
    found = await engine.answer(word, k, direction, retrieval)
    row = engine.space.row(word, QUERIES[direction])
    return {
        "word": word,
        "origin": found.origin,
        "rank": None if row is None else row + 1,
        "translations": [vars(one) for one in found],
        "suggestions": [] if found.known else await run_in_threadpool(lambda: found.suggestions),
    }


@router.get("/api/suggest", response_model=SuggestAnswer)
def suggestions(bench: Bench, word: api.TextQuery = "", direction: Way = "forward", k: api.K = 8) -> Any:
    """Words that begin so, and closest spellings where it is no word itself."""
    space, side = bench.engine.space, QUERIES[direction]
    typed = word.lower() if space.lowercase else word
    known = space.row(word, side) is not None
    completions = bench.engine.completions(direction)(typed, k) if typed else []
    spellings: list[str] = []
    # Comparing spellings takes longest, and who has typed the beginning of many words needs none.
    if word and not known and len(completions) < k:
        spellings = closest_spellings(typed, space.words(side).index_to_key, k)
    shown = [one for one in spellings if len(one) <= api.LONGEST_WORD]
    return {"word": word, "known": known, "completions": completions, "spellings": shown}


@router.get("/api/why", response_model=WhyAnswer, responses=api.problems(404))
def reasons(bench: Bench, source: api.WordQuery, target: api.WordQuery, k: api.K = 10) -> Any:
    """What speaks for a pair: neighbours in both languages."""
    engine = bench.engine
    source, source_row, x = vector_of(engine.space, source, "source")
    target, target_row, y = vector_of(engine.space, target, "target")
    engine.open_encoder()
    forward = engine.translate(source, _DEEPEST_RANK)
    place = _place([one.word for one in forward], target)
    back = _place([one.word for one in engine.translate(target, _DEEPEST_RANK, "backward")], source)
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
        "views": _views(engine, source, target, k),
    }


def _place(words: list[str], wanted: str) -> int | None:
    return words.index(wanted) + 1 if wanted in words else None


@router.get("/api/map", response_model=MapAnswer, responses=api.problems(404))
def neighbourhood(bench: Bench, word: api.WordQuery, direction: Way = "forward", k: api.K = 20) -> Any:
    """A word, its nearest words in both languages, and their places in two dimensions.

    The places are the two main directions of the words' vectors (principal components), so that words that
    are near in the space are near on the map as far as two dimensions can show it.
    """
    space, side = bench.engine.space, QUERIES[direction]
    word, row, vector = vector_of(space, word, side)
    found: dict[Side, list[int]] = {}
    for language in _SIDES:
        rows = [near for near, _ in nearest(space, vector, language, k)]
        found[language] = [row, *(one for one in rows if one != row)][:k] if language == side else rows
    vectors = [np.array(space.words(one).vectors[found[one]], np.float32) for one in _SIDES]
    places = _two_dimensions(np.concatenate(vectors)).tolist()
    shown = [(language, at) for language in _SIDES for at in found[language]]
    points = [
        {
            "id": number,
            "word": space.words(language).index_to_key[at],
            "language": language,
            "x": x,
            "y": y,
            "rank": at + 1,
            "query": language == side and at == row,
        }
        for number, ((language, at), (x, y)) in enumerate(zip(shown, places, strict=True))
    ]
    return {"word": word, "direction": direction, "points": points, "lines": _lines(space, found)}


def _lines(space: ServedSpace, found: dict[Side, list[int]]) -> list[dict[str, Any]]:
    """Each source word with its best translation among the points, by CSLS."""
    sources, targets = np.array(found["source"]), np.array(found["target"])
    grid = space.scores(np.repeat(sources, len(targets)), np.tile(targets, len(sources)))
    grid = grid.reshape(len(sources), len(targets))
    return [
        {"from": number, "to": len(sources) + int(best), "score": float(grid[number, best])}
        for number, best in enumerate(grid.argmax(axis=1))
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


def vector_of(space: ServedSpace, word: str, side: Side) -> tuple[str, int, Floats]:
    """A word as its vocabulary spells it, its row, and its vector."""
    row = space.row(word, side)
    if row is None:
        raise api.ProblemError(404, f"'{word[:100]}' is not in the {side} vocabulary.")
    words = space.words(side)
    return words.index_to_key[row], row, np.array(words.vectors[row], np.float32)


def nearest(space: ServedSpace, vector: Floats, side: Side, k: int) -> list[tuple[int, float]]:
    """The rows of one language nearest to a vector, with their similarity."""
    scores, rows = space.keys[side].top_k(np.ascontiguousarray(vector[None]), k, penalised=False)
    return list(zip(rows[0].tolist(), scores[0].tolist(), strict=True))


def neighbours(space: ServedSpace, word: str, side: Side, k: int) -> list[dict[str, Any]]:
    """The nearest other words of a word's own language."""
    _, own, vector = vector_of(space, word, side)
    found = [(row, near) for row, near in nearest(space, vector, side, k + 1) if row != own]
    return _named(space, found[:k], side)


def _named(space: ServedSpace, found: list[tuple[int, float]], side: Side) -> list[dict[str, Any]]:
    """Rows with their words instead of their numbers; words too long to show are left out."""
    words = space.words(side).index_to_key
    return [
        {"word": words[row], "similarity": near} for row, near in found if len(words[row]) <= api.LONGEST_WORD
    ]


def _views(engine: Engine, source: str, target: str, k: int) -> list[dict[str, Any]]:
    """The neighbours of both words in each view."""
    from bilex.model.unknown import FromEncoder

    space = engine.space
    reader = next(iter(engine.translator.unknown), None)
    if reader is None or reader.kind == "subwords":
        return [_whole_space(space, "vectors", source, target, k)]
    pools = _pools(space, {"source": source, "target": target}, k)
    if isinstance(reader, FromEncoder):
        encoded = {side: reader.encoded(pools[side]) for side in _SIDES}
        static = {}
        for side in _SIDES:
            words = space.words(side)
            combined = np.asarray(words.vectors[words.rows(pools[side])], np.float32)
            static[side] = other_view(combined, encoded[side], reader.mixing)
        return [_view("vectors", pools, static, k), _view("language model", pools, encoded, k)]
    read = {side: reader.vectors(pools[side], side) for side in _SIDES}
    alone = {
        side: np.stack([np.zeros(space.dim, np.float32) if row is None else row for row in read[side]])
        for side in _SIDES
    }
    together = _whole_space(space, "vectors and language model", source, target, k)
    return [together, _view("language model", pools, alone, k)]


def other_view(combined: Floats, encoded: Floats, mixing: float) -> Floats:
    """The static unit vectors s of which (1−λ)·s + λ·e, made unit, are the combined vectors c.

    A model keeps c only. With t the length before c was made unit, t·c − λ·e has the length 1 − λ, which is a
    quadratic equation for t; its larger root is taken.
    """
    from bilex.vectors.stored import unit_rows

    cosine = np.einsum("ij,ij->i", combined, encoded)
    inside = (mixing * cosine) ** 2 - mixing**2 + (1 - mixing) ** 2
    length = mixing * cosine + np.sqrt(np.maximum(inside, 0))
    static = length[:, None] * combined - mixing * encoded
    readable = np.asarray(encoded.any(axis=1))[:, None]
    return unit_rows(np.where(readable, static, combined))


def _whole_space(space: ServedSpace, name: str, source: str, target: str, k: int) -> dict[str, Any]:
    """A view of the model's own space, in which all words compete."""
    _, _, x = vector_of(space, source, "source")
    _, _, y = vector_of(space, target, "target")
    return {
        "name": name,
        "similarity": float(x @ y),
        "source_neighbours": neighbours(space, source, "source", k),
        "target_neighbours": neighbours(space, target, "target", k),
        "source_candidates": _named(space, nearest(space, x, "target", k), "target"),
        "target_candidates": _named(space, nearest(space, y, "source", k), "source"),
    }


def _pools(space: ServedSpace, own: dict[Side, str], k: int) -> dict[Side, list[str]]:
    """For each language the word itself, first, and the words that the whole model finds near the two."""
    vectors = [vector_of(space, own[side], side)[2] for side in _SIDES]
    pools: dict[Side, list[str]] = {}
    for wanted in _SIDES:
        near = [_named(space, nearest(space, vector, wanted, _POOL * k), wanted) for vector in vectors]
        words = [one["word"] for found in near for one in found]
        pools[wanted] = list(dict.fromkeys([own[wanted], *words]))
    return pools


def _view(name: str, pools: dict[Side, list[str]], vectors: dict[Side, Floats], k: int) -> dict[str, Any]:
    """A view in which the words of the pools compete; the words themselves are the first of each."""

    def best(side: Side, query: Floats, *, own: bool) -> list[dict[str, Any]]:
        near = vectors[side] @ query
        order = [int(place) for place in np.argsort(-near, kind="stable") if not (own and place == 0)][:k]
        return [{"word": pools[side][place], "similarity": float(near[place])} for place in order]

    x, y = vectors["source"][0], vectors["target"][0]
    return {
        "name": name,
        "similarity": float(x @ y),
        "source_neighbours": best("source", x, own=True),
        "target_neighbours": best("target", y, own=True),
        "source_candidates": best("target", x, own=False),
        "target_candidates": best("source", y, own=False),
    }
