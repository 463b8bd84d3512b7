"""The tables of a results file, and which files are such files."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path

from bilex.core.errors import BilexError

VERSION = 1
_APPLICATION = int.from_bytes(b"bilx", "big")


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in a new file; refuse a file that is no results file of this version.

    Raises:
        BilexError: The file is something else, or of another version.
    """
    if _is_empty(connection):
        _create(connection)
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != _APPLICATION:
        raise BilexError(f"{path}: is an SQLite file, but not a results file of bilex; choose another name.")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        advice = "update bilex" if version > VERSION else "start a new one, or use the bilex that wrote it"
        raise BilexError(
            f"{path}: is a results file of format {version}, and this bilex knows format {VERSION}; {advice}."
        )


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _create(connection: sqlite3.Connection) -> None:
    """All tables in one transaction, so that a kill leaves an empty file or a whole one."""
    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):  # another process may have been quicker
        schema = (resources.files("bilex_bench") / "store_schema.sql").read_text(encoding="utf-8")
        for statement in schema.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
