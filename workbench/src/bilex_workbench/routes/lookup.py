"""Look: the model, translations, spellings, reasons and the map."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse

import bilex
from bilex_workbench.lookup import neighbourhood_map, suggest, translations, why
from bilex_workbench.routes import (
    Bench,
    DirectionQuery,
    K,
    RetrievalQuery,
    TextQuery,
    WatchedBench,
    WordQuery,
)

router = APIRouter(tags=["look"])


@router.get("/api/health")
async def health(bench: WatchedBench) -> dict[str, Any]:
    """Whether the server runs and a model is open; needs no token."""
    return {
        "status": "ok",
        "version": bilex.__version__,
        "model": bench.state,
        "ready": bench.state == "ready",
    }


@router.get("/api/model")
def model(bench: WatchedBench) -> dict[str, Any]:
    """The model that is open, and how far its table is filled."""
    return bench.describe()


@router.get("/api/translate", response_class=JSONResponse)
async def translate(
    bench: Bench,
    word: WordQuery,
    direction: DirectionQuery = "forward",
    k: K = 5,
    retrieval: RetrievalQuery = "csls",
) -> JSONResponse:
    """The best translations of a word."""
    return JSONResponse(await translations(bench.engine, word, direction, k, retrieval))


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
