"""The audit: a stratified random sample, reviewed blind, and what it says about the whole dictionary."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field

from bilex.core.errors import BilexError
from bilex_workbench import interface as api
from bilex_workbench import intervals
from bilex_workbench.decisions import Decision, Verdict, record, take_back
from bilex_workbench.engine import Engine
from bilex_workbench.recalibration import FEWEST_DECISIONS, UNCHANGED, Recalibration, learn, write_into
from bilex_workbench.reviewing import candidates
from bilex_workbench.state import Bench, Book, BookOf
from bilex_workbench.store import Store, now, remember

router = APIRouter(tags=["audit"])
_SHOWN = 5


class SampleIn(api.Body):
    """How to draw the sample of an audit."""

    size: int = Field(200, ge=1, le=100_000)
    reviewer: api.Name
    random_seed: int = Field(1, ge=0, le=2**32 - 1)
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    max_rank: int | None = Field(None, ge=1, le=1_000_000_000)


class VerdictIn(api.Body):
    """What somebody says about an item of an audit."""

    number: int = Field(ge=1, le=1_000_000_000)
    reviewer: api.Name
    verdict: Verdict
    right: api.Words = Field(default_factory=list)
    typed: api.Words = Field(default_factory=list)
    note: api.Note = ""


class Stratum(api.Answer):
    """A part of the sample."""

    band: str
    confidence: str
    entries: int
    drawn: int
    decided: int


class Audit(api.Answer):
    """A sample and how far it is."""

    id: int
    size: int
    decided: int
    skipped: int
    created: str
    reviewer: str
    strata: list[Stratum]


class BlindItem(api.Answer):
    """An item of the sample, without what the model prefers."""

    number: int
    source: str
    source_rank: int
    candidates: list[str]


class PrecisionPart(api.Answer):
    """The precision of a part of the dictionary."""

    name: str
    entries: int
    decided: int
    right: int
    precision: float | None
    low: float | None
    high: float | None


class CalibrationPart(api.Answer):
    """What confidences said, and what was found."""

    name: str
    said: float
    found: float
    decided: int


AuditAnswer = api.answer("AuditAnswer", audit=Audit | None)
BlindItems = api.answer("BlindItems", items=list[BlindItem], decided=int, skipped=int, size=int)
AuditDecided = api.answer("AuditDecided", number=int, decided=int, size=int)
AuditUndone = api.answer("AuditUndone", item=BlindItem, decided=int, size=int)
MoreDecisions = api.answer("MoreDecisions", width=float, decisions=int | None)
ReportAnswer = api.answer(
    "ReportAnswer",
    decided=int,
    size=int,
    precision=float | None,
    low=float | None,
    high=float | None,
    width=float | None,
    more_decisions=MoreDecisions,
    by_band=list[PrecisionPart],
    by_confidence=list[PrecisionPart],
    calibration=list[CalibrationPart],
    recalibration=Recalibration | None,
)
RecalibrationAnswer = api.answer("RecalibrationAnswer", recalibration=Recalibration | None)
AppliedAnswer = api.answer("AppliedAnswer", applied=Recalibration)


@router.post("/api/audit", response_model=AuditAnswer, responses=api.problems(409))
def draw_sample(book: BookOf, body: SampleIn) -> Any:
    """Draw a new stratified sample: strata are frequency bands by confidence bands."""
    strata: dict[tuple[str, str], list[sqlite3.Row]] = {}
    for row in book.store.all(
        "SELECT row, source, coalesce(answer, target) target, confidence, model_confidence FROM entries "
        "WHERE target IS NOT NULL AND known = 0 AND headword = source "
        "AND (?1 IS NULL OR confidence >= ?1) AND (?2 IS NULL OR row < ?2)",
        body.min_confidence,
        body.max_rank,
    ):
        band = intervals.band_of(row["row"] + 1, book.bands)
        strata.setdefault((band, intervals.confidence_band(row["confidence"])), []).append(row)
    if not strata:
        raise api.ProblemError(
            409, "There is no entry to audit; wait until the table is filled, or ask for less."
        )
    rng = random.Random(body.random_seed)
    names = sorted(strata)
    counts = intervals.allocate([len(strata[name]) for name in names], body.size)
    described, chosen = [], []
    for number, (name, count) in enumerate(zip(names, counts, strict=True)):
        entries = len(strata[name])
        described.append({"band": name[0], "confidence": name[1], "entries": entries, "drawn": count})
        chosen += [(number, row) for row in rng.sample(strata[name], count)]
    rng.shuffle(chosen)
    items = [
        (
            *(number, row["source"], row["row"] + 1, row["target"], row["model_confidence"], stratum),
            json.dumps(_shown(book, row["source"], row["target"], rng)),
        )
        for number, (stratum, row) in enumerate(chosen, 1)
    ]
    with book.store.writing() as connection:
        cursor = connection.execute(
            "INSERT INTO audits (created, reviewer, size, strata, model) VALUES (?, ?, ?, ?, ?)",
            (now(), body.reviewer, len(items), json.dumps(described), book.engine.base),
        )
        connection.executemany(
            "INSERT INTO audit_items (audit, number, source, source_rank, best, confidence, stratum, shown) "
            f"VALUES ({cursor.lastrowid}, ?, ?, ?, ?, ?, ?, ?)",
            items,
        )
    return {"audit": current(book.store)}


def _shown(book: Book, source: str, best: str, rng: random.Random) -> list[str]:
    """The model's candidates in random order, its own choice among them."""
    words = [candidate["word"] for candidate in candidates(book, source, _SHOWN)]
    shown = list(dict.fromkeys([best, *words]))[:_SHOWN]
    rng.shuffle(shown)
    return shown


@router.get("/api/audit", response_model=AuditAnswer)
def current_sample(book: BookOf) -> Any:
    """The present sample and how far it is."""
    return {"audit": current(book.store)}


def current(store: Store) -> Audit | None:
    """The newest audit and how far it is; None if there is none."""
    audit = store.one("SELECT * FROM audits ORDER BY id DESC LIMIT 1")
    if audit is None:
        return None
    items = store.all("SELECT stratum, verdict FROM audit_items WHERE audit = ?", audit["id"])
    judged = [item["stratum"] for item in items if item["verdict"] in ("accept", "none")]
    strata = [
        Stratum(**one, decided=judged.count(number)) for number, one in enumerate(json.loads(audit["strata"]))
    ]
    return Audit(
        id=audit["id"],
        size=audit["size"],
        decided=len(judged),
        skipped=sum(item["verdict"] == "skip" for item in items),
        created=audit["created"],
        reviewer=audit["reviewer"],
        strata=strata,
    )


def _drawn(store: Store) -> Audit:
    found = current(store)
    if found is None:
        raise api.ProblemError(409, "No sample was drawn yet; draw one first.")
    return found


def _blind(row: sqlite3.Row) -> BlindItem:
    shown = json.loads(row["shown"])
    rank = row["source_rank"]
    return BlindItem(number=row["number"], source=row["source"], source_rank=rank, candidates=shown)


@router.get("/api/audit/next", response_model=BlindItems, responses=api.problems(409))
def next_blind_items(
    book: BookOf, reviewer: api.ReviewerQuery, count: Annotated[int, Query(ge=1, le=10)] = 2
) -> Any:
    """The next items, blind: nothing says which candidate is the model's choice."""
    audit = _drawn(book.store)
    rows = book.store.all(
        "SELECT * FROM audit_items WHERE audit = ? AND verdict IS NULL ORDER BY number LIMIT ?",
        audit.id,
        count,
    )
    far = {"decided": audit.decided, "skipped": audit.skipped, "size": audit.size}
    return {"items": [_blind(row) for row in rows], **far}


@router.post("/api/audit/decide", response_model=AuditDecided, responses=api.problems(404, 409))
def decide_blind(book: BookOf, body: VerdictIn) -> Any:
    """Keep what somebody says about an item; it is a decision about the word as well."""
    audit, number, verdict = _drawn(book.store), body.number, body.verdict
    with book.store.writing() as connection:
        row = connection.execute(
            "SELECT * FROM audit_items WHERE audit = ? AND number = ?", (audit.id, number)
        ).fetchone()
        if row is None:
            raise api.ProblemError(404, f"The sample has no item {number}.")
        if row["verdict"] is not None:
            raise api.ProblemError(409, f"Item {number} is decided already; take it back first.")
        shown = tuple(json.loads(row["shown"]))
        strange = [word for word in body.right if word not in shown]
        if strange:
            raise api.ProblemError(
                400, f"'{strange[0]}' was not shown; typed translations belong in 'typed'."
            )
        accepted = tuple(dict.fromkeys([*body.right, *body.typed])) if verdict == "accept" else ()
        if verdict == "accept" and not accepted:
            raise api.ProblemError(400, "Nothing was accepted; choose 'none' if no candidate is right.")
        wrong = shown if verdict == "none" else ()
        said = Decision(
            row["source"], body.reviewer, verdict, accepted, wrong, shown, row["best"], body.note, "audit"
        )
        right = None if verdict == "skip" else row["best"] in accepted
        connection.execute(
            "UPDATE audit_items SET verdict = ?, is_right = ?, decision = ? WHERE audit = ? AND number = ?",
            (verdict, right, record(connection, said).id, audit.id, number),
        )
    return {"number": number, "decided": _drawn(book.store).decided, "size": audit.size}


@router.post("/api/audit/undo", response_model=AuditUndone, responses=api.problems(409))
def undo_blind(book: BookOf, body: api.UndoIn) -> Any:
    """Take back a reviewer's newest answer in the present audit."""
    audit = _drawn(book.store)
    with book.store.writing() as connection:
        row = connection.execute(
            "SELECT audit_items.* FROM audit_items JOIN decisions ON decisions.id = audit_items.decision "
            "WHERE audit = ? AND decisions.reviewer = ? ORDER BY decision DESC LIMIT 1",
            (audit.id, body.reviewer),
        ).fetchone()
        if row is None:
            raise api.ProblemError(409, f"'{body.reviewer}' has no answer left to take back.")
        take_back(connection, row["decision"])
        connection.execute(
            "UPDATE audit_items SET verdict = NULL, is_right = NULL, decision = NULL "
            "WHERE audit = ? AND number = ?",
            (audit.id, row["number"]),
        )
    return {"item": _blind(row), "decided": _drawn(book.store).decided, "size": audit.size}


@router.get("/api/audit/report", response_model=ReportAnswer, responses=api.problems(409))
def audit_result(book: BookOf, width: Annotated[float, Query(gt=0, le=1)] = 0.1) -> Any:
    """Precision with its 95 % interval, over all and by band."""
    audit, forward = _drawn(book.store), book.direction == "forward"
    items, found = _judged(book.store, audit)
    whole = intervals.estimate(found)
    change = book.engine.recalibration if forward else UNCHANGED
    bands = [band.name for band in book.bands]
    more = intervals.more_decisions(found, width)
    return {
        "decided": len(items),
        "size": audit.size,
        **_shares(whole),
        "width": whole.width if whole else None,
        "more_decisions": {"width": width, "decisions": more},
        "by_band": _groups([one.band for one in audit.strata], found, bands),
        "by_confidence": _groups(
            [one.confidence for one in audit.strata], found, [*intervals.CONFIDENCE_BANDS, "none"]
        ),
        "calibration": _calibration(book.engine.change if forward else UNCHANGED, items),
        "recalibration": change if change.decisions else None,
    }


def audited_precision(store: Store) -> tuple[int, intervals.Estimate] | None:
    """How many entries of the newest audit were judged, and the precision; None without any."""
    audit = current(store)
    if audit is None:
        return None
    items, found = _judged(store, audit)
    whole = intervals.estimate(found)
    return None if whole is None else (len(items), whole)


def _judged(store: Store, audit: Audit) -> tuple[list[sqlite3.Row], list[intervals.Stratum]]:
    """The judged items of an audit, and what was found in each stratum."""
    items = store.all("SELECT * FROM audit_items WHERE audit = ? AND is_right IS NOT NULL", audit.id)
    right: list[list[int]] = [[] for _ in audit.strata]
    for item in items:
        right[item["stratum"]].append(item["is_right"])
    strata = zip(audit.strata, right, strict=True)
    return items, [intervals.Stratum(one.entries, len(said), sum(said)) for one, said in strata]


def _shares(found: intervals.Estimate | None) -> dict[str, float | None]:
    low, high = (found.low, found.high) if found else (None, None)
    return {"precision": found.share if found else None, "low": low, "high": high}


def _groups(by: Sequence[str], found: list[intervals.Stratum], names: Sequence[str]) -> list[dict[str, Any]]:
    groups = []
    for name in names:
        members = [one for group, one in zip(by, found, strict=True) if group == name]
        if members:
            counts = {
                part: sum(getattr(one, part) for one in members) for part in ("entries", "decided", "right")
            }
            groups.append({"name": name, **counts, **_shares(intervals.estimate(members))})
    return groups


def _calibration(change: Recalibration, items: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    """What confidences said, as they are now, and what was found, by confidence band."""
    said: dict[str, list[tuple[float, int]]] = {}
    for item in items:
        confidence = change(item["confidence"])
        if confidence is not None:
            said.setdefault(intervals.confidence_band(confidence), []).append((confidence, item["is_right"]))
    means = {
        name: np.mean(said[name], axis=0).tolist() for name in intervals.CONFIDENCE_BANDS if name in said
    }
    return [
        {"name": name, "said": sure, "found": right, "decided": len(said[name])}
        for name, (sure, right) in means.items()
    ]


@router.post("/api/audit/recalibrate", response_model=RecalibrationAnswer, responses=api.problems(409))
def recalibrate(bench: Bench) -> Any:
    """Bring all confidences in line with everything that was audited."""
    with bench.exclusive("recalibrate"):
        engine = bench.engine
        items = bench.store.all(
            "SELECT confidence, is_right FROM audit_items JOIN audits ON audits.id = audit "
            "WHERE is_right IS NOT NULL AND confidence IS NOT NULL AND (model = ? OR model IS NULL)",
            engine.base,
        )
        if len(items) < FEWEST_DECISIONS:
            raise api.ProblemError(
                409,
                f"Recalibration needs {FEWEST_DECISIONS} audited entries of this model; "
                f"there are {len(items)}.",
            )
        said = engine.applied.of_all(np.array([item["confidence"] for item in items]))
        right = np.array([item["is_right"] for item in items], bool)
        return {"recalibration": _changed(engine, learn(said, right, now(), engine.fingerprint))}


@router.delete("/api/audit/recalibrate", response_model=RecalibrationAnswer, responses=api.problems(409))
def undo_recalibration(bench: Bench) -> Any:
    """The model's own confidences again."""
    with bench.exclusive("recalibrate"):
        _changed(bench.engine, UNCHANGED)
    return {"recalibration": None}


def _changed(engine: Engine, change: Recalibration) -> Recalibration:
    """Show other confidences, and write those of the table, together with changes applied before."""
    engine.recalibration = change  # before the write: entries that are filled meanwhile have it too
    rows = engine.store.all("SELECT row, model_confidence FROM entries")
    new = engine.change.of_all(np.array([row["model_confidence"] for row in rows], np.float64))
    values = [
        (None if np.isnan(sure) else sure, row["row"]) for sure, row in zip(new.tolist(), rows, strict=True)
    ]
    with engine.store.writing() as connection:
        connection.executemany("UPDATE entries SET confidence = ? WHERE row = ?", values)
        remember(connection, "recalibration", change.as_dict() if change.decisions else None)
    return change


@router.post("/api/audit/apply", response_model=AppliedAnswer, responses=api.problems(409))
def apply_recalibration(bench: Bench) -> Any:
    """Write the recalibrated confidences into the model, so that `bilex translate` has them too."""
    with bench.exclusive("apply"):
        engine = bench.engine
        change = engine.recalibration
        if not change.decisions:
            raise api.ProblemError(409, "The confidences were not recalibrated; do that first.")
        try:
            write_into(engine.folder, engine.base, engine.translator.calibration, engine.change)
        except BilexError as error:
            raise api.ProblemError(409, str(error)) from error
        bench.load()
    return {"applied": change}
