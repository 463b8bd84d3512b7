"""Publishing: which entries, in which format, and the files to download."""

import io
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from bilex.lexicon.entries import Dictionary, Entry, Languages
from bilex.lexicon.formats import WriteOptions, all_formats, format_of, write
from bilex_workbench import api
from bilex_workbench.articles import all_articles, described
from bilex_workbench.decisions import Outcome, all_outcomes
from bilex_workbench.entries import listed
from bilex_workbench.kinds import KINDS
from bilex_workbench.site import Cover, ontolex, site_files
from bilex_workbench.workbench import Bench, Book, BookOf, Reader

router = APIRouter(tags=["publish"])
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
Format = api.response("Format", "A format of exports.", name=str, label=str, suffix=str, media_type=str)
FormatsAnswer = api.response("FormatsAnswer", formats=[Format])
PreviewAnswer = api.response(
    "PreviewAnswer", pairs=int, confirmed=int, first=list[tuple[str, str]], problem=str | None
)
FormatQuery = Annotated[str, Query(alias="format")]


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
    hidden, outcomes, undecided = listed(choice.without, "kind", KINDS), all_outcomes(db), Outcome()
    decided = "WHERE source IN (SELECT source FROM decisions)" if choice.which == "confirmed" else ""
    for row in db.execute(f"SELECT * FROM entries {decided} ORDER BY row"):
        source, target, rank = row["source"], row["target"], row["row"] + 1
        found = outcomes.pop(source, undecided)
        if row["kind"] in hidden:
            continue
        shown = (row["answer"] if choice.by == "lemma" else None) or target or ""
        own = Entry(
            source, shown, row["score"], row["confidence"], rank, row["target_rank"], bool(row["known"])
        )
        if found.status in ("unreviewed", "skipped") and choice.takes(row, own, found.rejected):
            yield own, False
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
    dictionary = Dictionary(entries, languages)
    if format_name == "ontolex":
        return ontolex(dictionary, cover), ".ttl"
    if format_name == "site":
        return _zipped(site_files(db, dictionary, cover)), ".zip"
    suffix = (*format_of("dictionary", format_name).suffixes, ".txt")[0]
    options = WriteOptions(defuse_formulas=format_name == "csv", skip_unfit=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"dictionary{suffix}"
        write(path, replace(dictionary, units=True), format_name, options)
        made = sorted(one for one in Path(folder).rglob("*") if one.is_file())
        files = {one.relative_to(folder).as_posix(): one.read_bytes() for one in made}
    return (_zipped(files), ".zip") if len(files) > 1 else (files.popitem()[1], suffix)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
            archive.getinfo(name).external_attr = 0o100644 << 16  # others may read what is unpacked
    return packed.getvalue()


def _nothing_to_export(db: sqlite3.Connection, which: str) -> str:
    """Why an export is empty, and what to do."""
    if which == "confirmed":
        return "Nobody has confirmed an entry yet; review some, or export confident entries too."
    if not db.execute("SELECT count(*) FROM entries").fetchone()[0]:
        return "The table has no entries yet; wait until it is filled."
    return "No entry is left; choose a lower confidence, or leave out fewer kinds."


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


def download(book: Book, content: str | bytes, what: str, suffix: str) -> Response:
    """A file whose name begins with the model's, in characters that every system accepts."""
    direction = "" if book.direction == "forward" else "-backward"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{book.bench.model_folder.name}-{what}{direction}{suffix}")
    body = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    media_type = _media_type(suffix)  # of text, Starlette adds the character set
    return Response(body, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, media_type)


def download_of(*media_types: str, problems: Sequence[int] = ()) -> dict[str, Any]:
    """The documentation of a route that returns a file."""
    described: dict[int | str, Any] = {200: {"description": "The file.", **api.binary(*media_types)}}
    return {"response_class": Response, "responses": described | api.problems(*problems)}


@router.get("/api/publish/formats", response_model=FormatsAnswer)
def formats(bench: Bench) -> Any:
    """The formats of exports."""
    return {"formats": _formats()}


_EXPORTED = sorted({one["media_type"] for one in _formats()})


@router.get("/api/publish/export", name="export", **download_of(*_EXPORTED, problems=[409]))
def export_dictionary(
    book: BookOf,
    db: Reader,
    choice: Annotated[Choice, Depends()],
    cover: Annotated[Cover, Depends()],
    format_name: FormatQuery = "csv",
) -> Response:
    """The dictionary as a file; title, authors and licence are shown on the cover of a site."""
    source, target = book.engine.translator.provenance.languages
    languages = (source, target) if book.direction == "forward" else (target, source)
    content, suffix = export(db, format_name, choice, languages, cover)
    return download(book, content, "site" if format_name == "site" else "dictionary", suffix)


@router.get("/api/publish/preview", response_model=PreviewAnswer)
def preview(db: Reader, choice: Annotated[Choice, Depends()]) -> Any:
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
