"""A dictionary of several languages: one line per word, one column per language."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.lexicon.formats import format_of
from bilex.lexicon.tables import csv_line
from bilex.model import Entry, Translator
from bilex.vectors.phrases import words_of

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.many.core import ManyLanguages

FORMS = ("tsv", "csv", "jsonl")


@dataclass(frozen=True)
class PolyglotEntry:
    """A word and what it is in other languages; a language without an answer that may stand is left out."""

    word: str
    rank: int
    translations: dict[str, tuple[Entry, ...]]


@dataclass(frozen=True, repr=False)
class Polyglot:
    """Words of one language with their translations into several, most frequent word first."""

    entries: tuple[PolyglotEntry, ...]
    source: str
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[PolyglotEntry]:
        return iter(self.entries)

    def __repr__(self) -> str:
        return f"Polyglot({self.source} to {', '.join(self.targets)}, {len(self):,} words)"

    def text(self, form: str) -> str:
        """The whole dictionary as text.

        Args:
            form: "tsv" or "csv" (a header with the languages' codes, a column each, several translations
                divided by " | "), or "jsonl" (scores and confidences too).
        """
        check_form(form)
        if form == "jsonl":
            return "".join(json.dumps(self._record(entry), ensure_ascii=False) + "\n" for entry in self)
        rows = [(self.source, *self.targets), *(self._cells(entry) for entry in self)]
        if form == "csv":
            return "".join(csv_line(row) for row in rows)
        for cell in (cell for row in rows for cell in row):
            if any(character in cell for character in "\t\n\r"):
                raise BilexError(
                    f"the word {cell!r} does not fit into a TSV file; write .csv or .jsonl instead."
                )
        return "".join("\t".join(row) + "\n" for row in rows)

    def save(self, path: str | Path, form: str | None = None) -> None:
        """Write the dictionary, atomically, in the format named or the one that the file's name says."""
        text = self.text(format_of(path, form).name)
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")

    def _cells(self, entry: PolyglotEntry) -> tuple[str, ...]:
        found = (entry.translations.get(language, ()) for language in self.targets)
        return (_spaced(entry.word), *(" | ".join(_spaced(pair.target) for pair in pairs) for pairs in found))

    def _record(self, entry: PolyglotEntry) -> dict[str, Any]:
        return {
            "word": _spaced(entry.word),
            "language": self.source,
            "rank": entry.rank,
            "translations": {
                language: [
                    {
                        "word": _spaced(pair.target),
                        "score": pair.score,
                        "confidence": pair.confidence,
                        "rank": pair.target_rank,
                        "known": pair.known,
                    }
                    for pair in pairs
                ]
                for language, pairs in entry.translations.items()
            },
        }


def check_form(form: str) -> None:
    """Make sure that a format has columns for several languages."""
    if form not in FORMS:
        raise BilexError(
            f"format '{form}' holds two languages at a time; write several as {', '.join(FORMS)}, or name "
            "one language after --to."
        )


def polyglot(
    many: ManyLanguages,
    source: str,
    targets: Sequence[str],
    keep_of: Callable[[Translator], Keep | None] | None,
    options: Mapping[str, Any],
) -> Polyglot:
    """Every word of a language with its best translations into several others."""
    codes = [many.code(target) for target in targets]
    if not codes:
        raise BilexError("name at least one language to translate to.")
    if many.code(source) in codes:
        raise BilexError(f"the words are of the language '{many.code(source)}'; name others after --to.")
    for code in codes:
        if codes.count(code) > 1:
            raise BilexError(f"'{code}' is named twice after --to; name each language once.")
    rows: dict[int, PolyglotEntry] = {}
    for code in codes:
        translator = many.pair(source, code)
        keep = keep_of(translator) if keep_of else None
        ranks = translator.space.source.key_to_index
        for entry in translator.lexicon(keep=keep, **options):
            rank = ranks[entry.source] + 1
            row = rows.setdefault(rank, PolyglotEntry(entry.source, rank, {}))
            row.translations[code] = (*row.translations.get(code, ()), entry)
    return Polyglot(tuple(rows[rank] for rank in sorted(rows)), many.code(source), tuple(codes))


def _spaced(word: str) -> str:
    """A word as people write it: "new york" for the unit "new_york"."""
    return " ".join(words_of(word)) or word
