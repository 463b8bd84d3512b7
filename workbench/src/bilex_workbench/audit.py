"""The audit: a stratified random sample, reviewed blind, and what it says about the whole dictionary."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from bilex_workbench.decisions import Decision, record, take_back
from bilex_workbench.engine import Engine
from bilex_workbench.intervals import (
    Band,
    Stratum,
    allocate,
    band_of,
    confidence_band,
    confidence_bands,
    estimate,
    more_decisions,
)
from bilex_workbench.problems import ProblemError
from bilex_workbench.recalibration import FEWEST_DECISIONS, UNCHANGED, Recalibration, learn
from bilex_workbench.reviewing import candidates
from bilex_workbench.store import Store, now, remember

_SHOWN = 5


def draw(
    engine: Engine,
    bands: list[Band],
    size: int,
    reviewer: str,
    random_seed: int,
    min_confidence: float | None = None,
    max_rank: int | None = None,
) -> dict[str, Any]:
    """Draw a new sample: strata are frequency bands by confidence bands."""
    store = engine.store
    conditions, values = ["target IS NOT NULL", "known = 0", "headword = source"], []
    if min_confidence is not None:
        conditions.append("confidence >= ?")
        values.append(min_confidence)
    if max_rank is not None:
        conditions.append("row < ?")
        values.append(max_rank)
    columns = "row, source, coalesce(answer, target) target, confidence, model_confidence"
    query = f"SELECT {columns} FROM entries WHERE {' AND '.join(conditions)}"
    strata: dict[tuple[str, str], list[sqlite3.Row]] = {}
    for row in store.all(query, *values):
        key = (band_of(row["row"] + 1, bands), confidence_band(row["confidence"]))
        strata.setdefault(key, []).append(row)
    if not strata:
        raise ProblemError(
            409, "There is no entry to audit; wait until the table is filled, or ask for less."
        )
    rng = random.Random(random_seed)
    names = sorted(strata)
    counts = allocate([len(strata[name]) for name in names], size)
    described, chosen = [], []
    for number, (name, count) in enumerate(zip(names, counts, strict=True)):
        described.append(
            {"band": name[0], "confidence": name[1], "entries": len(strata[name]), "drawn": count}
        )
        chosen += [(number, row) for row in rng.sample(strata[name], count)]
    rng.shuffle(chosen)
    items = [(stratum, row, _shown(engine, row["source"], row["target"], rng)) for stratum, row in chosen]
    with store.writing() as connection:
        cursor = connection.execute(
            "INSERT INTO audits (created, reviewer, size, strata, model) VALUES (?, ?, ?, ?, ?)",
            (now(), reviewer, len(items), json.dumps(described), engine.base),
        )
        connection.executemany(
            "INSERT INTO audit_items (audit, number, source, source_rank, best, confidence, stratum, shown) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    cursor.lastrowid,
                    number,
                    row["source"],
                    row["row"] + 1,
                    row["target"],
                    row["model_confidence"],
                    stratum,
                    json.dumps(shown),
                )
                for number, (stratum, row, shown) in enumerate(items, 1)
            ],
        )
    found = current(store)
    assert found is not None
    return found


def _shown(engine: Engine, source: str, best: str, rng: random.Random) -> list[str]:
    """The model's candidates in random order, its own choice among them."""
    words = [candidate["word"] for candidate in candidates(engine, source, _SHOWN)]
    shown = list(dict.fromkeys([best, *words]))[:_SHOWN]
    rng.shuffle(shown)
    return shown


def current(store: Store) -> dict[str, Any] | None:
    """The newest audit and how far it is; None if there is none."""
    audit = store.one("SELECT * FROM audits ORDER BY id DESC LIMIT 1")
    if audit is None:
        return None
    items = store.all("SELECT stratum, verdict FROM audit_items WHERE audit = ?", audit["id"])
    strata = json.loads(audit["strata"])
    for number, stratum in enumerate(strata):
        stratum["decided"] = sum(
            item["stratum"] == number and item["verdict"] in ("accept", "none") for item in items
        )
    return {
        "id": audit["id"],
        "size": audit["size"],
        "decided": sum(stratum["decided"] for stratum in strata),
        "skipped": sum(item["verdict"] == "skip" for item in items),
        "created": audit["created"],
        "reviewer": audit["reviewer"],
        "strata": strata,
    }


def drawn(store: Store) -> dict[str, Any]:
    """The newest audit."""
    found = current(store)
    if found is None:
        raise ProblemError(409, "No sample was drawn yet; draw one first.")
    return found


def following(store: Store, count: int) -> dict[str, Any]:
    """The next items, blind: nothing says which candidate is the model's choice."""
    audit = drawn(store)
    rows = store.all(
        "SELECT * FROM audit_items WHERE audit = ? AND verdict IS NULL ORDER BY number LIMIT ?",
        audit["id"],
        count,
    )
    return {
        "items": [blind(row) for row in rows],
        "decided": audit["decided"],
        "skipped": audit["skipped"],
        "size": audit["size"],
    }


def blind(row: sqlite3.Row) -> dict[str, Any]:
    """An item as a reviewer sees it."""
    return {
        "number": row["number"],
        "source": row["source"],
        "source_rank": row["source_rank"],
        "candidates": json.loads(row["shown"]),
    }


def decide(
    store: Store,
    number: int,
    reviewer: str,
    verdict: str,
    right: Sequence[str],
    typed: Sequence[str],
    note: str,
) -> dict[str, Any]:
    """Keep what a reviewer said about one item; it is a decision about the word as well."""
    audit = drawn(store)
    with store.writing() as connection:
        row = connection.execute(
            "SELECT * FROM audit_items WHERE audit = ? AND number = ?", (audit["id"], number)
        ).fetchone()
        if row is None:
            raise ProblemError(404, f"The sample has no item {number}.")
        if row["verdict"] is not None:
            raise ProblemError(409, f"Item {number} is decided already; take it back first.")
        shown = json.loads(row["shown"])
        strange = [word for word in right if word not in shown]
        if strange:
            raise ProblemError(400, f"'{strange[0]}' was not shown; typed translations belong in 'typed'.")
        accepted = tuple(dict.fromkeys([*right, *typed])) if verdict == "accept" else ()
        if verdict == "accept" and not accepted:
            raise ProblemError(400, "Nothing was accepted; choose 'none' if no candidate is right.")
        wrong = tuple(word for word in shown if word not in accepted) if verdict == "none" else ()
        decision = record(
            connection,
            Decision(
                row["source"],
                reviewer,
                verdict,  # type: ignore[arg-type]
                accepted,
                wrong,
                tuple(shown),
                row["best"],
                note,
                "audit",
            ),
        )
        connection.execute(
            "UPDATE audit_items SET verdict = ?, is_right = ?, decision = ? WHERE audit = ? AND number = ?",
            (
                verdict,
                None if verdict == "skip" else int(row["best"] in accepted),
                decision.id,
                audit["id"],
                number,
            ),
        )
    after = drawn(store)
    return {"number": number, "decided": after["decided"], "size": after["size"]}


def undo(store: Store, reviewer: str) -> dict[str, Any]:
    """Take back a reviewer's newest answer in the present audit."""
    audit = drawn(store)
    with store.writing() as connection:
        row = connection.execute(
            "SELECT audit_items.* FROM audit_items JOIN decisions ON decisions.id = audit_items.decision "
            "WHERE audit = ? AND decisions.reviewer = ? ORDER BY decision DESC LIMIT 1",
            (audit["id"], reviewer),
        ).fetchone()
        if row is None:
            raise ProblemError(409, f"'{reviewer}' has no answer left to take back.")
        take_back(connection, row["decision"])
        connection.execute(
            "UPDATE audit_items SET verdict = NULL, is_right = NULL, decision = NULL "
            "WHERE audit = ? AND number = ?",
            (audit["id"], row["number"]),
        )
    after = drawn(store)
    return {"item": blind(row), "decided": after["decided"], "size": after["size"]}


def report(engine: Engine, bands: list[Band], width: float) -> dict[str, Any]:
    """Precision over all and by band, and how many more decisions a narrower interval needs."""
    store = engine.store
    audit = drawn(store)
    items = store.all("SELECT * FROM audit_items WHERE audit = ? AND is_right IS NOT NULL", audit["id"])
    strata = audit["strata"]
    found = _strata(strata, items)
    whole = estimate(found)
    change = engine.recalibration
    return {
        "decided": len(items),
        "size": audit["size"],
        "precision": whole.share if whole else None,
        "low": whole.low if whole else None,
        "high": whole.high if whole else None,
        "width": whole.width if whole else None,
        "more_decisions": {"width": width, "decisions": more_decisions(found, width)},
        "by_band": _groups(strata, found, "band", [band.name for band in bands]),
        "by_confidence": _groups(strata, found, "confidence", [*confidence_bands(), "none"]),
        "calibration": _calibration(engine.change, items),
        "recalibration": change.as_dict() if change.decisions else None,
    }


def audited_precision(store: Store) -> tuple[int, float, float, float] | None:
    """How many entries of the newest audit were judged, the precision and its interval; None without any."""
    audit = current(store)
    if audit is None:
        return None
    items = store.all("SELECT * FROM audit_items WHERE audit = ? AND is_right IS NOT NULL", audit["id"])
    whole = estimate(_strata(audit["strata"], items))
    return None if whole is None else (len(items), whole.share, whole.low, whole.high)


def _strata(strata: list[dict[str, Any]], items: Sequence[sqlite3.Row]) -> list[Stratum]:
    return [
        Stratum(
            stratum["entries"],
            sum(item["stratum"] == number for item in items),
            sum(item["is_right"] for item in items if item["stratum"] == number),
        )
        for number, stratum in enumerate(strata)
    ]


def _groups(
    strata: list[dict[str, Any]], found: list[Stratum], by: str, names: Sequence[str]
) -> list[dict[str, Any]]:
    groups = []
    for name in names:
        members = [one for stratum, one in zip(strata, found, strict=True) if stratum[by] == name]
        if not members:
            continue
        whole = estimate(members)
        groups.append(
            {
                "name": name,
                "entries": sum(one.entries for one in members),
                "decided": sum(one.decided for one in members),
                "right": sum(one.right for one in members),
                "precision": whole.share if whole else None,
                "low": whole.low if whole else None,
                "high": whole.high if whole else None,
            }
        )
    return groups


def _calibration(change: Recalibration, items: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    """What confidences said, as they are now, and what was found, by confidence band."""
    said: dict[str, list[tuple[float, int]]] = {}
    for item in items:
        confidence = change(item["confidence"])
        if confidence is not None:
            said.setdefault(confidence_band(confidence), []).append((confidence, item["is_right"]))
    return [
        {
            "name": name,
            "said": float(np.mean([confidence for confidence, _ in said[name]])),
            "found": float(np.mean([right for _, right in said[name]])),
            "decided": len(said[name]),
        }
        for name in confidence_bands()
        if name in said
    ]


def recalibrate(engine: Engine, *, back: bool = False) -> Recalibration:
    """Bring all confidences in line with everything that was audited, or take that back."""
    store = engine.store
    if back:
        change = UNCHANGED
    else:
        items = store.all(
            "SELECT confidence, is_right FROM audit_items JOIN audits ON audits.id = audit "
            "WHERE is_right IS NOT NULL AND confidence IS NOT NULL AND (model = ? OR model IS NULL)",
            engine.base,
        )
        if len(items) < FEWEST_DECISIONS:
            raise ProblemError(
                409,
                f"Recalibration needs {FEWEST_DECISIONS} audited entries of this model; "
                f"there are {len(items)}.",
            )
        said = engine.applied.of_all(np.array([item["confidence"] for item in items]))
        change = learn(said, np.array([item["is_right"] for item in items], bool), now(), engine.fingerprint)
    engine.recalibration = change  # before the write: entries that are filled meanwhile have it too
    _write(store, engine.change, change)
    return change


def _write(store: Store, whole: Recalibration, change: Recalibration) -> None:
    """Write the confidences that follow from a change, together with those applied to the model before."""
    rows = store.all("SELECT row, model_confidence FROM entries")
    own = np.array([np.nan if row["model_confidence"] is None else row["model_confidence"] for row in rows])
    new = whole.of_all(own)
    values = [
        (None if np.isnan(sure) else float(sure), row["row"]) for sure, row in zip(new, rows, strict=True)
    ]
    with store.writing() as connection:
        connection.executemany("UPDATE entries SET confidence = ? WHERE row = ?", values)
        remember(connection, "recalibration", change.as_dict() if change.decisions else None)
