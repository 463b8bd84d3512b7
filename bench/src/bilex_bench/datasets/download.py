"""Downloading files that may be large over connections that may break.

What has arrived stays in `NAME.part` until the file is complete, and the next attempt, in this run or a later
one, requests only the rest. `NAME.part.tag` holds the version that the server gave the file: a server that
has another version by now sends all of it. Only https is used, also after a redirect.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import httpx

import bilex
from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, write_text
from bilex.core.files import sha256 as file_checksum
from bilex.core.progress import SILENT, Progress

_TIMEOUT_S = 60
_ATTEMPTS = 4
_PAUSE_S = 2.0
_MEGABYTE = 1e6
_PATIENCE_S, _SLOWEST = 120, 1000  # a connection with fewer bytes per second for so long is given up
_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_GZIP = 31  # zlib's window size for data with a gzip header
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
_PARTIAL, _OUT_OF_RANGE, _SERVER_ERROR = 206, 416, 500
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


class _InterruptedError(Exception):
    """The connection broke, or the server is in trouble; another attempt may continue."""


def download(
    address: str,
    target: Path,
    *,
    git_blob: str | None = None,
    sha256: str | None = None,
    advice: str | None = None,
    progress: Progress = SILENT,
) -> None:
    """Download a file, continuing where an earlier attempt stopped, and compare it with its checksum."""
    transfer = _Transfer(address, target, advice, progress)
    transfer.run()
    checksum = git_blob or sha256
    if checksum is not None and checksum not in (_git_blob(transfer.part), file_checksum(transfer.part)):
        transfer.drop()
        raise BilexError(
            f"{address}: the file differs from the expected one, its checksum is not {checksum}; "
            "run the same command again, or look whether its makers have changed it."
        )
    transfer.part.replace(target)
    transfer.drop()


def download_words(
    address: str, whole: Path, target: Path, words: int, advice: str, progress: Progress = SILENT
) -> None:
    """Download a .vec or .vec.gz file as far as its first words go, and write these as text."""
    transfer = _Transfer(address, whole, advice, progress)
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        writer = _WordWriter(file, words, packed=whole.suffix == ".gz")
        try:
            transfer.run(writer)
            writer.finish()
        except (ValueError, zlib.error) as error:
            transfer.drop()
            raise BilexError(
                f"{address}: the file holds no word vectors ({error}); run the same command again."
            ) from error
    transfer.drop()


def _git_blob(path: Path) -> str:
    header = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: header).hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


class _Transfer:
    """The download of one file."""

    def __init__(self, address: str, target: Path, advice: str | None, progress: Progress) -> None:
        self.part = target.with_name(f"{target.name}.part")
        self._address, self._target, self._progress = address, target, progress
        self._tag = target.with_name(f"{target.name}.part.tag")
        self._advice = advice or f"fetch it where there is a network and put it at {target}"

    def drop(self) -> None:
        """Forget what has arrived."""
        self.part.unlink(missing_ok=True)
        self._tag.unlink(missing_ok=True)

    def run(self, writer: _WordWriter | None = None) -> None:
        """Complete `part`, or as much of it as a writer needs, in several attempts if need be."""
        tries, before = 0, self._size()
        while True:
            tries += 1
            try:
                self._attempt(writer)
                return
            except httpx.ConnectError as error:
                reason = re.sub(r"\[Errno -?\d+\] ", "", str(error))
                if tries == 1:
                    raise BilexError(
                        f"{self._address}: cannot be reached ({reason}); {self._advice}."
                    ) from error
            except _InterruptedError as error:
                reason = str(error)
            have = self._size()
            tries, before = (1 if have > before else tries), have
            if tries >= _ATTEMPTS:
                raise BilexError(
                    f"{self._address}: the connection broke after {have:,} bytes ({reason}); run the same "
                    f"command again, which continues from there, or {self._advice}."
                )
            time.sleep(_PAUSE_S * tries)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _attempt(self, writer: _WordWriter | None) -> None:
        """Use one connection: request what is missing and write it."""
        have = self._size() if self._tag.is_file() else 0
        if writer is not None:
            writer.reset()
            if have and any(map(writer, _blocks(self.part))):
                return
        headers = {"User-Agent": f"bilex/{bilex.__version__}", "Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": self._tag.read_text(encoding="utf-8")}
        hooks = {"request": [self._check_https]}
        try:
            with (
                httpx.Client(follow_redirects=True, timeout=_TIMEOUT_S, event_hooks=hooks) as client,
                client.stream("GET", self._address, headers=headers) as response,
            ):
                position = self._position(response, have)
                if writer is not None and position == 0:
                    writer.reset()
                if position is not None:
                    self._receive(response, position, writer)
        except httpx.ConnectError:
            raise
        except (httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise BilexError(f"{self._address}: leads nowhere ({error}); {self._advice}.") from error
        except httpx.TransportError as error:
            raise _InterruptedError(str(error) or type(error).__name__) from error

    def _check_https(self, request: httpx.Request) -> None:
        """Refuse plain http, also after a redirect, except for a server on this machine."""
        given, url = httpx.URL(self._address), request.url
        is_local = all(one.scheme == "http" and one.host in _THIS_MACHINE for one in (given, url))
        if url.scheme != "https" and not is_local:
            raise BilexError(
                f"{self._address}: leads to {url}, which is not https; nothing is fetched from there."
            )

    def _position(self, response: httpx.Response, have: int) -> int | None:
        """Where the bytes that the server sends belong in the file; None if the part is complete already."""
        code, reason = response.status_code, response.reason_phrase
        placed = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if code == _OUT_OF_RANGE and have:
            if placed is not None and placed[2] == str(have):
                return None
            self.drop()
            raise _InterruptedError("the file has become shorter")
        if code >= _SERVER_ERROR:
            raise _InterruptedError(f"the server answers {code}, {reason}")
        if response.is_error:
            raise BilexError(
                f"{self._address}: the server answers {code} ({reason}); check the languages, or "
                f"{self._advice}."
            )
        if code != _PARTIAL:
            return 0
        if placed is None or placed[1] != str(have):
            self.drop()
            raise _InterruptedError("the server sent another part than was requested")
        return have

    def _receive(self, response: httpx.Response, position: int, writer: _WordWriter | None) -> None:
        """Write what the server sends, from a position of the file on."""
        length = response.headers.get("Content-Length", "")
        total = position + int(length) if length.isascii() and length.isdigit() else None
        with self._plain_errors():
            self._target.parent.mkdir(parents=True, exist_ok=True)
            if not position:
                self._keep_tag(response)
            file = self.part.open("ab" if position else "wb", buffering=0)
        with file, self._progress.task(f"{self._target.name} (MB)", total and total / _MEGABYTE) as task:
            task.advance(position / _MEGABYTE)
            began, start = time.monotonic(), position
            for block in response.iter_raw():
                if not position and _HTML.match(block):
                    raise BilexError(
                        f"{response.url}: answers with a web page, not a file; fetch it by hand."
                    )
                if time.monotonic() - began > _PATIENCE_S:
                    if position - start < _PATIENCE_S * _SLOWEST:
                        raise _InterruptedError(f"it brings fewer than {_SLOWEST:,} bytes per second")
                    began, start = time.monotonic(), position
                with self._plain_errors():
                    file.write(block)
                position += len(block)
                task.advance(len(block) / _MEGABYTE)
                if writer is not None and writer(block):
                    return
        if total is not None and position < total:
            raise _InterruptedError(f"{total:,} were promised")

    def _keep_tag(self, response: httpx.Response) -> None:
        """Store the version of the file; without one the download cannot be continued."""
        tag = response.headers.get("ETag")
        if tag is None or tag.startswith("W/"):
            tag = response.headers.get("Last-Modified")
        if tag is None:
            self._tag.unlink(missing_ok=True)
        else:
            write_text(self._tag, tag)

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Turn errors of writing into one sentence; what has arrived stays."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise BilexError(
                    f"{self.part}: the disk is full; free some space and run the same command again, "
                    "it continues from what has arrived."
                ) from error
            raise BilexError(f"{self.part}: cannot be written ({error.strerror or error}).") from error


class _WordWriter:
    """Writes the header and the first words of a .vec file, packed by gzip or not, that comes in blocks."""

    def __init__(self, file: BinaryIO, words: int, *, packed: bool) -> None:
        self._file, self._words, self._packed = file, words, packed
        self.reset()

    def reset(self) -> None:
        """Start with an empty file."""
        self._file.seek(0)
        self._file.truncate()
        self._gzip = zlib.decompressobj(_GZIP)
        self._line = b""  # one that has not ended yet
        self._missing: int | None = None  # words; None before the header

    def __call__(self, block: bytes) -> bool:
        """Take the next block; return whether all words are there."""
        return any(map(self._write, self._unpacked(block) if self._packed else (block,)))

    def finish(self) -> None:
        """End the last line; a file with too few words is an error."""
        if self._line or self._missing is None:
            self._write(b"\n")
        if self._missing:
            raise ValueError(f"{self._missing:,} words are missing at its end")

    def _unpacked(self, block: bytes) -> Iterator[bytes]:
        """Undo gzip, in pieces of bounded size."""
        more = True
        while block or more:
            if self._gzip.eof:
                self._gzip = zlib.decompressobj(_GZIP)
            piece = self._gzip.decompress(block, _BLOCK)
            yield piece
            block = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
            more = len(piece) == _BLOCK and not self._gzip.eof

    def _write(self, piece: bytes) -> bool:
        *lines, self._line = (self._line + piece).split(b"\n")
        if len(self._line) > _LONGEST_LINE:
            raise ValueError(f"a line has more than {_LONGEST_LINE >> 20} MB")
        if self._missing is None and lines:
            available, dim = map(int, lines.pop(0).split())
            self._missing = min(available, self._words)
            self._file.write(b"%d %d\n" % (self._missing, dim))
        if self._missing is None:
            return False
        lines = lines[: self._missing]
        self._file.writelines(line + b"\n" for line in lines)
        self._missing -= len(lines)
        return self._missing == 0
