"""Rescue what can be read of a damaged review file into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import sync, temporary_path
from bilex_workbench import schema

DERIVED = ("entries", "candidates", "changes")  # made from the model again
_LARGEST_ROWID = 2**62


def repair(path: Path) -> tuple[dict[str, int], Path]:
    """Copy all readable rows that people made into a new file; the damaged one is kept beside it."""
    if not path.is_file():
        raise BilexError(f"{path}: is not there; nothing can be repaired.")
    with schema.lock(path), temporary_path(path) as made:
        try:
            found = _rescued(path, made)
        except sqlite3.DatabaseError as error:
            raise BilexError(f"{path}: cannot be read at all ({error}); restore a copy.") from error
        schema.prepare(made)
        sync(made)
        kept = _free_name(path)
        kept.hardlink_to(path)  # the damaged file has a name at every moment
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(kept.with_name(kept.name + suffix))
        made.replace(path)
    for suffix in ("-wal", "-shm"):
        made.with_name(made.name + suffix).unlink(missing_ok=True)
    return found, kept


def _free_name(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return kept


def _rescued(path: Path, made: Path) -> dict[str, int]:
    """Fill a new file of the same version with the rows that can be read."""
    counts: dict[str, int] = {}
    with (
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as damaged,
        closing(sqlite3.connect(made, isolation_level=None)) as new,
    ):
        damaged.execute("PRAGMA cell_size_check=ON")
        version = int(damaged.execute("PRAGMA user_version").fetchone()[0])
        if not 0 < version <= schema.VERSION:
            raise BilexError(f"{path}: has review format version {version}; restore a copy.")
        new.execute(f"PRAGMA application_id={schema.APPLICATION}")
        for script in schema.MIGRATIONS[:version]:
            new.executescript(script)
        new.execute(f"PRAGMA user_version={version}")
        tables = new.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for table, sql in tables:
            if table in DERIVED or table.startswith("sqlite_"):
                continue
            read = _by_key if "WITHOUT ROWID" in sql else _by_rowid
            before = new.total_changes
            new.execute("BEGIN")
            new.execute(f"DELETE FROM {table}")
            before = new.total_changes
            for row in read(damaged, table):
                with suppress(sqlite3.IntegrityError):
                    new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            new.execute("COMMIT")
            counts[table] = new.total_changes - before
        new.execute("DELETE FROM facts WHERE name IN ('entries_of', 'entries_complete', 'waiting')")
    return counts


def _by_rowid(damaged: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """The readable rows of a table; after a damaged page it goes on behind it."""
    after, step = 0, 1
    while after < _LARGEST_ROWID:
        query = f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
        try:
            for rowid, *row in damaged.execute(query, (after,)):
                after, step = rowid + 1, 1
                yield tuple(row)
            return
        except sqlite3.DatabaseError:
            after, step = after + step, step * 2


def _by_key(damaged: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """The rows of a table without rowids, from both ends up to the damage."""
    columns = damaged.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [column[1] for column in sorted(columns, key=lambda column: column[5]) if column[5]]
    for order in ("ASC", "DESC"):
        try:
            yield from damaged.execute(
                f"SELECT * FROM {table} ORDER BY {', '.join(f'{key} {order}' for key in keys)}"
            )
            return
        except sqlite3.DatabaseError:
            continue
