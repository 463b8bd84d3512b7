"""The articles of StarDict and dictd: plain or packed by dictzip (a gzip that can be entered in the middle).

Articles are read in the order in which they stand in the file, so that a packed one is unpacked once, from
its beginning, with no more in memory than one article and one block.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from bilex.core.errors import BilexError
from bilex.core.files import check_ordinary
from bilex.lexicon.formats.decoding import LARGEST_UNPACKED, cannot_be_read, check_unpacked

LARGEST_ARTICLE = 1 << 20
_BLOCK = 1 << 16
_GZIP = b"\x1f\x8b"
_MOST_OVERLAP = 16
_CHUNK = 58315  # as dictzip has it: the most that never packs into more than 65,535 bytes
_MOST_CHUNKS = (0xFFFF - 10) // 2

Place = tuple[int, int]


def articles(path: Path, places: Iterable[Place]) -> Iterator[tuple[Place, bytes | None]]:
    """The bytes at some places of a file, plain or packed, each place once, in the order of the file.

    Args:
        path: The file.
        places: Offsets and sizes.

    Yields:
        A place and its bytes; None where the file ends before, or the article is larger than 1 MB.

    Raises:
        BilexError: The file cannot be read or unpacked, or articles overlap so much that it cannot be meant.
    """
    check_ordinary(path)
    wanted = sorted(set(places))
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            blocks = _unpacked(path, file) if packed else iter(lambda: file.read(_BLOCK), b"")
            yield from _cut(path, wanted, blocks)
    except OSError as error:
        raise cannot_be_read(path, error) from error


def _cut(path: Path, wanted: list[Place], blocks: Iterator[bytes]) -> Iterator[tuple[Place, bytes | None]]:
    held, start, taken = bytearray(), 0, 0
    for offset, size in wanted:
        if size > LARGEST_ARTICLE or offset + size > LARGEST_UNPACKED:
            yield (offset, size), None
            continue
        while start + len(held) < offset + size:
            if start + len(held) <= offset:  # nothing that is held is needed any more
                start += len(held)
                held.clear()
            block = next(blocks, b"")
            if not block:
                break
            held += block
        if offset > start:
            cut = min(offset - start, len(held))
            del held[:cut]
            start += cut
        taken += size
        if taken > _MOST_OVERLAP * (start + len(held) + LARGEST_ARTICLE):
            raise BilexError(f"{path}: articles overlap many times over; the index is damaged.")
        whole = start == offset and len(held) >= size
        yield (offset, size), bytes(held[:size]) if whole else None


def _unpacked(path: Path, file: BinaryIO) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    total = 0
    try:
        while packed := file.read(_BLOCK):
            while packed:
                block = unpacker.decompress(packed, _BLOCK)
                total += len(block)
                check_unpacked(path, total, file.tell())
                yield block
                packed = unpacker.unconsumed_tail
                if unpacker.eof:
                    return
        yield unpacker.flush(_BLOCK)
    except zlib.error as error:
        raise BilexError(f"{path}: cannot be unpacked ({error}); it is damaged.") from error


def write_packed(path: Path, blocks: Iterable[bytes]) -> None:
    """Write a file packed by dictzip.

    Args:
        path: Where to write.
        blocks: The content, in pieces of any size.

    Raises:
        BilexError: There is more than dictzip can hold.
    """
    sizes: list[int] = []
    checksum = total = 0
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = path.with_name(path.name + ".body")
    try:
        with body.open("wb") as file:
            for chunk in _rechunked(blocks):
                packed = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)
                sizes.append(len(packed))
                file.write(packed)
                checksum = zlib.crc32(chunk, checksum)
                total += len(chunk)
            file.write(packer.flush(zlib.Z_FINISH))
        if len(sizes) > _MOST_CHUNKS:
            raise BilexError(
                f"{path}: the articles have {total:,} bytes, more than dictzip can hold; write fewer pairs."
            )
        with path.open("wb") as file, body.open("rb") as packed_file:
            file.write(_header(sizes))
            while block := packed_file.read(_BLOCK):
                file.write(block)
            file.write(struct.pack("<II", checksum, total & 0xFFFFFFFF))
    finally:
        body.unlink(missing_ok=True)


def _header(sizes: list[int]) -> bytes:
    """A gzip header whose extra field says where each chunk begins."""
    chunks = struct.pack("<HHH", 1, _CHUNK, len(sizes)) + struct.pack(f"<{len(sizes)}H", *sizes)
    extra = b"RA" + struct.pack("<H", len(chunks)) + chunks
    return _GZIP + struct.pack("<BBIBB", 8, 4, 0, 2, 3) + struct.pack("<H", len(extra)) + extra


def _rechunked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for block in blocks:
        held += block
        while len(held) >= _CHUNK:
            yield bytes(held[:_CHUNK])
            del held[:_CHUNK]
    if held:
        yield bytes(held)
