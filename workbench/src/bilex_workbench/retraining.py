"""The server's side of retraining: what is learned from, the result that waits, keep and discard."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex.core.files import ASIDE, exchange, sha256, sync_folder, temporary_folder
from bilex.core.locks import hidden_name
from bilex.core.manifest import CHECKSUMS
from bilex.model.storage import describe, is_model, own_files
from bilex_workbench.decisions import all_outcomes
from bilex_workbench.problems import ProblemError
from bilex_workbench.store import Store, remember

if TYPE_CHECKING:
    from bilex_workbench.state import Workbench


def retrained_folder(model: Path) -> Path:
    """Where a retrained model waits."""
    return model.with_name(model.name + ".retrained")


def previous_folder(model: Path) -> Path:
    """Where the model before the last keep lies."""
    return model.with_name(model.name + ".previous")


def is_held_out(source: str, share: float) -> bool:
    """Whether a word is kept back from retraining: by its spelling alone, so that it is so every time."""
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def material(store: Store, share: float) -> dict[str, Any]:
    """What a retraining learns from and what is kept back.

    VerdictIn words are always kept back, so that an audit stays a test; of the others, a share of those that
    have an accepted translation.

    Args:
        store: The review file.
        share: The share of reviewed words to keep back.
    """
    audited = {row["source"] for row in store.all("SELECT source FROM audit_items WHERE verdict IS NOT NULL")}
    accepted: list[list[str]] = []
    rejected: list[list[str]] = []
    held_out: dict[str, list[str]] = {}
    for source, found in all_outcomes(store).items():
        if found.status in ("unreviewed", "skipped", "disagreement"):
            continue
        accepted += [[source, word] for word in found.accepted]
        rejected += [[source, word] for word in found.rejected]
        if found.accepted and (source in audited or is_held_out(source, share)):
            held_out[source] = list(found.accepted)
    return {"accepted": accepted, "rejected": rejected, "held_out": held_out}


def start(bench: Workbench, updates: int | None, held_out: float, random_seed: int) -> dict[str, Any]:
    """Start a retraining.

    Raises:
        ProblemError: Nothing was decided, or the server does something else.
    """
    learned = material(bench.store, held_out)
    if not learned["accepted"] and not learned["rejected"]:
        raise ProblemError(409, "Nothing was decided yet; review some entries first.")
    assert bench.folder is not None
    with bench.exclusive("learn"):
        settle(bench.store, bench.folder)
    order = {
        "kind": "learn",
        "model": str(bench.folder),
        "output": str(retrained_folder(bench.folder)),
        "updates": updates,
        "random_seed": random_seed,
        **learned,
    }
    store, folder = bench.store, bench.folder
    return bench.jobs.start("learn", order, lambda result: _remember(store, folder, result))


def _remember(store: Store, folder: Path, result: dict[str, Any]) -> None:
    changes = result.pop("changes")
    result["model"] = fingerprint(retrained_folder(folder))
    with store.writing() as connection:
        connection.execute("DELETE FROM changes")
        connection.executemany(
            "INSERT INTO changes (source, source_rank, before, after, confidence_before, confidence_after) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            changes,
        )
        remember(connection, "waiting", result)


def waiting(bench: Workbench) -> dict[str, Any] | None:
    """The comparison of a retrained model that waits for keep or discard; None if none does."""
    found = bench.store.fact("waiting")
    if found is None or bench.folder is None or not is_model(retrained_folder(bench.folder)):
        return None
    if found.get("model") not in (None, fingerprint(retrained_folder(bench.folder))):
        return None  # of a job that was killed before it had compared
    return dict(found)


def changes(store: Store, q: str, offset: int, limit: int) -> dict[str, Any]:
    """Entries whose first translation changed, most frequent first."""
    condition = "instr(source, ?) > 0 OR instr(before, ?) > 0 OR instr(after, ?) > 0" if q else "1"
    values = (q, q, q) if q else ()
    total = store.number(f"SELECT count(*) FROM changes WHERE {condition}", *values)
    rows = store.all(
        f"SELECT * FROM changes WHERE {condition} ORDER BY source_rank LIMIT ? OFFSET ?",
        *values,
        limit,
        offset,
    )
    decided = all_outcomes(store) if rows else {}
    return {
        "total": total,
        "rows": [
            {
                **{name: value for name, value in dict(row).items() if name != "number"},
                "decided": list(decided[row["source"]].accepted) if row["source"] in decided else None,
            }
            for row in rows
        ],
    }


def keep(bench: Workbench) -> None:
    """Put the retrained model in the place of the present one, which stays beside it as MODEL.previous.

    The two are exchanged in one step, and everything else follows; `settle` does the rest after a kill.

    Raises:
        ProblemError: No retrained model waits, or the server does something else.
    """
    with bench.exclusive("keep"):
        folder = _checked(bench)
        new = retrained_folder(folder)
        _check_ours(previous_folder(folder))
        describe(new, verify=True)
        known = {"model": fingerprint(new), "from": fingerprint(folder)}
        with bench.store.writing() as connection:
            remember(connection, "waiting", {**bench.store.fact("waiting"), **known})
        if not exchange(new, folder):
            aside = folder.with_name(f"{hidden_name(folder)}keep{ASIDE}")
            folder.replace(aside)  # `restore` moves it back after a kill
            new.replace(folder)
            aside.replace(new)
        sync_folder(folder.parent)
        settle(bench.store, folder)
        bench.load()


def settle(store: Store, folder: Path) -> None:
    """Finish a keep whose models were exchanged: the model before becomes MODEL.previous.

    What cannot be written, as on a full disk, is done before the next retraining, keep or discard, or at the
    next start.

    Args:
        store: The review file.
        folder: The model.
    """
    with contextlib.suppress(BilexError, OSError, sqlite3.Error):
        kept, rest = store.fact("waiting"), retrained_folder(folder)
        if not kept or kept.get("model") is None or fingerprint(folder) != kept["model"]:
            return
        if fingerprint(rest) == kept.get("from"):
            previous = previous_folder(folder)
            if previous.exists() and not exchange(rest, previous):
                _remove_model(previous)
            if not previous.exists():
                rest.replace(previous)
        _remove_model(rest)
        _forget(store)


def discard(bench: Workbench) -> None:
    """Remove the retrained model; the decisions stay.

    Raises:
        ProblemError: No retrained model waits, or the server does something else.
    """
    with bench.exclusive("discard"):
        _remove_model(retrained_folder(_checked(bench)))
        with contextlib.suppress(ProblemError):  # a comparison without its model counts for nothing
            _forget(bench.store)


def fingerprint(folder: Path) -> str | None:
    """What tells a model from all others; None where there is none."""
    try:
        return sha256(folder / CHECKSUMS)
    except OSError:
        return None


def _checked(bench: Workbench) -> Path:
    if bench.folder is not None:
        settle(bench.store, bench.folder)
    if waiting(bench) is None or bench.folder is None:
        raise ProblemError(409, "No retrained model waits; start a retraining first.")
    return bench.folder


def _forget(store: Store) -> None:
    with store.writing() as connection:
        connection.execute("DELETE FROM changes")
        remember(connection, "waiting", None)
        remember(connection, "recalibration", None)


def _check_ours(folder: Path) -> None:
    """Refuse a folder that holds anything but a model that bilex made.

    Raises:
        BilexError: It does.
    """
    if not folder.exists():
        return
    ours = set(own_files(folder)) if folder.is_dir() else set()
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if not ours or there - ours:
        raise BilexError(f"{folder}: holds something that bilex did not make; move it away.")


def _remove_model(folder: Path) -> None:
    """Remove a model that bilex made, and nothing else; a kill leaves it whole or under a temporary name.

    Raises:
        BilexError: Something else lies there.
    """
    _check_ours(folder)
    if folder.exists():
        with temporary_folder(folder) as place:
            folder.replace(place / folder.name)
