"""Review: the queue, decisions, undo, several reviewers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bilex.core.typed_json import as_json
from bilex_workbench import decisions
from bilex_workbench.agreement import agreement
from bilex_workbench.decisions import Decision, decisions_about, standing
from bilex_workbench.entries import entry
from bilex_workbench.problems import CONTROL, LONGEST_WORD, ProblemError
from bilex_workbench.reviewing import Queue, item, reviewers, status
from bilex_workbench.routes import Bench, Limit, Offset, ReviewerQuery, TextQuery
from bilex_workbench.state import Workbench

router = APIRouter(tags=["review"])


class Body(BaseModel):
    """A body in which nothing unknown may stand, nor control characters but new lines and tabs."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        parts = [value]
        while parts:
            part = parts.pop()
            if isinstance(part, str) and CONTROL.search(part.replace("\n", "").replace("\t", "")):
                raise ValueError("control characters are not allowed in texts")
            parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        return value


def _one_line(text: str) -> str:
    if CONTROL.search(text):
        raise ValueError("line breaks and tabs are not allowed in words and names")
    return text


Word = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WORD), AfterValidator(_one_line)]
Reviewer = Annotated[
    str,
    StringConstraints(min_length=1, max_length=60, strip_whitespace=True),
    AfterValidator(_one_line),
]
Note = Annotated[str, StringConstraints(max_length=10_000)]
Words = Annotated[list[Word], Field(max_length=100)]


class DecisionIn(Body):
    """A decision about a word."""

    source: Word
    reviewer: Reviewer
    verdict: Literal["accept", "none", "skip"]
    accepted: Words = Field(default_factory=list)
    candidates: Words = Field(default_factory=list)
    rejected: Words | None = None
    unsure: Words = Field(default_factory=list)
    note: Note = ""
    kind: Literal["review", "resolution"] = "review"


class SkipIn(Body):
    """A word that somebody leaves for later."""

    source: Word
    reviewer: Reviewer


class NoteIn(SkipIn):
    """A remark about a word."""

    note: Note


class UndoIn(Body):
    """Who takes a decision back."""

    reviewer: Reviewer


@router.get("/api/review/next")
def following(
    bench: Bench,
    reviewer: ReviewerQuery,
    order: str = "queue",
    count: Annotated[int, Query(ge=1, le=10)] = 3,
    mode: str = "first",
    kind: str = "",
    assignee: TextQuery = "",
    exclude: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006
) -> dict[str, Any]:
    """The next words of the queue."""
    queue = Queue(reviewer, order, mode, kind, assignee)
    sources = queue.following(bench.store, count, exclude)
    return {
        "items": [item(bench.engine, source, mode) for source in sources],
        **queue.counts(bench.store),
    }


@router.post("/api/review/decide")
def decide(bench: Bench, body: DecisionIn) -> dict[str, Any]:
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
        bench,
        Decision(
            body.source,
            body.reviewer,
            body.verdict,
            accepted,
            rejected,
            tuple(body.candidates),
            None,
            body.note,
            body.kind,
            unsure=unsure,
        ),
    )


@router.post("/api/review/skip")
def skip(bench: Bench, body: SkipIn) -> dict[str, Any]:
    """Leave a word for later."""
    return _recorded(bench, Decision(body.source, body.reviewer, "skip"))


def _recorded(bench: Workbench, decision: Decision) -> dict[str, Any]:
    found = entry(bench.store, decision.source)
    if found is None:
        raise ProblemError(404, f"'{decision.source[:100]}' is not in the table.")
    best = Decision(**{**vars(decision), "best": found["target"]})
    with bench.store.writing() as connection:
        kept = decisions.record(connection, best)
    return {
        "decision": kept.as_dict(),
        "entry": entry(bench.store, decision.source),
        **Queue(decision.reviewer).counts(bench.store),
    }


@router.post("/api/review/note")
def note(bench: Bench, body: NoteIn) -> dict[str, Any]:
    """Keep a remark; an empty one removes it."""
    if entry(bench.store, body.source) is None:
        raise ProblemError(404, f"'{body.source[:100]}' is not in the table.")
    with bench.store.writing() as connection:
        decisions.set_note(connection, body.source, body.reviewer, body.note)
    return {"entry": entry(bench.store, body.source)}


@router.post("/api/review/undo")
def undo(bench: Bench, body: UndoIn) -> dict[str, Any]:
    """Take back a person's newest decision that stands."""
    with bench.store.writing() as connection:
        undone = decisions.undo(connection, body.reviewer)
    found = entry(bench.store, undone.source)
    return {
        "undone": undone.as_dict(),
        "entry": found,
        "item": item(bench.engine, undone.source) if found else None,
        **Queue(body.reviewer).counts(bench.store),
    }


@router.get("/api/review/reviewers")
def people(bench: Bench) -> dict[str, Any]:
    """Everybody who decided something."""
    return {"reviewers": [as_json(one) for one in reviewers(bench.store)]}


@router.get("/api/review/status")
def progress(bench: Bench) -> dict[str, Any]:
    """How far the review is."""
    return status(bench.store, bench.bands).as_dict()


@router.get("/api/review/disagreements")
def disagreements(bench: Bench, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """Entries on which people disagree."""
    store = bench.store
    rows = store.all(
        "SELECT source, row FROM entries WHERE status = 'disagreement' ORDER BY row LIMIT ? OFFSET ?",
        limit,
        offset,
    )
    found = []
    for row in rows:
        about = standing(decisions_about(store, row["source"]))
        shown = dict.fromkeys(word for one in about for word in (*one.candidates, *one.accepted))
        found.append(
            {
                "source": row["source"],
                "source_rank": row["row"] + 1,
                "candidates": list(shown),
                "decisions": [one.as_dict() for one in about],
            }
        )
    return {
        "total": store.number("SELECT count(*) FROM entries WHERE status = 'disagreement'"),
        "rows": found,
    }


@router.get("/api/review/agreement")
def alike(bench: Bench) -> dict[str, Any]:
    """Agreement between reviewers: shares and Cohen's κ."""
    return agreement(bench.store).as_dict()
