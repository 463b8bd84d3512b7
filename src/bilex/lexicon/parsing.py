"""Turning the bytes of a dictionary file into word pairs, and telling what could not be read.

Four forms are read. Files named `.csv` and `.jsonl` are CSV and JSON Lines; every other file holds
one pair a line, divided by a tab if any line has one, else by spaces.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bilex.errors import BilexError

Pair = tuple[str, str]
Form = Literal["tab", "space", "csv", "jsonl"]
NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

BROKEN_LINES_KEPT = 20
_FORM_OF_SUFFIX: dict[str, Form] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_EXPECTED: dict[Form, str] = {
    "tab": "source word, tab, target word",
    "space": "source word, space, target word",
    "csv": "source,target",
    "jsonl": '{"source": ..., "target": ...}',
}


@dataclass(frozen=True)
class ReadReport:
    """What was found in a dictionary file.

    Attributes:
        path: The file.
        form: How its lines are divided.
        lines: Lines that are neither blank nor comments.
        comments: Comment lines, which are skipped.
        broken: Lines that hold no pair, which are left out.
        broken_lines: Number and fault of the first of them.
        extra_columns: Lines with more than two columns, of which the first two were taken.
        repeated: Pairs that stand in the file more than once; they are kept.
    """

    path: str
    form: Form
    lines: int
    comments: int
    broken: int
    broken_lines: tuple[tuple[int, str], ...]
    extra_columns: int
    repeated: int

    def sentence(self) -> str:
        """One sentence for the user if anything was odd, else nothing."""
        told = []
        if self.broken:
            shown = ", ".join(str(number) for number, _ in self.broken_lines[:5])
            more = ", ..." if self.broken > 5 else ""
            fault = self.broken_lines[0][1]
            told.append(f"{self.broken} of {self.lines} lines left out (line {shown}{more}): {fault}")
        if self.extra_columns:
            told.append(f"{self.extra_columns} lines with more than two columns, the first two taken")
        if self.repeated:
            told.append(f"{self.repeated} repeated pairs kept")
        return f"{self.path}: {'; '.join(told)}." if told else ""


@dataclass(frozen=True)
class _Line:
    """What one line came to: a pair, or the fault that makes it none."""

    number: int
    pair: Pair | None = None
    fault: str = ""
    extra: bool = False


@dataclass(frozen=True)
class Parsed:
    """Pairs of a file as spelt there (surrounding blanks removed), and the report on it."""

    pairs: list[Pair]
    report: ReadReport


def parse_file(path: str | Path) -> Parsed:
    """Read the pairs of a dictionary file.

    Args:
        path: Any of the four forms, UTF-8, with or without byte-order mark, any line ends.

    Returns:
        The pairs as spelt in the file, and the report on lines that were left out.

    Raises:
        BilexError: The file cannot be read, is not UTF-8 text, is empty, or most of its lines are no
            pairs.
    """
    path = Path(path)
    lines = decode(path).split("\n")
    form = _FORM_OF_SUFFIX.get(path.suffix.lower()) or _divided_by(lines)
    comments = 0
    if form == "csv":
        found = list(_csv_lines(lines))
    elif form == "jsonl":
        found = list(_json_lines(lines))
    else:
        comments = sum(is_comment(line) for line in lines)
        found = list(_plain_lines(lines, form))
    pairs = [line.pair for line in found if line.pair is not None]
    faults = [(line.number, line.fault) for line in found if line.pair is None]
    _refuse_hopeless(path, form, len(found), faults)
    report = ReadReport(
        path=str(path),
        form=form,
        lines=len(found),
        comments=comments,
        broken=len(faults),
        broken_lines=tuple(faults[:BROKEN_LINES_KEPT]),
        extra_columns=sum(line.extra for line in found),
        repeated=len(pairs) - len(set(pairs)),
    )
    return Parsed(pairs, report)


def decode(path: Path) -> str:
    """The text of a file with plain line ends and without byte-order mark.

    Raises:
        BilexError: It cannot be read or is not UTF-8; the line of the first wrong byte is told.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BilexError(
            f"{path}: cannot be read ({error.strerror or error}); give the path of a dictionary file."
        ) from error
    if data.startswith(b"\x1f\x8b"):
        raise BilexError(f"{path}: is compressed with gzip; unpack it first (gunzip) and give the text file.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BilexError(f"{path}: is UTF-16 text, not UTF-8; save it again as UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
        raise BilexError(
            f"{path}: line {line} is not UTF-8 text (byte 0x{data[error.start]:02x}); "
            "save the file again as UTF-8."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_comment(line: str) -> bool:
    """Whether a line of a tab or space file is a comment.

    It is when it begins with "#" and a space, or begins with "#" and has neither tab nor space. So "#"
    can be a word of a tab-separated pair ("#", tab, "risuaita") and "#tag merkki" is a pair; in a
    space-separated file a pair whose source word is "#" itself cannot be told from a comment.
    """
    return line.startswith("#") and (line[1:2] == " " or not ("\t" in line or " " in line))


def respelt(pairs: list[Pair], *, lowercase: bool, normal_form: NormalForm | None) -> list[Pair]:
    """The pairs lower-cased and in a Unicode normal form, as asked."""

    def spell(word: str) -> str:
        word = word.lower() if lowercase else word
        return unicodedata.normalize(normal_form, word) if normal_form else word

    return [(spell(source), spell(target)) for source, target in pairs]


def _divided_by(lines: list[str]) -> Form:
    return "tab" if any("\t" in line.strip() and not is_comment(line) for line in lines) else "space"


def _plain_lines(lines: list[str], form: Form) -> Iterator[_Line]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or is_comment(line):
            continue
        if form == "tab":
            yield _from_fields(number, line.split("\t"), "no tab in it")
            continue
        words = [word for word in line.strip().split(" ") if word]
        if len(words) == 2:
            yield _from_fields(number, words, "")
        else:
            yield _Line(number, fault=f"{len(words)} words where two are expected")


def _from_fields(number: int, fields: list[str], too_few: str) -> _Line:
    if len(fields) < 2:
        return _Line(number, fault=too_few)
    source, target = fields[0].strip(), fields[1].strip()
    if not source or not target:
        return _Line(number, fault="one of the two words is missing")
    return _Line(number, (source, target), extra=len(fields) > 2)


def _csv_lines(lines: list[str]) -> Iterator[_Line]:
    """Rows of a CSV file; a first row naming the columns source and target says which they are."""
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""))
    columns = (0, 1)
    first = True
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield _Line(reader.line_num, fault=f"not CSV ({error})")
            continue
        if not any(row):
            continue
        names = [name.strip().lower() for name in row]
        if first and "source" in names and "target" in names:
            columns, first = (names.index("source"), names.index("target")), False
            continue
        first = False
        chosen = [row[column] for column in columns if column < len(row)]
        yield _from_fields(reader.line_num, chosen, "fewer than two columns")


def _json_lines(lines: list[str]) -> Iterator[_Line]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            yield _Line(number, fault="not a JSON object")
            continue
        fields = [record.get("source"), record.get("target")] if isinstance(record, dict) else []
        words = [field for field in fields if isinstance(field, str)]
        yield _from_fields(number, words, 'no strings "source" and "target" in it')


def _refuse_hopeless(path: Path, form: Form, lines: int, faults: list[tuple[int, str]]) -> None:
    if not lines:
        raise BilexError(f"{path}: holds no word pairs, it is empty; each line should be {_EXPECTED[form]}.")
    if 2 * len(faults) > lines:
        number, fault = faults[0]
        raise BilexError(
            f"{path}: {len(faults)} of {lines} lines are no word pairs (line {number}: {fault}); "
            f"each line should be {_EXPECTED[form]}."
        )
