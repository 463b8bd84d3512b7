"""The sheet that people fill in without a server, read back as decisions; and the change log."""

import csv
import io
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field, ValidationError
from starlette.responses import Response

from bilex.core.errors import BilexError
from bilex.lexicon.entries import FORBIDDEN, Entry
from bilex.lexicon.formats.tables import csv_line, defused, restored
from bilex_workbench import api
from bilex_workbench.articles import STRUCTURE, all_articles, article_of, described, keep_article, merge_row
from bilex_workbench.database import Database
from bilex_workbench.decisions import Decision, Outcome, all_outcomes, record, select_decisions, standing
from bilex_workbench.entries import Filter, Wanted
from bilex_workbench.publish import FormatQuery, download, download_of
from bilex_workbench.workbench import Bench, BookOf, Reader

router = APIRouter(tags=["publish"])
_COLUMNS = ("source", "target", "confidence", "source_rank", "verdict", "note", "reviewer", "decided")
_VERDICTS = {
    **dict.fromkeys(("yes", "y", "1", "true", "right", "+", "x", "ok", "accept"), "yes"),
    **dict.fromkeys(("no", "n", "0", "false", "wrong", "-", "reject"), "no"),
}
_LONGEST_NOTE, _LONGEST_NAME, _SHOWN_PROBLEMS = 10_000, 60, 50
_MOST_ROWS, _MOST_WORDS, _MOST_TRANSLATIONS = 5_000_000, 200_000, 100
_MOST_OF_WORD = 50 * _MOST_TRANSLATIONS  # rows: an exported sheet has one for each sense of a translation
_WORDS_AT_ONCE, _PAUSE = 200, 0.01
Row = dict[str, str]  # cells by column


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
    outcomes, articles, undecided = all_outcomes(db), all_articles(db), Outcome()
    notes: dict[str, list[str]] = {}
    for source, note in db.execute("SELECT source, note FROM notes ORDER BY id"):
        notes.setdefault(source, []).append(note)
    query = f"SELECT * FROM entries WHERE {condition} ORDER BY priority DESC, row LIMIT ?"
    rows: list[tuple[Any, ...]] = []
    for row in db.execute(query, (*values, -1 if limit is None else limit)):
        source, best, found = row["source"], row["target"] or "", outcomes.get(row["source"], undecided)
        note, who = " | ".join(notes.get(source, ())), (" | ".join(found.reviewers), found.decided or "")
        decided = dict.fromkeys(found.rejected, "no") | dict.fromkeys(found.accepted, "yes")
        for target, verdict in ({best: ""} | decided).items():
            known = target == best and row["confidence"] is not None
            confidence = f"{row['confidence']:.4f}" if known else ""
            cells = (source, target, confidence, row["row"] + 1, verdict, note)
            rows.append((*cells, *(who if verdict else ("", ""))))
    if not articles:
        return _csv_text(_COLUMNS, rows)
    structured = (
        (*cells, *(getattr(one, name) or "" for name in STRUCTURE))
        for cells in rows
        for one in described(Entry(cells[0], cells[1]), articles.get(cells[0]))
    )
    return _csv_text((*_COLUMNS, *STRUCTURE), structured)


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file with a header, all text cells defused."""
    lines = ([defused(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return csv_line(header) + "".join(map(csv_line, lines))


class ImportAnswer(api.Response):
    """How many words an import decided, or found decided already, and what was wrong, by line."""

    accepted: int = 0
    rejected: int = 0  # words of which all translations were rejected
    unchanged: int = 0  # words about which this person had decided the same before
    ignored: int = 0  # rows without a verdict
    problems: list[str] = Field(default_factory=list)

    def add_problem(self, where: str, what: str) -> None:
        """Report a problem, if there are not too many."""
        if len(self.problems) < _SHOWN_PROBLEMS:
            self.problems.append(f"{where}: {what}.")


def import_sheet(
    database: Database,
    text: str,
    reviewer: str,
    *,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ImportAnswer:
    """Import the verdicts of a sheet, some words at a time, so that others are served in between.

    What was imported before an error or a kill stays; importing the sheet again adds the rest.
    """
    if not reviewer or len(reviewer) > _LONGEST_NAME or FORBIDDEN.search(reviewer):
        raise BilexError("the reviewer needs a name without line breaks and control characters.")
    imported = ImportAnswer()
    words = list(_parse(text, imported).items())
    for start in range(0, len(words), _WORDS_AT_ONCE):
        progress(start, len(words))
        with database.reading() if dry_run else database.writing() as db:
            for source, rows in words[start : start + _WORDS_AT_ONCE]:
                _import_word(db, source, rows, reviewer, imported, dry_run)
        if not dry_run:
            time.sleep(_PAUSE)  # decisions that wait for the file go first
    return imported


def _parse(text: str, imported: ImportAnswer) -> dict[str, list[Row]]:
    """The rows with a verdict, "yes" or "no", by word; rows that cannot be used are reported."""
    text = text.lstrip("\ufeff")
    delimiter = max((",", ";", "\t"), key=text.split("\n", 1)[0].count)  # many spreadsheets write semicolons
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    words: dict[str, list[Row]] = {}
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
        for name in ("source", "target", "verdict"):
            if name not in header:
                raise BilexError(
                    f"the sheet has no column '{name}'; its first line must name source, target, verdict."
                )
        for number, cells in enumerate(reader):
            if number >= _MOST_ROWS or len(words) > _MOST_WORDS:
                raise BilexError(
                    f"the sheet has more than {_MOST_ROWS:,} rows or {_MOST_WORDS:,} words with a verdict; "
                    "divide it, and remove rows without a verdict."
                )
            row = dict.fromkeys(("source", "target", "verdict", "note"), "")
            row |= zip(header, map(restored, cells), strict=False)
            verdict = row["verdict"].strip().casefold()
            if not verdict:
                imported.ignored += 1
            elif fault := _fault(row, verdict):
                imported.add_problem(f"line {reader.line_num}", fault)
            elif len(rows := words.setdefault(row["source"], [])) < _MOST_OF_WORD:
                rows.append(row | {"verdict": _VERDICTS[verdict]})
            else:
                fault = f"'{row['source'][:40]}' has more than {_MOST_OF_WORD:,} rows; this one is left out"
                imported.add_problem(f"line {reader.line_num}", fault)
    except csv.Error as error:
        raise BilexError(f"the sheet is no CSV at line {reader.line_num} ({error}).") from error
    return words


def _fault(row: Row, verdict: str) -> str:
    """Why a row cannot be used; empty if it can."""
    words = row["source"], row["target"]
    if verdict not in _VERDICTS:
        return f"'{verdict[:40]}' is neither yes nor no"
    if not all(words):
        return "the source or the target word is missing"
    if max(map(len, words)) > api.LONGEST_WORD:
        return f"a word has more than {api.LONGEST_WORD} characters"
    if FORBIDDEN.search("".join(words) + re.sub("[\r\n\t]", "", row["note"])):
        return "it contains control characters"
    return ""


def _import_word(
    db: sqlite3.Connection, source: str, rows: list[Row], reviewer: str, imported: ImportAnswer, dry_run: bool
) -> None:
    """Store the structure and the decision about one word, unless the same was decided before."""
    yes = [row for row in rows if row["verdict"] == "yes"]
    right = tuple(dict.fromkeys(row["target"] for row in yes))[:_MOST_TRANSLATIONS]
    no = dict.fromkeys(row["target"] for row in rows if row["verdict"] == "no")
    wrong = tuple(target for target in no if target not in right)[:_MOST_TRANSLATIONS]
    if not dry_run:
        article = article_of(db, source)
        try:
            if sum(merge_row(article, row["target"], row) for row in yes[:_MOST_TRANSLATIONS]):
                keep_article(db, source, article, reviewer)
        except (ValidationError, BilexError) as error:
            what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            imported.add_problem(f"'{source[:40]}'", f"{what}; its structure is left out")
    # The same may have been decided before: an exported sheet that is imported again changes nothing.
    judged = [one for one in standing(select_decisions(db, "source = ?", source)) if one.verdict != "skip"]
    rejected = {target for one in judged for target in one.rejected}
    own = [one for one in judged if one.reviewer == reviewer] or judged
    accepted = {target for one in own for target in one.accepted}
    if judged and accepted == set(right) and set(wrong) <= rejected:
        imported.unchanged += 1
        return
    imported.accepted += bool(right)
    imported.rejected += not right
    if not dry_run:
        found = db.execute("SELECT target FROM entries WHERE source = ?", (source,)).fetchone()
        best, shown, verdict = found and found["target"], (*right, *wrong), "accept" if right else "none"
        notes = [row["note"].replace("\r\n", "\n")[:_LONGEST_NOTE] for row in rows if row["note"]]
        note = notes[-1] if notes else ""
        record(db, Decision(source, reviewer, verdict, right, wrong, shown, best, note, "import"))  # type: ignore[arg-type]


@router.get("/api/publish/changes", name="change_log", **download_of("text/csv", "application/x-ndjson"))
def changes(book: BookOf, db: Reader, format_name: FormatQuery = "csv") -> Response:
    """Who decided what, when."""
    return download(book, change_log(db, format_name), "changes", f".{format_name}")


@router.get("/api/publish/sheet", name="sheet", **download_of("text/csv"))
def review_sheet(
    book: BookOf,
    db: Reader,
    wanted: Wanted,
    limit: Annotated[int | None, Query(ge=1, le=1_000_000_000)] = None,
) -> Response:
    """Entries as CSV to fill in without a server."""
    return download(book, sheet(db, wanted, limit), "review", ".csv")


@router.post(
    "/api/publish/import",
    responses=api.problems(409),
    openapi_extra={"requestBody": {"required": True, **api.binary("text/csv")}},
)
def import_verdicts(
    bench: Bench, book: BookOf, content: api.RawBody, reviewer: api.ReviewerQuery, dry_run: bool = False
) -> ImportAnswer:
    """Import the verdicts of a filled-in sheet."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise api.ProblemError(400, "The sheet is not UTF-8; save it as 'CSV UTF-8'.") from error
    if dry_run:
        return import_sheet(book.database, text, reviewer, dry_run=True)

    def progress(done: int, total: int) -> None:
        bench.progress = done, total

    with bench.exclusive("import"):
        return import_sheet(book.database, text, reviewer, progress=progress)
