"""Jobs and learning: start, follow, cancel, compare, keep or discard."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import StreamingResponse

from bilex_workbench import retraining
from bilex_workbench.jobs import Jobs
from bilex_workbench.routes import Bench, Limit, Offset, TextQuery, WatchedBench
from bilex_workbench.routes.review import Body

router = APIRouter(tags=["learn"])
_LOOK_EVERY = 0.15
_SIGN_OF_LIFE = 10.0


class LearnIn(Body):
    """How to retrain."""

    updates: int | None = Field(None, ge=0, le=2_000)
    held_out: float = Field(0.1, ge=0, le=0.5)
    random_seed: int = Field(1, ge=0, le=2**32 - 1)


@router.get("/api/job")
def job(bench: WatchedBench) -> dict[str, Any]:
    """The present or last job."""
    return {"job": bench.jobs.describe()}


@router.get("/api/job/events", response_class=StreamingResponse)
async def events(bench: Bench, request: Request) -> StreamingResponse:
    """The job at every change, as server-sent events."""
    return StreamingResponse(_events(bench.jobs, request), media_type="text/event-stream")


async def _events(jobs: Jobs, request: Request) -> AsyncIterator[str]:
    seen: Any = None
    alive = time.monotonic()
    while not await request.is_disconnected():
        found = jobs.describe()
        state = {name: value for name, value in (found or {}).items() if name != "seconds"}
        if state != seen:
            seen, alive = state, time.monotonic()
            yield f"event: job\ndata: {json.dumps(found)}\n\n"
        if found is None or found["state"] != "running":
            yield f"event: end\ndata: {json.dumps(found)}\n\n"
            return
        if time.monotonic() - alive > _SIGN_OF_LIFE:
            alive = time.monotonic()
            yield ": still running\n\n"
        await asyncio.sleep(_LOOK_EVERY)


@router.post("/api/job/cancel")
def cancel(bench: Bench) -> dict[str, Any]:
    """End the job; nothing of it is kept."""
    return {"job": bench.jobs.cancel()}


@router.post("/api/learn", status_code=202)
def learn(bench: Bench, body: LearnIn) -> dict[str, Any]:
    """Start a retraining in a process of its own."""
    return {"job": retraining.start(bench, body.updates, body.held_out, body.random_seed)}


@router.get("/api/learn")
def waiting(bench: Bench) -> dict[str, Any]:
    """The retrained model that waits for keep or discard."""
    return {"waiting": retraining.waiting(bench)}


@router.get("/api/learn/changes")
def changes(bench: Bench, offset: Offset = 0, limit: Limit = 100, q: TextQuery = "") -> dict[str, Any]:
    """Entries whose first translation changed."""
    return retraining.changes(bench.store, q, offset, limit)


@router.post("/api/learn/keep")
def keep(bench: Bench) -> dict[str, Any]:
    """Put the retrained model in the place of the present one."""
    retraining.keep(bench)
    return {"model": bench.describe()}


@router.post("/api/learn/discard")
def discard(bench: Bench) -> dict[str, Any]:
    """Remove the retrained model."""
    retraining.discard(bench)
    return {"waiting": None}
