"""The lines of plain, packed or JSON Lines text, in bounded memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.progress import Task
from bilex.vectors.reading import PACKED_SUFFIXES, Source, open_source

_CHUNK = 1 << 20
_LONGEST_RECORD = 64 << 20
_JSON_SUFFIXES = frozenset([".jsonl", ".ndjson", ".jl"])
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MARK = b"\xef\xbb\xbf"
_DEFAULT_FIELD = "text"


@dataclass
class LeftOut:
    """Lines of a corpus that could not be used, by reason, with the first place of each."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, path: Path, line: int) -> None:
        """Count one line."""
        self.counts[reason] += 1
        self.first.setdefault(reason, f"{path}, line {line:,}")

    @property
    def total(self) -> int:
        """How many lines were left out."""
        return self.counts.total()

    def sentences(self) -> list[str]:
        """One sentence for each reason."""
        return [
            f"{count:,} lines were left out: {reason} (the first is {self.first[reason]})."
            for reason, count in self.counts.items()
        ]


def field_of(path: Path, wanted: str | None) -> str | None:
    """The field of JSON Lines that holds the text: the one wanted, else by the name of the file; or None."""
    if wanted is not None:
        return wanted
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    return _DEFAULT_FIELD if suffixes and suffixes[-1] in _JSON_SUFFIXES else None


def read_texts(path: Path, wanted: str | None, left_out: LeftOut, task: Task) -> Iterator[str]:
    """The texts of one file, one line or piece of a very long line at a time.

    `wanted` is the field of JSON Lines that holds the text; None to go by the name of the file. Lines that
    cannot be used are counted in `left_out`; more than half of them are an error.
    """
    name = field_of(path, wanted)
    before, lines = left_out.total, 0
    with open_source(path) as source:
        if source.head.startswith(_WIDE_MARKS):
            raise BilexError(
                f"{path}: is UTF-16 text; convert it to UTF-8 first, for example with iconv -f UTF-16."
            )
        for lines, raw in enumerate(_raw_lines(source, task, whole=name is not None), 1):
            found, reason = _texts(raw, name)
            if reason:
                left_out.add(reason, path, lines)
            yield from found
    faults = left_out.total - before
    if 2 * faults > lines:
        reasons = "; ".join(left_out.sentences())
        raise BilexError(
            f"{path}: {faults:,} of {lines:,} lines cannot be used as text ({reasons.rstrip('.')}); "
            "check the format and --field."
        )


def _raw_lines(source: Source, task: Task, *, whole: bool) -> Iterator[bytes]:
    """Lines without their ends; of more than a megabyte, unless `whole`, in pieces cut between words."""
    rest = b""
    while chunk := source.read(_CHUNK):
        task.advance(source.newly_used())
        if not rest and source.head.startswith(_MARK) and chunk.startswith(_MARK):
            chunk = chunk.removeprefix(_MARK)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if whole and len(rest) > _LONGEST_RECORD:
            raise BilexError(
                f"{source.name}: a line is longer than {_LONGEST_RECORD >> 20} MB, too long for JSON Lines; "
                "write one record per line."
            )
        if not whole and len(rest) > _CHUNK:
            cut = _safe_cut(rest)
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _safe_cut(text: bytes) -> int:
    """Where bytes can be cut: at the last space, else before the last character that may be incomplete."""
    space = text.rfind(b" ")
    if space > 0:
        return space
    cut = len(text) - 1
    while cut > 0 and text[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut or len(text)


def _texts(raw: bytes, name: str | None) -> tuple[list[str], str]:
    """The texts of a line, or of the field of that name of its JSON record; and why there are none."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return [], "not UTF-8"
    if "\0" in text:
        return [], "binary data, not text"
    if name is None or not text.strip():
        return ([text] if name is None else []), ""
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        return [], "not a JSON object"
    value = record.get(name) if isinstance(record, dict) else None
    texts: list[Any] = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(part, str) for part in texts):
        return [], f"no text in the field '{name}'"
    return [line for part in texts for line in part.splitlines()], ""
