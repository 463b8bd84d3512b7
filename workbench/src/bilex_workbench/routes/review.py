"""The dictionary as a table, its review by several people, and the audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from bilex.model.space import Side
from bilex_workbench import audit, decisions
from bilex_workbench import interface as i
from bilex_workbench.articles import add_example, article_of, keep_article
from bilex_workbench.decisions import Decision, decisions_about, notes_of
from bilex_workbench.entries import (
    COLUMNS,
    Filter,
    assign,
    batches,
    decide_many,
    entry,
    known_entry,
    mark,
    page,
    undo_batch,
)
from bilex_workbench.lookup import neighbours
from bilex_workbench.problems import ProblemError
from bilex_workbench.recalibration import apply_to_model
from bilex_workbench.reviewing import (
    Queue,
    agreement,
    candidates,
    disagreements,
    forms_of,
    item,
    reviewers,
    status,
)
from bilex_workbench.routes import (
    Bench,
    BookOf,
    K,
    Limit,
    Offset,
    ReviewerQuery,
    Share,
    TextQuery,
    WordQuery,
    problems,
)
from bilex_workbench.state import Book

table = APIRouter(tags=["table"])
router = APIRouter(tags=["review"])
audits = APIRouter(tags=["audit"])
Rank = Annotated[int | None, Query(ge=1)]


def _filter(
    book: BookOf,
    q: TextQuery = "",
    within: Annotated[str, Query(alias="in")] = "both",
    match: str = "contains",
    min_confidence: Share = None,
    max_confidence: Share = None,
    band: str | None = None,
    min_rank: Rank = None,
    max_rank: Rank = None,
    status: str = "",
    mutual: bool | None = None,
    identical: bool | None = None,
    noted: bool | None = None,
    reviewer: TextQuery = "",
    kind: str = "",
    known: bool | None = None,
    doubtful: bool | None = None,
    fresh: bool | None = None,
    heads: bool | None = None,
    headword: TextQuery = "",
    assignee: TextQuery = "",
) -> Filter:
    given = {name: value for name, value in locals().items() if name not in ("book", "band")}
    return Filter(**given).within_band(band, book.bands)


Wanted = Annotated[Filter, Depends(_filter)]


@table.get("/api/entries", response_model=i.EntryPage)
def entries(
    book: BookOf, wanted: Wanted, offset: Offset = 0, limit: Limit = 100, sort: str = "source_rank"
) -> Any:
    """A page of the table."""
    total, rows = page(book.store, wanted, sort, offset, limit)
    return {
        "total": total,
        "offset": offset,
        "limit": limit,
        "complete": book.filled,
        "columns": COLUMNS,
        "rows": rows,
    }


@table.post("/api/entries/mark", response_model=i.BatchAnswer)
def mark_entries(book: BookOf, wanted: Wanted, body: i.MarkIn) -> Any:
    """Correct the kind of many entries, or assign them to somebody."""
    if body.kind is None and body.assignee is None:
        raise ProblemError(400, "Nothing is to be changed; name a kind or an assignee.")
    chosen = wanted if body.sources is None else body.sources
    return mark(book.store, chosen, body.reviewer, body.kind, body.assignee)


@table.post("/api/entries/assign", response_model=i.AssignedAnswer)
def assign_entries(book: BookOf, wanted: Wanted, body: i.AssignIn) -> Any:
    """Divide many entries among people: evenly, by frequency range, by letter or by kind."""
    chosen = wanted if body.sources is None else body.sources
    return assign(book.store, chosen, body.reviewer, body.people, body.by)


@table.get("/api/entries/batches", response_model=i.BatchesAnswer)
def bulk_actions(book: BookOf, limit: Limit = 20) -> Any:
    """The newest bulk actions, each of which can be taken back."""
    return {"batches": batches(book.store, limit)}


@table.post("/api/entries/decide", response_model=i.BatchAnswer)
def decide_entries(book: BookOf, wanted: Wanted, body: i.DecideManyIn) -> Any:
    """Accept or reject the first answer of many entries, or skip them."""
    chosen = wanted if body.sources is None else body.sources
    return decide_many(book.store, chosen, body.reviewer, body.verdict)


@table.post("/api/entries/undo", response_model=i.BatchAnswer, responses=problems(404, 409))
def undo_entries(book: BookOf, body: i.BatchIn) -> Any:
    """Take back a bulk action."""
    return undo_batch(book.store, body.batch)


@table.get("/api/entry", response_model=i.EntryAnswer, responses=problems(404))
def one_entry(book: BookOf, source: WordQuery) -> Any:
    """One source word with candidates, forms, notes and the history of decisions."""
    return {
        **known_entry(book.store, source),
        "candidates": candidates(book.engine, source),
        "other_forms": forms_of(book.store, source),
        "history": decisions_about(book.store, source)[::-1],
        "notes": notes_of(book.store, source),
        "article": article_of(book.store, source),
    }


@table.put("/api/entry/article", response_model=i.ArticleAnswer, responses=problems(404))
def write_article(book: BookOf, body: i.ArticleIn) -> Any:
    """Keep part of speech, senses, labels, comments, examples and notes of an entry."""
    known_entry(book.store, body.source)
    with book.store.writing() as connection:
        keep_article(connection, body.source, body.article, body.reviewer)
    return {"article": body.article}


@table.post("/api/entry/example", response_model=i.ArticleAnswer, responses=problems(404))
def choose_example(book: BookOf, body: i.ExampleIn) -> Any:
    """Add a sentence to an entry."""
    known_entry(book.store, body.source)
    if not body.example.source and not body.example.target:
        raise ProblemError(400, "The example is empty; give a sentence.")
    with book.store.writing() as connection:
        found = add_example(connection, body.source, body.target, body.example, body.reviewer)
    return {"article": found}


@table.get("/api/examples", response_model=i.ExamplesAnswer)
def examples(bench: Bench, book: BookOf, source: WordQuery, target: TextQuery = "", k: K = 3) -> Any:
    """Good sentences of the corpus with a word, its translation, or both; empty without a corpus."""
    corpus = bench.corpus
    if corpus is None:
        return {"corpus": False, "parallel": [], "source": [], "target": []}
    words = [[source, *forms_of(book.store, source)], _target_forms(book, target)]
    near = (_neighbours(book, source, "source"), _neighbours(book, target, "target"))
    if book.direction == "forward":
        return {"corpus": True, **corpus.examples(words, near, k)}
    found = corpus.examples(words[::-1], near[::-1], k)
    swapped = {"source": "target", "target": "source"}
    turned = {
        name: [{swapped[side]: one for side, one in row.items()} for row in rows]
        for name, rows in found.items()
    }
    return {
        "corpus": True,
        "parallel": turned["parallel"],
        "source": turned["target"],
        "target": turned["source"],
    }


def _target_forms(book: Book, target: str) -> list[str]:
    """A target word with the forms that are listed under it."""
    row = book.engine.space.target.key_to_index.get(target)
    if row is None:
        return [target] if target else []
    words = book.engine.space.target.index_to_key
    found = book.store.all("SELECT row FROM forms WHERE side = 1 AND head = ? LIMIT 50", row)
    return [target, *(words[one["row"]] for one in found)]


def _neighbours(book: Book, word: str, side: Side) -> set[str]:
    try:
        return {near["word"].casefold() for near in neighbours(book.engine, word, side, 20)}
    except ProblemError:  # a word that somebody typed
        return set()


@router.get("/api/review/next", response_model=i.QueueAnswer)
def next_items(
    book: BookOf,
    reviewer: ReviewerQuery,
    order: str = "queue",
    count: Annotated[int, Query(ge=1, le=10)] = 3,
    mode: str = "first",
    kind: str = "",
    assignee: TextQuery = "",
    exclude: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006
) -> Any:
    """The next words of the queue."""
    queue = Queue(reviewer, order, mode, kind, assignee)
    sources = queue.following(book.store, count, exclude)
    return {
        "items": [item(book.engine, source, mode) for source in sources],
        **queue.counts(book.store),
    }


@router.post("/api/review/decide", response_model=i.DecidedAnswer, responses=problems(404))
def decide(book: BookOf, body: i.DecisionIn) -> Any:
    """Keep a decision; it is on the disk when this answers."""
    if body.verdict == "accept" and not body.accepted:
        raise ProblemError(400, "Nothing was accepted; choose 'none' if no candidate is right.")
    if body.verdict != "accept" and body.accepted:
        raise ProblemError(400, "Only a decision that accepts can name translations that are right.")
    wrong = body.rejected
    if wrong is None:  # unchosen is unknown, unless somebody says that none is right
        wrong = body.candidates if body.verdict == "none" else []
    judged = [dict.fromkeys(words) for words in (body.accepted, wrong, body.unsure)]
    if len({word for words in judged for word in words}) < sum(map(len, judged)):
        raise ProblemError(400, "A translation can be right, wrong or unsure, and only one of them.")
    accepted, rejected, unsure = (tuple(words) for words in judged)
    return _recorded(
        book,
        Decision(
            source=body.source,
            reviewer=body.reviewer,
            verdict=body.verdict,
            accepted=accepted,
            rejected=rejected,
            unsure=unsure,
            candidates=tuple(body.candidates),
            note=body.note,
            kind=body.kind,
        ),
    )


@router.post("/api/review/skip", response_model=i.DecidedAnswer, responses=problems(404))
def skip(book: BookOf, body: i.SkipIn) -> Any:
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


@router.post("/api/review/note", response_model=i.NotedAnswer, responses=problems(404))
def write_note(book: BookOf, body: i.NoteIn) -> Any:
    """Keep a remark; an empty one removes it."""
    known_entry(book.store, body.source)
    with book.store.writing() as connection:
        decisions.set_note(connection, body.source, body.reviewer, body.note)
    return {"entry": entry(book.store, body.source)}


@router.post("/api/review/undo", response_model=i.UndoneAnswer, responses=problems(409))
def undo(book: BookOf, body: i.UndoIn) -> Any:
    """Take back a person's newest decision that stands."""
    with book.store.writing() as connection:
        undone = decisions.undo(connection, body.reviewer)
    found = entry(book.store, undone.source)
    return {
        "undone": undone,
        "entry": found,
        "item": item(book.engine, undone.source) if found else None,
        **Queue(body.reviewer).counts(book.store),
    }


@router.get("/api/review/reviewers", response_model=i.PeopleAnswer)
def people(book: BookOf) -> Any:
    """Everybody who decided something or has entries assigned, and how far each is."""
    return {"reviewers": reviewers(book.store)}


@router.get("/api/review/status", response_model=i.StatusAnswer)
def review_status(book: BookOf) -> Any:
    """How far the review is."""
    return status(book.store, book.bands).as_dict()


@router.get("/api/review/disagreements", response_model=i.DisagreementsAnswer)
def disagreeing(book: BookOf, offset: Offset = 0, limit: Limit = 100) -> Any:
    """Entries on which people disagree, with what each of them decided and when."""
    return disagreements(book.store, offset, limit)


@router.get("/api/review/agreement", response_model=i.AgreementAnswer)
def review_agreement(book: BookOf) -> Any:
    """Agreement between reviewers: shares and Cohen's κ."""
    return agreement(book.store).as_dict()


@audits.post("/api/audit", response_model=i.AuditAnswer, responses=problems(409))
def draw_sample(book: BookOf, body: i.SampleIn) -> Any:
    """Draw a new stratified sample."""
    found = audit.draw(
        book.engine,
        book.bands,
        body.size,
        body.reviewer,
        body.random_seed,
        body.min_confidence,
        body.max_rank,
    )
    return {"audit": found}


@audits.get("/api/audit", response_model=i.AuditAnswer)
def current_sample(book: BookOf) -> Any:
    """The present sample and how far it is."""
    return {"audit": audit.current(book.store)}


@audits.get("/api/audit/next", response_model=i.BlindItems, responses=problems(409))
def next_blind_items(
    book: BookOf, reviewer: ReviewerQuery, count: Annotated[int, Query(ge=1, le=10)] = 2
) -> Any:
    """The next items, blind."""
    return audit.following(book.store, count)


@audits.post("/api/audit/decide", response_model=i.AuditDecided, responses=problems(404, 409))
def decide_blind(book: BookOf, body: i.VerdictIn) -> Any:
    """Keep what somebody says about an item."""
    return audit.decide(
        book.store, body.number, body.reviewer, body.verdict, body.right, body.typed, body.note
    )


@audits.post("/api/audit/undo", response_model=i.AuditUndone, responses=problems(409))
def undo_blind(book: BookOf, body: i.UndoIn) -> Any:
    """Take back the newest answer."""
    return audit.undo(book.store, body.reviewer)


@audits.get("/api/audit/report", response_model=i.ReportAnswer, responses=problems(409))
def audit_result(book: BookOf, width: Annotated[float, Query(gt=0, le=1)] = 0.1) -> Any:
    """Precision with its 95 % interval, over all and by band."""
    return audit.report(book.engine, book.bands, width)


@audits.post("/api/audit/recalibrate", response_model=i.RecalibrationAnswer, responses=problems(409))
def recalibrate(bench: Bench) -> Any:
    """Bring confidences in line with what was audited."""
    with bench.exclusive("recalibrate"):
        return {"recalibration": audit.recalibrate(bench.engine)}


@audits.delete("/api/audit/recalibrate", response_model=i.RecalibrationAnswer, responses=problems(409))
def undo_recalibration(bench: Bench) -> Any:
    """The model's own confidences again."""
    with bench.exclusive("recalibrate"):
        audit.recalibrate(bench.engine, back=True)
    return {"recalibration": None}


@audits.post("/api/audit/apply", response_model=i.AppliedAnswer, responses=problems(409))
def apply_recalibration(bench: Bench) -> Any:
    """Write the recalibrated confidences into the model, so that `bilex translate` has them too."""
    return {"applied": apply_to_model(bench)}
