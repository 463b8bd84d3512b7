"""Which words may be in answers and dictionaries: numbers, names, stop words, parts of speech."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bilex.core.errors import BilexError
from bilex.core.files import check_input
from bilex.core.reading import text_lines
from bilex.model.space import SIDES, Side

if TYPE_CHECKING:
    from bilex.model.translator import Translator

Keep = Callable[[str, Side], bool]
Tagger = Callable[[str, Side], str | None]


def word_filter(
    translator: Translator,
    *,
    numbers: bool = True,
    names: bool = True,
    stop_words: Collection[str] = frozenset(),
    tagger: Tagger | None = None,
    parts_of_speech: Collection[str] = frozenset(),
) -> Keep | None:
    """A function that says whether a word of a language may be in a dictionary; None if every word may.

    Args:
        translator: The model.
        numbers: Whether words with a digit may.
        names: Whether names may: words that their vocabulary has with a capital only, or more often so.
        stop_words: Words that may not, in either language.
        tagger: Gives a word its part of speech; None for a word that it does not know.
        parts_of_speech: Only words of these may; words that the tagger does not know may not.
    """
    if not names and translator.lowercase:
        raise BilexError(
            "this model was lower-cased, so names cannot be recognised; align again with --keep-case."
        )
    if parts_of_speech and tagger is None:
        raise BilexError("parts of speech are not known; give a file of words and tags with --tags.")
    if numbers and names and not stop_words and not parts_of_speech:
        return None
    rows_of = dict(zip(SIDES, translator.space.places, strict=True))
    stopped, wanted = {word.lower() for word in stop_words}, {tag.casefold() for tag in parts_of_speech}

    def is_name(word: str, rows: Mapping[str, int]) -> bool:
        return word[:1].isupper() and (word.lower() not in rows or rows[word] < rows[word.lower()])

    def keep(word: str, side: Side) -> bool:
        if word.lower() in stopped or (not numbers and any(map(str.isdigit, word))):
            return False
        if not names and is_name(word, rows_of[side]):
            return False
        return tagger is None or not wanted or (tagger(word, side) or "").casefold() in wanted

    return keep


def read_words(path: str | Path) -> frozenset[str]:
    """The words of a file, one per line."""
    check_input(path)
    lines = (line for _, line in text_lines(Path(path)))
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("# "))


def read_tags(*paths: str | Path) -> Tagger:
    """A tagger out of files with a word, a tab and its part of speech on each line, for both languages."""
    tags: dict[str, str] = {}
    for path in paths:
        check_input(path)
        for number, line in text_lines(Path(path)):
            word, tab, tag = line.partition("\t")
            if line.strip() and not tab:
                raise BilexError(
                    f"{path}: line {number} has no tab; each line should be a word, a tab and its tag."
                )
            tags.setdefault(word.strip(), tag.split("\t")[0].strip())
    return lambda word, side: tags.get(word) or tags.get(word.lower())
