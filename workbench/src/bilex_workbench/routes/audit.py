"""Audit: draw, review blind, report, recalibrate."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from bilex_workbench import applying, audit, audit_report
from bilex_workbench.routes import Bench, ReviewerQuery
from bilex_workbench.routes.review import Body, Note, Reviewer, UndoIn, Words

router = APIRouter(tags=["audit"])


class SampleIn(Body):
    """How to draw a sample."""

    size: int = Field(200, ge=1, le=100_000)
    reviewer: Reviewer
    random_seed: int = Field(1, ge=0, le=2**32 - 1)
    min_confidence: float | None = Field(None, ge=0, le=1)
    max_rank: int | None = Field(None, ge=1, le=1_000_000_000)


class VerdictIn(Body):
    """What somebody says about an item."""

    number: int = Field(ge=1, le=1_000_000_000)
    reviewer: Reviewer
    verdict: Literal["accept", "none", "skip"]
    right: Words = Field(default_factory=list)
    typed: Words = Field(default_factory=list)
    note: Note = ""


@router.post("/api/audit")
def draw(bench: Bench, body: SampleIn) -> dict[str, Any]:
    """Draw a new stratified sample."""
    found = audit.draw(
        bench.engine,
        bench.bands,
        body.size,
        body.reviewer,
        body.random_seed,
        body.min_confidence,
        body.max_rank,
    )
    return {"audit": found}


@router.get("/api/audit")
def current(bench: Bench) -> dict[str, Any]:
    """The present sample and how far it is."""
    return {"audit": audit.current(bench.store)}


@router.get("/api/audit/next")
def following(
    bench: Bench, reviewer: ReviewerQuery, count: Annotated[int, Query(ge=1, le=10)] = 2
) -> dict[str, Any]:
    """The next items, blind."""
    return audit.following(bench.store, count)


@router.post("/api/audit/decide")
def decide(bench: Bench, body: VerdictIn) -> dict[str, Any]:
    """Keep what somebody says about an item."""
    return audit.decide(
        bench.store, body.number, body.reviewer, body.verdict, body.right, body.typed, body.note
    )


@router.post("/api/audit/undo")
def undo(bench: Bench, body: UndoIn) -> dict[str, Any]:
    """Take back the newest answer."""
    return audit.undo(bench.store, body.reviewer)


@router.get("/api/audit/report")
def report(bench: Bench, width: Annotated[float, Query(gt=0, le=1)] = 0.1) -> dict[str, Any]:
    """Precision with its 95 % interval, over all and by band."""
    return audit_report.report(bench.engine, bench.bands, width)


@router.post("/api/audit/recalibrate")
def recalibrate(bench: Bench) -> dict[str, Any]:
    """Bring confidences in line with what was audited."""
    with bench.exclusive("recalibrate"):
        return {"recalibration": audit_report.recalibrate(bench.engine).as_dict()}


@router.delete("/api/audit/recalibrate")
def take_back(bench: Bench) -> dict[str, Any]:
    """The model's own confidences again."""
    with bench.exclusive("recalibrate"):
        audit_report.recalibrate(bench.engine, back=True)
    return {"recalibration": None}


@router.post("/api/audit/apply")
def apply(bench: Bench) -> dict[str, Any]:
    """Write the recalibrated confidences into the model, so that `bilex translate` has them too."""
    return {"applied": applying.apply_to_model(bench).as_dict()}
