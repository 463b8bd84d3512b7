"""The review queue, decisions, how far a review is, and how far people agree."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from bilex_workbench import decisions
from bilex_workbench import interface as api
from bilex_workbench.articles import Article, SkipIn, article_of
from bilex_workbench.decisions import (
    DECIDED,
    STATUSES,
    Decision,
    Status,
    Verdict,
    decisions_about,
    notes_of,
    standing,
)
from bilex_workbench.engine import STORED_CANDIDATES
from bilex_workbench.entries import Row, entry, forms_of, kinds_named, known_entry
from bilex_workbench.intervals import FrequencyBand
from bilex_workbench.kinds import Kind
from bilex_workbench.lookup import TranslationAnswer, neighbours
from bilex_workbench.state import Book, BookOf
from bilex_workbench.store import Store

table = APIRouter(tags=["table"])
router = APIRouter(tags=["review"])
CANDIDATES = 9
_ORDERS = {
    "queue": "priority DESC, row",
    "frequency": "row",
    "confidence": "confidence, row",
    "-confidence": "confidence DESC, row DESC",
    "random": "shuffled, row",
    "alphabet": "source_key, row",
}
_JUDGED = "undone IS NULL AND verdict <> 'skip'"
_OTHERS_ONLY = f"source NOT IN (SELECT source FROM decisions WHERE reviewer = ? AND {_JUDGED})"
_MODES = {
    "first": ("fresh = 1", "status = 'unreviewed' AND fresh = 0", "status = 'skipped' AND fresh = 0"),
    "second": (f"decisions = 1 AND status IN ('accepted', 'corrected', 'rejected') AND {_OTHERS_ONLY}",),
    "disagreements": ("status = 'disagreement'",),
    "skipped": ("status = 'skipped'",),
    "seeds": ("known = 1 AND status IN ('unreviewed', 'skipped')",),
    "doubtful": ("known = 1 AND priority > 0 AND status IN ('unreviewed', 'skipped')",),
}


class DecisionIn(api.Body):
    """A decision about a word."""

    source: api.Word
    reviewer: api.Name
    verdict: Verdict
    accepted: api.Words = Field(default_factory=list)
    candidates: api.Words = Field(default_factory=list)
    rejected: api.Words | None = None
    unsure: api.Words = Field(default_factory=list)
    note: api.Note = ""
    kind: Literal["review", "resolution"] = "review"


class NoteIn(SkipIn):
    """A remark about a word."""

    note: api.Note


@dataclass(frozen=True, kw_only=True)
class Candidate(TranslationAnswer):
    """A candidate; of a headword, together with its other forms."""

    forms: list[str]


class NoteAnswer(api.Answer):
    """A remark."""

    reviewer: str
    note: str
    at: str


class EntryAnswer(Row):
    """An entry with candidates, forms, notes, article and history."""

    candidates: list[Candidate]
    other_forms: list[str]
    history: list[Decision]
    notes: list[NoteAnswer]
    article: Article


class Item(api.Answer):
    """A word with all that a reviewer needs to decide."""

    source: str
    source_rank: int
    status: Status
    priority: float
    kind: Kind
    headword: str
    forms: list[str]
    candidates: list[Candidate]
    notes: list[NoteAnswer]
    neighbours: list[str]
    decided_by: list[str]
    decisions: list[Decision]


class Disagreement(api.Answer):
    """An entry on which people disagree, with the decision of each."""

    source: str
    source_rank: int
    candidates: list[str]
    decisions: list[Decision]


_COUNTS = {"left": int, "decided": int, "decided_by_you": int}
QueueAnswer = api.answer("QueueAnswer", **_COUNTS, items=list[Item])
DecidedAnswer = api.answer("DecidedAnswer", **_COUNTS, decision=Decision, entry=Row)
UndoneAnswer = api.answer("UndoneAnswer", **_COUNTS, undone=Decision, entry=Row | None, item=Item | None)
NotedAnswer = api.answer("NotedAnswer", entry=Row)
DisagreementsAnswer = api.answer("DisagreementsAnswer", total=int, rows=list[Disagreement])


@dataclass(frozen=True)
class Queue:
    """Which words are asked for, and in which order: the parameters of `GET /api/review/next`."""

    reviewer: api.ReviewerQuery
    order: str = "queue"
    mode: str = "first"
    kind: str = ""
    assignee: api.TextQuery = ""

    def parts(self) -> list[tuple[str, list[str]]]:
        """Conditions of SQL with their values, one after the other; each has an index."""
        if self.mode not in _MODES:
            raise api.ProblemError(400, f"Mode '{self.mode}' is not known; use {', '.join(_MODES)}.")
        more, wanted = "", kinds_named(self.kind)
        if wanted:
            more = f" AND kind IN ({', '.join('?' * len(wanted))})"
        if self.assignee:
            more += " AND assignee = ?"
            wanted.append(self.assignee)
        return [
            (part + more, [*([self.reviewer] if "?" in part else []), *wanted]) for part in _MODES[self.mode]
        ]

    def following(self, store: Store, count: int, exclude: Sequence[str]) -> list[str]:
        """The next words."""
        if self.order not in _ORDERS:
            raise api.ProblemError(400, f"Order '{self.order}' is not known; use {', '.join(_ORDERS)}.")
        parts = self.parts()
        if self.order == "confidence":  # entries without a value would come first
            parts = [
                (f"{part} AND confidence IS {null} NULL", values)
                for part, values in parts
                for null in ("NOT", "")
            ]
        found: list[str] = []
        for part, values in parts:
            query = f"SELECT source FROM entries WHERE {part} ORDER BY {_ORDERS[self.order]} LIMIT ?"
            found += [row["source"] for row in store.all(query, *values, count + len(exclude))]
        held = set(exclude)
        return [source for source in dict.fromkeys(found) if source not in held][:count]

    def counts(self, store: Store) -> dict[str, int]:
        """How far the review is, for all and for one person."""
        counted = "SELECT count(*) FROM entries WHERE"
        return {
            "left": sum(store.number(f"{counted} {part}", *values) for part, values in self.parts()),
            "decided": store.number(f"{counted} {DECIDED}"),
            "decided_by_you": store.number(
                f"SELECT count(DISTINCT source) FROM decisions WHERE reviewer = ? AND {_JUDGED}",
                self.reviewer,
            ),
        }


def candidates(book: Book, source: str, k: int = CANDIDATES) -> list[dict[str, Any]]:
    """The candidates of a word; of a headword, those that are forms of one target word stand together.

    Such a group is named by its headword, has the numbers of its best form, and lists its `forms`.
    """
    store = book.store
    answers = book.engine.translate(source, STORED_CANDIDATES, book.direction)
    found = [vars(one) | {"forms": []} for one in answers]
    if not store.number("SELECT headword = source FROM entries WHERE source = ?", source):
        return found[:k]
    rows = store.all(
        "SELECT row, head FROM forms WHERE side = 1 AND row IN (SELECT value FROM json_each(?))",
        json.dumps([one["rank"] - 1 for one in found if one["rank"]]),
    )
    heads = {row["row"] + 1: row["head"] for row in rows}
    words = book.space.target.index_to_key
    groups: dict[str, dict[str, Any]] = {}
    for one in found:
        word, rank = one["word"], one["rank"]
        head = heads.get(rank)
        if head is not None and len(words[head]) <= api.LONGEST_WORD:
            word, rank = words[head], head + 1
        group = groups.setdefault(word, {**one, "word": word, "rank": rank, "forms": []})
        if one["word"] != word:
            group["forms"].append(one["word"])
        group["known"] = group["known"] or one["known"]
    return list(groups.values())[:k]


@table.get("/api/entry", response_model=EntryAnswer, responses=api.problems(404))
def one_entry(book: BookOf, source: api.WordQuery) -> Any:
    """One source word with candidates, forms, notes and the history of decisions."""
    return {
        **known_entry(book.store, source),
        "candidates": candidates(book, source),
        "other_forms": forms_of(book.store, source),
        "history": decisions_about(book.store, source)[::-1],
        "notes": notes_of(book.store, source),
        "article": article_of(book.store, source),
    }


def item(book: Book, source: str, mode: str = "first") -> dict[str, Any]:
    """A word with all that a reviewer needs to decide; in a second review, without what others said."""
    store, found = book.store, known_entry(book.store, source)
    blind = mode == "second"
    stands = [] if blind else standing(decisions_about(store, source))
    priority = store.one("SELECT priority FROM entries WHERE source = ?", source)
    return {
        **{name: found[name] for name in ("source", "source_rank", "kind", "headword")},
        "status": "unreviewed" if blind else found["status"],
        "priority": priority and priority[0],
        "forms": forms_of(store, source),
        "candidates": candidates(book, source),
        "notes": [] if blind else notes_of(store, source),
        "neighbours": [near["word"] for near in neighbours(book.space, source, "source", 5)],
        "decided_by": [decision.reviewer for decision in stands],
        "decisions": stands,
    }


@router.get("/api/review/next", response_model=QueueAnswer)
def next_items(
    book: BookOf,
    queue: Annotated[Queue, Depends()],
    count: Annotated[int, Query(ge=1, le=10)] = 3,
    exclude: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006
) -> Any:
    """The next words of the queue."""
    sources = queue.following(book.store, count, exclude)
    return {"items": [item(book, source, queue.mode) for source in sources], **queue.counts(book.store)}


@router.post("/api/review/decide", response_model=DecidedAnswer, responses=api.problems(404))
def decide(book: BookOf, body: DecisionIn) -> Any:
    """Keep a decision; it is on the disk when this answers."""
    if body.verdict == "accept" and not body.accepted:
        raise api.ProblemError(400, "Nothing was accepted; choose 'none' if no candidate is right.")
    if body.verdict != "accept" and body.accepted:
        raise api.ProblemError(400, "Only a decision that accepts can name translations that are right.")
    wrong = body.rejected
    if wrong is None:  # unchosen is unknown, unless somebody says that none is right
        wrong = body.candidates if body.verdict == "none" else []
    judged = [dict.fromkeys(words) for words in (body.accepted, wrong, body.unsure)]
    if len({word for words in judged for word in words}) < sum(map(len, judged)):
        raise api.ProblemError(400, "A translation can be right, wrong or unsure, and only one of them.")
    lists = zip(("accepted", "rejected", "unsure"), map(tuple, judged), strict=True)
    given = body.model_dump() | {"candidates": tuple(body.candidates), **dict(lists)}
    return _recorded(book, Decision(**given))


@router.post("/api/review/skip", response_model=DecidedAnswer, responses=api.problems(404))
def skip(book: BookOf, body: SkipIn) -> Any:
    """Leave a word for later."""
    return _recorded(book, Decision(body.source, body.reviewer, "skip"))


def _recorded(book: Book, decision: Decision) -> dict[str, Any]:
    best = known_entry(book.store, decision.source)["target"]
    with book.store.writing() as connection:
        kept = decisions.record(connection, replace(decision, best=best))
    return {
        "decision": kept,
        "entry": entry(book.store, decision.source),
        **Queue(decision.reviewer).counts(book.store),
    }


@router.post("/api/review/note", response_model=NotedAnswer, responses=api.problems(404))
def write_note(book: BookOf, body: NoteIn) -> Any:
    """Keep a remark; an empty one removes it."""
    known_entry(book.store, body.source)
    with book.store.writing() as connection:
        decisions.set_note(connection, body.source, body.reviewer, body.note)
    return {"entry": entry(book.store, body.source)}


@router.post("/api/review/undo", response_model=UndoneAnswer, responses=api.problems(409))
def undo(book: BookOf, body: api.UndoIn) -> Any:
    """Take back a person's newest decision that stands."""
    with book.store.writing() as connection:
        undone = decisions.undo(connection, body.reviewer)
    found = entry(book.store, undone.source)
    return {
        "undone": undone,
        "entry": found,
        "item": item(book, undone.source) if found else None,
        **Queue(body.reviewer).counts(book.store),
    }


class BandStatus(api.Answer):
    """How far the review of one frequency band is."""

    band: str
    total: int
    decided: int


class Reviewer(api.Answer):
    """Somebody who decided something, or to whom entries are assigned."""

    name: str
    decisions: int = 0
    last: str | None = None  # when the newest decision was made
    accepted: int = 0  # decisions that accept a translation
    rejected: int = 0  # decisions that reject all candidates
    assigned: int = 0  # entries
    done: int = 0  # of these, those that the person decided


PeopleAnswer = api.answer("PeopleAnswer", reviewers=list[Reviewer])
StatusAnswer = api.answer(
    "StatusAnswer",
    **dict.fromkeys(STATUSES, int),
    total=int,
    twice=int,
    decisions=int,
    by_band=list[BandStatus],
    by_reviewer=list[Reviewer],
)


@router.get("/api/review/reviewers", response_model=PeopleAnswer)
def people(book: BookOf) -> Any:
    """Everybody who decided something or has entries assigned, and how far each is."""
    return {"reviewers": reviewers(book.store)}


@router.get("/api/review/status", response_model=StatusAnswer)
def review_status(book: BookOf) -> Any:
    """How far the review is."""
    return status(book.store, book.bands)


def status(store: Store, bands: list[FrequencyBand]) -> dict[str, Any]:
    """How far the review is, by status, frequency and person."""
    found = {row[0]: row[1] for row in store.all("SELECT status, count(*) FROM entries GROUP BY status")}
    by_band = []
    for band in bands:
        query = "SELECT count(*) total, sum(decisions > 0) decided FROM entries WHERE row BETWEEN ? AND ?"
        ((total, decided),) = store.all(query, band.first - 1, band.last - 1)
        by_band.append({"band": band.name, "total": total, "decided": decided or 0})
    return {
        **{name: found.get(name, 0) for name in STATUSES},
        "total": sum(found.values()),
        "twice": store.number("SELECT count(*) FROM entries WHERE decisions > 1"),
        "decisions": store.number(f"SELECT count(*) FROM decisions WHERE {_JUDGED}"),
        "by_band": by_band,
        "by_reviewer": reviewers(store),
    }


@router.get("/api/review/disagreements", response_model=DisagreementsAnswer)
def disagreeing(book: BookOf, offset: api.Offset = 0, limit: api.Limit = 100) -> Any:
    """Entries on which people disagree, with what each of them decided and when."""
    store, where = book.store, "FROM entries WHERE status = 'disagreement'"
    found = []
    for row in store.all(f"SELECT source, row {where} ORDER BY row LIMIT ? OFFSET ?", limit, offset):
        about = standing(decisions_about(store, row["source"]))
        shown = dict.fromkeys(word for one in about for word in (*one.candidates, *one.accepted))
        rank = row["row"] + 1
        found.append(
            Disagreement(source=row["source"], source_rank=rank, candidates=list(shown), decisions=about)
        )
    return {"total": store.number(f"SELECT count(*) {where}"), "rows": found}


def reviewers(store: Store) -> list[dict[str, Any]]:
    """Everybody who decided something or has something assigned, with how far each is."""
    found: dict[str, dict[str, Any]] = {}
    for row in store.all(
        "SELECT reviewer name, count(*) decisions, sum(verdict = 'accept') accepted, "
        "sum(verdict = 'none') rejected, at last, max(id) newest "  # `at` is that of the newest
        f"FROM decisions WHERE {_JUDGED} GROUP BY reviewer"
    ):
        found[row["name"]] = {name: value for name, value in dict(row).items() if name != "newest"}
    for row in store.all(
        "SELECT assignee name, count(*) assigned, sum(EXISTS (SELECT 1 FROM decisions "
        f"WHERE decisions.source = entries.source AND reviewer = assignee AND {_JUDGED})) done "
        "FROM entries WHERE assignee <> '' GROUP BY assignee"
    ):
        found.setdefault(row["name"], {}).update(dict(row))
    return [Reviewer(**one).model_dump() for _, one in sorted(found.items())]


class Alike(api.Answer):
    """How often people judged alike; share and Cohen's κ are null where they are undefined."""

    entries: int
    agreed: int
    share: float | None
    kappa: float | None


class AlikePair(Alike):
    """The same for two people."""

    reviewers: tuple[str, str]


AgreementAnswer = api.answer("AgreementAnswer", pairs=list[AlikePair], overall=Alike)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's κ: agreement beyond that of two people who answer at random with their own shares of yes."""
    if not pairs:
        return None
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    first = sum(a for a, _ in pairs) / len(pairs)
    second = sum(b for _, b in pairs) / len(pairs)
    at_random = first * second + (1 - first) * (1 - second)
    return None if at_random == 1 else (agreed - at_random) / (1 - at_random)


@router.get("/api/review/agreement", response_model=AgreementAnswer)
def review_agreement(book: BookOf) -> Any:
    """Agreement between reviewers: shares and Cohen's κ."""
    return agreement(book.store)


def agreement(store: Store) -> dict[str, Any]:
    """Agreement of every two people who decided on the same words, and of all such pairs together."""
    about: dict[str, list[Decision]] = {}
    for row in store.all("SELECT * FROM decisions WHERE undone IS NULL AND kind <> 'resolution' ORDER BY id"):
        about.setdefault(row["source"], []).append(Decision.from_row(row))
    answers: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for one in about.values():
        judged = {  # whether each person says that the model's first answer is right
            decision.reviewer: decision.verdict == "accept" and decision.best in decision.accepted
            for decision in standing(one)
            if decision.verdict != "skip"
        }
        for names in combinations(sorted(judged), 2):
            answers.setdefault(names, []).append((judged[names[0]], judged[names[1]]))
    pairs = [{"reviewers": names, **_alike(said)} for names, said in sorted(answers.items())]
    return {"pairs": pairs, "overall": _alike([one for said in answers.values() for one in said])}


def _alike(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    agreed = sum(a == b for a, b in pairs)
    share = agreed / len(pairs) if pairs else None
    return {"entries": len(pairs), "agreed": agreed, "share": share, "kappa": kappa(pairs)}
