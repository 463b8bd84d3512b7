"""Text in rows and columns: TSV, CSV, glossaries for DeepL, notes for Anki."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.languages import short_code
from bilex.lexicon.entries import UNKNOWN_LANGUAGE, Dictionary, Entry, Languages, number_text
from bilex.lexicon.formats import DictionaryFormat, WriteOptions, grouped, line_fault
from bilex.lexicon.reading import Layout, Units, decode, reader, unescaped
from bilex.lexicon.tables import (
    csv_line,
    csv_rows,
    defused,
    is_comment,
    is_header,
    read_rows,
    table_rows,
)

# The limits of https://developers.deepl.com/docs/api-reference/glossaries. It takes one translation per word,
# no control characters or line ends, and no blanks around a word.
_LARGEST_DEEPL_GLOSSARY, _LARGEST_DEEPL_WORD = 10 << 20, 1024

_ANKI_HEADER = "#separator:tab\n#html:true\n#notetype:Basic\n#tags column:3\n"
_ANKI_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|", "colon": ":"}
_KNOWN_TAG, _FOUND_TAG = "bilex::known", "bilex::found"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_REFERENCES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "#": "&#35;"}
)
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
_MOST_DIGITS = 6


def _tsv_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    """Two columns, or five where pairs have scores, without a header: any reader of word lists takes it.

    Pairs that a reader would take for a header ("source", "target") do not come first.
    """
    scored = dictionary.scored()
    entries = list(dictionary.entries)
    like_words = (place for place, entry in enumerate(entries) if not is_header((entry.source, entry.target)))
    first = next(like_words, None)
    if first is None and entries:
        raise BilexError(
            f"the pair {entries[0].source!r}, {entries[0].target!r} does not fit into a TSV file alone "
            "(it reads as a header); write another format, such as .jsonl."
        )
    if first:
        entries.insert(0, entries.pop(first))
    for entry in entries:
        cells = [entry.source, entry.target]
        if options.defuse_formulas:
            cells = [defused(cell) for cell in cells]
        if scored:
            cells += [number_text(entry.score), number_text(entry.confidence), entry.origin() or "found"]
        yield "\t".join(cells) + "\n"


def _tsv_fault(entry: Entry) -> str:
    if is_comment(f"{entry.source}\t{entry.target}"):
        return "'# ' before a word, which begins a comment"
    return line_fault(entry, "\t")


TSV = DictionaryFormat(
    name="tsv",
    description="tab-separated text: both words, then score, confidence, and known or found",
    suffixes=(".tsv", ".txt", ".dict"),
    noun="a TSV file",
    read=lambda path, layout: read_rows(path, layout, "tab"),
    pieces=_tsv_pieces,
    fault=_tsv_fault,
)


def _csv_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for row in table_rows(dictionary):
        yield csv_line([defused(str(cell)) for cell in row] if options.defuse_formulas else row)


CSV = DictionaryFormat(
    name="csv",
    description="comma-separated text with a header, for spreadsheets",
    suffixes=(".csv",),
    noun="a CSV file",
    read=lambda path, layout: read_rows(path, layout, "csv"),
    pieces=_csv_pieces,
)


def _deepl_units(path: Path, layout: Layout) -> Units:
    """The first two columns of every row; there is no header."""
    languages: Languages = (None, None)
    for row in csv_rows(decode(path).split("\n"), ","):
        yield row.number, row.fault or [Entry(row.cells[0], row.cells[1])]
        if languages == (None, None) and not row.fault and len(row.cells) == 4:
            languages = short_code(row.cells[2].strip()) or None, short_code(row.cells[3].strip()) or None
    return languages


def _deepl_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    size = 0
    codes = [code.upper() for code in dictionary.codes()]
    languages = () if UNKNOWN_LANGUAGE.upper() in codes else codes
    for number, entry in enumerate(dictionary.entries):
        line = csv_line([entry.source, entry.target, *languages])
        size += len(line.encode("utf-8"))
        if size > _LARGEST_DEEPL_GLOSSARY:
            raise BilexError(
                f"DeepL takes glossaries of up to 10 MiB, which the first {number:,} of "
                f"{len(dictionary.entries):,} pairs fill; write fewer, for example with --ranks or "
                "--min-confidence."
            )
        yield line


def _deepl_fault(entry: Entry) -> str:
    if any(len(word.encode("utf-8")) > _LARGEST_DEEPL_WORD for word in (entry.source, entry.target)):
        return f"a word of more than {_LARGEST_DEEPL_WORD:,} bytes"
    return line_fault(entry)


DEEPL = DictionaryFormat(
    name="deepl",
    description="a glossary for DeepL (CSV without header; its limits are checked)",
    suffixes=(),
    noun="a DeepL glossary",
    read=reader("deepl", _deepl_units, "source,target", strict=True),
    pieces=_deepl_pieces,
    fault=_deepl_fault,
    one_translation=True,
)


def _anki_units(path: Path, layout: Layout) -> Units:
    """The notes: the first field, and each line of the second as a translation."""
    separator, markup, tags = "\t", True, -1
    others: set[int] = set()  # columns that are no fields of a note
    lines = decode(path).split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            break
        name, _, value = line[1:].strip().partition(":")
        if name == "separator":
            single = value if len(value) == 1 and value != '"' else "\t"
            separator = _ANKI_SEPARATORS.get(value.casefold(), single)
        elif name == "html":
            markup = value.casefold() != "false"
        elif name.endswith(" column") and value.isdecimal() and len(value) < _MOST_DIGITS:
            others.add(int(value) - 1)
            tags = int(value) - 1 if name == "tags column" else tags
        yield number + 1, None
        lines[number] = ""  # the numbers of the lines stay
    for row in csv_rows(lines, separator):
        if row.cells and row.cells[0].startswith("#"):
            yield row.number, None
        else:
            known = 0 <= tags < len(row.cells) and _KNOWN_TAG in row.cells[tags].split(" ")
            fields = [cell for place, cell in enumerate(row.cells) if place not in others]
            yield row.number, row.fault or _note_entries(fields, known, markup)
    return None


def _note_entries(fields: list[str], known: bool, markup: bool) -> list[Entry] | str:
    if len(fields) < 2:
        return "fewer than two fields"
    source, targets = fields[0].strip(), fields[1].split("\n")
    if markup:
        texts = (source, *_LINE_BREAK.split(fields[1]))
        source, *targets = (unescaped(_MARKUP.sub("", text)).strip() for text in texts)
    return [Entry(source, target, known=known) for target in targets if target.strip()]


def _anki_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    """One note per source word."""
    yield _ANKI_HEADER
    for source, entries in grouped(dictionary.entries).items():
        targets = "<br>".join(entry.target.translate(_REFERENCES) for entry in entries)
        tag = _KNOWN_TAG if all(entry.known for entry in entries) else _FOUND_TAG
        tags = tag if any(entry.origin() for entry in entries) else ""
        yield f"{source.translate(_REFERENCES)}\t{targets}\t{tags}\n"


def _anki_fault(entry: Entry) -> str:
    return "a noncharacter in a word" if _NONCHARACTERS.search(entry.source + entry.target) else ""


ANKI = DictionaryFormat(
    name="anki",
    description="notes for Anki: the word on the front, its translations on the back",
    suffixes=(".anki",),
    noun="a file for Anki",
    read=reader("anki", _anki_units, "front, tab, back", strict=True),
    pieces=_anki_pieces,
    fault=_anki_fault,
)
