"""Jobs and learning: start, follow, cancel, compare, keep or discard."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from bilex_workbench import interface as i
from bilex_workbench import retraining
from bilex_workbench.jobs import Jobs
from bilex_workbench.routes import Bench, Limit, Offset, TextQuery, WatchedBench, problems

router = APIRouter(tags=["learn"])
_LOOK_EVERY = 0.15
_SIGN_OF_LIFE = 10.0
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}


@router.get("/api/job", response_model=i.JobOf)
def job(bench: WatchedBench) -> Any:
    """The present or last job."""
    return {"job": bench.jobs.describe()}


@router.get(
    "/api/job/events",
    response_class=StreamingResponse,
    responses={200: {"description": "Events with a job as their data.", "content": _EVENTS}},
)
async def job_events(bench: Bench, request: Request) -> StreamingResponse:
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


@router.post("/api/job/cancel", response_model=i.StartedJob, responses=problems(409))
def cancel_job(bench: Bench) -> Any:
    """End the job; nothing of it is kept."""
    return {"job": bench.jobs.cancel()}


@router.post("/api/learn", status_code=202, response_model=i.StartedJob, responses=problems(409))
def learn(bench: Bench, body: i.LearnIn) -> Any:
    """Start a retraining in a process of its own."""
    return {"job": retraining.start(bench, body.updates, body.held_out, body.random_seed)}


@router.get("/api/learn", response_model=i.WaitingAnswer)
def waiting_model(bench: Bench) -> Any:
    """The retrained model that waits for keep or discard."""
    return {"waiting": retraining.waiting(bench)}


@router.get("/api/learn/changes", response_model=i.ChangesAnswer)
def changed_entries(bench: Bench, offset: Offset = 0, limit: Limit = 100, q: TextQuery = "") -> Any:
    """Entries whose first translation changed, with the decision that each change is near."""
    return retraining.changes(bench.store, q, offset, limit)


@router.post("/api/learn/keep", response_model=i.KeptAnswer, responses=problems(409))
def keep_model(bench: Bench) -> Any:
    """Put the retrained model in the place of the present one."""
    retraining.keep(bench)
    return {"model": bench.describe()}


@router.post("/api/learn/discard", response_model=i.WaitingAnswer, responses=problems(409))
def discard_model(bench: Bench) -> Any:
    """Remove the retrained model."""
    retraining.discard(bench)
    return {"waiting": None}


@router.get("/api/learn/estimate", response_model=i.EstimateAnswer)
def estimate_learning(bench: Bench) -> Any:
    """How long a retraining will take, before it is started."""
    return retraining.estimate(bench)


@router.get("/api/models", response_model=i.ModelsAnswer)
def model_versions(bench: Bench) -> Any:
    """The present model and the earlier ones that can be restored."""
    bench.engine  # noqa: B018 - 503 where no model is open
    return retraining.models(bench)


@router.post("/api/models/restore", response_model=i.KeptAnswer, responses=problems(404, 409))
def restore_model(bench: Bench, body: i.RestoreIn) -> Any:
    """Put an earlier model in the place of the present one, which becomes an earlier model itself."""
    retraining.restore(bench, body.number)
    return {"model": bench.describe()}
