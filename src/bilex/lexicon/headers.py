"""Which columns of a dictionary hold the words: by number, by name, or by what the first line says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.core.languages import code_of, is_code, is_language_name
from bilex.lexicon.entries import one_line

_SOURCE_NAMES = frozenset(("source", "src", "source word", "from", "word", "term", "lemma", "headword"))
_TARGET_NAMES = frozenset(
    ("target", "tgt", "trg", "target word", "to", "translation", "translations", "meaning")
)
_VERDICT_NAMES = frozenset(("verdict", "right", "correct", "ok", "accepted", "judgement", "judgment"))

_SHOWN = 200
_MOST_DIGITS = 9  # of a column's number


@dataclass(frozen=True)
class Columns:
    """Places (from 0) of source word, target word and verdict, and whether the first line names them."""

    places: tuple[int, int, int] = (0, 1, 2)
    from_header: bool = False


def find_columns(
    path: Path,
    first: tuple[str, ...],
    wanted: tuple[str, str] | None,
    languages: tuple[str | None, str | None],
    *,
    spreadsheet: bool,
) -> Columns:
    """Decide which columns are meant, and whether the first line is a header.

    A header names its columns source and target (or word and translation), or names two languages. Bare
    codes ("en", "fi") count in spreadsheets, or where they are the languages that are expected: in a
    plain word list they may be words.

    Args:
        path: The file, for messages.
        first: The cells of its first line.
        wanted: Columns as the user names them: numbers from 1, or names of the header.
        languages: Codes of the expected languages, where known.
        spreadsheet: Whether the file was written by a spreadsheet, as far as can be known.

    Raises:
        BilexError: A wanted column is not there.
    """
    names = [cell.strip().casefold() for cell in first]
    verdict = next((place for place, name in enumerate(names) if name in _VERDICT_NAMES), None)
    header = _header(names, languages, spreadsheet)
    if wanted is not None:
        places = [_place(path, name, names) for name in wanted]
        named = header is not None or any(not name.strip().isdecimal() for name in wanted)
        rest = [place for place in range(len(names)) if place not in places]
        third = verdict if named and verdict is not None else (rest or [len(names)])[0]
        return Columns((places[0], places[1], third), named)
    if header is None:
        return Columns()
    third = verdict if verdict is not None else next(p for p in range(len(names) + 1) if p not in header)
    return Columns((header[0], header[1], third), True)


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row names its columns source and target, or two languages by name."""
    return _header([cell.strip().casefold() for cell in cells], (None, None), False) is not None


def _header(
    names: list[str], languages: tuple[str | None, str | None], spreadsheet: bool
) -> tuple[int, int] | None:
    """The places of source and target if these are the names of columns, else None."""
    codes = [code_of(name) for name in names]
    expected = [language for language in languages if language]
    if len(expected) == 2 and expected[0] in codes and expected[1] in codes and expected[0] != expected[1]:
        return codes.index(expected[0]), codes.index(expected[1])
    source = next((place for place, name in enumerate(names) if name in _SOURCE_NAMES), None)
    target = next((place for place, name in enumerate(names) if name in _TARGET_NAMES), None)
    if source is not None and target is not None:
        return source, target
    known = [p for p, name in enumerate(names) if is_language_name(name) or (spreadsheet and is_code(name))]
    if len(known) > 1 and codes[known[0]] != codes[known[1]]:
        return known[0], known[1]
    return None


def _place(path: Path, wanted: str, names: list[str]) -> int:
    wanted = wanted.strip()
    if wanted.isdecimal():
        if len(wanted) > _MOST_DIGITS or not 1 <= int(wanted) <= len(names):
            raise BilexError(
                f"{path}: has no column {wanted[:_SHOWN]}; its first line has {len(names)} columns."
            )
        return int(wanted) - 1
    if wanted.casefold() in names:
        return names.index(wanted.casefold())
    code = code_of(wanted)
    codes = [code_of(name) for name in names]
    if code is not None and code in codes:
        return codes.index(code)
    raise BilexError(
        f"{path}: no column is called '{wanted}'; its first line names {one_line(', '.join(names))[:_SHOWN]}."
        f"{nearest_name(wanted.casefold(), names)}"
    )
