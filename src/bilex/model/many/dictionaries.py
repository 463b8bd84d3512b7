"""Dictionaries of several pairs of languages in one folder, named like en-fi.tsv."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.model.storage import Two

_TWO_CODES = re.compile(r"(?<![A-Za-z0-9])([A-Za-z0-9_]+)-([A-Za-z0-9_]+)(?![A-Za-z0-9])")
Reader = Callable[[Path, Two], Lexicon]


def read_dictionaries(folder: str | Path, languages: Sequence[str], read: Reader) -> dict[Two, Lexicon]:
    """The dictionaries of a folder that are of two of some languages.

    Args:
        folder: Holds files whose names have two codes with a hyphen between them, such as en-fi.tsv or
            yacle.train.freq.5k.en-fi.tsv; other files are not read.
        languages: The codes of the languages.
        read: Reads a file whose first column is of the first language.

    Returns:
        The pairs by two languages. Of en-fi and fi-en there is one entry, all pairs in the order of the file
        that comes first by name.

    Raises:
        BilexError: There is no such folder, or no file in it is of two of the languages.
    """
    path = Path(folder)
    if not path.is_dir():
        raise BilexError(f"{path}: is not a folder; give one with dictionaries named like en-fi.tsv.")
    found: dict[Two, Lexicon] = {}
    for file in sorted(path.iterdir()):
        two = languages_of_name(file.name, languages)
        if two is None or not file.is_file():
            continue
        lexicon = read(file, two)
        if two[::-1] in found:
            two, lexicon = two[::-1], lexicon.swapped()
        found[two] = found[two] + lexicon if two in found else lexicon
    if not found:
        raise BilexError(
            f"{path}: holds no dictionary of two of {', '.join(languages)}; name the files like "
            f"{languages[0]}-{languages[1]}.tsv."
        )
    return found


def languages_of_name(name: str, languages: Sequence[str]) -> Two | None:
    """The two languages that a file's name speaks of; None if it names no two of them."""
    for one, other in _TWO_CODES.findall(name):
        if one in languages and other in languages and one != other:
            return one, other
    return None
