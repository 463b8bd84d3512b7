"""The review queue: which word comes next, and what is known about how far a review is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bilex.core.typed_json import as_json
from bilex_workbench.bands import Band
from bilex_workbench.decisions import STATUSES, decisions_about, notes_of, standing
from bilex_workbench.engine import Engine
from bilex_workbench.neighbours import neighbours
from bilex_workbench.problems import ProblemError
from bilex_workbench.store import Store

CANDIDATES = 9
_ORDERS = {
    "queue": "priority DESC, row",
    "frequency": "row",
    "confidence": "confidence, row",
    "-confidence": "confidence DESC, row DESC",
    "random": "shuffled, row",
    "alphabet": "source_key, row",
}
_DECIDED = "status IN ('accepted', 'corrected', 'rejected', 'disagreement')"
_OTHERS_ONLY = (
    "source NOT IN (SELECT source FROM decisions WHERE reviewer = ? AND undone IS NULL AND verdict <> 'skip')"
)
_MODES = {
    "first": "status IN ('unreviewed', 'skipped')",
    "second": f"decisions = 1 AND status IN ('accepted', 'corrected', 'rejected') AND {_OTHERS_ONLY}",
    "disagreements": "status = 'disagreement'",
    "skipped": "status = 'skipped'",
}


def next_sources(
    store: Store, reviewer: str, order: str, mode: str, count: int, exclude: Sequence[str]
) -> list[str]:
    """The next words of a queue.

    Args:
        store: The review file.
        reviewer: Who reviews.
        order: One of the orders that the interface names.
        mode: "first", "second", "disagreements" or "skipped".
        count: How many words.
        exclude: Words that the page holds already.

    Raises:
        ProblemError: The order or mode is not known.
    """
    if order not in _ORDERS:
        raise ProblemError(400, f"Order '{order}' is not known; use {', '.join(_ORDERS)}.")
    condition, values = _condition(mode, reviewer)
    wanted = count + len(exclude)
    found: list[str] = []
    parts = [condition] if mode != "first" else ["status = 'unreviewed'", "status = 'skipped'"]
    if order == "confidence":  # entries without a value would come first
        parts = [f"{part} AND confidence IS {null} NULL" for part in parts for null in ("NOT", "")]
    for part in parts:
        query = f"SELECT source FROM entries WHERE {part} ORDER BY {_ORDERS[order]} LIMIT ?"
        found += [row["source"] for row in store.all(query, *values, wanted)]
    held = set(exclude)
    return [source for source in found if source not in held][:count]


def left(store: Store, reviewer: str, mode: str = "first") -> int:
    """How many words a queue still has."""
    condition, values = _condition(mode, reviewer)
    return store.number(f"SELECT count(*) FROM entries WHERE {condition}", *values)


def _condition(mode: str, reviewer: str) -> tuple[str, list[str]]:
    if mode not in _MODES:
        raise ProblemError(400, f"Mode '{mode}' is not known; use {', '.join(_MODES)}.")
    return _MODES[mode], [reviewer] if "?" in _MODES[mode] else []


def counts(store: Store, reviewer: str, mode: str = "first") -> dict[str, int]:
    """How far the review is, for all and for one person."""
    return {
        "left": left(store, reviewer, mode),
        "decided": store.number(f"SELECT count(*) FROM entries WHERE {_DECIDED}"),
        "decided_by_you": store.number(
            "SELECT count(DISTINCT source) FROM decisions "
            "WHERE reviewer = ? AND undone IS NULL AND verdict <> 'skip'",
            reviewer,
        ),
    }


def item(engine: Engine, source: str, mode: str = "first") -> dict[str, Any]:
    """A word with all that a reviewer needs to decide; in a second review, without what others said."""
    found = engine.store.one("SELECT * FROM entries WHERE source = ?", source)
    if found is None:
        raise ProblemError(404, f"'{source[:100]}' is not in the table.")
    answer = engine.translate(source, CANDIDATES)
    blind = mode == "second"
    stands = [] if blind else standing(decisions_about(engine.store.reading, source))
    return {
        "source": source,
        "source_rank": found["row"] + 1,
        "status": "unreviewed" if blind else found["status"],
        "priority": found["priority"],
        "candidates": [vars(candidate) for candidate in answer],
        "notes": [] if blind else notes_of(engine.store, source),
        "neighbours": [near["word"] for near in neighbours(engine, source, "source", 5)],
        "decided_by": [decision.reviewer for decision in stands],
    }


@dataclass(frozen=True, kw_only=True)
class BandStatus:
    """How far the review of one frequency band is.

    Attributes:
        band: Its name.
        total: Its entries.
        decided: Of these, those with a decision.
    """

    band: str
    total: int
    decided: int


@dataclass(frozen=True, kw_only=True)
class Reviewer:
    """Somebody who decided something.

    Attributes:
        name: Who.
        decisions: How many decisions.
        last: When the last one was.
    """

    name: str
    decisions: int
    last: str


@dataclass(frozen=True, kw_only=True)
class ReviewStatus:
    """How far the review is.

    Attributes:
        total: All entries.
        by_status: Entries by status; every status is there.
        twice: Entries with more than one decision.
        decisions: All decisions.
        by_band: By frequency.
        by_reviewer: By person.
    """

    total: int
    by_status: Mapping[str, int]
    twice: int
    decisions: int
    by_band: list[BandStatus]
    by_reviewer: list[Reviewer]

    def as_dict(self) -> dict[str, Any]:
        """For JSON, each status an entry of its own."""
        stored = as_json(self)
        return {**stored.pop("by_status"), **stored}


def status(store: Store, bands: list[Band]) -> ReviewStatus:
    """How far the review is, by status, frequency and person."""
    found = {
        row["status"]: row["n"] for row in store.all("SELECT status, count(*) n FROM entries GROUP BY status")
    }
    by_band = [
        BandStatus(
            band=band.name,
            total=store.number(
                "SELECT count(*) FROM entries WHERE row BETWEEN ? AND ?", band.first - 1, band.last - 1
            ),
            decided=store.number(
                "SELECT count(*) FROM entries WHERE row BETWEEN ? AND ? AND decisions > 0",
                band.first - 1,
                band.last - 1,
            ),
        )
        for band in bands
    ]
    return ReviewStatus(
        total=sum(found.values()),
        by_status={name: found.get(name, 0) for name in STATUSES},
        twice=store.number("SELECT count(*) FROM entries WHERE decisions > 1"),
        decisions=store.number("SELECT count(*) FROM decisions WHERE undone IS NULL AND verdict <> 'skip'"),
        by_band=by_band,
        by_reviewer=reviewers(store),
    )


def reviewers(store: Store) -> list[Reviewer]:
    """Everybody who decided something."""
    rows = store.all(
        "SELECT reviewer name, count(*) decisions, max(at) last FROM decisions "
        "WHERE undone IS NULL AND verdict <> 'skip' GROUP BY reviewer ORDER BY reviewer"
    )
    return [Reviewer(**dict(row)) for row in rows]
