"""What a dictionary format is, and what every writer shares."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.text import escape_control_characters
from bilex.lexicon.entries import FORBIDDEN, TEXTS, Dictionary, Entry, one_line, word_fault
from bilex.lexicon.reading import Layout, Reading
from bilex.vectors.phrases import words_of

_SHOWN_OF_A_WORD = 60
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class WriteOptions:
    """How to write.

    Args:
        defuse_formulas: Whether cells that a spreadsheet would compute get an apostrophe before them.
        skip_unfit: Whether pairs that the format cannot hold are left out and counted; else the first of
            them is an error.
    """

    defuse_formulas: bool = False
    skip_unfit: bool = False


@dataclass(frozen=True)
class WriteReport:
    """What was written.

    Attributes:
        written: How many pairs.
        left_out: Every reason for which pairs were left out, with its count.
    """

    written: int
    left_out: tuple[tuple[str, int], ...] = ()

    def sentence(self) -> str:
        """One sentence on what was left out; nothing if nothing was."""
        if not self.left_out:
            return ""
        counted = ", ".join(f"{count:,} with {reason}" for reason, count in self.left_out)
        return f"{sum(count for _, count in self.left_out):,} pairs were left out: {counted}."


@dataclass(frozen=True)
class DictionaryFormat:
    """One file format of dictionaries.

    Attributes:
        name: What `--format`, `--from` and `--to` call it.
        description: What it is, in a few words.
        suffixes: Suffixes of its files, the usual one first.
        noun: What a file of it is called in messages, with its article.
        read: Reads a file; None if the format is only written.
        pieces: The text of a dictionary, piece by piece; None for formats that are no text.
        save: Writes a dictionary to a path, for formats that are no text or several files.
        fault: Why the format cannot hold a pair, as "with ..." would go on; empty if it can.
        one_translation: Whether a word may have one translation only; the first is kept.
        single_words: Whether words may hold no space, so that phrases keep the underscores of a model.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    noun: str
    read: Callable[[Path, Layout], Reading] | None = None
    pieces: Callable[[Dictionary, WriteOptions], Iterator[str]] | None = None
    save: Callable[[Path, Dictionary, WriteOptions], None] | None = None
    fault: Callable[[Entry], str] = lambda entry: ""
    one_translation: bool = False
    single_words: bool = False

    @property
    def writable(self) -> bool:
        """Whether it can be written."""
        return self.pieces is not None or self.save is not None

    def fitting(self, dictionary: Dictionary, options: WriteOptions) -> tuple[Dictionary, WriteReport]:
        """The part of a dictionary that the format can hold.

        Raises:
            BilexError: A pair does not fit and none may be left out; or none fits.
        """
        left_out: Counter[str] = Counter()
        kept: list[Entry] = []
        translated: set[str] = set()
        spaced = dictionary.units and not self.single_words
        for entry in map(_with_spaces, dictionary.entries) if spaced else dictionary.entries:
            nowhere = common_fault(entry.source) or common_fault(entry.target)
            reason = nowhere or self.fault(entry)
            of_vocabulary = (
                nowhere and dictionary.units
            )  # vocabularies hold words that fit into no dictionary
            if reason and not of_vocabulary and not options.skip_unfit:
                raise BilexError(
                    f"the pair {shown(entry.source)}, {shown(entry.target)} does not fit into {self.noun} "
                    f"({reason}); write another format, such as .jsonl, or leave such pairs out with "
                    "--skip-unfit."
                )
            if not reason and self.one_translation and entry.source in translated:
                reason = "a further translation of a word, of which there may be one"
            if reason:
                left_out[reason] += 1
                continue
            translated.add(entry.source)
            kept.append(_one_line_texts(entry))
        if dictionary.entries and not kept:
            raise BilexError(f"none of the {len(dictionary.entries):,} pairs fits into {self.noun}.")
        return dictionary.with_entries(kept), WriteReport(len(kept), tuple(left_out.most_common()))


def _with_spaces(entry: Entry) -> Entry:
    """The entry, phrases with spaces: "new york" for the unit "new_york"."""
    if "_" not in entry.source and "_" not in entry.target:
        return entry
    source, target = (" ".join(words_of(word)) or word for word in (entry.source, entry.target))
    return dataclasses.replace(entry, source=source, target=target)


def _one_line_texts(entry: Entry) -> Entry:
    """The entry, its remarks without line ends and control characters."""
    texts = {name: getattr(entry, name) for name in TEXTS}
    changed = {name: one_line(text) for name, text in texts.items() if FORBIDDEN.search(text)}
    return dataclasses.replace(entry, **changed) if changed else entry  # type: ignore[arg-type]


def common_fault(word: str) -> str:
    """Why no format could give a word back; empty if some can."""
    if not word.strip():
        return "an empty word"
    return word_fault(word) or ("a blank before or after a word" if word != word.strip() else "")


def line_fault(entry: Entry, forbidden: str) -> str:
    """Why a pair does not fit into a line of a text file.

    Args:
        entry: The pair.
        forbidden: Characters that have another meaning in such a line.
    """
    for word in (entry.source, entry.target):
        if word.startswith(_BYTE_ORDER_MARK):
            return "a byte order mark before a word"
        for char in forbidden:
            if char in word:
                return f"{ {' ': 'a space', chr(9): 'a tab'}.get(char, repr(char)) } in a word"
    return ""


def shown(word: str) -> str:
    """A word for a message: quoted, harmless, not too long."""
    cut = word if len(word) <= _SHOWN_OF_A_WORD else f"{word[:_SHOWN_OF_A_WORD]}…"
    return escape_control_characters(repr(cut))


def grouped(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries by source word, both in the order in which they came."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.source, []).append(entry)
    return found
