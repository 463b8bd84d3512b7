"""The review queue, decisions, progress, and agreement of reviewers."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from bilex_workbench import api
from bilex_workbench.articles import Article, SkipIn, article_of
from bilex_workbench.database import dicts, value
from bilex_workbench.decisions import (
    DECIDED,
    STATUSES,
    Decision,
    Status,
    Verdict,
    decisions_by_word,
    record,
    select_decisions,
    set_note,
    standing,
)
from bilex_workbench.decisions import undo as undo_decision
from bilex_workbench.engine import STORED_CANDIDATES
from bilex_workbench.entries import Filter, Row, entry_of, forms_of, select_rows
from bilex_workbench.entries import router as table
from bilex_workbench.kinds import Kind
from bilex_workbench.lookup import TranslationAnswer, neighbours
from bilex_workbench.statistics import FrequencyBand
from bilex_workbench.workbench import Book, BookOf, Reader

router = APIRouter(tags=["review"])
CANDIDATES = 9
_ORDERS = {
    "queue": "priority DESC, row",
    "frequency": "row",
    "confidence": "confidence NULLS LAST, row",
    "-confidence": "confidence DESC, row DESC",
    "random": "shuffled, row",
    "alphabet": "source_key, row",
}
_NOTES = "SELECT reviewer, note, at FROM notes WHERE source = ? ORDER BY id DESC"
_JUDGED = "undone IS NULL AND verdict <> 'skip'"
_MODES = {  # conditions whose entries follow each other; each has an index, and ? is the reviewer
    "first": ("fresh = 1", "status = 'unreviewed'", "status = 'skipped'"),  # only decided entries are fresh
    "second": (
        "decisions = 1 AND status IN ('accepted', 'corrected', 'rejected') AND "
        f"source NOT IN (SELECT source FROM decisions WHERE reviewer = ? AND {_JUDGED})",
    ),
    "disagreements": ("status = 'disagreement'",),
    "skipped": ("status = 'skipped'",),
    "seeds": ("known = 1 AND status IN ('unreviewed', 'skipped')",),
    "doubtful": ("known = 1 AND priority > 0 AND status IN ('unreviewed', 'skipped')",),
}
Order = Literal["queue", "frequency", "confidence", "-confidence", "random", "alphabet"]
Mode = Literal["first", "second", "disagreements", "skipped", "seeds", "doubtful"]


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


class UndoIn(api.Body):
    """The person whose decision is undone."""

    reviewer: api.Name


@dataclass(frozen=True, kw_only=True)
class Candidate(TranslationAnswer):
    """A candidate; of a headword, together with its other forms."""

    forms: list[str]


class NoteAnswer(api.Response):
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


class Item(api.Response):
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


Disagreement = api.response(
    "Disagreement",
    "An entry on which people disagree, with the decision of each.",
    source=str,
    source_rank=int,
    candidates=list[str],
    decisions=list[Decision],
)
_COUNTS = {"left": int, "decided": int, "decided_by_you": int}
QueueAnswer = api.response("QueueAnswer", **_COUNTS, items=list[Item])
DecidedAnswer = api.response("DecidedAnswer", **_COUNTS, decision=Decision, entry=Row)
UndoneAnswer = api.response("UndoneAnswer", **_COUNTS, undone=Decision, entry=Row | None, item=Item | None)
NotedAnswer = api.response("NotedAnswer", entry=Row)
DisagreementsAnswer = api.response("DisagreementsAnswer", total=int, rows=[Disagreement])


@dataclass(frozen=True)
class Queue:
    """Which words are reviewed, and in which order: the parameters of `GET /api/review/next`."""

    reviewer: api.ReviewerQuery
    order: Order = "queue"
    mode: Mode = "first"
    kind: str = ""
    assignee: api.TextQuery = ""

    def parts(self) -> list[tuple[str, list[Any]]]:
        """SQL conditions whose entries follow each other, with their values."""
        chosen, values = Filter(kind=self.kind, assignee=self.assignee).condition()
        more = f" AND ({chosen}) IS TRUE" if values else ""  # which leaves the choice of an index to the mode
        return [(part + more, [self.reviewer] * part.count("?") + values) for part in _MODES[self.mode]]

    def following(self, db: sqlite3.Connection, count: int, exclude: Sequence[str]) -> list[str]:
        """The next words."""
        found: list[str] = []
        for part, values in self.parts():
            if len(found) >= count:
                break
            query = f"SELECT source FROM entries WHERE {part} ORDER BY {_ORDERS[self.order]} LIMIT ?"
            rows = db.execute(query, (*values, count + len(exclude)))
            found += [source for (source,) in rows if source not in exclude]
        return list(dict.fromkeys(found))[:count]

    def counts(self, db: sqlite3.Connection) -> dict[str, int]:
        """The progress of the review, of all and of one person."""
        count = "SELECT count(*) FROM entries WHERE"
        own = f"SELECT count(DISTINCT source) FROM decisions WHERE reviewer = ? AND {_JUDGED}"
        return {
            "left": sum(value(db, f"{count} {part}", *values) for part, values in self.parts()),
            "decided": value(db, f"{count} {DECIDED}"),
            "decided_by_you": value(db, own, self.reviewer),
        }


def candidates(book: Book, db: sqlite3.Connection, source: str, k: int = CANDIDATES) -> list[dict[str, Any]]:
    """The candidates of a word; of a headword, those that are forms of one target word are one group.

    Such a group is named by its headword, has the numbers of its best form, and lists its `forms`.
    """
    answers = book.engine.translate(source, STORED_CANDIDATES, book.direction)
    found = [vars(one) | {"forms": []} for one in answers]
    if not value(db, "SELECT headword = source FROM entries WHERE source = ?", source):
        return found[:k]
    rows = json.dumps([one["rank"] - 1 for one in found])
    query = "SELECT row + 1, head FROM forms WHERE side = 1 AND row IN (SELECT value FROM json_each(?))"
    heads = dict(db.execute(query, (rows,)).fetchall())
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
def one_entry(book: BookOf, db: Reader, source: api.WordQuery) -> Any:
    """One source word with candidates, forms, notes and the history of decisions."""
    return {
        **entry_of(db, source),
        "candidates": candidates(book, db, source),
        "other_forms": forms_of(db, source),
        "history": select_decisions(db, "source = ?", source)[::-1],
        "notes": dicts(db, _NOTES, source),
        "article": article_of(db, source),
    }


def item(book: Book, db: sqlite3.Connection, source: str, *, blind: bool = False) -> dict[str, Any]:
    """A word with all that a reviewer needs to decide; in a second review, without what others decided."""
    current = [] if blind else standing(select_decisions(db, "source = ?", source))
    return {
        **entry_of(db, source),
        **({"status": "unreviewed"} if blind else {}),
        "priority": value(db, "SELECT priority FROM entries WHERE source = ?", source),
        "forms": forms_of(db, source),
        "candidates": candidates(book, db, source),
        "notes": [] if blind else dicts(db, _NOTES, source),
        "neighbours": neighbours(book.space, source, "source", 5),
        "decided_by": [decision.reviewer for decision in current],
        "decisions": current,
    }


@router.get("/api/review/next", response_model=QueueAnswer)
def next_items(
    book: BookOf,
    db: Reader,
    queue: Annotated[Queue, Depends()],
    count: Annotated[int, Query(ge=1, le=10)] = 3,
    exclude: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006
) -> Any:
    """The next words of the queue."""
    sources = queue.following(db, count, exclude)
    items = [item(book, db, source, blind=queue.mode == "second") for source in sources]
    return {"items": items, **queue.counts(db)}


@router.post("/api/review/decide", response_model=DecidedAnswer, responses=api.problems(404))
def decide(book: BookOf, body: DecisionIn) -> Any:
    """Store a decision; it is on disk when this answers."""
    if body.verdict == "accept" and not body.accepted:
        raise api.ProblemError(400, "Nothing was accepted; choose 'none' if no candidate is right.")
    if body.verdict != "accept" and body.accepted:
        raise api.ProblemError(400, "Only a decision that accepts can name translations that are right.")
    wrong = body.rejected
    if wrong is None:  # candidates without a verdict are unknown, unless none is right
        wrong = body.candidates if body.verdict == "none" else []
    lists = {"accepted": body.accepted, "rejected": wrong, "unsure": body.unsure}
    judged = {name: tuple(dict.fromkeys(words)) for name, words in lists.items()}
    if len({word for words in judged.values() for word in words}) < sum(map(len, judged.values())):
        raise api.ProblemError(400, "A translation can be right, wrong or unsure, and only one of them.")
    return _decided(book, Decision(**(body.model_dump() | {"candidates": tuple(body.candidates)} | judged)))


@router.post("/api/review/skip", response_model=DecidedAnswer, responses=api.problems(404))
def skip(book: BookOf, body: SkipIn) -> Any:
    """Leave a word for later."""
    return _decided(book, Decision(body.source, body.reviewer, "skip"))


def _decided(book: Book, decision: Decision) -> dict[str, Any]:
    with book.database.writing() as db:
        kept = record(db, replace(decision, best=entry_of(db, decision.source)["target"]))
    with book.database.reading() as db:  # counting takes longer than storing, so others may write meanwhile
        counts = Queue(decision.reviewer).counts(db)
        return {"decision": kept, "entry": entry_of(db, decision.source), **counts}


@router.post("/api/review/note", response_model=NotedAnswer, responses=api.problems(404))
def write_note(book: BookOf, body: NoteIn) -> Any:
    """Store a remark; an empty one removes it."""
    with book.database.writing() as db:
        entry_of(db, body.source)
        set_note(db, body.source, body.reviewer, body.note)
        return {"entry": entry_of(db, body.source)}


@router.post("/api/review/undo", response_model=UndoneAnswer, responses=api.problems(409))
def undo(book: BookOf, body: UndoIn) -> Any:
    """Undo a person's newest decision, audits aside."""
    with book.database.writing() as db:
        newest = "SELECT max(id) FROM decisions WHERE reviewer = ? AND undone IS NULL AND kind <> 'audit'"
        number = value(db, newest, body.reviewer)
        if number is None:
            raise api.ProblemError(409, f"'{body.reviewer}' has no decision left to undo.")
        undone = undo_decision(db, number)
    with book.database.reading() as db:
        answer: dict[str, Any] = {"undone": undone, "entry": None, "item": None}
        for entry in select_rows(db, "source = ?", undone.source):  # none if the model lacks the word
            answer |= {"entry": entry, "item": item(book, db, undone.source)}
        return {**answer, **Queue(body.reviewer).counts(db)}


# Progress of the review and of people.


class Reviewer(api.Response):
    """Somebody who decided something, or to whom entries are assigned."""

    name: str
    decisions: int = 0
    last: str | None = None  # when the newest decision was made
    accepted: int = 0  # decisions that accept a translation
    rejected: int = 0  # decisions that reject all candidates
    assigned: int = 0  # entries
    done: int = 0  # assigned entries that the person decided


BandStatus = api.response(
    "BandStatus", "The progress of the review in one frequency band.", band=str, total=int, decided=int
)
PeopleAnswer = api.response("PeopleAnswer", reviewers=list[Reviewer])
StatusAnswer = api.response(
    "StatusAnswer",
    **dict.fromkeys(STATUSES, int),
    total=int,
    twice=int,
    decisions=int,
    by_band=[BandStatus],
    by_reviewer=list[Reviewer],
)


@router.get("/api/review/reviewers", response_model=PeopleAnswer)
def people(db: Reader) -> Any:
    """Everybody who decided something or has entries assigned, with the progress of each."""
    return {"reviewers": reviewers(db)}


@router.get("/api/review/status", response_model=StatusAnswer)
def review_status(book: BookOf, db: Reader) -> Any:
    """The progress of the review, by status, frequency and person."""
    return status(db, book.bands)


def status(db: sqlite3.Connection, bands: list[FrequencyBand]) -> dict[str, Any]:
    """The progress of the review, by status, frequency and person."""
    found = dict(db.execute("SELECT status, count(*) FROM entries GROUP BY status").fetchall())
    in_band = (
        "SELECT ? band, count(*) total, count(nullif(decisions, 0)) decided FROM entries "
        "WHERE row BETWEEN ? - 1 AND ? - 1"
    )
    return {
        **{name: found.get(name, 0) for name in STATUSES},
        "total": sum(found.values()),
        "twice": value(db, "SELECT count(*) FROM entries WHERE decisions > 1"),
        "decisions": value(db, f"SELECT count(*) FROM decisions WHERE {_JUDGED}"),
        "by_band": [one for band in bands for one in dicts(db, in_band, band.name, band.first, band.last)],
        "by_reviewer": reviewers(db),
    }


def reviewers(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Everybody who decided something or has entries assigned, with the progress of each."""
    found: dict[str, dict[str, Any]] = {}
    for row in db.execute(
        "SELECT reviewer name, count(*) decisions, sum(verdict = 'accept') accepted, "
        "sum(verdict = 'none') rejected, at last, max(id) "  # `at` is that of the newest
        f"FROM decisions WHERE {_JUDGED} GROUP BY reviewer"
    ):
        found[row["name"]] = dict(row)
    for row in db.execute(
        "SELECT assignee name, count(*) assigned, sum(EXISTS (SELECT 1 FROM decisions "
        f"WHERE decisions.source = entries.source AND reviewer = assignee AND {_JUDGED})) done "
        "FROM entries WHERE assignee <> '' GROUP BY assignee"
    ):
        found.setdefault(row["name"], {}).update(dict(row))
    return [Reviewer(**one).model_dump() for _, one in sorted(found.items())]


@router.get("/api/review/disagreements", response_model=DisagreementsAnswer)
def disagreeing(db: Reader, offset: api.Offset = 0, limit: api.Limit = 100) -> Any:
    """Entries on which people disagree, with what each of them decided and when."""
    where, rows = "FROM entries WHERE status = 'disagreement'", []
    for source, row in db.execute(f"SELECT source, row {where} ORDER BY row LIMIT {limit} OFFSET {offset}"):
        about = standing(select_decisions(db, "source = ?", source))
        shown = dict.fromkeys(word for one in about for word in (*one.candidates, *one.accepted))
        rows.append({"source": source, "source_rank": row + 1, "candidates": list(shown), "decisions": about})
    return {"total": value(db, f"SELECT count(*) {where}"), "rows": rows}


_ALIKE = {"entries": int, "agreed": int, "share": float | None, "kappa": float | None}
Alike = api.response(
    "Alike", "How often people judged alike; share and Cohen's κ are null where they are undefined.", **_ALIKE
)
AlikePair = api.response(
    "AlikePair", "How often two people judged alike.", **_ALIKE, reviewers=tuple[str, str]
)
AgreementAnswer = api.response("AgreementAnswer", pairs=[AlikePair], overall=Alike)


@router.get("/api/review/agreement", name="review_agreement", response_model=AgreementAnswer)
def agreement(db: Reader) -> Any:
    """Agreement of every two people who decided on the same words: shares and Cohen's κ."""
    found: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for about in decisions_by_word(db, "undone IS NULL AND kind <> 'resolution'").values():
        judged = {  # whether each person finds the model's first answer right
            decision.reviewer: decision.verdict == "accept" and decision.best in decision.accepted
            for decision in standing(about)
            if decision.verdict != "skip"
        }
        for names in combinations(sorted(judged), 2):
            found.setdefault(names, []).append((judged[names[0]], judged[names[1]]))
    pairs = [{"reviewers": names, **_alike(verdicts)} for names, verdicts in sorted(found.items())]
    return {"pairs": pairs, "overall": _alike([one for verdicts in found.values() for one in verdicts])}


def _alike(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    agreed = sum(a == b for a, b in pairs)
    share = agreed / len(pairs) if pairs else None
    return {"entries": len(pairs), "agreed": agreed, "share": share, "kappa": kappa(pairs)}


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's κ: agreement beyond that of two people who answer at random with their own shares of yes."""
    if not pairs:
        return None
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    first, second = (sum(one[place] for one in pairs) / len(pairs) for place in (0, 1))
    at_random = first * second + (1 - first) * (1 - second)
    return None if at_random == 1 else (agreed - at_random) / (1 - at_random)
