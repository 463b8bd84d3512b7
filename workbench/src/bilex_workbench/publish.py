"""Exports: dictionaries in all formats, the change log, and the sheet that people fill in offline."""

import io
import json
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from bilex.lexicon.entries import Dictionary, Entry, Languages
from bilex.lexicon.formats import WriteOptions, all_formats, format_of, write
from bilex.lexicon.formats.tables import csv_line, defused
from bilex_workbench import api
from bilex_workbench.articles import all_articles, described
from bilex_workbench.decisions import all_outcomes, select_decisions
from bilex_workbench.entries import Filter, Wanted, listed
from bilex_workbench.importing import ImportAnswer, import_sheet
from bilex_workbench.kinds import KINDS
from bilex_workbench.site import Cover, ontolex, site
from bilex_workbench.workbench import Bench, Book, BookOf, Reader

router = APIRouter(tags=["publish"])
_SHEET = ("source", "target", "confidence", "source_rank", "verdict", "note", "reviewer", "decided")
_STRUCTURE = ("part_of_speech", "sense", "gloss", "labels", "comment", "example")
_OWN_FORMATS = {
    "site": ("a site that can be searched offline, with a page to print", ".zip"),
    "ontolex": ("OntoLex-Lemon, linked data in Turtle", ".ttl"),
}
_MEDIA_TYPES = {
    ".ttl": "text/turtle",
    ".tsv": "text/tab-separated-values",
    ".csv": "text/csv",
    ".jsonl": "application/x-ndjson",
    ".txt": "text/plain",
    ".zip": "application/zip",
}


class Format(api.Response):
    """A format of exports."""

    name: str
    label: str
    suffix: str
    media_type: str


FormatsAnswer = api.response("FormatsAnswer", formats=list[Format])
PreviewAnswer = api.response(
    "PreviewAnswer", pairs=int, confirmed=int, first=list[tuple[str, str]], problem=str | None
)


@dataclass(frozen=True)
class Choice:
    """Which entries to publish, as parameters.

    "confirmed" are accepted pairs; "confident" those, and undecided entries of at least `min_confidence`;
    "all" every entry but rejected ones and disagreements. `without` names kinds that are left out. By "lemma"
    are headwords, and those of their forms that somebody decided on; by "form" are all.
    """

    which: Literal["confirmed", "confident", "all"] = "confirmed"
    min_confidence: api.Share = None
    without: str = ""
    by: Literal["lemma", "form"] = "lemma"

    def takes(self, row: sqlite3.Row, entry: Entry, rejected: Sequence[str]) -> bool:
        """Whether an entry without an accepted translation is published."""
        if self.which == "confirmed" or row["target"] is None:
            return False
        if self.by == "lemma" and row["headword"] not in (None, row["source"]):
            return False
        if entry.target in rejected or row["target"] in rejected:  # of a word that is skipped otherwise
            return False
        if self.which == "all" or entry.known:
            return True
        return entry.confidence is not None and entry.confidence >= (self.min_confidence or 0)


def chosen_entries(db: sqlite3.Connection, choice: Choice) -> Iterator[tuple[Entry, bool]]:
    """The pairs to publish, most frequent source word first, each with whether people confirmed it."""
    if choice.which == "confident" and choice.min_confidence is None:
        message = "Name the least confidence (min_confidence) of entries that nobody confirmed."
        raise api.ProblemError(400, message)
    hidden, outcomes = listed(choice.without, "kind", KINDS), all_outcomes(db)
    decided = "WHERE source IN (SELECT source FROM decisions)" if choice.which == "confirmed" else ""
    for row in db.execute(f"SELECT * FROM entries {decided} ORDER BY row"):
        source, target, rank = row["source"], row["target"], row["row"] + 1
        found = outcomes.pop(source, None)
        if row["kind"] in hidden:
            continue
        shown = (row["answer"] if choice.by == "lemma" else None) or target or ""
        own = Entry(
            source, shown, row["score"], row["confidence"], rank, row["target_rank"], bool(row["known"])
        )
        if found is None or found.status in ("unreviewed", "skipped"):
            if choice.takes(row, own, found.rejected if found else ()):
                yield own, False
            continue
        for word in found.accepted:
            if word in (shown, target):
                yield replace(own, target=word), True
            else:
                yield Entry(source, word, 0.0, None, rank, _target_rank(db, word) or 0, True), True
    for source, found in outcomes.items():  # words that the model does not have
        for word in found.accepted:
            yield Entry(source, word, None, None, None, _target_rank(db, word), True), True


def _target_rank(db: sqlite3.Connection, word: str) -> int | None:
    """The rank of a target word; None if it is nobody's first translation."""
    query = "SELECT target_rank FROM entries WHERE target_key = ? AND target = ?"
    found = db.execute(query, (word.casefold(), word)).fetchone()
    return None if found is None else int(found[0])


def export(
    db: sqlite3.Connection, format_name: str, choice: Choice, languages: Languages, cover: Cover
) -> tuple[bytes, str]:
    """A dictionary in any format, and the suffix of the file; several files in one zip archive.

    Pairs that a format cannot hold are left out. In CSV, cells that a spreadsheet would run are defused.
    """
    articles = all_articles(db)
    entries = [
        replace(one, known=one.known or confirmed, status="accepted" if confirmed else "")
        for entry, confirmed in chosen_entries(db, choice)
        for one in described(entry, articles.get(entry.source))
    ]
    if not entries:
        raise api.ProblemError(409, _nothing_to_export(db, choice.which))
    if format_name == "site":
        return site(db, Dictionary(entries, languages), cover), ".zip"
    if format_name == "ontolex":
        return ontolex(Dictionary(entries, languages), cover), ".ttl"
    suffix = (*format_of("dictionary", format_name).suffixes, ".txt")[0]
    options = WriteOptions(defuse_formulas=format_name == "csv", skip_unfit=True)
    with tempfile.TemporaryDirectory() as folder:
        write(
            Path(folder) / f"dictionary{suffix}",
            Dictionary(entries, languages, units=True),
            format_name,
            options,
        )
        made = sorted(one for one in Path(folder).rglob("*") if one.is_file())
        if len(made) == 1:
            return made[0].read_bytes(), suffix
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in made:
                archive.write(one, one.relative_to(folder).as_posix())
        return packed.getvalue(), ".zip"


def _nothing_to_export(db: sqlite3.Connection, which: str) -> str:
    """Why an export is empty, and what to do."""
    if which == "confirmed":
        return "Nobody has confirmed an entry yet; review some, or export confident entries too."
    if not db.execute("SELECT count(*) FROM entries").fetchone()[0]:
        return "The table has no entries yet; wait until it is filled."
    return "No entry is left; choose a lower confidence, or leave out fewer kinds."


def change_log(db: sqlite3.Connection, format_name: str) -> str:
    """Who decided what, when; undone decisions included."""
    if format_name not in ("csv", "jsonl"):
        raise api.ProblemError(400, f"The change log is written as csv or jsonl, not '{format_name}'.")
    decisions = [vars(one) for one in select_decisions(db)]
    if format_name == "jsonl":
        return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in decisions)
    lists = ("accepted", "rejected", "unsure")
    header = ("id", "at", "reviewer", "source", "verdict", *lists, "note", "kind", "undone")
    for one in decisions:
        one |= {name: " | ".join(one[name]) for name in lists}
    return _csv_text(header, ([one[name] or "" for name in header] for one in decisions))


def sheet(db: sqlite3.Connection, wanted: Filter, limit: int | None) -> str:
    """Entries as a CSV file to fill in: one row per pair, with yes, no or nothing in the column "verdict"."""
    condition, values = wanted.condition()
    outcomes, articles = all_outcomes(db), all_articles(db)
    notes: dict[str, list[str]] = {}
    for source, note in db.execute("SELECT source, note FROM notes ORDER BY id"):
        notes.setdefault(source, []).append(note)
    query = f"SELECT * FROM entries WHERE {condition} ORDER BY priority DESC, row LIMIT ?"
    rows: list[tuple[Any, ...]] = []
    for row in db.execute(query, (*values, -1 if limit is None else limit)):
        source, best = row["source"], row["target"] or ""
        found = outcomes.get(source)
        verdicts = {best: ""}
        if found is not None:
            verdicts |= dict.fromkeys(found.rejected, "no") | dict.fromkeys(found.accepted, "yes")
        for target, verdict in verdicts.items():
            known = target == best and row["confidence"] is not None
            confidence = f"{row['confidence']:.4f}" if known else ""
            who = (" | ".join(found.reviewers), found.decided or "") if found and verdict else ("", "")
            note = " | ".join(notes.get(source, ()))
            rows.append((source, target, confidence, row["row"] + 1, verdict, note, *who))
    if not articles:
        return _csv_text(_SHEET, rows)
    structured = [
        (*cells, *(getattr(one, name) or "" for name in _STRUCTURE))
        for cells in rows
        for one in described(Entry(cells[0], cells[1]), articles.get(cells[0]))
    ]
    return _csv_text((*_SHEET, *_STRUCTURE), structured)


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file with a header, all text cells defused."""
    lines = ([defused(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return csv_line(header) + "".join(map(csv_line, lines))


# Routes.

CoverText = Annotated[str, Query(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
FormatQuery = Annotated[str, Query(alias="format")]
Chosen = Annotated[Choice, Depends()]


def _formats() -> list[dict[str, str]]:
    """The formats of exports: those of `bilex lexicon`, and two of the workbench."""
    others = {
        one.name: (one.description, (*one.suffixes, ".txt")[0]) for one in all_formats() if one.writable
    }
    return [
        {"name": name, "label": label, "suffix": suffix, "media_type": _media_type(suffix)}
        for name, (label, suffix) in (_OWN_FORMATS | others).items()
    ]


def _media_type(suffix: str) -> str:
    return _MEDIA_TYPES.get(suffix, "application/octet-stream")


def _file(book: Book, content: str | bytes, what: str, suffix: str) -> Response:
    """A download whose name begins with the model's, in characters that every system accepts."""
    direction = "" if book.direction == "forward" else "-backward"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{book.bench.model_folder.name}-{what}{direction}{suffix}")
    body = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    media_type = _media_type(suffix)
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return Response(body, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, media_type)


def _file_response(*media_types: str) -> dict[str, Any]:
    return {
        "response_class": Response,
        "responses": {200: {"description": "The file.", **api.binary(*media_types)}},
    }


@router.get("/api/publish/formats", response_model=FormatsAnswer)
def formats(bench: Bench) -> Any:
    """The formats of exports."""
    return {"formats": _formats()}


_EXPORTED = _file_response(*sorted({one["media_type"] for one in _formats()}))
_EXPORTED["responses"] |= api.problems(409)


@router.get("/api/publish/export", name="export", **_EXPORTED)
def export_dictionary(
    book: BookOf,
    db: Reader,
    choice: Chosen,
    format_name: FormatQuery = "csv",
    title: CoverText = "",
    authors: CoverText = "",
    licence: CoverText = "",
) -> Response:
    """The dictionary as a file; title, authors and licence are shown on the cover of a site."""
    source, target = book.engine.translator.provenance.languages
    languages = (source, target) if book.direction == "forward" else (target, source)
    content, suffix = export(db, format_name, choice, languages, Cover(title, authors, licence))
    return _file(book, content, "site" if format_name == "site" else "dictionary", suffix)


@router.get("/api/publish/preview", response_model=PreviewAnswer)
def preview(db: Reader, choice: Chosen) -> Any:
    """The size of an export, and its beginning."""
    pairs, confirmed = 0, 0
    first: list[tuple[str, str]] = []
    for entry, by_people in chosen_entries(db, choice):
        pairs += 1
        confirmed += by_people
        if len(first) < 10:
            first.append((entry.source, entry.target))
    problem = None if pairs else _nothing_to_export(db, choice.which)
    return {"pairs": pairs, "confirmed": confirmed, "first": first, "problem": problem}


@router.get("/api/publish/changes", name="change_log", **_file_response("text/csv", "application/x-ndjson"))
def changes(book: BookOf, db: Reader, format_name: FormatQuery = "csv") -> Response:
    """Who decided what, when."""
    return _file(book, change_log(db, format_name), "changes", f".{format_name}")


@router.get("/api/publish/sheet", name="sheet", **_file_response("text/csv"))
def review_sheet(
    book: BookOf,
    db: Reader,
    wanted: Wanted,
    limit: Annotated[int | None, Query(ge=1, le=1_000_000_000)] = None,
) -> Response:
    """Entries as CSV to fill in without a server."""
    return _file(book, sheet(db, wanted, limit), "review", ".csv")


@router.post(
    "/api/publish/import",
    responses=api.problems(409),
    openapi_extra={"requestBody": {"required": True, **api.binary("text/csv")}},
)
async def import_verdicts(
    bench: Bench, book: BookOf, request: Request, reviewer: api.ReviewerQuery, dry_run: bool = False
) -> ImportAnswer:
    """Import the verdicts of a filled-in sheet."""
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise api.ProblemError(400, "The sheet is not UTF-8; save it as 'CSV UTF-8'.") from error

    def progress(done: int, total: int) -> None:
        bench.progress = done, total

    def imported() -> ImportAnswer:
        if dry_run:
            return import_sheet(book.database, text, reviewer, dry_run=True)
        with bench.exclusive("import"):
            return import_sheet(book.database, text, reviewer, progress=progress)

    return await run_in_threadpool(imported)
