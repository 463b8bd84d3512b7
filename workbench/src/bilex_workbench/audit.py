"""The audit: a stratified random sample, reviewed blind, and what it says about the whole dictionary."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field, Json

from bilex.core.errors import BilexError
from bilex_workbench import api, statistics
from bilex_workbench.database import dicts, now, set_facts
from bilex_workbench.decisions import Decision, Verdict, record
from bilex_workbench.decisions import undo as undo_decision
from bilex_workbench.engine import Engine
from bilex_workbench.review import UndoIn, candidates
from bilex_workbench.statistics import FEWEST_DECISIONS, UNCHANGED, Recalibration, learn, write_into
from bilex_workbench.workbench import Bench, BookOf, Reader

router = APIRouter(tags=["audit"])
_SHOWN = 5
_BLIND = "number, audit_items.source, source_rank, shown candidates"  # nothing that marks the model's choice


class SampleIn(api.Body):
    """How to draw the sample of an audit."""

    size: int = Field(200, ge=1, le=100_000)
    reviewer: api.Name
    random_seed: int = Field(1, ge=0, le=2**32 - 1)
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    max_rank: int | None = Field(None, ge=1, le=1_000_000_000)


class VerdictIn(api.Body):
    """A verdict about an item of an audit."""

    number: int = Field(ge=1, le=1_000_000_000)
    reviewer: api.Name
    verdict: Verdict
    right: api.Words = Field(default_factory=list)
    typed: api.Words = Field(default_factory=list)
    note: api.Note = ""


Stratum = api.response(
    "Stratum", "A part of the sample.", band=str, confidence=str, entries=int, drawn=int, decided=int
)
Audit = api.response(
    "Audit",
    "A sample and its progress.",
    id=int,
    size=int,
    decided=int,
    skipped=int,
    created=str,
    reviewer=str,
    strata=[Stratum],
)
_PRECISION = dict.fromkeys(("precision", "low", "high"), float | None)
PrecisionPart = api.response(
    "PrecisionPart",
    "The precision of a part of the dictionary.",
    name=str,
    entries=int,
    decided=int,
    right=int,
    **_PRECISION,
)
CalibrationPart = api.response(
    "CalibrationPart",
    "The mean of the confidences in one band, and the share that was right.",
    name=str,
    said=float,
    found=float,
    decided=int,
)
BlindItem = api.response(
    "BlindItem",
    "An item of the sample, without the model's choice.",
    number=int,
    source=str,
    source_rank=int,
    candidates=Json[list[str]],
)
AuditAnswer = api.response("AuditAnswer", audit=Audit | None)
BlindItems = api.response("BlindItems", items=[BlindItem], decided=int, skipped=int, size=int)
AuditDecided = api.response("AuditDecided", number=int, decided=int, size=int)
AuditUndone = api.response("AuditUndone", item=BlindItem, decided=int, size=int)
MoreDecisions = api.response("MoreDecisions", width=float, decisions=int | None)
ReportAnswer = api.response(
    "ReportAnswer",
    decided=int,
    size=int,
    **_PRECISION,
    width=float | None,
    more_decisions=MoreDecisions,
    by_band=[PrecisionPart],
    by_confidence=[PrecisionPart],
    calibration=[CalibrationPart],
    recalibration=Recalibration | None,
)
RecalibrationAnswer = api.response("RecalibrationAnswer", recalibration=Recalibration | None)
AppliedAnswer = api.response("AppliedAnswer", applied=Recalibration)


@router.post("/api/audit", response_model=AuditAnswer, responses=api.problems(409))
def draw_sample(book: BookOf, db: Reader, body: SampleIn) -> Any:
    """Draw a new stratified sample: strata are frequency bands by confidence bands."""
    strata: dict[tuple[str, str], list[sqlite3.Row]] = {}
    for row in db.execute(
        "SELECT row, source, coalesce(answer, target) target, confidence, model_confidence FROM entries "
        "WHERE target IS NOT NULL AND known = 0 AND headword = source "
        "AND (?1 IS NULL OR confidence >= ?1) AND (?2 IS NULL OR row < ?2)",
        (body.min_confidence, body.max_rank),
    ):
        band = statistics.band_of(row["row"] + 1, book.bands)
        strata.setdefault((band, statistics.confidence_band(row["confidence"])), []).append(row)
    if not strata:
        message = "There is no entry to audit; wait until the table is filled, or choose a wider range."
        raise api.ProblemError(409, message)
    rng, names = random.Random(body.random_seed), sorted(strata)
    counts = statistics.allocate([len(strata[name]) for name in names], body.size)
    described, drawn = [], []
    for stratum, (name, count) in enumerate(zip(names, counts, strict=True)):
        about = {"band": name[0], "confidence": name[1], "entries": len(strata[name]), "drawn": count}
        described.append(about)
        drawn += [(stratum, row) for row in rng.sample(strata[name], count)]
    rng.shuffle(drawn)
    items = []
    for number, (stratum, row) in enumerate(drawn, 1):
        source, best = row["source"], row["target"]
        words = [candidate["word"] for candidate in candidates(book, db, source, _SHOWN)]
        shown = list(dict.fromkeys([best, *words]))[:_SHOWN]
        rng.shuffle(shown)
        rank, confidence = row["row"] + 1, row["model_confidence"]
        items.append((number, source, rank, best, confidence, stratum, json.dumps(shown)))
    with book.database.writing() as writer:
        cursor = writer.execute(
            "INSERT INTO audits (created, reviewer, size, strata, model) VALUES (?, ?, ?, ?, ?)",
            (now(), body.reviewer, len(items), json.dumps(described), book.engine.base),
        )
        writer.executemany(
            "INSERT INTO audit_items (audit, number, source, source_rank, best, confidence, stratum, shown) "
            f"VALUES ({cursor.lastrowid}, ?, ?, ?, ?, ?, ?, ?)",
            items,
        )
        return {"audit": _current(writer)}


@router.get("/api/audit", response_model=AuditAnswer)
def current_sample(db: Reader) -> Any:
    """The current sample and its progress."""
    return {"audit": _current(db)}


def _current(db: sqlite3.Connection) -> dict[str, Any] | None:
    """The newest audit and its progress, also by stratum; None if there is none."""
    audit = db.execute("SELECT * FROM audits ORDER BY id DESC LIMIT 1").fetchone()
    if audit is None:
        return None
    query = (
        "SELECT stratum, count(is_right), coalesce(sum(is_right), 0), count(*) - count(is_right) "
        "FROM audit_items WHERE audit = ? AND verdict IS NOT NULL GROUP BY stratum"
    )
    judged = {stratum: counts for stratum, *counts in db.execute(query, (audit["id"],))}
    strata = []
    for number, about in enumerate(json.loads(audit["strata"])):
        decided, right, skipped = judged.get(number, (0, 0, 0))
        strata.append({**about, "decided": decided, "right": right, "skipped": skipped})
    sums = {name: sum(one[name] for one in strata) for name in ("decided", "skipped")}
    return {**dict(audit), **sums, "strata": strata}


def _drawn(db: sqlite3.Connection) -> dict[str, Any]:
    found = _current(db)
    if found is None:
        raise api.ProblemError(409, "No sample was drawn yet; draw one first.")
    return found


@router.get("/api/audit/next", response_model=BlindItems, responses=api.problems(409))
def next_blind_items(
    db: Reader, reviewer: api.ReviewerQuery, count: Annotated[int, Query(ge=1, le=10)] = 2
) -> Any:
    """The next items, blind: nothing marks the model's choice."""
    audit = _drawn(db)
    query = f"SELECT {_BLIND} FROM audit_items WHERE audit = ? AND verdict IS NULL ORDER BY number LIMIT ?"
    return {**audit, "items": dicts(db, query, audit["id"], count)}


@router.post("/api/audit/decide", response_model=AuditDecided, responses=api.problems(404, 409))
def decide_blind(book: BookOf, body: VerdictIn) -> Any:
    """Store a verdict about an item; it is a decision about the word as well."""
    with book.database.writing() as db:
        audit, number, verdict = _drawn(db), body.number, body.verdict
        query = "SELECT * FROM audit_items WHERE audit = ? AND number = ?"
        row = db.execute(query, (audit["id"], number)).fetchone()
        if row is None:
            raise api.ProblemError(404, f"The sample has no item {number}.")
        if row["verdict"] is not None:
            raise api.ProblemError(409, f"Item {number} is decided already; undo that first.")
        shown = tuple(json.loads(row["shown"]))
        unknown = [word for word in body.right if word not in shown]
        if unknown:
            message = f"'{unknown[0]}' was not shown; typed translations belong in 'typed'."
            raise api.ProblemError(400, message)
        accepted = tuple(dict.fromkeys([*body.right, *body.typed])) if verdict == "accept" else ()
        if verdict == "accept" and not accepted:
            raise api.ProblemError(400, "Nothing was accepted; choose 'none' if no candidate is right.")
        wrong, best = shown if verdict == "none" else (), row["best"]
        decision = Decision(
            row["source"], body.reviewer, verdict, accepted, wrong, shown, best, body.note, "audit"
        )
        right = None if verdict == "skip" else best in accepted
        db.execute(
            "UPDATE audit_items SET verdict = ?, is_right = ?, decision = ? WHERE audit = ? AND number = ?",
            (verdict, right, record(db, decision).id, audit["id"], number),
        )
        return {"number": number, "decided": _drawn(db)["decided"], "size": audit["size"]}


@router.post("/api/audit/undo", response_model=AuditUndone, responses=api.problems(409))
def undo_blind(book: BookOf, body: UndoIn) -> Any:
    """Undo a reviewer's newest verdict in the current audit."""
    with book.database.writing() as db:
        audit = _drawn(db)
        row = db.execute(
            f"SELECT {_BLIND}, decision FROM audit_items JOIN decisions ON decisions.id = decision "
            "WHERE audit = ? AND decisions.reviewer = ? ORDER BY decision DESC LIMIT 1",
            (audit["id"], body.reviewer),
        ).fetchone()
        if row is None:
            raise api.ProblemError(409, f"'{body.reviewer}' has no verdict left to undo.")
        undo_decision(db, row["decision"])
        db.execute(
            "UPDATE audit_items SET verdict = NULL, is_right = NULL, decision = NULL "
            "WHERE audit = ? AND number = ?",
            (audit["id"], row["number"]),
        )
        return {"item": dict(row), "decided": _drawn(db)["decided"], "size": audit["size"]}


@router.get("/api/audit/report", response_model=ReportAnswer, responses=api.problems(409))
def audit_result(book: BookOf, db: Reader, width: Annotated[float, Query(gt=0, le=1)] = 0.1) -> Any:
    """Precision with its 95 % interval, over all and by band."""
    audit, engine, forward = _drawn(db), book.engine, book.direction == "forward"
    strata = audit["strata"]
    change = engine.recalibration if forward else UNCHANGED
    more = statistics.more_decisions(_counts(strata), width)
    return {
        "size": audit["size"],
        **_precision(strata),
        "more_decisions": {"width": width, "decisions": more},
        "by_band": _groups(strata, "band", [band.name for band in book.bands]),
        "by_confidence": _groups(strata, "confidence", [*statistics.CONFIDENCE_BANDS, "none"]),
        "calibration": _calibration(db, audit["id"], engine.change if forward else UNCHANGED),
        "recalibration": change if change.decisions else None,
    }


def audited_precision(db: sqlite3.Connection) -> tuple[int, statistics.Estimate] | None:
    """How many entries of the newest audit were judged, and the precision; None without any."""
    audit = _current(db)
    whole = statistics.estimate(_counts(audit["strata"])) if audit else None
    return (audit["decided"], whole) if audit and whole else None


def _counts(strata: Sequence[dict[str, Any]]) -> list[statistics.Stratum]:
    return [statistics.Stratum(one["entries"], one["decided"], one["right"]) for one in strata]


def _precision(strata: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The counts of some strata together, and the precision with its interval; null without a decision."""
    found = statistics.estimate(_counts(strata))
    return {
        **{name: sum(one[name] for one in strata) for name in ("entries", "decided", "right")},
        "precision": found and found.share,
        "low": found and found.low,
        "high": found and found.high,
        "width": found and found.width,
    }


def _groups(strata: Sequence[dict[str, Any]], by: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """The precision of each group of strata that was drawn from."""
    groups = {name: [one for one in strata if one[by] == name] for name in names}
    return [{"name": name, **_precision(members)} for name, members in groups.items() if members]


def _calibration(db: sqlite3.Connection, audit: int, change: Recalibration) -> list[dict[str, Any]]:
    """Mean confidences, as they are shown now, and shares of right entries, by confidence band."""
    bands: dict[str, list[tuple[float, int]]] = {name: [] for name in statistics.CONFIDENCE_BANDS}
    query = (
        "SELECT confidence, is_right FROM audit_items WHERE audit = ? "
        "AND is_right IS NOT NULL AND confidence IS NOT NULL"
    )
    for own, right in db.execute(query, (audit,)):
        shown = float(change.of_all(own))
        bands[statistics.confidence_band(shown)].append((shown, right))
    parts = []
    for name, items in bands.items():
        if items:
            stated, found = np.mean(items, axis=0).tolist()
            parts.append({"name": name, "said": stated, "found": found, "decided": len(items)})
    return parts


@router.post("/api/audit/recalibrate", response_model=RecalibrationAnswer, responses=api.problems(409))
def recalibrate(bench: Bench) -> Any:
    """Correct all confidences by everything that was audited."""
    with bench.exclusive("recalibrate"):
        engine = bench.engine
        query = (
            "SELECT confidence, is_right FROM audit_items JOIN audits ON audits.id = audit "
            "WHERE is_right IS NOT NULL AND confidence IS NOT NULL AND (model = ? OR model IS NULL)"
        )
        with bench.database.reading() as db:
            items = np.array(db.execute(query, (engine.base,)).fetchall(), np.float64)
        if len(items) < FEWEST_DECISIONS:
            needed = f"Recalibration needs {FEWEST_DECISIONS} audited entries of this model"
            raise api.ProblemError(409, f"{needed}; there are {len(items)}.")
        confidences, right = items.T
        change = learn(engine.applied.of_all(confidences), right > 0, now(), engine.fingerprint)
        _set_recalibration(engine, change)
        return {"recalibration": change}


@router.delete("/api/audit/recalibrate", response_model=RecalibrationAnswer, responses=api.problems(409))
def undo_recalibration(bench: Bench) -> Any:
    """Show the model's own confidences again."""
    with bench.exclusive("recalibrate"):
        _set_recalibration(bench.engine, UNCHANGED)
    return {"recalibration": None}


def _set_recalibration(engine: Engine, change: Recalibration) -> None:
    """Correct the confidences that are shown and those of the table, on top of corrections applied before."""
    engine.recalibration = change  # before the write, for entries that are filled meanwhile
    with engine.database.writing() as db:
        entries = db.execute("SELECT row, model_confidence FROM entries").fetchall()
        new = engine.change.of_all(np.array([own for _, own in entries], np.float64)).tolist()
        values = [(statistics.or_none(one), row) for one, (row, _) in zip(new, entries, strict=True)]
        db.executemany("UPDATE entries SET confidence = ? WHERE row = ?", values)
        set_facts(db, recalibration=asdict(change) if change.decisions else None)


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
