"""Checksums over what a results file holds, so that a changed byte is noticed and not reported as a metric.

SQLite checks the structure of its file, not its content. Each setup has one row here: a hash of all that
other tables hold of it, renewed in the transaction that changes them. Shared parts are named by their own
hash.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from bilex.core.errors import BilexError
from bilex_bench.store_codec import digest

_TABLES = ("labels", "predictions", "results", "samples")


def keep(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Write down the checksums of some setups as they are now; within a transaction.

    A file of before there were checksums gets those of all its setups.
    """
    if not _has_checksums(connection):
        connection.execute("CREATE TABLE main.checksums (key TEXT PRIMARY KEY, sha256 TEXT NOT NULL)")
        keys = _keys(connection)
    for key in keys:
        row = (key, _digest(connection, key))
        connection.execute("INSERT OR REPLACE INTO main.checksums VALUES (?, ?)", row)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Compare everything with its checksum; a file of before there were any is taken as it is."""
    advice = "was changed or damaged since it was written; restore the file from a copy"
    # A changed byte in an index hides rows from those who look them up, though every row is whole.
    if connection.execute("PRAGMA main.integrity_check(1)").fetchone()[0] != "ok":
        raise BilexError(f"{path}: an index of it {advice}.")
    if _has_checksums(connection):
        kept = dict(connection.execute("SELECT key, sha256 FROM main.checksums"))
        for key in _keys(connection) | set(kept):
            if kept.get(key) != _digest(connection, key):
                raise BilexError(f"{path}: what it holds of the setup {key} {advice}.")
    for name, content in connection.execute("SELECT sha256, content FROM main.parts"):
        if not isinstance(content, bytes) or digest(content) != name:
            raise BilexError(f"{path}: a part of the predictions {advice}.")


def _has_checksums(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT count(*) FROM main.sqlite_master WHERE name = 'checksums'")
    return bool(found.fetchone()[0])


def _keys(connection: sqlite3.Connection) -> set[str]:
    return {key for table in _TABLES for (key,) in connection.execute(f"SELECT key FROM main.{table}")}


def _digest(connection: sqlite3.Connection, key: str) -> str:
    """A hash of all rows about a setup, whatever order they lie in."""
    found = hashlib.sha256()
    for table in _TABLES:
        for row in sorted(map(repr, connection.execute(f"SELECT * FROM main.{table} WHERE key = ?", (key,)))):
            found.update(f"{table} {row}\n".encode("utf-8", "surrogatepass"))
    return found.hexdigest()
