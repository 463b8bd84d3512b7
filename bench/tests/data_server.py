"""A web server on this machine that serves bytes, with the faults of real ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class DataServer:
    """What is served, how it goes wrong, and what was asked for.

    Attributes:
        files: Content by path.
        tags: The version of each file; `None` for a server that gives none.
        cuts: By path, after how many bytes of each successive answer the connection is cut.
        broken: Paths that are answered with an error of the server.
        redirects: Other addresses by path.
        ranges: Whether a part can be asked for.
        asked: Path and Range header of every request.
        sent: Bytes sent by path.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str | None] = {}
        self.cuts: dict[str, list[int]] = {}
        self.broken: set[str] = set()
        self.redirects: dict[str, str] = {}
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        self.sent: dict[str, int] = {}

    def add(self, path: str, content: bytes, tag: str | None = '"1"') -> str:
        """Serve `content`; returns its address."""
        self.files[path], self.tags[path] = content, tag
        return f"{self.address}{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        data: DataServer = self.server.data  # type: ignore[attr-defined]
        wanted = self.headers.get("Range")
        data.asked.append((self.path, wanted))
        if self.path in data.redirects:
            self.send_response(302)
            self.send_header("Location", data.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path in data.broken or self.path not in data.files:
            self.send_error(503 if self.path in data.broken else 404)
            return
        content, tag = data.files[self.path], data.tags[self.path]
        start = 0
        if wanted and data.ranges and self.headers.get("If-Range") == tag:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if tag is not None:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        cuts = data.cuts.get(self.path)
        body = content[start:][: cuts.pop(0) if cuts else None]
        with suppress(OSError):  # the client may have had enough
            for begin in range(0, len(body), 1 << 16):
                part = body[begin : begin + (1 << 16)]
                # counted before it is sent: a client that has the bytes also finds them counted
                data.sent[self.path] = data.sent.get(self.path, 0) + len(part)
                self.wfile.write(part)
        self.close_connection = True


@contextmanager
def serving() -> Iterator[DataServer]:
    """A server as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.data = DataServer(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.data  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
