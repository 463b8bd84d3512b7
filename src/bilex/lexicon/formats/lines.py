"""Text with one unit per line: MUSE, OmegaT, hunalign, bicleaner, synonyms, Anki, JSON Lines, Wiktextract."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.languages import short_code
from bilex.core.reading import GZIP, text_lines
from bilex.core.text import listed
from bilex.lexicon.entries import NUMBERS, TEXTS, Dictionary, Entry, number_of, parsed_facts
from bilex.lexicon.files import (
    BYTE_ORDER_MARK,
    DictionaryFormat,
    LineFormat,
    Reading,
    WriteOptions,
    all_lines,
    grouped,
    unescaped,
)
from bilex.lexicon.formats.tables import csv_rows

_HEAD = 1 << 16
_SHOWN = 8
_ANKI_HEADER = "#separator:tab\n#html:true\n#notetype:Basic\n#tags column:3\n"
_ANKI_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|", "colon": ":"}
_KNOWN_TAG, _FOUND_TAG = "bilex::known", "bilex::found"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_REFERENCES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "#": "&#35;"})
_MOST_DIGITS = 6


class Muse(LineFormat):
    """MUSE and VecMap: two words per line, separated by a space."""

    name, noun, suffixes = "muse", "a MUSE file", (".muse",)
    expected = "source word, space, target word"
    read_suffixes = ()  # it is read as a table, which may have comments and a header
    unfit = ((re.compile(" "), "a space in a word"), BYTE_ORDER_MARK)
    single_words = True

    def _parse_line(self, text: str) -> list[Entry] | str:
        words = list(filter(str.strip, text.replace("\t", " ").split(" ")))
        two = len(words) == 2
        return [Entry(words[0], words[1])] if two else f"{len(words)} words where two are expected"

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        return (f"{entry.source} {entry.target}\n" for entry in dictionary.entries)


class OmegaT(LineFormat):
    """A glossary for OmegaT: both words and a comment on the confidence."""

    name, noun, suffixes = "omegat", "an OmegaT glossary", (".utf8", ".tab")
    expected = "source term, tab, target term, and perhaps a tab and a comment"
    read_suffixes = (".utf8",)  # the other one is that of any table
    unfit = ((re.compile("^#"), "'#' before a word, which begins a comment"), BYTE_ORDER_MARK)
    comment = "#"

    def _parse_line(self, text: str) -> list[Entry] | str:
        cells = text.split("\t")
        return [Entry(cells[0], cells[1])] if len(cells) > 1 else "no tab in it"

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        for entry in dictionary.entries:
            yield "\t".join(filter(None, (entry.source, entry.target, entry.remark()))) + "\n"


class Hunalign(LineFormat):
    """A dictionary for hunalign: target, ' @ ', source."""

    name, noun, suffixes = "hunalign", "a hunalign dictionary", (".dic",)
    expected = "target words, space, @, space, source words"
    unfit = ((re.compile(r"(^|[ \t])@([ \t]|$)"), "'@' as a word"), BYTE_ORDER_MARK)

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By the suffix, which other programs use too, and the separator."""
        return super().recognizes(path, head) and b" @ " in head

    def _parse_line(self, text: str) -> list[Entry] | str:
        words = text.split(" @ ")
        return [Entry(words[1], words[0])] if len(words) == 2 else "not exactly one ' @ ' in it"

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        return (f"{entry.target} @ {entry.source}\n" for entry in dictionary.entries)


class Bicleaner(LineFormat):
    """A probabilistic dictionary for bicleaner: gzipped target, source, probability."""

    name, noun = "bicleaner", "a bicleaner dictionary"
    expected = "target word, space, source word, space, probability"
    unfit = ((re.compile(r"[^\S\t]"), "a blank in a word"), BYTE_ORDER_MARK)
    single_words = True

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By the first line."""
        if not head.startswith(GZIP):
            return False
        try:
            line, end, _ = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD).partition(b"\n")
        except zlib.error:
            return False
        return bool(end) and not isinstance(self._parse_line(line.decode("utf-8", "replace")), str)

    def _parse_line(self, text: str) -> list[Entry] | str:
        """The pair alone: how often a translation is chosen is not how likely it is to be right."""
        parts = text.split()
        probability = number_of(parts[2]) if len(parts) == 3 else None
        if probability is None or not 0 <= probability <= 1:
            return "not two words and a probability"
        return [Entry(parts[1], parts[0])]

    def save(self, path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
        """Write a gzip without a time, so that the same dictionary gives the same bytes."""
        with (
            atomic_file(path) as temporary,
            temporary.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        ):
            packed.writelines(line.encode() for line in self._pieces(dictionary, options))

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """P(target | source), proportional to the confidences if all translations have one."""
        for entries in grouped(dictionary.entries).values():
            weights = [entry.confidence for entry in entries if entry.confidence is not None]
            if len(weights) < len(entries) or sum(weights) <= 0:
                weights = [1.0] * len(entries)
            for entry, weight in zip(entries, weights, strict=True):
                yield f"{entry.target} {entry.source} {weight / sum(weights):.7f}\n"


class Synonyms(LineFormat):
    """Synonyms for Solr, Elasticsearch and OpenSearch: word => translation, translation."""

    name, noun, suffixes = "synonyms", "a file of synonyms", (".synonyms",)
    expected = "source word => target word, target word"
    comment = "#"

    def _parse_line(self, text: str) -> Iterable[Entry] | str:
        """Explicit mappings; lists of equivalent words ("dog, hound") have no direction.

        A backslash before a character escapes it, as in Lucene's parser of this format.
        """
        sides = self._parts(text, "=>")
        if len(sides) != 2:
            return "not exactly one '=>' in it"
        words = (
            [re.sub(r"\\(.?)", r"\1", word.strip(), flags=re.DOTALL) for word in self._parts(side, ",")]
            for side in sides
        )
        return itertools.starmap(Entry, itertools.product(*words))

    @staticmethod
    def _parts(text: str, mark: str) -> list[str]:
        """The parts of a text between marks that have no backslash before them."""
        return re.findall(rf"(?:^|{mark})((?:\\.|(?!{mark})[^\\]|\\$)*)", text, re.DOTALL)

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        for source, entries in grouped(dictionary.entries).items():
            words = (re.sub(r"[\\,=>#]", r"\\\g<0>", word) for word in (source, *(e.target for e in entries)))
            yield f"{next(words)} => {', '.join(words)}\n"


class Anki(DictionaryFormat):
    """Notes for Anki: the word on the front, its translations on the back."""

    name, noun, suffixes = "anki", "a file for Anki", (".anki",)
    expected = "front, tab, back"
    unfit = ((re.compile("[\ufdd0-\ufdef]"), "a noncharacter in a word"),)
    strict = True

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By its directives."""
        return head.startswith((b"#separator:", b"#html:"))

    def _parse(self, reading: Reading) -> None:
        """The first field of each note, and each line of the second as a translation."""
        separator, markup, tags = "\t", True, -1
        others: set[int] = set()  # columns that are no fields of a note
        lines = all_lines(reading.path)
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
            reading.report.comments += 1
            lines[number] = ""  # the numbers of the lines stay
        for number, cells, fault in csv_rows(lines, separator):
            if cells and cells[0].startswith("#"):
                reading.report.comments += 1
                continue
            note = [cell for place, cell in enumerate(cells) if place not in others]
            if fault or len(note) < 2:
                reading.add(number, fault or "fewer than two fields")
                continue
            known = 0 <= tags < len(cells) and _KNOWN_TAG in cells[tags].split(" ")
            source, targets = note[0], note[1].split("\n")
            if markup:
                texts = (source, *_LINE_BREAK.split(note[1]))
                source, *targets = (unescaped(_MARKUP.sub("", text)) for text in texts)
            found = [Entry(source, target, known=known) for target in targets if target.strip()]
            reading.add(number, found)

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """One note per source word."""
        yield _ANKI_HEADER
        for source, entries in grouped(dictionary.entries).items():
            targets = "<br>".join(entry.target.translate(_REFERENCES) for entry in entries)
            tag = _KNOWN_TAG if all(entry.known for entry in entries) else _FOUND_TAG
            tags = tag if any(entry.origin() for entry in entries) else ""
            yield f"{source.translate(_REFERENCES)}\t{targets}\t{tags}\n"


class JsonLines(DictionaryFormat):
    """JSON Lines: one object per pair, with everything that is known about it."""

    name, noun, suffixes = "jsonl", "a JSON Lines file", (".jsonl", ".ndjson")
    expected = '{"source": ..., "target": ...}'
    strict = True

    def _parse(self, reading: Reading) -> None:
        for number, record in _json_lines(reading.path):
            if record is None:
                reading.add(number, "not a JSON object")
            elif not isinstance(record.get("source"), str) or not isinstance(record.get("target"), str):
                reading.add(number, 'no strings "source" and "target" in it')
            else:
                facts = {name: record[name] for name in TEXTS if isinstance(record.get(name), str)}
                facts |= {name: str(record[name]) for name in NUMBERS if name in record}
                facts["known"] = "known" if record.get("known") is True else ""
                entry = Entry(record["source"], record["target"], **parsed_facts(facts))
                reading.add(number, [entry], str(record.get("verdict", "")))

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """What is known about each pair; in a dictionary with scores also numbers that are null."""
        scored, named = dictionary.scored(), dictionary.column_names()
        if_scored = {"known", *NUMBERS} - {"sense"}
        for entry in dictionary.entries:
            record = {}
            for name in (field.name for field in fields(Entry)):
                value = getattr(entry, name)
                if name in ("source", "target") or (scored if name in if_scored else value):
                    record[named.get(name, name)] = value
            yield json.dumps(record, ensure_ascii=False) + "\n"


class Wiktextract(DictionaryFormat):
    """Wiktextract: JSON Lines of a Wiktionary with translations into many languages."""

    name, noun = "wiktextract", "a Wiktextract file"
    expected = '{"word": ..., "translations": [...]}'
    writable = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By the first line, which may not be whole."""
        if path.suffix.lower() not in JsonLines.suffixes:
            return False
        line, end, _ = head.partition(b"\n")
        record = _json_object(line.decode("utf-8", "replace"))
        if record is None:
            return not end and b'"lang_code"' in line and b'"word"' in line and b'"source"' not in line
        return "source" not in record and isinstance(record.get("word"), str)

    def _parse(self, reading: Reading) -> None:
        """Translations between two languages, of entries in either of them."""
        source, target = (short_code(side) if side else "" for side in reading.layout.languages)
        into: dict[str, None] = {}
        heads: dict[str, None] = {}
        for number, record in _json_lines(reading.path):
            if record is None or not isinstance(record.get("word"), str):
                reading.add(number, "no object with a word")
                continue
            language = short_code(_text(record, "lang_code"))
            heads[language] = None
            translations = dict.fromkeys(  # of the entry and of its senses, each once
                (short_code(_text(item, "code") or _text(item, "lang_code")), _text(item, "word"))
                for holder in (record, *_objects(record, "senses"))
                for item in _objects(holder, "translations")
                if _text(item, "word")
            )
            entries = []
            for code, word in translations:
                into[code] = None
                entry = Entry(record["word"], word, part_of_speech=_text(record, "pos"))
                if _between(language, code, source, target):
                    entries.append(entry)
                elif source and target and _between(language, code, target, source):
                    entries.append(entry.swapped())
            reading.add(number, entries or "no translation into the language")
        if len(into) > 1 and not target:
            raise BilexError(
                f"{reading.path}: holds translations into {len(into)} languages ({listed(into, _SHOWN)}); "
                "name the two that you mean with --languages, for example --languages en,fi."
            )
        reading.languages = next(iter(heads)) or None if len(heads) == 1 else None, next(iter(into), None)


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The JSON objects of the lines that are not blank, with their numbers; None for a line without one."""
    return ((number, _json_object(line)) for number, line in text_lines(path) if line.strip())


def _json_object(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _between(language: str, code: str, source: str, target: str) -> bool:
    """Whether a translation is from one language into another; an unmarked entry is of any."""
    return (not source or not language or language == source) and (not target or code == target)


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value.strip() if isinstance(value, str) else ""


def _objects(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = record.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
