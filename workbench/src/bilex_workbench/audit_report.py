"""What an audit says about the whole dictionary, and confidences that agree with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from bilex_workbench.audit import current, drawn
from bilex_workbench.bands import Band, confidence_band, confidence_bands
from bilex_workbench.engine import Engine
from bilex_workbench.intervals import Stratum, estimate, more_decisions
from bilex_workbench.problems import ProblemError
from bilex_workbench.recalibration import FEWEST_DECISIONS, UNCHANGED, Recalibration, learn
from bilex_workbench.store import Store, now, remember


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
    """Bring all confidences in line with everything that was audited, or take that back.

    Raises:
        ProblemError: Too little was audited, or the model has no confidences.
    """
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
