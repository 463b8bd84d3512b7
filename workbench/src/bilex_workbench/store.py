"""The review file in use: one writer at a time, readers that never wait for it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bilex_workbench.interface import ProblemError
from bilex_workbench.schema import connect, prepare

_MOST_COUNTS = 1000
_IDLE_READERS = 8
_LONGEST_WAIT = 5.0  # seconds until a write gives up, twice: for this server's writers and for other programs


def now() -> str:
    """This moment, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Store:
    """Connections to one review file: one writer, and a pool of readers."""

    def __init__(self, path: Path) -> None:
        prepare(path)
        self.path = path
        self._writer = connect(path, _LONGEST_WAIT)
        self._lock = threading.Lock()
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        self._counts: dict[tuple[Any, ...], int] = {}
        self._files = {file: _identity(file) for file in (path, path.with_name(path.name + "-wal"))}

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: when the block ends well, all of it is on the disk; after an error, none of it."""
        if not self._lock.acquire(timeout=_LONGEST_WAIT):
            raise ProblemError(503, "Others are writing; nothing was stored; try again.")
        try:
            self._check_in_place()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._check_in_place()
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            self._counts = {}
        except sqlite3.Error as error:
            raise ProblemError(503, _sentence(error)) from error
        finally:
            self._lock.release()

    def _check_in_place(self) -> None:
        """Refuse to write into a file that has lost its name: nobody would find the decision again."""
        for file, known in self._files.items():
            found = _identity(file)
            if known is None:
                self._files[file] = found
            elif found != known:
                raise ProblemError(
                    503,
                    f"{file.name} was moved, replaced or deleted while the server runs; nothing was stored; "
                    "put it back, or start the server again.",
                )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A reader of the pool; where all are in use, one that is closed afterwards."""
        try:
            connection = self._idle.pop()
        except IndexError:
            if self._closed:
                raise ProblemError(503, "The review file was closed; try again.") from None
            connection = connect(self.path, _LONGEST_WAIT, read_only=True)
        try:
            yield connection
        finally:
            if self._closed or len(self._idle) >= _IDLE_READERS:
                connection.close()
            else:
                self._idle.append(connection)

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query, called like the method of a connection."""
        with self._reading() as connection:
            return connection.execute(query, values).fetchall()

    def all(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self.execute(query, values)

    def rows(self, query: str, *values: Any) -> Iterator[sqlite3.Row]:
        """The rows of a query one by one, for results that need not be in memory as a whole."""
        with self._reading() as connection:
            yield from connection.execute(query, values)

    def one(self, query: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query."""
        with self._reading() as connection:
            row: sqlite3.Row | None = connection.execute(query, values).fetchone()
        return row

    def number(self, query: str, *values: Any) -> int:
        """The number that a query counts."""
        row = self.one(query, *values)
        return int(row[0]) if row is not None and row[0] is not None else 0

    def counted(self, query: str, *values: Any) -> int:
        """As `number`, remembered until something is written: for pages that are asked for one by one."""
        counts = self._counts  # of before the count, should something be written meanwhile
        key = (query, *values)
        if key not in counts:
            found = self.number(query, *values)
            if len(counts) >= _MOST_COUNTS:
                return found
            counts[key] = found
        return counts[key]

    def fact(self, name: str, default: Any = None) -> Any:
        """A remembered value."""
        row = self.one("SELECT value FROM facts WHERE name = ?", name)
        return default if row is None else json.loads(row[0])

    def close(self) -> None:
        """Close every connection; the file needs nothing else."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        with self._lock:
            self._writer.close()


def remember(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Keep a value under a name, within a transaction."""
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _sentence(error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "Another program has locked the review file; nothing was stored; try again."
    return f"The review file cannot be written ({error}); nothing was stored; is the disk full?"
