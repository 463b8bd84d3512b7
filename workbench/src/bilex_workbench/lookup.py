"""The model: its description, translations, spellings, reasons for a pair, and a map of a neighbourhood."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

import bilex
from bilex.model.answers import Translation, closest_spellings
from bilex.model.space import SIDES, Direction, Floats, Retrieval, Side
from bilex_workbench import api
from bilex_workbench.engine import DIRECTIONS, Engine, ServedSpace
from bilex_workbench.workbench import Bench, ModelAnswer, PolledBench

router = APIRouter(tags=["look"])
_DEEPEST_RANK = 100
_POOL = 3  # times as many words as are shown compete in a view
DirectionQuery = Annotated[Direction, Query()]


class TranslationAnswer(Translation):
    """A translation of a word."""

    __pydantic_config__: ClassVar[Any] = api.RESPONSE


RankedWord = api.response("RankedWord", "A word and its rank.", word=str, rank=int)
NearWord = api.response("NearWord", "A word and its similarity.", word=str, similarity=float)
ViewAnswer = api.response(
    "ViewAnswer",
    "The neighbours of both words in one view.",
    name=str,
    similarity=float,
    source_neighbours=[NearWord],
    target_neighbours=[NearWord],
    source_candidates=[NearWord],
    target_candidates=[NearWord],
)
WhyAnswer = api.response(
    "WhyAnswer",
    "What speaks for a pair.",
    source=RankedWord,
    target=RankedWord,
    score=float,
    similarity=float,
    confidence=float | None,
    known=bool,
    rank_of_target=int | None,
    rank_of_source=int | None,
    mutual=bool,
    views=[ViewAnswer],
)
Point = api.response(
    "Point", "A word on the map.", id=int, word=str, language=Side, x=float, y=float, rank=int, query=bool
)
Line = api.response(
    "Line", "From a source word to its best translation on the map.", **{"from": int}, to=int, score=float
)
MapAnswer = api.response("MapAnswer", word=str, direction=Direction, points=[Point], lines=[Line])
Health = api.response(
    "Health",
    status=Literal["ok"],
    version=str,
    model=Literal["none", "loading", "ready", "failed"],
    ready=bool,
)
TranslateAnswer = api.response(
    "TranslateAnswer",
    word=str,
    origin=str | None,
    rank=int | None,
    translations=list[TranslationAnswer],
    suggestions=list[str],
)
SuggestAnswer = api.response(
    "SuggestAnswer", word=str, known=bool, completions=list[str], spellings=list[str]
)


@router.get("/api/health", response_model=Health)
async def health(bench: PolledBench) -> Any:
    """Whether the server runs and a model is open; needs no token."""
    ready = bench.state == "ready"
    return {"status": "ok", "version": bilex.__version__, "model": bench.state, "ready": ready}


@router.get("/api/model")
def model(bench: PolledBench) -> ModelAnswer:
    """The model that is open, and how far its table is filled."""
    return bench.describe()


@router.get("/api/translate", response_model=TranslateAnswer)
async def translate(
    bench: Bench,
    word: api.WordQuery,
    direction: DirectionQuery = "forward",
    k: api.K = 5,
    retrieval: Annotated[Retrieval, Query()] = "csls",
) -> Any:
    """The best translations of a word; a word outside the vocabulary waits for the language model."""
    found = await bench.engine.answer(word, k, direction, retrieval)
    row = bench.engine.spaces[direction].row(word)
    near = [] if found.known else await run_in_threadpool(lambda: found.suggestions)
    answer = {
        "word": word,
        "origin": found.origin,
        "rank": None if row is None else row + 1,
        "translations": [vars(one) for one in found],
        "suggestions": api.showable(near),
    }
    return JSONResponse(answer)  # a validation would take about a tenth of the time


@router.get("/api/suggest", response_model=SuggestAnswer)
def suggestions(
    bench: Bench, word: api.TextQuery = "", direction: DirectionQuery = "forward", k: api.K = 8
) -> Any:
    """Words that begin with the text, and the closest spellings if it is no word itself."""
    space = bench.engine.spaces[direction]
    typed = word.lower() if space.lowercase else word
    known = space.row(word) is not None
    completions = space.completions(typed, k) if typed else []
    spellings: list[str] = []
    if word and not known and len(completions) < k:  # comparing spellings takes longest
        spellings = api.showable(closest_spellings(typed, space.source.index_to_key, k))
    return {"word": word, "known": known, "completions": completions, "spellings": spellings}


@router.get("/api/why", response_model=WhyAnswer, responses=api.problems(404))
def reasons(bench: Bench, source: api.WordQuery, target: api.WordQuery, k: api.K = 10) -> Any:
    """What speaks for a pair: neighbours in both languages."""
    engine = bench.engine
    source, source_row, x = _vector(engine.space, source, "source")
    target, target_row, y = _vector(engine.space, target, "target")
    engine.open_encoder()
    forward, backward = (
        {one.word: (rank, one) for rank, one in enumerate(engine.translate(word, _DEEPEST_RANK, way), 1)}
        for word, way in zip((source, target), DIRECTIONS, strict=True)
    )
    place, shown = forward.get(target, (None, None))
    back_place, _ = backward.get(source, (None, None))
    return {
        "source": {"word": source, "rank": source_row + 1},
        "target": {"word": target, "rank": target_row + 1},
        "score": float(engine.space.scores(np.array([source_row]), np.array([target_row]))[0]),
        "similarity": float(x @ y),
        "confidence": shown.confidence if shown else None,
        "known": bool(shown and shown.known),
        "rank_of_target": place,
        "rank_of_source": back_place,
        "mutual": place == 1 and back_place == 1,
        "views": _views(engine, {"source": source, "target": target}, k),
    }


@router.get("/api/map", response_model=MapAnswer, responses=api.problems(404))
def neighbourhood(
    bench: Bench, word: api.WordQuery, direction: DirectionQuery = "forward", k: api.K = 20
) -> Any:
    """A word and its nearest words in both languages, placed by two principal components of their vectors."""
    space = bench.engine.space
    side: Side = "source" if direction == "forward" else "target"
    word, row, vector = _vector(space, word, side)
    rows: dict[Side, list[int]] = {
        one: [near for near, _ in _nearest(space, vector, one, k)] for one in SIDES
    }
    rows[side] = [row, *(one for one in rows[side] if one != row)][:k]
    vectors = np.concatenate([np.array(space.words(one).vectors[rows[one]], np.float32) for one in SIDES])
    u, s, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    places = np.pad((u * s)[:, :2], ((0, 0), (0, max(0, 2 - len(s)))))
    places /= float(np.abs(places).max()) or 1.0
    shown = [(one, at) for one in SIDES for at in rows[one]]
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
        for number, ((language, at), (x, y)) in enumerate(zip(shown, places.tolist(), strict=True))
    ]
    sources, targets = np.array(rows["source"]), np.array(rows["target"])
    scores = space.scores(np.repeat(sources, len(targets)), np.tile(targets, len(sources)))
    grid = scores.reshape(len(sources), len(targets))
    lines = [
        {"from": number, "to": len(sources) + int(best), "score": float(grid[number, best])}
        for number, best in enumerate(grid.argmax(axis=1))
    ]
    return {"word": word, "direction": direction, "points": points, "lines": lines}


def _vector(space: ServedSpace, word: str, side: Side) -> tuple[str, int, Floats]:
    """A word as its vocabulary spells it, its row, and its vector."""
    row, words = space.row(word, side), space.words(side)
    if row is None:
        raise api.ProblemError(404, f"'{word[:100]}' is not in the {side} vocabulary.")
    return words.index_to_key[row], row, np.array(words.vectors[row], np.float32)


def _nearest(space: ServedSpace, vector: Floats, side: Side, k: int) -> list[tuple[int, float]]:
    """The rows of one language nearest to a vector, with their similarities."""
    scores, rows = space.keys[side].top_k(np.ascontiguousarray(vector[None]), k, penalised=False)
    return list(zip(rows[0].tolist(), scores[0].tolist(), strict=True))


def neighbours(space: ServedSpace, word: str, side: Side, k: int) -> list[str]:
    """The nearest other words of a word's own language, without words too long to show."""
    _, own, vector = _vector(space, word, side)
    words = space.words(side).index_to_key
    found = [words[row] for row, _ in _nearest(space, vector, side, k + 1) if row != own][:k]
    return api.showable(found)


def _views(engine: Engine, own: dict[Side, str], k: int) -> list[dict[str, Any]]:
    """The neighbours of two words in each view: word vectors and, where there is one, the language model.

    In each language the words compete that the whole model finds near the two, the word itself first.
    """
    from bilex.model.unknown import FromEncoder

    space = engine.space
    pools: dict[Side, list[str]] = {}
    for side in SIDES:
        keys = space.words(side).index_to_key
        near = [_nearest(space, _vector(space, own[one], one)[2], side, _POOL * k) for one in SIDES]
        words = api.showable(keys[row] for found in near for row, _ in found)
        pools[side] = list(dict.fromkeys([own[side], *words]))
    model = {
        side: np.asarray(space.words(side).vectors[space.words(side).rows(pools[side])], np.float32)
        for side in SIDES
    }
    reader = next(iter(engine.translator.unknown), None)
    if reader is None or reader.kind == "subwords":
        return [_view("vectors", pools, model, k)]
    if isinstance(reader, FromEncoder):
        encoded = {side: reader.encoded(pools[side]) for side in SIDES}
        static = {side: other_view(model[side], encoded[side], reader.mixing) for side in SIDES}
        return [_view("vectors", pools, static, k), _view("language model", pools, encoded, k)]
    alone = {}
    for side in SIDES:
        read = reader.vectors(pools[side], side)
        alone[side] = np.stack([np.zeros(space.dim, np.float32) if row is None else row for row in read])
    return [
        _view("vectors and language model", pools, model, k),
        _view("language model", pools, alone, k),
    ]


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
