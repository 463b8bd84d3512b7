"""Changes to valid inputs of readers: of single bytes, and of what the bytes stand for.

`mutated` changes a few places anywhere; `restructured` knows lines, cells, tags, numbers, JSON values,
encodings and packings, so that its results get past the first check of a reader more often.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import re
import struct
from collections.abc import Callable, Sequence

# No changed file is longer: a reader that takes seconds for one is slow, not fed too much.
LARGEST = 100_000
NUMBERS = (-1, 0, 1, 255, 65_536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 10**12, 10**40)
JSON_VALUES = (
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"NaN",
    b'""',
    b'"\\ud800"',
    b"[]",
    b"{}",
    b"[[[]]]",
    b"1" * 5000,
)
CHARACTERS = (
    "\u202e",
    "\u200f",
    "\u2028",
    "\x85",
    "\ufeff",
    "\0",
    "\x1b[2J",
    "e\u0301",
    "\U0010ffff",
    "שלום",
    "\ufffe",
)
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp037")
BOMB = b"<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'>%s]>" % b"".join(
    b"<!ENTITY %c '%s'>" % (after, b"&%c;" % before * 10)
    for before, after in zip(b"abcdefghi", b"bcdefghij", strict=True)
)
PROLOGUES = (
    BOMB,
    b"<!DOCTYPE d [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
    b"<!DOCTYPE d [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/x'> %p;]>",
    b"<!DOCTYPE d SYSTEM 'http://127.0.0.1:9/x.dtd'>",
    b"<!DOCTYPE d [<!ELEMENT d ANY><!ATTLIST d a CDATA 'b'>]>",
    b"<?xml version='1.0' encoding='utf-16'?>",
    b"<?xml version='1.1' standalone='no'?>",
)
_TAG = re.compile(rb"<[^<>]*>")
_DIGITS = re.compile(rb"\d+")
_JSON = re.compile(rb'"[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null')
_ATTRIBUTE = re.compile(rb"\s[\w:]+=(?:'[^']*'|\"[^\"]*\")")


def mutated(rng: random.Random, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A seed with a few changes, some of which put tokens in; sometimes random bytes."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(200))
    content = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(content) + 1)
        to = min(len(content), at + rng.choice((1, 1, 2, 4, 8, 30)))
        kind = rng.randrange(8)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del content[at:to]
        elif kind == 2:
            del content[at:]
        elif kind == 3:
            content[at:to] = rng.choice(tokens)
        elif kind == 4:
            content[at:at] = rng.choice(tokens)
        elif kind == 5:
            content[at:at] = content[at:to] * rng.choice((1, 2, 50))
        elif kind == 6:
            packed = _binary_number(rng)
            content[at : at + len(packed)] = packed
        else:
            content[at:] = rng.choice(seeds)[at:]
    return bytes(content[:LARGEST])


def restructured(rng: random.Random, content: bytes) -> bytes:
    """An input with one to three changes to what it means; some change nothing in some inputs."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        changed = rng.choice(_CHANGES)(rng, content)
        content = changed if len(changed) <= LARGEST else content
    return content


def _binary_number(rng: random.Random) -> bytes:
    value = rng.choice((*NUMBERS[:9], rng.getrandbits(31)))
    form = rng.choice(("<I", "<I", ">I", "<Q", ">Q", "<H"))
    return struct.pack(form, value & (1 << 8 * struct.calcsize(form)) - 1)


def _place(rng: random.Random, pattern: re.Pattern[bytes], content: bytes) -> tuple[int, int] | None:
    """Where a pattern is found, one of the first hundred places at random."""
    places = [match.span() for match, _ in zip(pattern.finditer(content), range(100), strict=False)]
    return rng.choice(places) if places else None


def _replaced(rng: random.Random, content: bytes, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    place = _place(rng, pattern, content)
    return content if place is None else content[: place[0]] + new + content[place[1] :]


def _number(rng: random.Random, content: bytes) -> bytes:
    return _replaced(rng, content, _DIGITS, str(rng.choice(NUMBERS)).encode())


def _json_value(rng: random.Random, content: bytes) -> bytes:
    return _replaced(rng, content, _JSON, rng.choice(JSON_VALUES))


def _attribute(rng: random.Random, content: bytes) -> bytes:
    place = _place(rng, _ATTRIBUTE, content)
    if place is None:
        return content
    return content[: place[0]] + content[slice(*place)] * rng.choice((0, 2)) + content[place[1] :]


def _tag(rng: random.Random, content: bytes) -> bytes:
    """A tag left out, doubled, nested deeply, or put elsewhere."""
    place = _place(rng, _TAG, content)
    if place is None:
        return content
    tag, at = content[slice(*place)], place[1]
    if rng.random() < 0.3:
        return content[: place[0]] + content[at:]
    if rng.random() < 0.3:
        other = _place(rng, _TAG, content) or place
        return content[: other[1]] + tag + content[other[1] :]
    return content[:at] + tag * rng.choice((1, 70, 70, 1000)) + content[at:]


def _prologue(rng: random.Random, content: bytes) -> bytes:
    at = content.find(b"?>") + 2 if content.startswith(b"<?xml") else 0
    return content[:at] + rng.choice(PROLOGUES) + content[at:]


def _reference(rng: random.Random, content: bytes) -> bytes:
    """A reference to an entity in the text after a tag."""
    place = _place(rng, _TAG, content)
    at = place[1] if place else 0
    named = rng.choice((b"&j;", b"&x;", b"&#0;", b"&#xD800;", b"&eacute;", b"&" + b"a" * 300 + b";"))
    return content[:at] + named + content[at:]


def _lines(rng: random.Random, content: bytes) -> bytes:
    """Lines shuffled, doubled, left out, or ended otherwise."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        rng.shuffle(lines)
    elif kind == 1:
        lines[at:at] = [lines[at]] * rng.choice((1, 3, 100))
    elif kind == 2:
        del lines[at]
    return (rng.choice((b"\r\n", b"\r", b"")) if kind == 3 else b"\n").join(lines)


def _cells(rng: random.Random, content: bytes) -> bytes:
    """The cells of a line shuffled, doubled or emptied."""
    lines = content.split(b"\n")
    at, delimiter = rng.randrange(len(lines)), rng.choice((b"\t", b",", b";", b" ", b" @ ", b"=>"))
    cells = lines[at].split(delimiter)
    kind = rng.randrange(3)
    if kind == 0:
        rng.shuffle(cells)
    elif kind == 1:
        cells *= rng.choice((2, 200))
    else:
        cells[rng.randrange(len(cells))] = b""
    lines[at] = delimiter.join(cells)
    return b"\n".join(lines)


def _character(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(CHARACTERS).encode() + content[at:]


def _encoding(rng: random.Random, content: bytes) -> bytes:
    return content.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace")


def _packing(rng: random.Random, content: bytes) -> bytes:
    kind = rng.randrange(8)
    if kind == 0:
        return bz2.compress(content, 1)
    if kind == 1:
        return lzma.compress(content, preset=0)
    packed = gzip.compress(content, 1, mtime=0)
    return packed[: rng.randrange(len(packed))] if kind == 2 else packed * rng.choice((1, 1, 2))


_CHANGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_number, _number, _json_value, _attribute, _tag, _tag, _prologue, _reference),
    *(_lines, _lines, _cells, _cells, _character, _character, _encoding, _packing),
)
