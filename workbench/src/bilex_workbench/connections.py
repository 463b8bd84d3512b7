"""Limits on connections, which uvicorn has not: time for headers, how many at once, and lines of log."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HEADER_SECONDS = 10.0
MOST_CONNECTIONS = 256
_BACKLOG = 128
_MOST_LINES, _LINE_SECONDS = 20, 60.0


class LimitedProtocol(H11Protocol):
    """A connection that is closed if it sends no whole request in time.

    A full server closes the connection that has waited longest for its request, or else for the rest of a
    body, so that connections which never send one keep nobody out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and make room for it if there are too many."""
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._await_request()
        if len(self.connections) > _most_connections():
            others = (cast(LimitedProtocol, one) for one in self.connections)
            idle = min(
                (one for one in others if one.waiting or one.cycle.more_body),
                key=lambda one: (not one.waiting, one.since),
                default=self,
            )
            self.connections.discard(idle)
            idle.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take over some bytes; a request that began has as long as the application gives it."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request; nothing but a whole header ends the wait."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._await_request()

    @property
    def waiting(self) -> bool:
        """Whether no request is being answered."""
        return self._timer is not None

    def _await_request(self) -> None:
        self._stop_waiting()
        self.since = self.loop.time()
        self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None


class LimitedLog(logging.Filter):
    """Lets a few messages per minute through, and says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._since, self._lines = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is written."""
        if time.monotonic() - self._since > _LINE_SECONDS:
            left_out, self._since, self._lines = self._lines - _MOST_LINES, time.monotonic(), 0
            if left_out > 0:
                record.msg, record.args = f"{record.getMessage()} ({left_out:,} messages were left out)", ()
        self._lines += 1
        return self._lines <= _MOST_LINES


def run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve an application until Ctrl-C."""
    settings: Any = {"log_level": "warning", "server_header": False, "timeout_graceful_shutdown": 3}
    config = uvicorn.Config(app, http=LimitedProtocol, ws="none", backlog=_BACKLOG, **settings)
    limit = LimitedLog()
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(limit)
    uvicorn.Server(config).run(sockets=[listener])


def _most_connections() -> int:
    """Connections at once: at most a quarter of the files that the process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
