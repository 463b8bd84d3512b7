"""Learning: the job, what a retraining learns from, the result that waits, and earlier models.

Keep and restore replace the model by another one that lies beside it. What will be replaced by what is
written down first; then the two folders are exchanged in one step; the rest, `settle`, is done again after a
kill or a full disk, however far it had come.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from bilex.core.errors import BilexError
from bilex.core.files import ASIDE, exchange, sha256, sync, temporary_path
from bilex.core.locks import hidden_name
from bilex.core.manifest import CHECKSUMS
from bilex.model.refine import Refinement, refits
from bilex.model.storage import describe, is_model, own_files, read_provenance
from bilex_workbench import interface as api
from bilex_workbench.decisions import Outcome, all_outcomes
from bilex_workbench.jobs import JobAnswer, Jobs
from bilex_workbench.state import Bench, ModelAnswer, WatchedBench, Workbench
from bilex_workbench.store import Store, now, remember

router = APIRouter(tags=["learn"])
# What a retraining takes, of real ones (research/workbench.md): seconds to start and per decided pair, and
# products of all vocabularies: for the CSLS terms, and for the answers that are compared.
_START_SECONDS, _PAIR_SECONDS = 5.5, 0.0125
_PASSES, _COMPARED_PASSES, _MOST_COMPARED = 1.5, 3.0, 50_000
_QUERIES, _KEYS = 256, 20_000
_LOOK_EVERY, _SIGN_OF_LIFE = 0.15, 10.0
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}


class LearnIn(api.Body):
    """How to retrain."""

    held_out: float = Field(0.1, ge=0, le=0.5)


class RestoreIn(api.Body):
    """Which earlier model to restore."""

    number: int = Field(ge=1, le=1_000_000_000)


class _Stored(BaseModel):
    """What was kept by this or another version: names that it does not have are passed over."""

    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)


class LearnedFrom(_Stored):
    """How many pairs a retraining learned from."""

    seeds: int
    accepted: int
    rejected: int


class HeldOut(_Stored):
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

    __pydantic_config__: ClassVar[Any] = api.ANSWERED


class Comparison(_Stored):
    """A retrained model that waits, compared with the present one."""

    seconds: float | None = None
    learned_from: LearnedFrom | None = None
    refinement: RefinementAnswer | None = None
    held_out: HeldOut | None = None
    changed: int = 0
    compared: int = 0
    made: str | None = None


class Change(api.Answer):
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


class EstimateAnswer(api.Answer):
    """How long a retraining will take, and what it would learn from, in numbers and as a sentence."""

    seconds: float
    basis: Literal["last run", "measurement"]
    accepted: int
    rejected: int
    held_out: int
    sentence: str


class Accuracy(_Stored):
    """The share of right first answers on words that were held out, with its 95 % interval."""

    share: float
    low: float
    high: float
    words: int
    at: str | None = None


class ModelVersion(api.Answer):
    """A model: when it was made, how many decided pairs it learned from, and what was measured."""

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


JobOf = api.answer("JobOf", job=JobAnswer | None)
StartedJob = api.answer("StartedJob", job=JobAnswer)
WaitingAnswer = api.answer("WaitingAnswer", waiting=Comparison | None)
ChangesAnswer = api.answer("ChangesAnswer", total=int, rows=list[Change])
ModelsAnswer = api.answer("ModelsAnswer", current=ModelVersion, earlier=list[EarlierModel], kept=int)
KeptAnswer = api.answer("KeptAnswer", model=ModelAnswer)


@router.get("/api/job", response_model=JobOf)
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
    seen, alive = None, time.monotonic()
    while not await request.is_disconnected():
        found = jobs.describe()
        data = "null" if found is None else found.model_dump_json()
        state = "" if found is None else found.model_dump_json(exclude={"seconds"})
        if state != seen:
            seen, alive = state, time.monotonic()
            yield f"event: job\ndata: {data}\n\n"
        if found is None or found.state != "running":
            yield f"event: end\ndata: {data}\n\n"
            return
        if time.monotonic() - alive > _SIGN_OF_LIFE:
            alive = time.monotonic()
            yield ": still running\n\n"
        await asyncio.sleep(_LOOK_EVERY)


@router.post("/api/job/cancel", response_model=StartedJob, responses=api.problems(409))
def cancel_job(bench: Bench) -> Any:
    """End the job; nothing of it is kept."""
    return {"job": bench.jobs.cancel()}


def retrained_folder(model: Path) -> Path:
    """Where a retrained model waits."""
    return model.with_name(model.name + ".retrained")


def previous_folder(model: Path) -> Path:
    """Where earlier models lie, each in a folder with its number."""
    return model.with_name(model.name + ".previous")


def earlier_models(model: Path) -> dict[int, Path]:
    """The earlier models by number, the newest first."""
    there = previous_folder(model).glob("[0-9]*")
    found = {int(one.name): one for one in there if one.name.isdecimal() and len(one.name) < 10}
    return dict(sorted(found.items(), reverse=True))


def is_held_out(source: str, share: float) -> bool:
    """Whether a word is kept back from retraining: by its spelling alone, so that it is so every time."""
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def material(bench: Workbench, share: float) -> dict[str, Any]:
    """What a retraining learns from, and what is kept back.

    Audited words are always kept back, so that an audit stays a test; of the others, a share of those that
    have an accepted translation. Decisions on target words count as well; a pair that is right in one
    direction and wrong in the other is left out.
    """
    right: dict[tuple[str, str], None] = {}
    wrong: dict[tuple[str, str], None] = {}
    held_out: dict[str, list[str]] = {}
    for source, found, audited in _decided(bench.store):
        right |= {(source, word): None for word in found.accepted}
        wrong |= {(source, word): None for word in found.rejected}
        if found.accepted and (audited or is_held_out(source, share)):
            held_out[source] = list(found.accepted)
    for target, found, audited in _decided(bench.backward.store) if bench.backward.exists else ():
        if not audited:
            right |= {(word, target): None for word in found.accepted}
            wrong |= {(word, target): None for word in found.rejected}
    return {
        "accepted": [list(pair) for pair in right if pair not in wrong],
        "rejected": [list(pair) for pair in wrong if pair not in right],
        "held_out": held_out,
    }


def _decided(store: Store) -> Iterator[tuple[str, Outcome, bool]]:
    """Every word that was decided, what came of it, and whether an audit asked for it."""
    audited = {row["source"] for row in store.all("SELECT source FROM audit_items WHERE verdict IS NOT NULL")}
    for source, found in all_outcomes(store).items():
        if found.status not in ("unreviewed", "skipped", "disagreement"):
            yield source, found, source in audited


@router.post("/api/learn", status_code=202, response_model=StartedJob, responses=api.problems(409))
def learn(bench: Bench, body: LearnIn) -> Any:
    """Start a retraining in a process of its own."""
    learned = material(bench, body.held_out)
    if not learned["accepted"] and not learned["rejected"]:
        raise api.ProblemError(409, "Nothing was decided yet; review some entries first.")
    store, folder, size = bench.store, bench.model_folder, bench.book.words + bench.backward.words
    with bench.exclusive("learn"):
        settle(store, folder, bench.settings.earlier)
        begun = store.fact("replacing")
        if begun and fingerprint(folder) == begun["to"]:
            raise api.ProblemError(503, "The model before could not be put away yet; is the disk full?")
    order = {"kind": "learn", "model": str(folder), "output": str(retrained_folder(folder)), **learned}
    return {"job": bench.jobs.start("learn", order, lambda result: _finish(store, folder, size, result))}


def _finish(store: Store, folder: Path, size: int, result: dict[str, Any]) -> None:
    changes = result.pop("changes")
    result["model"] = fingerprint(retrained_folder(folder))
    with store.writing() as connection:
        connection.execute("DELETE FROM changes")
        connection.executemany(
            "INSERT INTO changes (source, source_rank, before, after, confidence_before, confidence_after, "
            "near, similarity) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            changes,
        )
        remember(connection, "waiting", result)
        refitted = result["refinement"]["refitted"]
        about = {"seconds": result["seconds"], "size": size, "refitted": refitted}
        remember(connection, "last_learning", about)


@router.get("/api/learn/estimate", response_model=EstimateAnswer)
def estimate_learning(bench: Bench) -> Any:
    """How long a retraining will take, before it is started: as the last one, or by a small search now."""
    learned = material(bench, 0.1)
    decisions = len(learned["accepted"]) + len(learned["rejected"])
    last, translator = bench.store.fact("last_learning"), bench.engine.translator
    known = set(translator.seeds.pairs)
    fresh = {source for source, target in learned["accepted"] if (source, target) not in known}
    refit, own = refits(translator, len(fresh - set(learned["held_out"]))), translator.provenance.fit_seconds
    if last and last["size"] and bool(last.get("refitted")) == refit:
        size = bench.book.words + bench.backward.words
        seconds, basis = last["seconds"] * size / last["size"], "last run"
        why = f"the last one took {duration(last['seconds'])}"
    else:
        space = bench.engine.space
        keys = np.asarray(space.target.vectors[:_KEYS], np.float32)
        queries = np.asarray(space.source.vectors[:_QUERIES], np.float32)
        started = time.perf_counter()
        np.matmul(queries, keys.T)
        each = (time.perf_counter() - started) / len(queries) * len(space.target) / len(keys)
        words = len(space.source)
        passes = _PASSES * words + _COMPARED_PASSES * min(words, _MOST_COMPARED)
        seconds, basis = _START_SECONDS + _PAIR_SECONDS * decisions, "measurement"
        seconds += passes * each
        why = "measured by a small search on this machine"
        if refit and not math.isnan(own):
            seconds += 2 * own
            why = f"with so many decisions the model is fitted again, twice; its own fit took {duration(own)}"
    sentence = f"A retraining with {decisions:,} decided pairs takes about {duration(seconds)} ({why})."
    if not decisions:
        sentence = "Nothing was decided yet; review some entries first."
    return {
        "seconds": round(seconds, 1),
        "basis": basis,
        "accepted": len(learned["accepted"]),
        "rejected": len(learned["rejected"]),
        "held_out": len(learned["held_out"]),
        "sentence": sentence,
    }


def duration(seconds: float) -> str:
    """A time in words, as exact as an estimate is."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{round(minutes / 60)} hours"


@router.get("/api/learn", response_model=WaitingAnswer)
def waiting_model(bench: Bench) -> Any:
    """The retrained model that waits for keep or discard."""
    return {"waiting": waiting(bench)}


def waiting(bench: Workbench) -> dict[str, Any] | None:
    """The comparison of a retrained model that waits for keep or discard; None if none does."""
    found = bench.store.fact("waiting")
    folder = retrained_folder(bench.model_folder)
    if found is None or not is_model(folder):
        return None
    ours = found.get("model") in (
        None,
        fingerprint(folder),
    )  # not of a job that was killed before it compared
    return dict(found) if ours else None


@router.get("/api/learn/changes", response_model=ChangesAnswer)
def changed_entries(
    bench: Bench, offset: api.Offset = 0, limit: api.Limit = 100, q: api.TextQuery = ""
) -> Any:
    """Entries whose first translation changed, with the decision that each change is near."""
    where = "FROM changes WHERE instr(source, ?1) > 0 OR instr(before, ?1) > 0 OR instr(after, ?1) > 0"
    rows = bench.store.all(f"SELECT * {where} ORDER BY source_rank LIMIT ?2 OFFSET ?3", q, limit, offset)
    decided = all_outcomes(bench.store) if rows else {}
    refitted = bool(((waiting(bench) or {}).get("refinement") or {}).get("refitted"))
    shown = []
    for row in rows:
        known = decided.get(row["source"])
        one = {**dict(row), "reason": _reason(row, refitted), "decided": known and list(known.accepted)}
        shown.append({name: one[name] for name in Change.model_fields})
    return {"total": bench.store.number(f"SELECT count(*) {where}", q), "rows": shown}


def _reason(row: sqlite3.Row, refitted: bool) -> str:
    if row["near"] is None:
        return "no decision is near"
    if row["near"] == row["source"]:
        return "a decision on this word"
    near = f"the decision on '{row['near']}' (similarity {row['similarity']:.2f})"
    return f"the model was fitted again; nearest is {near}" if refitted else f"near {near}"


@router.post("/api/learn/keep", response_model=KeptAnswer, responses=api.problems(409))
def keep_model(bench: Bench) -> Any:
    """Put the retrained model in the place of the present one, which becomes an earlier model."""
    with bench.exclusive("keep"):
        found = _checked(bench)
        learned = found.get("learned_from") or {}
        pairs = learned.get("accepted", 0) + learned.get("rejected", 0)
        reason = f"replaced by a retraining with {pairs:,} decided pairs"
        _replace(bench, retrained_folder(bench.model_folder), reason, _measured(found))
    return {"model": bench.describe()}


@router.post("/api/models/restore", response_model=KeptAnswer, responses=api.problems(404, 409))
def restore_model(bench: Bench, body: RestoreIn) -> Any:
    """Put an earlier model in the place of the present one, which becomes an earlier model itself."""
    with bench.exclusive("restore"):
        settle(bench.store, bench.model_folder, bench.settings.earlier)
        if waiting(bench) is not None:
            raise api.ProblemError(409, "A retrained model waits; keep or discard it first.")
        place = earlier_models(bench.model_folder).get(body.number)
        if place is None or not is_model(place):
            raise api.ProblemError(404, f"There is no earlier model {body.number}.")
        made = (read_provenance(place).made or "")[:16].replace("T", " ")
        _replace(bench, place, f"replaced when the model made at {made} was restored", {})
    return {"model": bench.describe()}


def _replace(bench: Workbench, place: Path, reason: str, measured: dict[str, dict[str, Any]]) -> None:
    """Exchange the model with the one at `place`; a kill leaves all as it was, or is settled later."""
    folder = bench.model_folder
    _check_ours(place)
    if previous_folder(folder).is_file():
        raise BilexError(f"{previous_folder(folder)}: is in the way of earlier models; move it away.")
    describe(place, verify=True)
    old, new = fingerprint(folder), fingerprint(place)
    number = max([*earlier_models(folder), int(bench.store.fact("last_earlier", 0))], default=0) + 1
    begun = {"from": old, "to": new, "place": place.relative_to(folder.parent).as_posix(), "number": number}
    about = {"model": old, "replaced": now(), "reason": reason}
    measures = {"before": old, "after": new}
    with bench.store.writing() as connection:
        remember(connection, "replacing", {**begun, "about": about})
        remember(connection, "last_earlier", number)
        known = bench.store.fact("measured", {})
        known.update({measures[name]: found for name, found in measured.items() if measures[name]})
        remember(connection, "measured", dict(list(known.items())[-50:]))
    if not exchange(place, folder):
        aside = folder.with_name(f"{hidden_name(folder)}keep{ASIDE}")
        folder.replace(aside)  # `bilex.core.files.restore` moves it back after a kill
        place.replace(folder)
        aside.replace(place)
    sync(folder.parent)
    settle(bench.store, folder, bench.settings.earlier)
    bench.load()


def settle(store: Store, folder: Path, limit: int) -> None:
    """Finish a replacement whose models were exchanged: the model before gets its place and its number.

    What cannot be written, as on a full disk, is done before the next operation or at the next start.
    """
    with contextlib.suppress(BilexError, OSError, sqlite3.Error):
        _adopt_previous(folder)
        begun = store.fact("replacing")
        if begun and fingerprint(folder) == begun["to"]:
            place, end = folder.parent / begun["place"], previous_folder(folder) / str(begun["number"])
            if fingerprint(place) == begun["from"]:
                end.parent.mkdir(exist_ok=True)
                place.replace(end)
                sync(end.parent)
            _forget(store, begun)
        for number, place in list(earlier_models(folder).items())[limit:]:
            _remove_model(place)
            with store.writing() as connection:
                about = store.fact("earlier", {})
                about.pop(str(number), None)
                remember(connection, "earlier", about)


def _forget(store: Store, begun: dict[str, Any]) -> None:
    """A replacement is done: its reason belongs to the earlier model, and no comparison waits any longer."""
    with store.writing() as connection:
        if (store.fact("waiting") or {}).get("model") == begun["to"]:
            connection.execute("DELETE FROM changes")
            remember(connection, "waiting", None)
        if (store.fact("recalibration") or {}).get("model", "") is None:
            remember(connection, "recalibration", None)  # of an older version: of the model before
        remember(connection, "earlier", {**store.fact("earlier", {}), str(begun["number"]): begun["about"]})
        remember(connection, "replacing", None)


def _adopt_previous(folder: Path) -> None:
    """Versions before kept one earlier model, at the place where the numbered ones lie now."""
    previous = previous_folder(folder)
    moved = previous.with_name(previous.name + ".old")
    if is_model(previous):
        previous.replace(moved)
    if moved.is_dir() and is_model(moved):
        previous.mkdir(exist_ok=True)
        moved.replace(previous / str(max(earlier_models(folder), default=0) + 1))


@router.post("/api/learn/discard", response_model=WaitingAnswer, responses=api.problems(409))
def discard_model(bench: Bench) -> Any:
    """Remove the retrained model; the decisions stay."""
    with bench.exclusive("discard"):
        _checked(bench)
        _remove_model(retrained_folder(bench.model_folder))
        with contextlib.suppress(api.ProblemError), bench.store.writing() as connection:
            connection.execute("DELETE FROM changes")  # a comparison without its model counts for nothing
            remember(connection, "waiting", None)
    return {"waiting": None}


@router.get("/api/models", response_model=ModelsAnswer)
def model_versions(bench: Bench) -> Any:
    """The present model and the earlier ones that can be restored."""
    folder = bench.engine.folder  # 503 where no model is open
    about, measured = bench.store.fact("earlier", {}), bench.store.fact("measured", {})
    earlier = []
    for number, place in earlier_models(folder).items():
        with contextlib.suppress(BilexError, OSError):
            known = about.get(str(number), {})
            reason = known.get("reason", "kept by an earlier version of bilex")
            why = {"number": number, "replaced": known.get("replaced"), "reason": reason}
            earlier.append({**why, **_described(place, measured)})
    return {"current": _described(folder, measured), "earlier": earlier, "kept": bench.settings.earlier}


def _described(folder: Path, measured: dict[str, Any]) -> dict[str, Any]:
    made = read_provenance(folder)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    return {
        "made": made.made,
        "method": made.method,
        "learned_pairs": 0 if made.retrained is None else made.retrained.accepted + made.retrained.rejected,
        "bytes": size,
        "accuracy": measured.get(fingerprint(folder) or ""),
    }


def _measured(comparison: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a comparison says about the model before and after it."""
    found = comparison.get("held_out") or {}
    return {
        name: {
            "share": found[name],
            "low": found[f"{name}_interval"][0],
            "high": found[f"{name}_interval"][1],
            "words": found["words"],
            "at": comparison.get("made"),
        }
        for name in ("before", "after")
        if found.get(name) is not None and found.get(f"{name}_interval")
    }


def fingerprint(folder: Path) -> str | None:
    """What tells a model from all others; None where there is none."""
    try:
        return sha256(folder / CHECKSUMS)
    except OSError:
        return None


def _checked(bench: Workbench) -> dict[str, Any]:
    """The comparison of the model that waits; what was left of an earlier replacement is finished first."""
    settle(bench.store, bench.model_folder, bench.settings.earlier)
    found = waiting(bench)
    if found is None:
        raise api.ProblemError(409, "No retrained model waits; start a retraining first.")
    return found


def _check_ours(folder: Path) -> None:
    """Refuse a folder that holds anything but a model that bilex made."""
    if not folder.exists():
        return
    ours = set(own_files(folder)) if folder.is_dir() else set()
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if not ours or there - ours:
        raise BilexError(f"{folder}: holds something that bilex did not make; move it away.")


def _remove_model(folder: Path) -> None:
    """Remove a model that bilex made, and nothing else; a kill leaves it whole or under a temporary name."""
    _check_ours(folder)
    if folder.exists():
        with temporary_path(folder, folder=True) as place:
            folder.replace(place / folder.name)
