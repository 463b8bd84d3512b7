"""Look: the model, translations, spellings, reasons and the map."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

import bilex
from bilex.workbench.looking import neighbourhood_map, suggest, why
from bilex.workbench.routes import Bench, DirectionQuery, K, RetrievalQuery, TextQuery, WordQuery

router = APIRouter(tags=["look"])


@router.get("/api/health")
def health(bench: Bench) -> dict[str, Any]:
    """Whether the server runs and a model is open; needs no token."""
    return {
        "status": "ok",
        "version": bilex.__version__,
        "model": bench.state,
        "ready": bench.state == "ready",
    }


@router.get("/api/model")
def model(bench: Bench) -> dict[str, Any]:
    """The model that is open, and how far its table is filled."""
    return bench.describe()


@router.get("/api/translate")
def translate(
    bench: Bench,
    word: WordQuery,
    direction: DirectionQuery = "forward",
    k: K = 5,
    method: RetrievalQuery = "csls",
) -> dict[str, Any]:
    """The best translations of a word."""
    engine = bench.engine
    answer = engine.translate(word, k, direction, method)
    row = engine.row(word, direction)
    return {
        "word": word,
        "origin": answer.origin,
        "rank": None if row is None else row + 1,
        "translations": [vars(found) for found in answer],
        "suggestions": [] if answer.known else answer.suggestions,
    }


@router.get("/api/suggest")
def suggestions(
    bench: Bench, word: TextQuery = "", direction: DirectionQuery = "forward", k: K = 8
) -> dict[str, Any]:
    """Words that begin so, and closest spellings."""
    return suggest(bench.engine, word, direction, k)


@router.get("/api/why")
def reasons(bench: Bench, source: WordQuery, target: WordQuery, k: K = 10) -> dict[str, Any]:
    """What speaks for a pair: neighbours in both languages."""
    return why(bench.engine, source, target, k)


@router.get("/api/map")
def area(bench: Bench, word: WordQuery, direction: DirectionQuery = "forward", k: K = 20) -> dict[str, Any]:
    """A word's neighbourhood in two dimensions."""
    return neighbourhood_map(bench.engine, word, direction, k)
