"""The dictionary as a table."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field, StringConstraints

from bilex.model.space import Side
from bilex_workbench.articles import Article, Example, add_example, article_of, keep_article
from bilex_workbench.decisions import decisions_about, notes_of
from bilex_workbench.entries import COLUMNS, Filter, decide_many, entry, mark, page, undo_batch
from bilex_workbench.kinds import KINDS
from bilex_workbench.neighbours import neighbours
from bilex_workbench.problems import ProblemError
from bilex_workbench.reviewing import candidates, forms_of
from bilex_workbench.routes import Bench, K, Limit, Offset, Share, TextQuery, WordQuery
from bilex_workbench.routes.review import Body, Reviewer, Word
from bilex_workbench.state import Workbench

router = APIRouter(tags=["table"])
Rank = Annotated[int | None, Query(ge=1)]


def _filter(
    bench: Bench,
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
    fresh: bool | None = None,
    heads: bool | None = None,
    headword: TextQuery = "",
    assignee: TextQuery = "",
) -> Filter:
    given = {name: value for name, value in locals().items() if name not in ("bench", "band")}
    return Filter(**given).within_band(band, bench.bands)


Wanted = Annotated[Filter, Depends(_filter)]


class ManyIn(Body):
    """Which entries a bulk action is about: those named, or all that the filter of the address finds."""

    reviewer: Reviewer
    sources: Annotated[list[Word], Field(max_length=10_000)] | None = None


class MarkIn(ManyIn):
    """A kind or an assignee for many entries; null leaves it as it is."""

    kind: Literal[KINDS] | None = None  # type: ignore[valid-type]
    assignee: Annotated[str, StringConstraints(max_length=60, strip_whitespace=True)] | None = None


class DecideManyIn(ManyIn):
    """A verdict about the first answer of many entries."""

    verdict: Literal["accept", "none", "skip"]


class BatchIn(Body):
    """Which bulk action to take back."""

    batch: int = Field(ge=1, le=2**53)


@router.get("/api/entries")
def entries(
    bench: Bench, wanted: Wanted, offset: Offset = 0, limit: Limit = 100, sort: str = "source_rank"
) -> dict[str, Any]:
    """A page of the table."""
    total, rows = page(bench.store, wanted, sort, offset, limit)
    return {
        "total": total,
        "offset": offset,
        "limit": limit,
        "complete": bench.filled,
        "columns": COLUMNS,
        "rows": rows,
    }


@router.post("/api/entries/mark")
def mark_many(bench: Bench, wanted: Wanted, body: MarkIn) -> dict[str, Any]:
    """Correct the kind of many entries, or assign them to somebody."""
    if body.kind is None and body.assignee is None:
        raise ProblemError(400, "Nothing is to be changed; name a kind or an assignee.")
    chosen = wanted if body.sources is None else body.sources
    return mark(bench.store, chosen, body.reviewer, body.kind, body.assignee)


@router.post("/api/entries/decide")
def decide_about_many(bench: Bench, wanted: Wanted, body: DecideManyIn) -> dict[str, Any]:
    """Accept or reject the first answer of many entries, or skip them."""
    return decide_many(
        bench.store, wanted if body.sources is None else body.sources, body.reviewer, body.verdict
    )


@router.post("/api/entries/undo")
def undo_many(bench: Bench, body: BatchIn) -> dict[str, Any]:
    """Take back a bulk action."""
    return undo_batch(bench.store, body.batch)


@router.get("/api/entry")
def one_entry(bench: Bench, source: WordQuery) -> dict[str, Any]:
    """One source word with candidates, forms, notes and the history of decisions."""
    found = entry(bench.store, source)
    if found is None:
        raise ProblemError(404, f"'{source[:100]}' is not in the table.")
    history = decisions_about(bench.store, source)
    return {
        **found,
        "candidates": candidates(bench.engine, source),
        "other_forms": forms_of(bench.store, source),
        "history": [decision.as_dict() for decision in reversed(history)],
        "notes": notes_of(bench.store, source),
        "article": article_of(bench.store, source),
    }


class ArticleIn(Body):
    """The structure of an entry, in place of the one it has."""

    source: Word
    reviewer: Reviewer
    article: Article


class ExampleIn(Body):
    """An example for the sense that a translation belongs to."""

    source: Word
    reviewer: Reviewer
    target: Word
    example: Example


@router.put("/api/entry/article")
def write_article(bench: Bench, body: ArticleIn) -> dict[str, Any]:
    """Keep part of speech, senses, labels, comments, examples and notes of an entry."""
    if entry(bench.store, body.source) is None:
        raise ProblemError(404, f"'{body.source[:100]}' is not in the table.")
    with bench.store.writing() as connection:
        keep_article(connection, body.source, body.article, body.reviewer)
    return {"article": body.article}


@router.post("/api/entry/example")
def choose_example(bench: Bench, body: ExampleIn) -> dict[str, Any]:
    """Add a sentence to an entry."""
    if entry(bench.store, body.source) is None:
        raise ProblemError(404, f"'{body.source[:100]}' is not in the table.")
    if not body.example.source and not body.example.target:
        raise ProblemError(400, "The example is empty; give a sentence.")
    with bench.store.writing() as connection:
        found = add_example(connection, body.source, body.target, body.example, body.reviewer)
    return {"article": found}


@router.get("/api/examples")
def examples(bench: Bench, source: WordQuery, target: TextQuery = "", k: K = 3) -> dict[str, Any]:
    """Good sentences of the corpus with a word, its translation, or both; empty without a corpus."""
    if bench.corpus is None:
        return {"corpus": False, "parallel": [], "source": [], "target": []}
    words = [[source, *forms_of(bench.store, source)], _target_forms(bench, target)]
    near = (_neighbours(bench, source, "source"), _neighbours(bench, target, "target"))
    return {"corpus": True, **bench.corpus.examples(words, near, k)}


def _target_forms(bench: Workbench, target: str) -> list[str]:
    """A target word with the forms that are listed under it."""
    row = bench.engine.space.target.key_to_index.get(target)
    if row is None:
        return [target] if target else []
    words = bench.engine.space.target.index_to_key
    found = bench.store.all("SELECT row FROM forms WHERE side = 1 AND head = ? LIMIT 50", row)
    return [target, *(words[one["row"]] for one in found)]


def _neighbours(bench: Workbench, word: str, side: Side) -> set[str]:
    try:
        return {near["word"].casefold() for near in neighbours(bench.engine, word, side, 20)}
    except ProblemError:  # a word that somebody typed
        return set()
