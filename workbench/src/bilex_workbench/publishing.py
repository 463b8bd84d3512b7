"""Handing the result on: dictionaries, the change log, and the sheet that people fill in without a server."""

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

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from bilex.lexicon.entries import Dictionary, Entry, Languages
from bilex.lexicon.formats import WriteOptions, all_formats, format_of, write
from bilex.lexicon.formats.tables import csv_line, defused
from bilex_workbench import interface as api
from bilex_workbench.articles import all_articles, described
from bilex_workbench.decisions import Decision, Outcome, all_outcomes
from bilex_workbench.entries import Filter, Wanted, kinds_named
from bilex_workbench.site import Cover, ontolex, site
from bilex_workbench.state import Bench, Book, BookOf
from bilex_workbench.store import Store

router = APIRouter(tags=["publish"])
SHEET = ("source", "target", "confidence", "source_rank", "verdict", "note", "reviewer", "decided")
STRUCTURE = ("part_of_speech", "sense", "gloss", "labels", "comment", "example")
_OWN = {
    "site": ("a site that can be searched offline, with a page to print", ".zip"),
    "ontolex": ("OntoLex-Lemon, linked data in Turtle", ".ttl"),
}
_MEDIA = {
    ".ttl": "text/turtle",
    ".tsv": "text/tab-separated-values",
    ".csv": "text/csv",
    ".jsonl": "application/x-ndjson",
    ".txt": "text/plain",
    ".zip": "application/zip",
}


class Format(api.Answer):
    """A format of exports."""

    name: str
    label: str
    suffix: str
    media_type: str


FormatsAnswer = api.answer("FormatsAnswer", formats=list[Format])
PreviewAnswer = api.answer(
    "PreviewAnswer", pairs=int, confirmed=int, first=list[tuple[str, str]], problem=str | None
)


def all_export_formats() -> list[Format]:
    """The formats in which a dictionary can be exported: those of `bilex lexicon`, and some of its own."""
    others = {
        form.name: (form.description, form.suffixes[0] if form.suffixes else ".txt")
        for form in all_formats()
        if form.writable
    }
    return [
        Format(name=name, label=label, suffix=suffix, media_type=_media_type(suffix))
        for name, (label, suffix) in (_OWN | others).items()
    ]


def _media_type(suffix: str) -> str:
    return _MEDIA.get(suffix, "application/octet-stream")


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
    by: str = "lemma"

    def check(self) -> None:
        """Refuse a choice that makes no sense."""
        if self.which == "confident" and self.min_confidence is None:
            raise api.ProblemError(
                400, "Name the least confidence (min_confidence) of entries that nobody confirmed."
            )
        if self.by not in ("lemma", "form"):
            raise api.ProblemError(
                400, f"Entries cannot be exported by '{self.by[:100]}'; use lemma or form."
            )

    def takes(self, row: sqlite3.Row, entry: Entry, found: Outcome | None) -> bool:
        """Whether an entry that nobody decided on is published."""
        if self.which == "confirmed" or row["target"] is None:
            return False
        if self.by == "lemma" and row["headword"] not in (None, row["source"]):
            return False
        if found is not None and {entry.target, row["target"]} & set(found.rejected):
            return False  # skipped with a verdict about the first answer
        if self.which == "all" or entry.known:
            return True
        return entry.confidence is not None and entry.confidence >= (self.min_confidence or 0)


def chosen_entries(store: Store, choice: Choice) -> Iterator[tuple[Entry, bool]]:
    """The pairs to publish, most frequent source word first, each with whether people confirmed it."""
    choice.check()
    hidden = kinds_named(choice.without)
    outcomes = all_outcomes(store)
    ranks = {
        row["target"]: row["target_rank"] for row in store.all("SELECT target, target_rank FROM entries")
    }
    for row in store.rows("SELECT * FROM entries ORDER BY row"):
        found = outcomes.pop(row["source"], None)
        if row["kind"] in hidden:
            continue
        own = Entry(
            row["source"],
            (row["answer"] if choice.by == "lemma" else None) or row["target"] or "",
            row["score"],
            row["confidence"],
            row["row"] + 1,
            row["target_rank"],
            bool(row["known"]),
        )
        if found is not None and found.status not in ("unreviewed", "skipped"):
            for word in found.accepted:
                if word in (own.target, row["target"]):
                    yield replace(own, target=word), True
                else:
                    yield (
                        Entry(own.source, word, 0.0, None, own.source_rank, ranks.get(word) or 0, True),
                        True,
                    )
        elif choice.takes(row, own, found):
            yield own, False
    for source, found in outcomes.items():  # words that the model does not have
        for word in found.accepted:
            yield Entry(source, word, None, None, None, ranks.get(word), True), True


def export(store: Store, form: str, choice: Choice, languages: Languages, cover: Cover) -> tuple[bytes, str]:
    """A dictionary in any format of `bilex lexicon`, and how the file's name ends; several files in one zip.

    Pairs that a format cannot hold are left out. In CSV, cells that a spreadsheet would run are defused.
    """
    articles = all_articles(store)
    entries = [
        replace(one, known=one.known or confirmed, status="accepted" if confirmed else "")
        for entry, confirmed in chosen_entries(store, choice)
        for one in described(entry, articles.get(entry.source))
    ]
    if not entries:
        raise api.ProblemError(409, nothing_to_export(store, choice.which))
    if form == "site":
        return site(store, Dictionary(entries, languages), cover, _forms(store)), ".zip"
    if form == "ontolex":
        return ontolex(Dictionary(entries, languages), cover), ".ttl"
    suffix = (*format_of("dictionary", form).suffixes, ".txt")[0]
    options = WriteOptions(defuse_formulas=form == "csv", skip_unfit=True)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / f"dictionary{suffix}", Dictionary(entries, languages, units=True), form, options)
        made = sorted(one for one in Path(folder).rglob("*") if one.is_file())
        if len(made) == 1:
            return made[0].read_bytes(), suffix
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in made:
                archive.write(one, one.relative_to(folder).as_posix())
        return packed.getvalue(), ".zip"


def _forms(store: Store) -> dict[str, list[str]]:
    """The other forms of every headword."""
    found: dict[str, list[str]] = {}
    query = "SELECT source, headword FROM entries WHERE headword <> source ORDER BY row"
    for row in store.all(query):
        found.setdefault(row["headword"], []).append(row["source"])
    return found


def nothing_to_export(store: Store, which: str) -> str:
    """Why an export is empty, and what to do."""
    if which == "confirmed":
        return "Nobody has confirmed an entry yet; review some, or export confident entries too."
    if not store.number("SELECT count(*) FROM entries"):
        return "The table has no entries yet; wait until it is filled."
    return "No entry is left; ask for a lower confidence, or leave out fewer kinds."


def change_log(store: Store, form: str) -> str:
    """Who decided what, when; decisions that were taken back included."""
    if form not in ("csv", "jsonl"):
        raise api.ProblemError(400, f"The change log is written as csv or jsonl, not '{form}'.")
    decisions = [Decision.from_row(row) for row in store.all("SELECT * FROM decisions ORDER BY id")]
    if form == "jsonl":
        return "".join(json.dumps(vars(one), ensure_ascii=False) + "\n" for one in decisions)
    before, after = ("id", "at", "reviewer", "source", "verdict"), ("note", "kind", "undone")
    lists = ("accepted", "rejected", "unsure")
    return _csv_text(
        (*before, *lists, *after),
        (
            (
                *(getattr(one, name) for name in before),
                *(" | ".join(getattr(one, name)) for name in lists),
                *(getattr(one, name) or "" for name in after),
            )
            for one in decisions
        ),
    )


def sheet(store: Store, wanted: Filter, limit: int | None) -> str:
    """Entries as a CSV file to fill in: one row per pair, with yes, no or nothing in the column "verdict"."""
    condition, values = wanted.condition()
    outcomes = all_outcomes(store)
    articles = all_articles(store)
    notes: dict[str, list[str]] = {}
    for row in store.all("SELECT source, note FROM notes ORDER BY id"):
        notes.setdefault(row["source"], []).append(row["note"])
    rows: list[tuple[Any, ...]] = []
    found = store.rows(
        f"SELECT * FROM entries WHERE {condition} ORDER BY priority DESC, row LIMIT ?",
        *values,
        -1 if limit is None else limit,
    )
    for row in found:
        known = outcomes.get(row["source"])
        confidence = "" if row["confidence"] is None else f"{row['confidence']:.4f}"
        verdicts = {row["target"] or "": ""}
        if known is not None:
            verdicts.update(dict.fromkeys(known.rejected, "no"))
            verdicts.update(dict.fromkeys(known.accepted, "yes"))
        people = " | ".join(known.reviewers) if known else ""
        for target, verdict in verdicts.items():
            sure = confidence if target == row["target"] else ""
            note = " | ".join(notes.get(row["source"], ()))
            who = (people, known.decided or "") if known and verdict else ("", "")
            rows.append((row["source"], target, sure, row["row"] + 1, verdict, note, *who))
    if not articles:
        return _csv_text(SHEET, rows)
    filled = [
        (*cells, *(getattr(one, name) or "" for name in STRUCTURE))
        for cells in rows
        for one in described(Entry(cells[0], cells[1]), articles.get(cells[0]))
    ]
    return _csv_text((*SHEET, *STRUCTURE), filled)


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file with a header, all text cells defused."""
    lines = [csv_line(header)]
    for row in rows:
        lines.append(csv_line([defused(cell) if isinstance(cell, str) else cell for cell in row]))
    return "".join(lines)


# Operations.

CoverText = Annotated[str, Query(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
FormatQuery = Annotated[str, Query(alias="format")]
Chosen = Annotated[Choice, Depends()]


def _file(book: Book, content: str | bytes, what: str, suffix: str) -> Response:
    """A file whose name says which model it is of, in characters that every system takes."""
    model = book.bench.folder.name if book.bench.folder else "bilex"
    way = "" if book.direction == "forward" else "-backward"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{model}-{what}{way}{suffix}")
    body = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    media_type = _media_type(suffix)
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return Response(body, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, media_type)


@router.get("/api/publish/formats", response_model=FormatsAnswer)
def formats(bench: Bench) -> Any:
    """The formats of exports."""
    return {"formats": all_export_formats()}


@router.get(
    "/api/publish/export",
    name="export",
    response_class=Response,
    responses=api.files(*sorted({one.media_type for one in all_export_formats()})) | api.problems(409),
)
def export_dictionary(
    book: BookOf,
    choice: Chosen,
    form: FormatQuery = "csv",
    title: CoverText = "",
    authors: CoverText = "",
    licence: CoverText = "",
) -> Response:
    """The dictionary as a file; title, authors and licence stand on the cover of a site."""
    content, suffix = export(book.store, form, choice, book.languages, Cover(title, authors, licence))
    return _file(book, content, "site" if form == "site" else "dictionary", suffix)


@router.get("/api/publish/preview", response_model=PreviewAnswer)
def preview(book: BookOf, choice: Chosen) -> Any:
    """How large an export will be, and its beginning."""
    pairs, confirmed = 0, 0
    first: list[tuple[str, str]] = []
    for entry, by_people in chosen_entries(book.store, choice):
        pairs += 1
        confirmed += by_people
        if len(first) < 10:
            first.append((entry.source, entry.target))
    problem = None if pairs else nothing_to_export(book.store, choice.which)
    return {"pairs": pairs, "confirmed": confirmed, "first": first, "problem": problem}


@router.get(
    "/api/publish/changes",
    name="change_log",
    response_class=Response,
    responses=api.files("text/csv", "application/x-ndjson"),
)
def changes(book: BookOf, form: FormatQuery = "csv") -> Response:
    """Who decided what, when."""
    return _file(book, change_log(book.store, form), "changes", f".{form}")


@router.get("/api/publish/sheet", name="sheet", response_class=Response, responses=api.files("text/csv"))
def review_sheet(
    book: BookOf,
    wanted: Wanted,
    limit: Annotated[int | None, Query(ge=1, le=1_000_000_000)] = None,
) -> Response:
    """Entries as CSV to fill in without a server."""
    return _file(book, sheet(book.store, wanted, limit), "review", ".csv")
