"""The audit: a stratified random sample, reviewed blind, and what it says about the whole dictionary."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from typing import Any

from bilex_workbench.bands import Band, band_of, confidence_band
from bilex_workbench.decisions import Decision, record, take_back
from bilex_workbench.engine import Engine
from bilex_workbench.intervals import allocate
from bilex_workbench.problems import ProblemError
from bilex_workbench.reviewing import candidates
from bilex_workbench.store import Store, now

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
    """Draw a new sample: strata are frequency bands by confidence bands.

    Args:
        engine: The open model.
        bands: The frequency bands.
        size: How many entries.
        reviewer: Who asked for it.
        random_seed: Fixes the draw and the order of candidates.
        min_confidence: Only entries of at least this confidence: the part that is to be published.
        max_rank: Only words at least this frequent.

    Raises:
        ProblemError: There are no such entries.
    """
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
    """The newest audit.

    Raises:
        ProblemError: There is none.
    """
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
    """Keep what a reviewer said about one item; it is a decision about the word as well.

    Raises:
        ProblemError: There is no such item, or it was decided already.
    """
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
    """Take back a reviewer's newest answer in the present audit.

    Raises:
        ProblemError: There is none.
    """
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
