"""Versions of a model: the retrained one that waits, earlier ones, and replacing the model by one of them.

A replacement is written into the review file first; then the two folders are exchanged in one step; the rest
(`finish_replacement`) is repeated after a kill or on a full disk, however far it had come.
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
from bilex.model.storage import StoredModel, is_model, own_files
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


class Versions:
    """The versions of the model in `folder`, of which `limit` earlier ones are kept."""

    def __init__(self, database: Database, folder: Path, limit: int) -> None:
        self._database, self._folder, self._limit = database, folder, limit
        self._previous, self.retrained = previous_folder(folder), retrained_folder(folder)

    def waiting(self) -> dict[str, Any] | None:
        """The comparison of a retrained model that waits for keep or discard; None if none does."""
        found = self._database.fact("waiting")
        if found is None or not is_model(self.retrained):
            return None
        # A job that was killed before it compared leaves a model that the comparison is not about.
        return dict(found) if found.get("model") in (None, fingerprint(self.retrained)) else None

    def unfinished(self) -> dict[str, Any] | None:
        """A replacement whose folders were exchanged and which is not finished yet."""
        begun = self._database.fact("replacing")
        return dict(begun) if begun and fingerprint(self._folder) == begun["to"] else None

    def replace(self, place: Path, reason: str, measured: dict[str, Any]) -> None:
        """Exchange the model with the one at `place`; a kill changes nothing, or leaves only the last part.

        That part is done by `finish_replacement`. `measured` has the accuracy of the models "before" and
        "after", as far as it is known.
        """
        _check_ours(place)
        if self._previous.is_file():
            raise BilexError(f"{self._previous}: is in the way of earlier models; move it away.")
        StoredModel.open(place, many=False).check(verify=True)
        folder = self._folder
        old, new = fingerprint(folder), fingerprint(place)
        with self._database.writing() as db:
            number = max([*earlier_models(folder), fact(db, "last_earlier", 0)]) + 1
            about = {"model": old, "replaced": now(), "reason": reason}
            beside = place.relative_to(folder.parent).as_posix()
            known = fact(db, "measured", {})
            known.update({{"before": old, "after": new}[name]: found for name, found in measured.items()})
            begun = {"from": old, "to": new, "place": beside, "number": number, "about": about}
            kept = dict(list(known.items())[-_MOST_MEASURED:])
            set_facts(db, replacing=begun, last_earlier=number, measured=kept)
        if not exchange(place, folder):
            aside = folder.with_name(f"{hidden_name(folder)}keep{ASIDE}")
            folder.replace(aside)  # `bilex.core.files.restore` moves it back after a kill
            place.replace(folder)
            aside.replace(place)
        sync(folder.parent)
        self.finish_replacement()

    def finish_replacement(self) -> None:
        """Finish a replacement whose folders were exchanged, and remove earlier models beyond the limit.

        What cannot be written, as on a full disk, is done before the next operation or at the next start.
        """
        with contextlib.suppress(BilexError, OSError, sqlite3.Error):
            self._adopt_previous()
            begun = self.unfinished()
            if begun:
                place, end = self._folder.parent / begun["place"], self._previous / str(begun["number"])
                if fingerprint(place) == begun["from"]:
                    end.parent.mkdir(exist_ok=True)
                    place.replace(end)
                    sync(end.parent)
                self._end_replacement(begun)
            for number, place in list(earlier_models(self._folder).items())[self._limit :]:
                remove_model(place)
                with self._database.writing() as db:
                    earlier = fact(db, "earlier", {})
                    earlier.pop(str(number), None)
                    set_facts(db, earlier=earlier)

    def _end_replacement(self, begun: dict[str, Any]) -> None:
        """Store the reason with the earlier model, and forget the comparison and the replacement."""
        with self._database.writing() as db:
            if (fact(db, "waiting") or {}).get("model") == begun["to"]:
                db.execute("DELETE FROM changes")
                set_facts(db, waiting=None)
            if (fact(db, "recalibration") or {}).get("model", "") is None:
                set_facts(db, recalibration=None)  # of an older version, about the model before
            earlier = {**fact(db, "earlier", {}), str(begun["number"]): begun["about"]}
            set_facts(db, earlier=earlier, replacing=None)

    def _adopt_previous(self) -> None:
        """Older versions kept one earlier model, in the folder where the numbered ones are now."""
        moved = self._previous.with_name(self._previous.name + ".old")
        if is_model(self._previous):
            self._previous.replace(moved)
        if is_model(moved):
            self._previous.mkdir(exist_ok=True)
            moved.replace(self._previous / str(max(earlier_models(self._folder), default=0) + 1))


def _check_ours(folder: Path) -> None:
    """Refuse a folder with anything but a model that bilex made."""
    ours = set(own_files(folder)) if folder.is_dir() else set()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if folder.exists() and (not ours or found - ours):
        raise BilexError(f"{folder}: holds something that bilex did not make; move it away.")


def remove_model(folder: Path) -> None:
    """Remove a model that bilex made; a kill leaves it whole or under a temporary name."""
    _check_ours(folder)
    if folder.exists():
        with temporary_path(folder, folder=True) as place:
            folder.replace(place / folder.name)
