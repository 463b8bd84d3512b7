"""Recalibrated confidences written into the model itself, so that everybody who opens it has them.

The model's folder is replaced as a whole, checksums included, so that a kill leaves the old or the new one.
The review file follows: what it stores of the model's own confidences becomes what the new model says.
Should that be missed, the file still says which model its facts are about, and the table is filled again.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import sha256
from bilex.core.manifest import CHECKSUMS
from bilex.fit.calibration import Calibration
from bilex.fit.logistic import Logistic
from bilex.model.storage import replace_calibration
from bilex_workbench.engine import STORED, direction_number
from bilex_workbench.problems import ProblemError
from bilex_workbench.recalibration import Recalibration
from bilex_workbench.store import Store, remember

if TYPE_CHECKING:
    from bilex_workbench.state import Workbench

_ROWS_AT_A_TIME = 4096


def apply_to_model(bench: Workbench) -> Recalibration:
    """Make the recalibrated confidences the model's own.

    Raises:
        ProblemError: There is no recalibration, a job runs, or the folder cannot be replaced.
    """
    engine = bench.engine
    change = engine.recalibration
    if not change.decisions:
        raise ProblemError(409, "The confidences were not recalibrated; do that first.")
    if bench.jobs.running:
        raise ProblemError(409, "A job runs; wait for it or cancel it first.")
    calibration = recalibrated(engine.translator.calibration, change)
    bench.pause_filling()
    try:
        replace_calibration(engine.folder, calibration, {"recalibrated": change.as_dict()})
        follow(bench.store, change, engine.fingerprint, sha256(engine.folder / CHECKSUMS))
    except BilexError as error:
        raise ProblemError(409, str(error)) from error
    finally:
        bench.load()
    return change


def recalibrated(calibration: Calibration, change: Recalibration) -> Calibration:
    """A calibration whose confidences in what was audited (forward, CSLS) are the new ones.

    The new confidence is logistic(shift + slope · (bias + slopes · features)): again a logistic model.
    """
    part = calibration.parts[("forward", "csls")]
    slopes = part.model.slopes
    model = Logistic(
        change.shift + change.slope * part.model.bias,
        (change.slope * slopes[0], change.slope * slopes[1], change.slope * slopes[2]),
    )
    error = part.error if change.error_after is None else change.error_after
    parts = {**calibration.parts, ("forward", "csls"): replace(part, model=model, error=error)}
    return Calibration(parts, calibration.note)


def follow(store: Store, change: Recalibration, old: str, new: str) -> None:
    """Bring the review file in line with a model whose confidences were changed.

    Args:
        store: The review file.
        change: How they were changed.
        old: The fingerprint of the model before.
        new: That of the model now.
    """
    with store.writing() as connection:
        connection.execute("UPDATE entries SET model_confidence = confidence")
        _candidates(connection, change)
        audited = connection.execute(
            "SELECT audit, number, confidence FROM audit_items JOIN audits ON audits.id = audit "
            "WHERE (model = ? OR model IS NULL) AND confidence IS NOT NULL",
            (old,),
        ).fetchall()
        connection.executemany(
            "UPDATE audit_items SET confidence = ? WHERE audit = ? AND number = ?",
            [(change(row["confidence"]), row["audit"], row["number"]) for row in audited],
        )
        connection.execute("UPDATE audits SET model = ? WHERE model = ? OR model IS NULL", (new, old))
        for fact in ("entries_of", "entries_complete"):
            if store.fact(fact) == old:
                remember(connection, fact, new)
        remember(connection, "recalibration", None)


def _candidates(connection: sqlite3.Connection, change: Recalibration) -> None:
    """The stored candidates of the audited direction with their new confidences."""
    forward, after = direction_number("forward"), -1
    while True:
        rows = connection.execute(
            "SELECT row, answers FROM candidates WHERE direction = ? AND row > ? ORDER BY row LIMIT ?",
            (forward, after, _ROWS_AT_A_TIME),
        ).fetchall()
        if not rows:
            return
        values = []
        for row in rows:
            stored = np.frombuffer(row["answers"], STORED).copy()
            stored["confidence"] = change.of_all(stored["confidence"].astype(np.float64))
            values.append((stored.tobytes(), forward, row["row"]))
        connection.executemany("UPDATE candidates SET answers = ? WHERE direction = ? AND row = ?", values)
        after = rows[-1]["row"]
