"""Jobs, retraining from decisions, and the versions of the model."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import StreamingResponse

from bilex.core.errors import BilexError
from bilex.core.progress import duration
from bilex.model.refine import Refinement, refits
from bilex.model.storage import is_model, read_provenance
from bilex_workbench import api
from bilex_workbench.database import dicts, set_facts, value
from bilex_workbench.decisions import all_outcomes
from bilex_workbench.versions import earlier_models, fingerprint, remove_model
from bilex_workbench.workbench import Bench, JobAnswer, ModelAnswer, PolledBench, Workbench

router = APIRouter(tags=["learn"])
# Measured for real retrainings (research/workbench.md): seconds to start and per decided pair, and products
# of all vocabularies for the CSLS terms and for the answers that are compared.
_START_SECONDS, _PAIR_SECONDS = 5.5, 0.0125
_PASSES, _COMPARED_PASSES, _MOST_COMPARED = 1.5, 3.0, 50_000
_QUERIES, _KEYS = 256, 20_000
_EVENT_SECONDS, _COMMENT_SECONDS = 0.15, 10.0
_HELD_OUT = 0.1
_UNDECIDED = ("unreviewed", "skipped", "disagreement")


class LearnIn(api.Body):
    """How to retrain."""

    held_out: float = Field(_HELD_OUT, ge=0, le=0.5)


class RestoreIn(api.Body):
    """The earlier model to restore."""

    number: int = Field(ge=1, le=1_000_000_000)


class LearnedFrom(api.Response):
    """How many pairs a retraining learned from."""

    seeds: int
    accepted: int
    rejected: int


class HeldOut(api.Response):
    """Accuracy before and after on words that the retraining did not learn from, with 95 % intervals."""

    words: int
    before: float | None
    after: float | None
    before_interval: tuple[float, float] | None = None
    after_interval: tuple[float, float] | None = None
    gained: int = 0
    lost: int = 0
    verdict: Literal["better", "worse", "too few to tell"] = "too few to tell"
    by: str = ""


class RefinementAnswer(Refinement):
    """What a retraining did to the space."""

    __pydantic_config__: ClassVar[Any] = api.RESPONSE


class Comparison(api.Response):
    """A retrained model that waits, compared with the current one."""

    seconds: float | None = None
    learned_from: LearnedFrom | None = None
    refinement: RefinementAnswer | None = None
    held_out: HeldOut | None = None
    changed: int = 0
    compared: int = 0
    made: str | None = None


class Change(api.Response):
    """An entry whose first translation changed."""

    source: str
    source_rank: int
    before: str | None
    after: str | None
    confidence_before: float | None
    confidence_after: float | None
    reason: str
    near: str | None
    similarity: float | None
    decided: list[str] | None


class EstimateAnswer(api.Response):
    """How long a retraining will take, and what it would learn from, in numbers and as a sentence."""

    seconds: float
    basis: Literal["last run", "measurement"]
    accepted: int
    rejected: int
    held_out: int
    sentence: str


class Accuracy(api.Response):
    """The share of right first answers on words that were held out, with its 95 % interval."""

    share: float
    low: float
    high: float
    words: int
    at: str | None = None


class ModelVersion(api.Response):
    """A model: when it was made, how many decided pairs it learned from, and its accuracy."""

    made: str | None
    method: str | None
    learned_pairs: int
    bytes: int
    accuracy: Accuracy | None


class EarlierModel(ModelVersion):
    """A model that was replaced: when and why."""

    number: int
    replaced: str | None
    reason: str


JobOf = api.response("JobOf", job=JobAnswer | None)
StartedJob = api.response("StartedJob", job=JobAnswer)
WaitingAnswer = api.response("WaitingAnswer", waiting=Comparison | None)
ChangesAnswer = api.response("ChangesAnswer", total=int, rows=list[Change])
ModelsAnswer = api.response("ModelsAnswer", current=ModelVersion, earlier=list[EarlierModel], kept=int)
KeptAnswer = api.response("KeptAnswer", model=ModelAnswer)


@router.get("/api/job", response_model=JobOf)
def job(bench: PolledBench) -> Any:
    """The current or last job."""
    return {"job": bench.job}


@router.post("/api/job/cancel", response_model=StartedJob, responses=api.problems(409))
def cancel_job(bench: Bench) -> Any:
    """End the job; nothing of it is kept."""
    bench.cancel_job()
    return {"job": bench.job}


_EVENTS = {
    "description": "Events with a job as their data.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}


@router.get("/api/job/events", response_class=StreamingResponse, responses={200: _EVENTS})
async def job_events(bench: Bench, request: Request) -> StreamingResponse:
    """The job at every change, as server-sent events."""

    async def events() -> AsyncIterator[str]:
        seen, sent = None, time.monotonic()
        while not await request.is_disconnected():
            found = bench.job
            data = "null" if found is None else found.model_dump_json()
            state = "" if found is None else found.model_dump_json(exclude={"seconds"})
            if state != seen:
                seen, sent = state, time.monotonic()
                yield f"event: job\ndata: {data}\n\n"
            if found is None or found.state != "running":
                yield f"event: end\ndata: {data}\n\n"
                return
            if time.monotonic() - sent > _COMMENT_SECONDS:
                sent = time.monotonic()
                yield ": still running\n\n"
            await asyncio.sleep(_EVENT_SECONDS)

    return StreamingResponse(events(), media_type="text/event-stream")


def is_held_out(source: str, share: float) -> bool:
    """Whether a word is held out from retraining: by its spelling alone, so that it is so every time."""
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def material(bench: Workbench, share: float) -> dict[str, Any]:
    """The pairs that a retraining learns from, and the words that are held out.

    Audited words are always held out, so that an audit stays a test; of the others, a share of those with an
    accepted translation. Decisions on target words count as well; a pair that is right in one direction and
    wrong in the other is left out.
    """
    right: dict[tuple[str, str], None] = {}
    wrong: dict[tuple[str, str], None] = {}
    held_out: dict[str, list[str]] = {}
    for book in bench.books.values():
        if not book.exists():
            continue
        forward = book.direction == "forward"
        with book.database.reading() as db:
            audited = {one for (one,) in db.execute("SELECT source FROM audit_items WHERE verdict NOTNULL")}
            outcomes = all_outcomes(db)
        for word, found in outcomes.items():
            if found.status in _UNDECIDED or (word in audited and not forward):
                continue
            for pairs, others in ((right, found.accepted), (wrong, found.rejected)):
                pairs.update(dict.fromkeys((word, one) if forward else (one, word) for one in others))
            if forward and found.accepted and (word in audited or is_held_out(word, share)):
                held_out[word] = list(found.accepted)
    return {
        "accepted": [pair for pair in right if pair not in wrong],
        "rejected": [pair for pair in wrong if pair not in right],
        "held_out": held_out,
    }


def _size(bench: Workbench) -> int:
    """How many words the model has: the time of a retraining depends on it."""
    return len(bench.engine.space.source) + len(bench.engine.space.target)


@router.post("/api/learn", status_code=202, response_model=StartedJob, responses=api.problems(409))
def learn(bench: Bench, body: LearnIn) -> Any:
    """Start a retraining in a separate process."""
    database, versions = bench.database, bench.versions
    folder, size = bench.model_folder, _size(bench)
    learned = material(bench, body.held_out)
    if not learned["accepted"] and not learned["rejected"]:
        raise api.ProblemError(409, "Nothing was decided yet; review some entries first.")
    with bench.exclusive("learn"):
        versions.finish_replacement()
        if versions.unfinished():
            raise api.ProblemError(503, "The earlier model could not be put away yet; is the disk full?")

    def finish(result: dict[str, Any]) -> None:
        result["model"] = fingerprint(versions.retrained)
        refitted = result["refinement"]["refitted"]
        with database.writing() as db:
            db.execute("DELETE FROM changes")
            db.executemany(
                "INSERT INTO changes (source, source_rank, before, after, confidence_before, "
                "confidence_after, near, similarity) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                result.pop("changes"),
            )
            last = {"seconds": result["seconds"], "size": size, "refitted": refitted}
            set_facts(db, waiting=result, last_learning=last)

    order = {"model": str(folder), "output": str(versions.retrained), **learned}
    return {"job": bench.start_job("learn", order, finish)}


@router.get("/api/learn/estimate", response_model=EstimateAnswer)
def estimate_learning(bench: Bench) -> Any:
    """How long a retraining will take: as the last one, or estimated by a small search."""
    learned = material(bench, _HELD_OUT)
    decisions = len(learned["accepted"]) + len(learned["rejected"])
    translator, space = bench.engine.translator, bench.engine.space
    last = bench.database.fact("last_learning")
    known = set(translator.seeds.pairs)
    fresh = {source for source, target in learned["accepted"] if (source, target) not in known}
    refit, own = refits(translator, len(fresh - set(learned["held_out"]))), translator.provenance.fit_seconds
    if last and last["size"] and bool(last.get("refitted")) == refit:
        seconds = last["seconds"] * _size(bench) / last["size"]
        basis, why = "last run", f"the last one took {duration(last['seconds'])}"
    else:
        keys = np.asarray(space.target.vectors[:_KEYS], np.float32)
        queries = np.asarray(space.source.vectors[:_QUERIES], np.float32)
        started = time.perf_counter()
        np.matmul(queries, keys.T)
        each = (time.perf_counter() - started) / len(queries) * len(space.target) / len(keys)
        words = len(space.source)
        passes = _PASSES * words + _COMPARED_PASSES * min(words, _MOST_COMPARED)
        seconds = _START_SECONDS + _PAIR_SECONDS * decisions + passes * each
        basis, why = "measurement", "measured by a small search on this machine"
        if refit and not math.isnan(own):
            seconds += 2 * own
            why = f"the model is fitted again, twice, as there are many decisions; a fit took {duration(own)}"
    sentence = f"A retraining with {decisions:,} decided pairs takes about {duration(seconds)} ({why})."
    counts = {name: len(found) for name, found in learned.items()}
    if not decisions:
        sentence = "Nothing was decided yet; review some entries first."
    return {"seconds": round(seconds, 1), "basis": basis, **counts, "sentence": sentence}


@router.get("/api/learn", response_model=WaitingAnswer)
def waiting_model(bench: Bench) -> Any:
    """The retrained model that waits for keep or discard."""
    return {"waiting": bench.versions.waiting()}


@router.get("/api/learn/changes", response_model=ChangesAnswer)
def changed_entries(
    bench: Bench, offset: api.Offset = 0, limit: api.Limit = 100, q: api.TextQuery = ""
) -> Any:
    """Entries whose first translation changed, with the decision nearest to each change."""
    where = "FROM changes WHERE instr(source, ?1) > 0 OR instr(before, ?1) > 0 OR instr(after, ?1) > 0"
    with bench.database.reading() as db:
        rows = dicts(db, f"SELECT * {where} ORDER BY source_rank LIMIT ?2 OFFSET ?3", q, limit, offset)
        decided = all_outcomes(db) if rows else {}
        total = value(db, f"SELECT count(*) {where}", q)
    for row in rows:
        known, reason = decided.get(row["source"]), "no decision is near"
        if row["near"] == row["source"]:
            reason = "a decision on this word"
        elif row["near"] is not None:
            near = f"the decision on '{row['near']}' (similarity {row['similarity']:.2f})"
            reason = f"the model was fitted again; nearest is {near}"
        row |= {"decided": known and list(known.accepted), "reason": reason}
    return {"total": total, "rows": rows}


def _waiting(bench: Workbench) -> dict[str, Any]:
    """The comparison of the model that waits, after an unfinished replacement is finished."""
    bench.versions.finish_replacement()
    found = bench.versions.waiting()
    if found is None:
        raise api.ProblemError(409, "No retrained model waits; start a retraining first.")
    return found


@router.post("/api/learn/keep", response_model=KeptAnswer, responses=api.problems(409))
def keep_model(bench: Bench) -> Any:
    """Replace the current model by the retrained one; the current one becomes an earlier model."""
    with bench.exclusive("keep"):
        found = _waiting(bench)
        learned, held_out = found.get("learned_from") or {}, found.get("held_out") or {}
        pairs = learned.get("accepted", 0) + learned.get("rejected", 0)
        measured = {}
        for name in ("before", "after"):
            if held_out.get(f"{name}_interval"):
                low, high = held_out[f"{name}_interval"]
                about = {"words": held_out["words"], "at": found.get("made")}
                measured[name] = {"share": held_out[name], "low": low, "high": high, **about}
        reason = f"replaced by a retraining with {pairs:,} decided pairs"
        bench.versions.replace(bench.versions.retrained, reason, measured)
        bench.load()
    return {"model": bench.describe()}


@router.post("/api/models/restore", response_model=KeptAnswer, responses=api.problems(404, 409))
def restore_model(bench: Bench, body: RestoreIn) -> Any:
    """Replace the current model by an earlier one; the current one becomes an earlier model itself."""
    with bench.exclusive("restore"):
        bench.versions.finish_replacement()
        if bench.versions.waiting() is not None:
            raise api.ProblemError(409, "A retrained model waits; keep or discard it first.")
        place = earlier_models(bench.model_folder).get(body.number)
        if place is None or not is_model(place):
            raise api.ProblemError(404, f"There is no earlier model {body.number}.")
        made = (read_provenance(place).made or "")[:16].replace("T", " ")
        bench.versions.replace(place, f"replaced when the model made at {made} was restored", {})
        bench.load()
    return {"model": bench.describe()}


@router.post("/api/learn/discard", response_model=WaitingAnswer, responses=api.problems(409))
def discard_model(bench: Bench) -> Any:
    """Remove the retrained model; the decisions stay."""
    with bench.exclusive("discard"):
        _waiting(bench)
        remove_model(bench.versions.retrained)
        with contextlib.suppress(api.ProblemError), bench.database.writing() as db:
            db.execute("DELETE FROM changes")  # without its model the comparison counts for nothing anyway
            set_facts(db, waiting=None)
    return {"waiting": None}


@router.get("/api/models", response_model=ModelsAnswer)
def model_versions(bench: Bench) -> Any:
    """The current model and the earlier ones that can be restored."""
    folder = bench.engine.folder  # 503 where no model is open
    about, measured = bench.database.fact("earlier", {}), bench.database.fact("measured", {})

    def described(place: Path) -> dict[str, Any]:
        made = read_provenance(place)
        learned = made.retrained
        return {
            "made": made.made,
            "method": made.method,
            "learned_pairs": 0 if learned is None else learned.accepted + learned.rejected,
            "bytes": sum(one.stat().st_size for one in place.rglob("*") if one.is_file()),
            "accuracy": measured.get(fingerprint(place) or ""),
        }

    earlier = []
    for number, place in earlier_models(folder).items():
        known = {"replaced": None, "reason": "kept by an earlier version of bilex"}
        with contextlib.suppress(BilexError, OSError):
            earlier.append({"number": number, **known, **about.get(str(number), {}), **described(place)})
    return {"current": described(folder), "earlier": earlier, "kept": bench.settings.earlier}
