"""The review file in use: one writer at a time, readers that never wait for it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bilex_workbench.schema import connect, prepare


def now() -> str:
    """This moment, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


_MOST_COUNTS = 1000


class Store:
    """Connections to one review file.

    Args:
        path: The file; made if it is missing.

    Raises:
        BilexError: It is damaged, of another program, or from a newer bilex.
    """

    def __init__(self, path: Path) -> None:
        prepare(path)
        self.path = path
        self._writer = connect(path)
        self._lock = threading.RLock()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._counts: dict[tuple[Any, ...], int] = {}

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: when the block ends well, all of it is on the disk; after an error, none of it."""
        with self._lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
                self._counts = {}
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    @property
    def reading(self) -> sqlite3.Connection:
        """This thread's connection for reading."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path)
            connection.execute("PRAGMA query_only=ON")
            self._local.connection = connection
            with self._lock:
                self._readers.append(connection)
        return connection

    def all(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self.reading.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query."""
        row: sqlite3.Row | None = self.reading.execute(query, values).fetchone()
        return row

    def number(self, query: str, *values: Any) -> int:
        """The number that a query counts."""
        row = self.one(query, *values)
        return int(row[0]) if row is not None and row[0] is not None else 0

    def counted(self, query: str, *values: Any) -> int:
        """As `number`, remembered until something is written: for pages that are asked for one by one."""
        counts = self._counts  # of before the count, should something be written meanwhile
        key = (query, *values)
        found = counts.get(key)
        if found is None:
            found = self.number(query, *values)
            if len(counts) < _MOST_COUNTS:
                counts[key] = found
        return found

    def fact(self, name: str, default: Any = None) -> Any:
        """A remembered value."""
        row = self.one("SELECT value FROM facts WHERE name = ?", name)
        return default if row is None else json.loads(row[0])

    def close(self) -> None:
        """Close every connection; the file needs nothing else."""
        with self._lock:
            for connection in (*self._readers, self._writer):
                connection.close()


def remember(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Keep a value under a name, within a transaction."""
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))
