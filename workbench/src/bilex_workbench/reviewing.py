"""The review queue, how far a review is, and how far people agree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bilex.core.typed_json import as_json
from bilex_workbench.decisions import DECIDED, STATUSES, Decision, decisions_about, notes_of, standing
from bilex_workbench.engine import STORED_CANDIDATES, Engine
from bilex_workbench.entries import kinds_named, known_entry
from bilex_workbench.intervals import Band
from bilex_workbench.lookup import neighbours
from bilex_workbench.problems import LONGEST_WORD, ProblemError
from bilex_workbench.store import Store

CANDIDATES = 9
_MOST_FORMS = 200
_ORDERS = {
    "queue": "priority DESC, row",
    "frequency": "row",
    "confidence": "confidence, row",
    "-confidence": "confidence DESC, row DESC",
    "random": "shuffled, row",
    "alphabet": "source_key, row",
}
_OTHERS_ONLY = (
    "source NOT IN (SELECT source FROM decisions WHERE reviewer = ? AND undone IS NULL AND verdict <> 'skip')"
)
_MODES = {
    "first": ("fresh = 1", "status = 'unreviewed' AND fresh = 0", "status = 'skipped' AND fresh = 0"),
    "second": (f"decisions = 1 AND status IN ('accepted', 'corrected', 'rejected') AND {_OTHERS_ONLY}",),
    "disagreements": ("status = 'disagreement'",),
    "skipped": ("status = 'skipped'",),
    "seeds": ("known = 1 AND status IN ('unreviewed', 'skipped')",),
    "doubtful": ("known = 1 AND priority > 0 AND status IN ('unreviewed', 'skipped')",),
}


@dataclass(frozen=True)
class Queue:
    """Which words are asked for, and in which order.

    Attributes:
        reviewer: Who reviews.
        order: One of the orders that the interface names.
        mode: "first", "second", "disagreements", "skipped", "seeds" or "doubtful".
        kinds: Kinds of entries, with commas between them; "" for all.
        assignee: Only entries that are assigned to this person; "" for all.
    """

    reviewer: str
    order: str = "queue"
    mode: str = "first"
    kinds: str = ""
    assignee: str = ""

    def parts(self) -> list[tuple[str, list[str]]]:
        """Conditions of SQL with their values, one after the other; each has an index."""
        if self.mode not in _MODES:
            raise ProblemError(400, f"Mode '{self.mode}' is not known; use {', '.join(_MODES)}.")
        more, wanted = "", []
        if self.kinds:
            wanted = kinds_named(self.kinds)
            more = f" AND kind IN ({', '.join('?' * len(wanted))})"
        if self.assignee:
            more += " AND assignee = ?"
            wanted = [*wanted, self.assignee]
        return [
            (part + more, [*([self.reviewer] if "?" in part else []), *wanted]) for part in _MODES[self.mode]
        ]

    def following(self, store: Store, count: int, exclude: Sequence[str]) -> list[str]:
        """The next words."""
        if self.order not in _ORDERS:
            raise ProblemError(400, f"Order '{self.order}' is not known; use {', '.join(_ORDERS)}.")
        parts = self.parts()
        if self.order == "confidence":  # entries without a value would come first
            parts = [
                (f"{part} AND confidence IS {null} NULL", values)
                for part, values in parts
                for null in ("NOT", "")
            ]
        found: list[str] = []
        wanted = count + len(exclude)
        for part, values in parts:
            query = f"SELECT source FROM entries WHERE {part} ORDER BY {_ORDERS[self.order]} LIMIT ?"
            found += [row["source"] for row in store.all(query, *values, wanted)]
        held = set(exclude)
        return [source for source in dict.fromkeys(found) if source not in held][:count]

    def left(self, store: Store) -> int:
        """How many words it still has."""
        return sum(
            store.number(f"SELECT count(*) FROM entries WHERE {part}", *values)
            for part, values in self.parts()
        )

    def counts(self, store: Store) -> dict[str, int]:
        """How far the review is, for all and for one person."""
        return {
            "left": self.left(store),
            "decided": store.number(f"SELECT count(*) FROM entries WHERE {DECIDED}"),
            "decided_by_you": store.number(
                "SELECT count(DISTINCT source) FROM decisions "
                "WHERE reviewer = ? AND undone IS NULL AND verdict <> 'skip'",
                self.reviewer,
            ),
        }


def candidates(engine: Engine, source: str, k: int = CANDIDATES) -> list[dict[str, Any]]:
    """The candidates of a word; of a headword, those that are forms of one target word stand together.

    Such a group is named by its headword, has the numbers of its best form, and lists its `forms`.
    """
    store = engine.store
    found = [vars(one) | {"forms": []} for one in engine.translate(source, STORED_CANDIDATES)]
    entry = store.one("SELECT headword FROM entries WHERE source = ?", source)
    if entry is None or entry["headword"] != source:
        return found[:k]
    heads = {
        row["row"]: row["head"]
        for row in store.all(
            "SELECT row, head FROM forms WHERE side = 1 AND row IN (SELECT value FROM json_each(?))",
            json.dumps([one["rank"] - 1 for one in found if one["rank"]]),
        )
    }
    words = engine.space.target.index_to_key
    groups: dict[str, dict[str, Any]] = {}
    for one in found:
        head = heads.get((one["rank"] or 0) - 1)
        word = one["word"] if head is None else words[head]
        if head is not None and len(word) > LONGEST_WORD:
            head, word = None, one["word"]
        rank = one["rank"] if head is None else head + 1
        group = groups.setdefault(word, {**one, "word": word, "rank": rank, "forms": []})
        if one["word"] != word:
            group["forms"].append(one["word"])
        group["known"] = group["known"] or one["known"]
    return list(groups.values())[:k]


def item(engine: Engine, source: str, mode: str = "first") -> dict[str, Any]:
    """A word with all that a reviewer needs to decide; in a second review, without what others said."""
    found = known_entry(engine.store, source)
    blind = mode == "second"
    stands = [] if blind else standing(decisions_about(engine.store, source))
    return {
        "source": source,
        "source_rank": found["source_rank"],
        "status": "unreviewed" if blind else found["status"],
        "priority": engine.store.one("SELECT priority FROM entries WHERE source = ?", source)[0],  # type: ignore[index]
        "kind": found["kind"],
        "headword": found["headword"],
        "forms": forms_of(engine.store, source),
        "candidates": candidates(engine, source),
        "notes": [] if blind else notes_of(engine.store, source),
        "neighbours": [near["word"] for near in neighbours(engine, source, "source", 5)],
        "decided_by": [decision.reviewer for decision in stands],
        "decisions": stands,
    }


def forms_of(store: Store, source: str) -> list[str]:
    """The other forms that are listed under a headword, most frequent first."""
    rows = store.all(
        "SELECT source FROM entries WHERE headword = ? AND source <> ? ORDER BY row LIMIT ?",
        source,
        source,
        _MOST_FORMS,
    )
    return [row["source"] for row in rows]


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
    """Somebody who decided something, or to whom entries are assigned.

    Attributes:
        name: Who.
        decisions: How many decisions.
        last: When the last one was; None without any.
        accepted: Of the decisions, those that accept a translation.
        rejected: Those that reject all candidates.
        assigned: Entries that are assigned to this person.
        done: Of these, those that the person decided.
    """

    name: str
    decisions: int = 0
    last: str | None = None
    accepted: int = 0
    rejected: int = 0
    assigned: int = 0
    done: int = 0


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


def disagreements(store: Store, offset: int, limit: int) -> dict[str, Any]:
    """Entries on which people disagree, most frequent first, with everybody's standing decision."""
    where = "FROM entries WHERE status = 'disagreement'"
    found = []
    for row in store.all(f"SELECT source, row {where} ORDER BY row LIMIT ? OFFSET ?", limit, offset):
        about = standing(decisions_about(store, row["source"]))
        shown = dict.fromkeys(word for one in about for word in (*one.candidates, *one.accepted))
        found.append(
            {
                "source": row["source"],
                "source_rank": row["row"] + 1,
                "candidates": list(shown),
                "decisions": about,
            }
        )
    return {"total": store.number(f"SELECT count(*) {where}"), "rows": found}


def reviewers(store: Store) -> list[Reviewer]:
    """Everybody who decided something or has something assigned, with how far each is."""
    judged = "undone IS NULL AND verdict <> 'skip'"
    found: dict[str, dict[str, Any]] = {}
    for row in store.all(
        "SELECT reviewer name, count(*) decisions, sum(verdict = 'accept') accepted, "
        "sum(verdict = 'none') rejected, at last, max(id) newest "  # `at` is that of the newest
        f"FROM decisions WHERE {judged} GROUP BY reviewer"
    ):
        found[row["name"]] = {name: row[name] for name in row.keys() if name != "newest"}  # noqa: SIM118
    for row in store.all(
        "SELECT assignee name, count(*) assigned, sum(EXISTS (SELECT 1 FROM decisions "
        f"WHERE decisions.source = entries.source AND reviewer = assignee AND {judged})) done "
        "FROM entries WHERE assignee <> '' GROUP BY assignee"
    ):
        found.setdefault(row["name"], {}).update(dict(row))
    return [Reviewer(**one) for _, one in sorted(found.items())]


@dataclass(frozen=True, kw_only=True)
class Alike:
    """How often two people judged alike.

    Attributes:
        entries: Entries that both decided on.
        agreed: Of these, those on which they agree.
        share: The share of these; None without entries.
        kappa: Cohen's κ; None where it is undefined.
    """

    entries: int
    agreed: int
    share: float | None
    kappa: float | None

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool, bool]]) -> Alike:
        """Counted from the two answers about each entry."""
        agreed = sum(a == b for a, b in pairs)
        share = agreed / len(pairs) if pairs else None
        return cls(entries=len(pairs), agreed=agreed, share=share, kappa=kappa(pairs))


@dataclass(frozen=True)
class Agreement:
    """Agreement of every two people who decided on the same words.

    Attributes:
        pairs: By the names of two people.
        overall: All such pairs together.
    """

    pairs: Mapping[tuple[str, str], Alike]
    overall: Alike

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        pairs = [{"reviewers": list(names), **as_json(alike)} for names, alike in self.pairs.items()]
        return {"pairs": pairs, "overall": as_json(self.overall)}


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's κ: agreement beyond that of two people who answer at random with their own shares of yes."""
    if not pairs:
        return None
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    first = sum(a for a, _ in pairs) / len(pairs)
    second = sum(b for _, b in pairs) / len(pairs)
    at_random = first * second + (1 - first) * (1 - second)
    return None if at_random == 1 else (agreed - at_random) / (1 - at_random)


def agreement(store: Store) -> Agreement:
    """Agreement of every two people who decided on the same words, and of all such pairs together."""
    answers: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for decisions in _by_source(store):
        judged = {d.reviewer: _says_right(d) for d in standing(decisions) if d.verdict != "skip"}
        for one, other in combinations(sorted(judged), 2):
            answers.setdefault((one, other), []).append((judged[one], judged[other]))
    everything = [pair for pairs in answers.values() for pair in pairs]
    by_people = {names: Alike.of(pairs) for names, pairs in sorted(answers.items())}
    return Agreement(by_people, Alike.of(everything))


def _says_right(decision: Decision) -> bool:
    return decision.verdict == "accept" and decision.best in decision.accepted


def _by_source(store: Store) -> Iterable[list[Decision]]:
    about: dict[str, list[Decision]] = {}
    rows = store.all("SELECT * FROM decisions WHERE undone IS NULL AND kind <> 'resolution' ORDER BY id")
    for row in rows:
        about.setdefault(row["source"], []).append(Decision.from_row(row))
    return about.values()
