"""Reading a filled-in sheet back: each word's rows become one decision."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool

from bilex.core.errors import BilexError
from bilex.lexicon.formats.tables import restored
from bilex_workbench import interface as api
from bilex_workbench.articles import article_of, keep_article, merge_row
from bilex_workbench.decisions import Decision, Verdict, decisions_about, record, standing
from bilex_workbench.state import Bench, BookOf
from bilex_workbench.store import Store

router = APIRouter(tags=["publish"])
_YES = frozenset({"yes", "y", "1", "true", "right", "+", "x", "ok", "accept"})
_NO = frozenset({"no", "n", "0", "false", "wrong", "-", "reject"})
_LONGEST_NOTE = 10_000
_SHOWN_PROBLEMS = 50
_LONGEST_NAME = 60
_VERDICT_COLUMNS = frozenset({"source", "target", "verdict", "note"})
_MOST_ROWS, _MOST_WORDS, _MOST_TRANSLATIONS = 5_000_000, 200_000, 100
_WORDS_AT_ONCE, _PAUSE = 200, 0.01


class ImportAnswer(api.Answer):
    """What came of an import: how many words were taken over or known, and what was wrong, by line."""

    accepted: int = 0
    rejected: int = 0  # words of which all translations were rejected
    unchanged: int = 0  # words about which this person had said the same before
    ignored: int = 0  # rows without a verdict
    problems: list[str] = Field(default_factory=list)

    def add_problem(self, where: str, what: str) -> None:
        """Keep a problem; of many the first."""
        if len(self.problems) < _SHOWN_PROBLEMS:
            self.problems.append(f"{where}: {what}.")


@dataclass(slots=True)
class _Word:
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    note: str = ""
    cells: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def import_sheet(
    store: Store,
    text: str,
    reviewer: str,
    *,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ImportAnswer:
    """Take over the verdicts of a sheet, some words at a time, so that others are served in between.

    What was taken over before an error or a kill stays; importing the sheet again adds the rest.
    """
    if not reviewer or len(reviewer) > _LONGEST_NAME or api.CONTROL.search(reviewer):
        raise BilexError("the reviewer needs a name without line breaks and control characters.")
    imported = ImportAnswer()
    todo = list(_parse(text, imported).items())
    for start in range(0, len(todo), _WORDS_AT_ONCE):
        part = todo[start : start + _WORDS_AT_ONCE]
        progress(start, len(todo))
        if dry_run:
            _apply(store, None, part, reviewer, imported)
            continue
        with store.writing() as connection:
            _apply(store, connection, part, reviewer, imported)
        time.sleep(_PAUSE)  # lets decisions that wait for the file go first
    return imported


def _parse(text: str, imported: ImportAnswer) -> dict[str, _Word]:
    text = text.lstrip("\ufeff")
    delimiter = max((",", ";", "\t"), key=text.split("\n", 1)[0].count)  # many spreadsheets write semicolons
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
        missing = [name for name in ("source", "target", "verdict") if name not in header]
        if missing:
            raise BilexError(
                f"the sheet has no column '{missing[0]}'; its first line must name source, target, verdict."
            )
        words: dict[str, _Word] = {}
        for number, cells in enumerate(reader):
            if number >= _MOST_ROWS or len(words) > _MOST_WORDS:
                raise BilexError(
                    f"the sheet has more than {_MOST_ROWS:,} rows or {_MOST_WORDS:,} words with a verdict; "
                    "divide it, and remove rows without a verdict."
                )
            row = dict(zip(header, map(restored, cells), strict=False))
            _take(row, reader.line_num, words, imported)
    except csv.Error as error:
        raise BilexError(f"the sheet is no CSV at line {reader.line_num} ({error}).") from error
    return words


def _take(row: dict[str, str], line: int, words: dict[str, _Word], imported: ImportAnswer) -> None:
    said = row.get("verdict", "").strip().casefold()
    source, target = row.get("source", ""), row.get("target", "")
    if not said:
        imported.ignored += 1
        return
    if said not in _YES and said not in _NO:
        imported.add_problem(f"line {line}", f"'{said[:40]}' is neither yes nor no")
    elif not source or not target:
        imported.add_problem(f"line {line}", "the source or the target word is missing")
    elif max(len(source), len(target)) > api.LONGEST_WORD:
        imported.add_problem(f"line {line}", f"a word has more than {api.LONGEST_WORD} characters")
    elif api.CONTROL.search(source + target + re.sub("[\r\n\t]", "", row.get("note", ""))):
        imported.add_problem(f"line {line}", "there are control characters in it")
    else:
        word = words.setdefault(source, _Word())
        chosen = word.right if said in _YES else word.wrong
        if target not in chosen and len(chosen) < _MOST_TRANSLATIONS:
            chosen.append(target)
        word.note = row.get("note", "").replace("\r\n", "\n")[:_LONGEST_NOTE] or word.note
        if said in _YES and len(word.cells) < _MOST_TRANSLATIONS:
            structure = {name: cell for name, cell in row.items() if cell and name not in _VERDICT_COLUMNS}
            if structure:
                word.cells.append((target, structure))


def _apply(
    store: Store, connection: Any, words: list[tuple[str, _Word]], reviewer: str, imported: ImportAnswer
) -> None:
    for source, word in words:
        if connection is not None:
            _keep_structure(connection, source, reviewer, word, imported)
        right = tuple(word.right)
        wrong = tuple(target for target in word.wrong if target not in word.right)
        about = standing(decisions_about(connection or store, source))
        if _said_already(about, reviewer, right, wrong):
            imported.unchanged += 1
            continue
        if right:
            imported.accepted += 1
        else:
            imported.rejected += 1
        if connection is not None:
            row = connection.execute("SELECT target FROM entries WHERE source = ?", (source,)).fetchone()
            best, shown = row["target"] if row else None, (*right, *wrong)
            said: Verdict = "accept" if right else "none"
            made = Decision(source, reviewer, said, right, wrong, shown, best, word.note, "import")
            record(connection, made)


def _keep_structure(connection: Any, source: str, reviewer: str, word: _Word, imported: ImportAnswer) -> None:
    """Take over part of speech, senses, labels, comments and examples of a word."""
    article = article_of(connection, source)
    try:
        new = [merge_row(article, target, row) for target, row in word.cells]
    except (ValidationError, BilexError) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        imported.add_problem(f"'{source[:40]}'", f"{what}; its structure is left out")
        return
    if any(new):
        keep_article(connection, source, article, reviewer)


def _said_already(
    about: list[Decision], reviewer: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> bool:
    """Whether a decision that stands says all of this: an exported sheet that comes back changes nothing."""
    judged = [decision for decision in about if decision.verdict != "skip"]
    accepted = {word for decision in judged for word in decision.accepted}
    rejected = {word for decision in judged for word in decision.rejected}
    own = [decision for decision in judged if decision.reviewer == reviewer]
    if own:
        return set(own[-1].accepted) == set(right) and set(wrong) <= rejected
    return bool(judged) and accepted == set(right) and set(wrong) <= rejected


@router.post(
    "/api/publish/import",
    response_model=ImportAnswer,
    responses=api.problems(409),
    openapi_extra=api.body_of("text/csv"),
)
async def import_verdicts(
    bench: Bench, book: BookOf, request: Request, reviewer: api.ReviewerQuery, dry_run: bool = False
) -> Any:
    """Take over the verdicts of a filled-in sheet."""
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise api.ProblemError(400, "The sheet is not UTF-8; save it as 'CSV UTF-8'.") from error

    def progress(done: int, total: int) -> None:
        bench.progress = done, total

    def imported() -> ImportAnswer:
        if dry_run:
            return import_sheet(book.store, text, reviewer, dry_run=True)
        with bench.exclusive("import"):
            return import_sheet(book.store, text, reviewer, progress=progress)

    return await run_in_threadpool(imported)
