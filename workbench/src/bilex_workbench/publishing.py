"""Handing the result on: dictionaries, the change log, and the sheet that people fill in without a server."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bilex.lexicon.entries import Dictionary, Entry, Languages
from bilex.lexicon.formats import DictionaryFormat, WriteOptions, all_formats, format_of, write
from bilex.lexicon.tables import csv_line, defused
from bilex_workbench.articles import all_articles, described, with_articles
from bilex_workbench.decisions import Decision, Outcome, all_outcomes
from bilex_workbench.entries import Filter, kinds_named
from bilex_workbench.problems import ProblemError
from bilex_workbench.site import Cover, ontolex, site
from bilex_workbench.store import Store

WHICH = ("confirmed", "confident", "all")
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


@dataclass(frozen=True)
class Exported:
    """A file to hand on.

    Attributes:
        content: What is in it.
        suffix: How its name ends.
        media_type: What a browser calls it.
    """

    content: bytes
    suffix: str
    media_type: str


def formats() -> list[dict[str, str]]:
    """The formats in which a dictionary can be exported: those of `bilex lexicon`."""
    found = [form for form in all_formats() if form.writable]
    own = [
        {"name": name, "label": label, "suffix": suffix, "media_type": _media_type(suffix)}
        for name, (label, suffix) in _OWN.items()
    ]
    return own + [
        {
            "name": form.name,
            "label": form.description,
            "suffix": _suffix(form),
            "media_type": _media_type(_suffix(form)),
        }
        for form in found
    ]


def media_types() -> list[str]:
    """All media types that exports have; text is UTF-8."""
    return sorted({one["media_type"] for one in formats()} | {_media_type(".zip")})


def _suffix(form: DictionaryFormat) -> str:
    """How files of a format usually end; some formats have no suffix of their own."""
    return form.suffixes[0] if form.suffixes else ".txt"


def _media_type(suffix: str) -> str:
    return _MEDIA.get(suffix, "application/octet-stream")


@dataclass(frozen=True)
class Choice:
    """Which entries to publish.

    Attributes:
        which: "confirmed" (accepted pairs), "confident" (those, and undecided entries of at least a
            confidence), or "all" (every entry but rejected ones and disagreements).
        min_confidence: For "confident".
        without: Kinds that are left out, with commas between them.
        by: "lemma" for headwords, and those of their forms that somebody decided on, or "form" for all.
    """

    which: str = "confirmed"
    min_confidence: float | None = None
    without: str = ""
    by: str = "lemma"

    def check(self) -> None:
        """Refuse a choice that makes no sense."""
        if self.which not in WHICH:
            raise ProblemError(400, f"Which entries '{self.which}' are is not known; use {', '.join(WHICH)}.")
        if self.which == "confident" and self.min_confidence is None:
            raise ProblemError(
                400, "Name the least confidence (min_confidence) of entries that nobody confirmed."
            )
        if self.by not in ("lemma", "form"):
            raise ProblemError(400, f"Entries cannot be exported by '{self.by[:100]}'; use lemma or form.")
        kinds_named(self.without)

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


def export(
    store: Store,
    form: str,
    choice: Choice,
    languages: Languages = (None, None),
    cover: Cover = Cover(),  # noqa: B008
) -> Exported:
    """A dictionary in any format of `bilex lexicon`; several files come in one zip archive.

    Pairs that a format cannot hold are left out. In CSV, cells that a spreadsheet would run are defused.
    """
    entries = [
        replace(entry, known=entry.known or confirmed, status="accepted" if confirmed else "")
        for entry, confirmed in with_articles(chosen_entries(store, choice), all_articles(store))
    ]
    if not entries:
        raise ProblemError(409, nothing_to_export(store, choice.which))
    if form in _OWN:
        suffix = _OWN[form][1]
        dictionary = Dictionary(entries, languages)
        made = site(store, dictionary, cover, _forms(store)) if form == "site" else ontolex(dictionary, cover)
        return Exported(made, suffix, _media_type(suffix))
    chosen = format_of("dictionary", form)
    options = WriteOptions(defuse_formulas=form == "csv", skip_unfit=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"dictionary{_suffix(chosen)}"
        write(path, Dictionary(entries, languages, units=True), form, options)
        files = sorted(one for one in Path(folder).rglob("*") if one.is_file())
        if len(files) == 1:
            return Exported(files[0].read_bytes(), _suffix(chosen), _media_type(_suffix(chosen)))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in files:
                archive.write(one, one.relative_to(folder).as_posix())
        return Exported(packed.getvalue(), ".zip", _media_type(".zip"))


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
        return "Nobody has confirmed an entry yet; review some, or export entries from a confidence on."
    if not store.number("SELECT count(*) FROM entries"):
        return "The table has no entries yet; wait until it is filled."
    return "No entry is left; ask for a lower confidence, or leave out fewer kinds."


def preview(store: Store, choice: Choice) -> dict[str, Any]:
    """How large an export will be, and its beginning."""
    pairs, confirmed = 0, 0
    first: list[list[str]] = []
    for entry, by_people in chosen_entries(store, choice):
        pairs += 1
        confirmed += by_people
        if len(first) < 10:
            first.append([entry.source, entry.target])
    problem = None if pairs else nothing_to_export(store, choice.which)
    return {"pairs": pairs, "confirmed": confirmed, "first": first, "problem": problem}


def change_log(store: Store, form: str) -> str:
    """Who decided what, when; decisions that were taken back included."""
    if form not in ("csv", "jsonl"):
        raise ProblemError(400, f"The change log is written as csv or jsonl, not '{form}'.")
    decisions = [Decision.from_row(row) for row in store.all("SELECT * FROM decisions ORDER BY id")]
    if form == "jsonl":
        return "".join(json.dumps(one.as_dict(), ensure_ascii=False) + "\n" for one in decisions)
    header = (
        *("id", "at", "reviewer", "source", "verdict", "accepted", "rejected", "unsure"),
        *("note", "kind", "undone"),
    )
    return _csv_text(
        header,
        (
            (
                one.id,
                one.at,
                one.reviewer,
                one.source,
                one.verdict,
                " | ".join(one.accepted),
                " | ".join(one.rejected),
                " | ".join(one.unsure),
                one.note,
                one.kind,
                one.undone or "",
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
    filled = []
    for cells in rows:
        pair = Entry(cells[0], cells[1])
        article = articles.get(pair.source)
        for one in described(pair, article) if article else [pair]:
            filled.append((*cells, *(getattr(one, name) or "" for name in STRUCTURE)))
    return _csv_text((*SHEET, *STRUCTURE), filled)


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file with a header, all text cells defused."""
    lines = [csv_line(header)]
    for row in rows:
        lines.append(csv_line([defused(cell) if isinstance(cell, str) else cell for cell in row]))
    return "".join(lines)
