"""Reading a filled-in sheet back: each word's rows become one decision."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from bilex.core.errors import BilexError
from bilex.lexicon.formats.formulas import restored
from bilex_workbench.articles import article_of, keep_article, merge_row
from bilex_workbench.decisions import Decision, Verdict, decisions_about, record, standing
from bilex_workbench.problems import LONGEST_WORD
from bilex_workbench.store import Store

_YES = frozenset({"yes", "y", "1", "true", "right", "+", "x", "ok", "accept"})
_NO = frozenset({"no", "n", "0", "false", "wrong", "-", "reject"})
_LONGEST_NOTE = 10_000
_SHOWN_PROBLEMS = 50


@dataclass
class Imported:
    """What came of an import.

    Attributes:
        accepted: Words for which translations were accepted.
        rejected: Words of which all translations were rejected.
        unchanged: Words about which this person had said the same before.
        ignored: Rows without a verdict.
        problems: What was wrong, by line.
    """

    accepted: int = 0
    rejected: int = 0
    unchanged: int = 0
    ignored: int = 0
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; of many problems the first."""
        return {**vars(self), "problems": self.problems[:_SHOWN_PROBLEMS]}


@dataclass
class _Word:
    right: dict[str, None] = field(default_factory=dict)
    wrong: dict[str, None] = field(default_factory=dict)
    note: str = ""
    cells: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def import_sheet(store: Store, text: str, reviewer: str, *, dry_run: bool = False) -> Imported:
    """Take over the verdicts of a sheet.

    Args:
        store: The review file.
        text: CSV with a header that names at least source, target and verdict.
        reviewer: Who is taken to have decided.
        dry_run: Only count.

    Raises:
        BilexError: It is no such CSV.
    """
    imported = Imported()
    people = _parse(text, reviewer, imported)
    if dry_run:
        _apply(store, None, people, imported)
        return imported
    with store.writing() as connection:
        _apply(store, connection, people, imported)
    return imported


def _parse(text: str, reviewer: str, imported: Imported) -> dict[tuple[str, str], _Word]:
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=_delimiter(text))
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
        missing = [name for name in ("source", "target", "verdict") if name not in header]
        if missing:
            raise BilexError(
                f"the sheet has no column '{missing[0]}'; its first line must name source, target, verdict."
            )
        words: dict[tuple[str, str], _Word] = {}
        for cells in reader:
            row = dict(zip(header, map(restored, cells), strict=False))
            _take(row, reviewer, reader.line_num, words, imported)
    except csv.Error as error:
        raise BilexError(f"the sheet is no CSV at line {reader.line_num} ({error}).") from error
    return words


def _delimiter(text: str) -> str:
    """Spreadsheets of many countries write semicolons."""
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    return max((",", ";", "\t"), key=first.count)


def _take(
    row: dict[str, str],
    reviewer: str,
    line: int,
    words: dict[tuple[str, str], _Word],
    imported: Imported,
) -> None:
    said = row.get("verdict", "").strip().casefold()
    source, target = row.get("source", ""), row.get("target", "")
    if not said:
        imported.ignored += 1
        return
    if said not in _YES and said not in _NO:
        imported.problems.append(f"line {line}: '{said[:40]}' is neither yes nor no.")
    elif not source or not target:
        imported.problems.append(f"line {line}: the source or the target word is missing.")
    elif max(len(source), len(target)) > LONGEST_WORD:
        imported.problems.append(f"line {line}: a word has more than {LONGEST_WORD} characters.")
    else:
        word = words.setdefault((source, reviewer), _Word())
        (word.right if said in _YES else word.wrong)[target] = None
        word.note = row.get("note", "")[:_LONGEST_NOTE] or word.note
        if said in _YES:
            word.cells.append((target, row))


def _apply(store: Store, connection: Any, people: dict[tuple[str, str], _Word], imported: Imported) -> None:
    for (source, reviewer), word in people.items():
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
            best = row["target"] if row else None
            verdict: Verdict = "accept" if right else "none"
            shown = (*right, *wrong)
            record(
                connection,
                Decision(source, reviewer, verdict, right, wrong, shown, best, word.note, "import"),
            )


def _keep_structure(connection: Any, source: str, reviewer: str, word: _Word, imported: Imported) -> None:
    """Take over part of speech, senses, labels, comments and examples of a word."""
    article = article_of(connection, source)
    try:
        new = [merge_row(article, target, row) for target, row in word.cells]
    except ValidationError as error:
        imported.problems.append(f"'{source[:40]}': {error.errors()[0]['msg']}; its structure is left out.")
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
