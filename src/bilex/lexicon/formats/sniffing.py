"""Which format a dictionary file has, by what it holds."""

from __future__ import annotations

import zlib
from pathlib import Path

from bilex.lexicon.formats.bicleaner import is_probability
from bilex.lexicon.formats.decoding import cannot_be_read
from bilex.lexicon.formats.json_lines import parsed
from bilex.lexicon.formats.stardict import stem_of
from bilex.lexicon.formats.xml_reading import root_of

_HEAD = 1 << 16
_ROOTS = {
    "tmx": "tmx",
    "martif": "tbx",
    "tbx": "tbx",
    "TBX": "tbx",
    "TEI": "tei",
    "TEI.2": "tei",
    "teiCorpus": "tei",
    "dictionary": "apertium",
}
_XML_SUFFIXES = {".tmx": "tmx", ".tbx": "tbx", ".tei": "tei", ".dix": "apertium"}
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_GZIP = b"\x1f\x8b"
_ANKI_DIRECTIVES = (b"#separator:", b"#html:")


def format_in(path: Path) -> str | None:
    """The name of the format that a file is in; None for rows of cells, whatever divides them.

    Raises:
        BilexError: The file cannot be read.
    """
    several = _of_several_files(path)
    if several:
        return several
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise cannot_be_read(path, error) from error
    return _by_content(head) or _by_suffix(path.suffix.lower(), head)


def _by_content(head: bytes) -> str | None:
    """A format whose files say what they are."""
    if head.startswith(_ANKI_DIRECTIVES):
        return "anki"
    if head.lstrip(_BEFORE_XML).startswith(b"<") or head[:4] in (b"\xff\xfe<\0", b"\xfe\xff\0<"):
        return _ROOTS.get(root_of(head))
    return "bicleaner" if head.startswith(_GZIP) and _is_bicleaner(head) else None


def _by_suffix(suffix: str, head: bytes) -> str | None:
    """A format that the name of the file says, and what it holds does not deny."""
    if head.startswith(b"PK\x03\x04"):
        return "xlsx" if suffix in (".xlsx", ".xlsm") else None
    if suffix in _JSON_SUFFIXES:
        return "wiktextract" if _is_wiktextract(head) else "jsonl"
    if suffix in _XML_SUFFIXES:
        return _XML_SUFFIXES[suffix] if head.lstrip(_BEFORE_XML)[:1] in (b"", b"<") else None
    return {".dic": _if_hunalign(head), ".synonyms": "synonyms", ".utf8": "omegat"}.get(suffix)


def _of_several_files(path: Path) -> str | None:
    """StarDict and dictd, by the suffix and by the files beside."""
    stem = stem_of(path)
    if path.suffix == ".ifo" or (stem != path and stem.with_name(stem.name + ".ifo").exists()):
        return "stardict"
    if path.suffix == ".index" or (stem != path and stem.with_name(stem.name + ".index").exists()):
        return "dictd"
    return None


def _is_wiktextract(head: bytes) -> bool:
    """Whether the first line, if it is whole, is an entry of Wiktextract rather than a pair."""
    line, end, _ = head.partition(b"\n")
    record = parsed(line.decode("utf-8", "replace"))
    if record is None:
        return not end and b'"lang_code"' in line and b'"word"' in line and b'"source"' not in line
    return "source" not in record and isinstance(record.get("word"), str)


def _is_bicleaner(head: bytes) -> bool:
    """Whether the first line of a gzipped file is two words and a probability."""
    try:
        line, end, _ = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD).partition(b"\n")
    except zlib.error:
        return False
    parts = line.split()
    return bool(end) and len(parts) == 3 and is_probability(parts[2].decode("utf-8", "replace"))


def _if_hunalign(head: bytes) -> str | None:
    return "hunalign" if b" @ " in head else None
