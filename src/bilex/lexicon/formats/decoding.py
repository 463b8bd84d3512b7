"""The text of dictionary files: UTF-8 or UTF-16, any line ends, whole or line by line."""

from __future__ import annotations

import gzip
import html
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bilex.core.errors import BilexError

LONGEST_LINE = 16 << 20
LARGEST_UNPACKED = 1 << 30
MOST_TIMES_LARGER, _SMALL = 200, 16 << 20
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def decode(path: Path) -> str:
    """The text of a file with plain line ends and without byte-order mark.

    Raises:
        BilexError: It cannot be read or is neither UTF-8 nor marked UTF-16; the line of the first wrong byte
            is named.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise cannot_be_read(path, error) from error
    _refuse_packed(path, data[:4])
    encoding = "utf-16" if data.startswith(_UTF_16_MARKS) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
        raise _not_text(path, line, encoding, data[error.start]) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers from 1, one in memory at a time if it is UTF-8.

    Raises:
        BilexError: As `decode`; or a line has more than 16 MB.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if head.startswith(_UTF_16_MARKS):
                yield from enumerate(decode(path).split("\n"), 1)
                return
            _refuse_packed(path, head)
            file.seek(3 if head.startswith(b"\xef\xbb\xbf") else 0)
            yield from _numbered(path, file)
    except OSError as error:
        raise cannot_be_read(path, error) from error


def packed_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a gzipped file in UTF-8 with their numbers from 1, one in memory at a time.

    Raises:
        BilexError: It is no gzip file, or damaged, or unpacks into more than 1 GB; or as `text_lines`.
    """
    try:
        with path.open("rb") as file, gzip.GzipFile(fileobj=file) as unpacked:
            for number, line in _numbered(path, unpacked):
                check_unpacked(path, unpacked.tell(), file.tell())
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BilexError(f"{path}: is not gzip, or damaged; pack it again with gzip.") from error
    except OSError as error:
        raise cannot_be_read(path, error) from error


def check_unpacked(path: Path, unpacked: int, packed: int, largest: int = LARGEST_UNPACKED) -> None:
    """Refuse what unpacks into too much, or into so much more than text does that it is meant to harm.

    Args:
        path: The file, for the message.
        unpacked: The bytes unpacked so far.
        packed: The bytes that they were unpacked from.
        largest: The most that it may unpack into.

    Raises:
        BilexError: It is so.
    """
    if unpacked > largest:
        raise BilexError(f"{path}: unpacks into more than {largest >> 20:,} MB; give a part of it.")
    if unpacked > max(_SMALL, MOST_TIMES_LARGER * packed):
        raise BilexError(
            f"{path}: unpacks into more than {MOST_TIMES_LARGER} times its size, which no dictionary does; "
            "give another file."
        )


def _numbered(path: Path, file: IO[bytes] | gzip.GzipFile) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BilexError(f"{path}: line {number + 1} is longer than 16 MB; give another file.")
        for piece in line.removesuffix(b"\n").removesuffix(b"\r").split(b"\r"):
            number += 1
            yield number, _decoded(path, number, piece)


def unescaped(text: str) -> str:
    """A text with HTML's references to characters replaced; one whose number has too many digits stays."""
    try:
        return html.unescape(text)
    except ValueError:  # Python converts no number of more than 4,300 digits
        return text


def is_comment(line: str) -> bool:
    """Whether a line of a tab or space file is a comment.

    It is when it begins with "#" and a space, or begins with "#" and has neither tab nor space. So "#"
    can be a word of a tab-separated pair ("#", tab, "risuaita") and "#tag merkki" is a pair; in a
    space-separated file a pair whose source word is "#" itself looks like a comment.
    """
    return line.startswith("#") and (line[1:2] == " " or not ("\t" in line or " " in line))


def cannot_be_read(path: Path, error: OSError) -> BilexError:
    """The sentence on a file that the system does not give."""
    return BilexError(
        f"{path}: cannot be read ({error.strerror or error}); give the path of a dictionary file."
    )


def _decoded(path: Path, number: int, piece: bytes) -> str:
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_text(path, number, "utf-8", piece[error.start]) from error


def _not_text(path: Path, line: int, encoding: str, byte: int) -> BilexError:
    return BilexError(
        f"{path}: line {line} is not {encoding.removesuffix('-sig').upper()} text "
        f"(byte 0x{byte:02x}); save the file again as UTF-8."
    )


def _refuse_packed(path: Path, head: bytes) -> None:
    if head.startswith(b"\x1f\x8b"):
        raise BilexError(f"{path}: is compressed with gzip; unpack it first (gunzip) and give the text file.")
    if head.startswith(b"PK\x03\x04"):
        raise BilexError(
            f"{path}: is a spreadsheet or an archive, not text; save the sheet as CSV, tab-separated text or "
            ".xlsx."
        )
