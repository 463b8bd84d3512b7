"""Fetching files that may be large over connections that may break.

What has come stays in `NAME.part` until the file is whole, and the next attempt, of this run or of a later
one, asks the server for the rest only. Beside it `NAME.part.tag` keeps the version that the server gave the
file: a server with another version by now sends all of it. Only https is spoken, also after a redirect.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

import bilex
from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, write_text
from bilex.core.files import sha256 as file_checksum
from bilex.core.progress import SILENT, Progress

Watcher = Callable[[bytes], bool]

_TIMEOUT_S = 60
_ATTEMPTS = 4
_PAUSE_S = 2.0
_MEGABYTE = 1e6
_PATIENCE_S, _SLOWEST = 120, 1000  # a connection that brings fewer bytes per second for so long is given up
_PAGE = re.compile(rb"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
_PARTIAL, _OUT_OF_RANGE, _SERVER_FAULT = 206, 416, 500
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


class _InterruptedError(Exception):
    """The connection could not be made or broke, or the server is in trouble; another attempt may go on."""


def download(
    address: str,
    target: Path,
    *,
    git_blob: str | None = None,
    sha256: str | None = None,
    advice: str | None = None,
    progress: Progress = SILENT,
) -> None:
    """Fetch a file, going on where an earlier attempt stopped."""
    fetch_part(address, target, advice=advice, progress=progress)
    part = part_of(target)
    checksum = git_blob or sha256
    if checksum is not None and checksum not in (_git_blob(part), file_checksum(part)):
        drop_part(target)
        raise BilexError(
            f"{address}: what came is not the file that is expected, its checksum is not {checksum}; "
            "run the same command again, or look whether its makers have changed it."
        )
    part.replace(target)
    drop_part(target)


def part_of(target: Path) -> Path:
    """Where the beginning of a file is kept until it is whole."""
    return target.with_name(f"{target.name}.part")


def drop_part(target: Path) -> None:
    """Forget what has come of a file."""
    part_of(target).unlink(missing_ok=True)
    _tag_of(target).unlink(missing_ok=True)


def fetch_part(
    address: str,
    target: Path,
    *,
    enough: Callable[[], Watcher] | None = None,
    advice: str | None = None,
    progress: Progress = SILENT,
) -> None:
    """Bring `part_of(target)` to its end, or until enough of it is there."""
    advice = advice or f"fetch it where there is a network and put it at {target}"
    tries, before = 0, _size(target)
    while True:
        tries += 1
        try:
            _attempt(address, target, enough, advice, progress)
            return
        except httpx.ConnectError as error:
            if tries == 1:
                reason = re.sub(r"\[Errno -?\d+\] ", "", str(error))
                raise BilexError(f"{address}: cannot be reached ({reason}); {advice}.") from error
            fault: Exception = error
        except _InterruptedError as error:
            fault = error
        have = _size(target)
        tries, before = (1 if have > before else tries), have
        if tries >= _ATTEMPTS:
            raise BilexError(
                f"{address}: the connection broke after {have:,} bytes ({fault}); run the same command "
                f"again, which goes on from there, or {advice}."
            ) from fault
        time.sleep(_PAUSE_S * tries)


def _attempt(
    address: str, target: Path, enough: Callable[[], Watcher] | None, advice: str, progress: Progress
) -> None:
    """One connection: ask for what is missing and write it."""
    have = _size(target) if _tag_of(target).is_file() else 0
    watcher = enough() if enough else None
    if watcher and have and _shown(part_of(target), watcher):
        return
    headers = {"User-Agent": f"bilex/{bilex.__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        headers["If-Range"] = _tag_of(target).read_text(encoding="utf-8")
    hooks = {"request": [_only_https(address)]}
    try:
        with (
            httpx.Client(follow_redirects=True, timeout=_TIMEOUT_S, event_hooks=hooks) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            if response.is_error:
                _refused(response, address, target, have, advice)
                return
            going_on = _goes_on(response, target, have)
            if not going_on:
                watcher = enough() if enough else None
            _receive(response, target, have if going_on else 0, watcher, progress)
    except httpx.ConnectError:
        raise
    except (httpx.TooManyRedirects, httpx.InvalidURL) as error:
        raise BilexError(f"{address}: leads nowhere ({error}); {advice}.") from error
    except httpx.TransportError as error:
        raise _InterruptedError(str(error) or type(error).__name__) from error


def _only_https(address: str) -> Callable[[httpx.Request], None]:
    """A check of every request, redirects included; plain http is for servers on this machine only."""
    asked = httpx.URL(address)
    plain = asked.scheme == "http" and asked.host in _THIS_MACHINE

    def check(request: httpx.Request) -> None:
        url = request.url
        if url.scheme != "https" and not (plain and url.host in _THIS_MACHINE):
            raise BilexError(f"{address}: leads to {url}, which is not https; nothing is fetched from there.")

    return check


def _goes_on(response: httpx.Response, target: Path, have: int) -> bool:
    """Whether the server sends the rest that was asked for, and not the whole."""
    if response.status_code != _PARTIAL:
        return False
    placed = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if placed is None or placed[1] != str(have):
        drop_part(target)
        raise _InterruptedError("the server sent another part than was asked for")
    return True


def _receive(
    response: httpx.Response,
    target: Path,
    position: int,
    watcher: Watcher | None,
    progress: Progress,
) -> None:
    """Write what the server sends, from a position of the file on."""
    length = response.headers.get("Content-Length", "")
    total = position + int(length) if length.isascii() and length.isdigit() else None
    with _plain_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not position:
            _keep_tag(target, response)
        file = part_of(target).open("ab" if position else "wb", buffering=0)
    with file, progress.task(f"{target.name} (MB)", total and total / _MEGABYTE) as task:
        task.advance(position / _MEGABYTE)
        began, start = time.monotonic(), position
        for block in response.iter_raw():
            if not position and _PAGE.match(block):
                raise BilexError(f"{response.url}: answers with a web page, not a file; fetch it by hand.")
            if time.monotonic() - began > _PATIENCE_S:
                if position - start < _PATIENCE_S * _SLOWEST:
                    raise _InterruptedError(f"it brings fewer than {_SLOWEST:,} bytes per second")
                began, start = time.monotonic(), position
            with _plain_errors(target):
                file.write(block)
            position += len(block)
            task.advance(len(block) / _MEGABYTE)
            if watcher and watcher(block):
                return
    if total is not None and position < total:
        raise _InterruptedError(f"{total:,} were promised")


def _refused(response: httpx.Response, address: str, target: Path, have: int, advice: str) -> None:
    """Report what a server's refusal means; the part may be the whole already."""
    code, reason = response.status_code, response.reason_phrase
    if code == _OUT_OF_RANGE and have:
        placed = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if placed is not None and placed[2] == str(have):
            return
        drop_part(target)
        raise _InterruptedError("the file has become shorter")
    if code >= _SERVER_FAULT:
        raise _InterruptedError(f"the server answers {code}, {reason}")
    raise BilexError(f"{address}: the server answers {code} ({reason}); check the languages, or {advice}.")


@contextlib.contextmanager
def _plain_errors(target: Path) -> Iterator[None]:
    """Turn the system's refusal to write into one sentence; what has come stays."""
    part = part_of(target)
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BilexError(
                f"{part}: the disk is full; free some space and run the same command again, "
                "it goes on from what has come."
            ) from error
        raise BilexError(f"{part}: cannot be written ({error.strerror or error}).") from error


def _shown(part: Path, watcher: Watcher) -> bool:
    """Show what has come already; whether it is enough."""
    with part.open("rb") as file:
        return any(watcher(block) for block in iter(lambda: file.read(_BLOCK), b""))


def _keep_tag(target: Path, response: httpx.Response) -> None:
    """Remember the version of what is being fetched; without one it cannot be gone on with."""
    tag = response.headers.get("ETag")
    if tag is None or tag.startswith("W/"):
        tag = response.headers.get("Last-Modified")
    if tag is None:
        _tag_of(target).unlink(missing_ok=True)
    else:
        write_text(_tag_of(target), tag)


def _tag_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part.tag")


def _size(target: Path) -> int:
    part = part_of(target)
    return part.stat().st_size if part.is_file() else 0


def _git_blob(path: Path) -> str:
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_GZIP = 31  # zlib's window size for data with a gzip header


def download_words(
    address: str, whole: Path, target: Path, words: int, advice: str, progress: Progress = SILENT
) -> None:
    """Fetch a .vec or .vec.gz file as far as its first words go, and write these as text."""
    packed = whole.suffix == ".gz"
    fetch_part(
        address, whole, enough=lambda: _LineCounter(words + 1, packed), advice=advice, progress=progress
    )
    try:
        _write_words(_unpacked(part_of(whole), packed), target, words)
    except (ValueError, zlib.error) as error:
        drop_part(whole)
        raise BilexError(
            f"{address}: what came is no file of word vectors ({error}); run the same command again."
        ) from error
    drop_part(whole)


class _Unpacker:
    """Undoes gzip, a bounded piece at a time; plain text passes. Lines that no word has are refused."""

    def __init__(self, packed: bool) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(_GZIP)
        self._since_newline = 0

    def __call__(self, block: bytes) -> Iterator[bytes]:
        """The pieces that a block unpacks to."""
        for piece in self._pieces(block) if self._packed else (block,):
            newline = piece.rfind(b"\n")
            self._since_newline = len(piece) - newline - 1 + (self._since_newline if newline < 0 else 0)
            if self._since_newline > _LONGEST_LINE:
                raise ValueError(f"a line of it has more than {_LONGEST_LINE >> 20} MB")
            yield piece

    def _pieces(self, block: bytes) -> Iterator[bytes]:
        more = True
        while block or more:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            piece = self._member.decompress(block, _BLOCK)
            yield piece
            block = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            more = len(piece) == _BLOCK and not self._member.eof


class _LineCounter:
    """Says when so many lines have come; damaged data is enough too, and is reported later."""

    def __init__(self, lines: int, packed: bool) -> None:
        self._missing = lines
        self._unpack = _Unpacker(packed)

    def __call__(self, block: bytes) -> bool:
        try:
            for piece in self._unpack(block):
                self._missing -= piece.count(b"\n")
                if self._missing <= 0:
                    return True
        except (ValueError, zlib.error):
            return True
        return False


def _unpacked(path: Path, packed: bool) -> Iterator[bytes]:
    """The text of a file in pieces; its last line is ended if it is not."""
    unpack = _Unpacker(packed)
    text = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            for piece in filter(None, unpack(block)):
                text = piece
                yield text
    if not text.endswith(b"\n"):
        yield b"\n"


def _write_words(blocks: Iterator[bytes], target: Path, words: int) -> None:
    """Write a header and the lines of the first words."""
    text = b""
    for block in blocks:
        text += block
        if b"\n" in text:
            break
    header, _, text = text.partition(b"\n")
    available, dim = map(int, header.split())
    missing = words = min(available, words)
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        file.write(b"%d %d\n" % (words, dim))
        while missing:
            lines = text.count(b"\n")
            file.write(text if lines < missing else _first_lines(text, missing))
            missing -= min(lines, missing)
            if missing:
                text = next(blocks, b"")
                if not text:
                    raise ValueError(f"{missing:,} words are missing at its end")


def _first_lines(text: bytes, count: int) -> bytes:
    end = -1
    for _ in range(count):
        end = text.index(b"\n", end + 1)
    return text[: end + 1]
