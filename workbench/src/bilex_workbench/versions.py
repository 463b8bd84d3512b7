"""Versions of a model: the retrained one that waits, earlier ones, and replacing the model by one of them.

A replacement is written into the review file first; then the two folders are exchanged in one step; the rest
(`settle`) is repeated after a kill or on a full disk, however far it had come.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import ASIDE, exchange, sha256, sync, temporary_path
from bilex.core.locks import hidden_name
from bilex.core.manifest import CHECKSUMS
from bilex.model.storage import describe, is_model, own_files
from bilex_workbench.database import Database, fact, now, set_facts

_MOST_MEASURED = 50  # models whose accuracy is remembered


def retrained_folder(model: Path) -> Path:
    """Where a retrained model waits."""
    return model.with_name(model.name + ".retrained")


def previous_folder(model: Path) -> Path:
    """Where earlier models are kept, each in a folder with its number."""
    return model.with_name(model.name + ".previous")


def earlier_models(model: Path) -> dict[int, Path]:
    """The earlier models by number, the newest first."""
    found = {int(one.name): one for one in previous_folder(model).glob("[0-9]*") if one.name.isdecimal()}
    return dict(sorted(found.items(), reverse=True))


def fingerprint(folder: Path) -> str | None:
    """What identifies a model; None where there is none."""
    with contextlib.suppress(OSError):
        return sha256(folder / CHECKSUMS)
    return None


def waiting_model(db: sqlite3.Connection, folder: Path) -> dict[str, Any] | None:
    """The comparison of a retrained model that waits for keep or discard; None if none does."""
    found, retrained = fact(db, "waiting"), retrained_folder(folder)
    if found is None or not is_model(retrained):
        return None
    # A job that was killed before it compared leaves a model that the comparison is not about.
    return dict(found) if found.get("model") in (None, fingerprint(retrained)) else None


def replace_model(
    database: Database, folder: Path, place: Path, reason: str, measured: dict[str, Any], limit: int
) -> None:
    """Exchange the model with the one at `place`; after a kill nothing has changed, or `settle` ends it.

    `measured` has the accuracy of the models "before" and "after", as far as it is known.
    """
    check_ours(place)
    if previous_folder(folder).is_file():
        raise BilexError(f"{previous_folder(folder)}: is in the way of earlier models; move it away.")
    describe(place, verify=True)
    old, new = fingerprint(folder), fingerprint(place)
    with database.writing() as db:
        number = max([*earlier_models(folder), fact(db, "last_earlier", 0)]) + 1
        about = {"model": old, "replaced": now(), "reason": reason}
        beside = place.relative_to(folder.parent).as_posix()
        known = fact(db, "measured", {})
        known.update({{"before": old, "after": new}[name]: found for name, found in measured.items()})
        set_facts(
            db,
            replacing={"from": old, "to": new, "place": beside, "number": number, "about": about},
            last_earlier=number,
            measured=dict(list(known.items())[-_MOST_MEASURED:]),
        )
    if not exchange(place, folder):
        aside = folder.with_name(f"{hidden_name(folder)}keep{ASIDE}")
        folder.replace(aside)  # `bilex.core.files.restore` moves it back after a kill
        place.replace(folder)
        aside.replace(place)
    sync(folder.parent)
    settle(database, folder, limit)


def settle(database: Database, folder: Path, limit: int) -> None:
    """Finish a replacement whose folders were exchanged, and remove earlier models beyond the limit.

    What cannot be written, as on a full disk, is done before the next operation or at the next start.
    """
    with contextlib.suppress(BilexError, OSError, sqlite3.Error):
        _adopt_previous(folder)
        with database.reading() as db:
            begun = fact(db, "replacing")
        if begun and fingerprint(folder) == begun["to"]:
            place, end = folder.parent / begun["place"], previous_folder(folder) / str(begun["number"])
            if fingerprint(place) == begun["from"]:
                end.parent.mkdir(exist_ok=True)
                place.replace(end)
                sync(end.parent)
            _end_replacement(database, begun)
        for number, place in list(earlier_models(folder).items())[limit:]:
            remove_model(place)
            with database.writing() as db:
                earlier = fact(db, "earlier", {})
                earlier.pop(str(number), None)
                set_facts(db, earlier=earlier)


def _end_replacement(database: Database, begun: dict[str, Any]) -> None:
    """Store the reason with the earlier model, and forget the comparison and the replacement."""
    with database.writing() as db:
        if (fact(db, "waiting") or {}).get("model") == begun["to"]:
            db.execute("DELETE FROM changes")
            set_facts(db, waiting=None)
        if (fact(db, "recalibration") or {}).get("model", "") is None:
            set_facts(db, recalibration=None)  # of an older version, about the model before
        set_facts(
            db, earlier={**fact(db, "earlier", {}), str(begun["number"]): begun["about"]}, replacing=None
        )


def _adopt_previous(folder: Path) -> None:
    """Older versions kept one earlier model, in the folder where the numbered ones are now."""
    previous = previous_folder(folder)
    moved = previous.with_name(previous.name + ".old")
    if is_model(previous):
        previous.replace(moved)
    if is_model(moved):
        previous.mkdir(exist_ok=True)
        moved.replace(previous / str(max(earlier_models(folder), default=0) + 1))


def check_ours(folder: Path) -> None:
    """Refuse a folder with anything but a model that bilex made."""
    if not folder.exists():
        return
    ours = set(own_files(folder)) if folder.is_dir() else set()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if not ours or found - ours:
        raise BilexError(f"{folder}: holds something that bilex did not make; move it away.")


def remove_model(folder: Path) -> None:
    """Remove a model that bilex made; a kill leaves it whole or under a temporary name."""
    check_ours(folder)
    if folder.exists():
        with temporary_path(folder, folder=True) as place:
            folder.replace(place / folder.name)
