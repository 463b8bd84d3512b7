"""One pair of a dictionary with all that is known about it, and a whole dictionary of them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

Pair = tuple[str, str]
Languages = tuple[str | None, str | None]

UNKNOWN_LANGUAGE = "und"
LONGEST_WORD = 100_000
_CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")
# Control characters, line ends, halves of characters and noncharacters: no word or note may hold them.
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
HALVES = re.compile("[\ud800-\udfff]")
# What people say about a pair. The provenance is the last: it may hold what divides the parts of a note.
TEXTS = ("part_of_speech", "status", "gloss", "labels", "comment", "example", "provenance")
EXAMPLE = " || "  # between a sentence and its translation
NUMBERS = {"confidence": float, "score": float, "source_rank": int, "target_rank": int, "sense": int}


@dataclass(frozen=True, slots=True)
class Entry:
    """One pair of a dictionary.

    Attributes:
        source: The source word.
        target: Its translation.
        score: The similarity of the two words; None, as the other numbers, where there is none.
        confidence: The probability that the pair is right.
        source_rank: The source word's frequency rank, from 1, the most frequent word.
        target_rank: The target word's.
        known: Whether somebody gave the pair, rather than a model.
        part_of_speech: "noun", "verb" and the like, as the file has it.
        status: What somebody said about the pair, such as "accepted".
        provenance: Where the pair is from.
        sense: The number of the source word's sense, from 1, where its translations were grouped.
        gloss: What that sense is, in a few words.
        labels: Usage labels such as "informal, botany", with commas between them.
        comment: A remark about the translation.
        example: A sentence with the source word and its translation, with " || " between them.
    """

    source: str
    target: str
    score: float | None = None
    confidence: float | None = None
    source_rank: int | None = None
    target_rank: int | None = None
    known: bool = False
    part_of_speech: str = ""
    status: str = ""
    provenance: str = ""
    sense: int | None = None
    gloss: str = ""
    labels: str = ""
    comment: str = ""
    example: str = ""

    def swapped(self) -> Entry:
        """The same pair in the other direction."""
        return dataclasses.replace(
            self,
            source=self.target,
            target=self.source,
            source_rank=self.target_rank,
            target_rank=self.source_rank,
        )

    def origin(self) -> str:
        """Where the pair is from, in one word where nothing else is said: "known", "found" or nothing."""
        if self.known:
            return "known"
        return "" if self.score is None else "found"

    def note(self, *, without: Sequence[str] = ()) -> str:
        """All but the two words and some fields as one line, for formats with only a comment."""
        parts = []
        for name, kind in NUMBERS.items():
            value = getattr(self, name)
            if value is not None and name not in without:
                parts.append(f"{name}={number_text(value) if kind is float else value}")
        if self.origin() and "known" not in without:
            parts.append(self.origin())
        for name in TEXTS:
            value = one_line(getattr(self, name))
            if value and name not in without:
                parts.append(f"{name}={value if name == 'provenance' else value.replace(';', ',')}")
        return "; ".join(parts)

    def remark(self) -> str:
        """What a reader of a dictionary wants to know about the pair, in a few words."""
        parts = [one_line(self.part_of_speech)]
        if self.known:
            parts.append("from a dictionary")
        elif self.confidence is not None:
            parts.append(f"{self.confidence:.0%} sure")
        parts += [one_line(self.status), one_line(self.provenance)]
        return "; ".join(part for part in parts if part)

    def with_note(self, note: str) -> Entry:
        """The entry with what a line that `note` wrote says; any other text is ignored."""
        found: dict[str, object] = {}
        head, mark, provenance = note.partition("provenance=")
        if mark:
            found["provenance"] = provenance.strip()
        for part in head.split(";"):
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name in NUMBERS:
                found[name] = number_of(value, NUMBERS[name])
            elif name == "known" and not value:
                found["known"] = True
            elif name in TEXTS and value:
                found[name] = value
        return dataclasses.replace(self, **found) if found else self  # type: ignore[arg-type]


@dataclass(frozen=True)
class Dictionary:
    """Entries to write.

    Args:
        entries: The pairs in order.
        languages: Codes of the two languages, where they are known.
        columns: What the two words' columns are called where a format names them: ("target", "source") for
            entries whose `source` is a word of a model's target language.
        units: Whether underscores in words stand for spaces, as in the vocabulary of a model; formats whose
            words may have spaces then get spaces.
    """

    entries: Sequence[Entry]
    languages: Languages = (None, None)
    columns: tuple[str, str] = ("source", "target")
    units: bool = False

    def codes(self) -> tuple[str, str]:
        """The codes of the languages, "und" (undetermined) for one that is not known or has no code."""
        source, target = (
            code if code and _CODE.fullmatch(code) else UNKNOWN_LANGUAGE for code in self.languages
        )
        return source, target

    def title(self) -> str:
        """What to call the dictionary where a format wants a name."""
        return "-".join(self.codes())

    def scored(self) -> bool:
        """Whether any entry has a score or a confidence."""
        return any(entry.score is not None or entry.confidence is not None for entry in self.entries)

    def column_names(self) -> dict[str, str]:
        """What columns are called: "target" and "target_rank" for "source", say, if the words are swapped."""
        named = dict(zip(("source", "target"), self.columns, strict=True))
        return named | {f"{own}_rank": f"{name}_rank" for own, name in named.items()}

    def with_entries(self, entries: Sequence[Entry]) -> Dictionary:
        """The same with other entries."""
        return dataclasses.replace(self, entries=entries)


def one_line(text: str) -> str:
    """A text without line ends and control characters, for notes in a file."""
    return " ".join(FORBIDDEN.sub(" ", text).split())


def with_one_line_texts(entry: Entry) -> Entry:
    """The entry, its remarks without line ends and control characters."""
    texts = {name: getattr(entry, name) for name in TEXTS}
    changed = {name: one_line(text) for name, text in texts.items() if FORBIDDEN.search(text)}
    return dataclasses.replace(entry, **changed) if changed else entry  # type: ignore[arg-type]


def number_text(value: float | None) -> str:
    """A score or confidence as it is written in every format: four digits, nothing for None."""
    return "" if value is None else f"{value:.4f}"


def number_of(text: str | float, kind: type = float) -> float | int | None:
    """The finite number that a text is, or None."""
    try:
        value = kind(text)
        return value if math.isfinite(value) else None
    except (ValueError, OverflowError):  # no number, or a whole one beyond all floats
        return None


def word_fault(word: str) -> str:
    """Why a word can stand in no dictionary, as a part of a sentence; empty if it can."""
    if not word:
        return "one of the two words is missing"
    if len(word) > LONGEST_WORD:
        return f"a word of more than {LONGEST_WORD:,} characters"
    found = FORBIDDEN.search(word)
    if found is None:
        return ""
    if HALVES.match(found[0]):
        return "half of a character (a lone surrogate) in a word"
    return "a line end in a word" if found[0] in "\n\r\u2028\u2029" else "a control character in a word"
