"""One pair of a dictionary with all that is known about it, and a whole dictionary to write."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
Pair = tuple[str, str]
Languages = tuple[str | None, str | None]

UNKNOWN_LANGUAGE = "und"
LONGEST_WORD = 100_000
_CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")
# Control characters, line ends, lone surrogates and noncharacters: no word or note may hold them.
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_WORDS = ("source", "target")
# The provenance is the last: it may hold what separates the parts of a note.
TEXTS = ("part_of_speech", "status", "gloss", "labels", "comment", "example", "provenance")
EXAMPLE = " || "  # between a sentence and its translation
NUMBERS = {"confidence": float, "score": float, "source_rank": int, "target_rank": int, "sense": int}


@dataclass(frozen=True, slots=True)
class Entry:
    """One pair of a dictionary.

    Attributes:
        source: The source word.
        target: Its translation.
        score: The similarity of the two words; None, as the other numbers, if there is none.
        confidence: The probability that the pair is right.
        source_rank: The frequency rank of the source word, from 1, the most frequent word.
        target_rank: The frequency rank of the target word.
        known: Whether the pair is from a dictionary or a person rather than from a model.
        part_of_speech: "noun", "verb" and the like, as the file has it.
        status: The decision of a reviewer, such as "accepted".
        provenance: Where the pair is from.
        sense: The number of the source word's sense, from 1, if its translations were grouped.
        gloss: What that sense is, in a few words.
        labels: Usage labels such as "informal, botany", separated by commas.
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
        first, second = self.target_rank, self.source_rank
        return replace(self, source=self.target, target=self.source, source_rank=first, target_rank=second)

    def cleaned(self) -> Entry:
        """The entry without blanks around its words, and without control characters in its texts."""
        clean = {name: one_line(text) for name in TEXTS if FORBIDDEN.search(text := getattr(self, name))}
        clean |= {name: text.strip() for name in _WORDS if (text := getattr(self, name)) != text.strip()}
        return replace(self, **clean) if clean else self  # type: ignore[arg-type]

    def origin(self) -> str:
        """Where the pair is from: "known", "found" (by a model), or nothing if it has no score either."""
        return "known" if self.known else "" if self.score is None else "found"

    def facts(self) -> dict[str, str]:
        """What is known about the pair as texts by field name; "known" is the origin."""
        found = {name: number_text(getattr(self, name), kind) for name, kind in NUMBERS.items()}
        found |= {"known": self.origin()} | {name: one_line(getattr(self, name)) for name in TEXTS}
        return {name: text for name, text in found.items() if text}

    def note(self, *, without: Sequence[str] = ()) -> str:
        """The facts but those of some fields as one line, for formats with only a comment."""
        return "; ".join(
            text if name == "known" else f"{name}={text if name == TEXTS[-1] else text.replace(';', ',')}"
            for name, text in self.facts().items()
            if name not in without
        )

    def with_note(self, note: str) -> Entry:
        """The entry with what `note` of another one holds; any other text is ignored."""
        head, mark, provenance = note.partition(f"{TEXTS[-1]}=")
        parts = ([piece.strip() for piece in part.partition("=")] for part in head.split(";"))
        facts = {name: value or name for name, _, value in parts if value or name == "known"}
        if mark:
            facts[TEXTS[-1]] = provenance.strip()
        return replace(self, **parsed_facts(facts)) if facts else self

    def remark(self) -> str:
        """What the reader of a dictionary wants to know about the pair, in a few words."""
        sure = "" if self.confidence is None else f"{self.confidence:.0%} sure"
        source = "from a dictionary" if self.known else sure
        texts = (self.part_of_speech, source, self.status, self.provenance)
        return "; ".join(filter(None, map(one_line, texts)))


@dataclass(frozen=True)
class Dictionary:
    """Entries to write."""

    entries: Sequence[Entry]
    languages: Languages = (None, None)
    # The names of the two word columns: ("target", "source") if a model translated its target language.
    columns: tuple[str, str] = ("source", "target")
    # Whether underscores in words stand for spaces, as in the vocabulary of a model.
    units: bool = False

    def codes(self) -> tuple[str, str]:
        """The codes of the languages, "und" (undetermined) for one that is not known or has no code."""
        source, target = (
            code if code and _CODE.fullmatch(code) else UNKNOWN_LANGUAGE for code in self.languages
        )
        return source, target

    def title(self) -> str:
        """What to call the dictionary if a format wants a name."""
        return "-".join(self.codes())

    def scored(self) -> bool:
        """Whether any entry has a score or a confidence."""
        return any(entry.score is not None or entry.confidence is not None for entry in self.entries)

    def column_names(self) -> dict[str, str]:
        """The names of the columns of words and ranks by field, "target" for "source" if they are swapped."""
        named = dict(zip(_WORDS, self.columns, strict=True))
        return named | {f"{field}_rank": f"{name}_rank" for field, name in named.items()}


def normalized(pairs: Sequence[Pair], *, lowercase: bool, normal_form: NormalForm | None) -> list[Pair]:
    """The pairs, lower-cased if `lowercase`, in a Unicode normal form."""

    def spell(word: str) -> str:
        word = word.lower() if lowercase else word
        return unicodedata.normalize(normal_form, word) if normal_form else word

    return [(spell(source), spell(target)) for source, target in pairs]


def parsed_facts(facts: Mapping[str, str]) -> dict[str, Any]:
    """What `Entry.facts` holds as arguments of an entry; other names are ignored."""
    found: dict[str, Any] = {}
    for name, text in facts.items():
        if name in NUMBERS:
            found[name] = number_of(text, NUMBERS[name])
        elif name in TEXTS:
            found[name] = text
        elif name == "known":
            found[name] = text.casefold() == "known"
    return found


def one_line(text: str) -> str:
    """A text without line ends and control characters, for notes in a file."""
    return " ".join(FORBIDDEN.sub(" ", text).split())


def number_text(value: float | None, kind: type = float) -> str:
    """A number as it is written in every format: a score with four digits, nothing for None."""
    return "" if value is None else f"{value:.4f}" if kind is float else str(value)


def number_of(text: str, kind: type = float) -> float | int | None:
    """The finite number that a text holds, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return kind(value) if math.isfinite(value) else None


def word_fault(word: str) -> str:
    """Why no dictionary can hold a word, as a part of a sentence; empty if it can."""
    if not word:
        return "one of the two words is missing"
    if len(word) > LONGEST_WORD:
        return f"a word of more than {LONGEST_WORD:,} characters"
    found = FORBIDDEN.search(word)
    if found is None:
        return ""
    if "\ud800" <= found[0] <= "\udfff":
        return "half of a character (a lone surrogate) in a word"
    return "a line end in a word" if found[0] in "\n\r\u2028\u2029" else "a control character in a word"
