"""The review file: its tables and versions, connections that read and write it, and its repair."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import sync, temporary_path
from bilex.core.locks import exclusive_lock
from bilex_workbench.api import ProblemError

APPLICATION = 0x62696C78  # "bilx", in the file's header
_BUSY_SECONDS = 5.0  # until a write gives up, twice: waiting for this server and for other programs
_IDLE_READERS = 8
_COMPUTED = ("entries", "candidates", "forms")
_LARGEST_ROWID = 2**62
_RESTORE = "restore a copy, or run 'bilex review repair'."

VERSION = 7
# Decisions are never deleted: undoing one sets `undone`. The newest article of a word counts. `forms` lists
# words of both languages with another headword, `marks` kinds and assignees that people set, `batches` what
# bulk actions changed, `changes` the entries that a retraining changes. Entries and candidates are computed
# from the model; their key is the row of the source word.
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, reviewer TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'none', 'skip')),
    accepted TEXT NOT NULL, rejected TEXT NOT NULL, unsure TEXT NOT NULL DEFAULT '[]',
    candidates TEXT NOT NULL, best TEXT, note TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL CHECK (kind IN ('review', 'audit', 'import', 'resolution')),
    at TEXT NOT NULL, undone TEXT
);
CREATE INDEX decisions_by_source ON decisions (source, id);
CREATE INDEX decisions_by_reviewer ON decisions (reviewer, id);
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL, reviewer TEXT NOT NULL, note TEXT NOT NULL, at TEXT NOT NULL,
    UNIQUE (source, reviewer)
);
CREATE TABLE articles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL, article TEXT NOT NULL, reviewer TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX articles_by_source ON articles (source, id);
CREATE TABLE marks (source TEXT PRIMARY KEY, kind TEXT, assignee TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL, reviewer TEXT NOT NULL, action TEXT NOT NULL, before TEXT NOT NULL, undone TEXT
);
CREATE TABLE audits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL, reviewer TEXT NOT NULL, size INTEGER NOT NULL, strata TEXT NOT NULL, model TEXT
);
CREATE TABLE audit_items (
    audit INTEGER NOT NULL REFERENCES audits (id), number INTEGER NOT NULL,
    source TEXT NOT NULL, source_rank INTEGER NOT NULL, best TEXT NOT NULL, confidence REAL,
    stratum INTEGER NOT NULL, shown TEXT NOT NULL,
    verdict TEXT, is_right INTEGER, decision INTEGER REFERENCES decisions (id),
    PRIMARY KEY (audit, number)
) WITHOUT ROWID;
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    source TEXT NOT NULL, source_rank INTEGER NOT NULL, before TEXT, after TEXT,
    confidence_before REAL, confidence_after REAL, near TEXT, similarity REAL
);
CREATE TABLE entries (
    row INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE, target TEXT,
    source_key TEXT NOT NULL, target_key TEXT,
    score REAL, model_confidence REAL, confidence REAL, target_rank INTEGER, mutual INTEGER,
    identical INTEGER NOT NULL DEFAULT 0, known INTEGER NOT NULL DEFAULT 0,
    priority REAL NOT NULL DEFAULT 0, shuffled INTEGER NOT NULL DEFAULT 0,
    kind TEXT NOT NULL DEFAULT 'content', headword TEXT, answer TEXT, assignee TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT 'unreviewed', accepted TEXT NOT NULL DEFAULT '[]',
    reviewers TEXT NOT NULL DEFAULT '[]', decisions INTEGER NOT NULL DEFAULT 0, decided TEXT,
    noted INTEGER NOT NULL DEFAULT 0, fresh INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX entries_by_status_priority ON entries (status, priority DESC, row);
CREATE INDEX entries_fresh ON entries (fresh, priority DESC, row);
CREATE INDEX entries_shuffled ON entries (shuffled, row);
CREATE TABLE candidates (
    direction INTEGER NOT NULL, row INTEGER NOT NULL, answers BLOB NOT NULL, PRIMARY KEY (direction, row)
) WITHOUT ROWID;
CREATE TABLE forms (
    side INTEGER NOT NULL, row INTEGER NOT NULL, head INTEGER NOT NULL, PRIMARY KEY (side, row)
) WITHOUT ROWID;
CREATE INDEX forms_by_head ON forms (side, head, row);
"""
_SORTED = "priority status confidence score target_rank source_key target_key decided kind headword assignee"
_SCHEMA += "".join(f"CREATE INDEX entries_by_{name} ON entries ({name}, row);\n" for name in _SORTED.split())


def now() -> str:
    """The current time in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def review_file(model: str | Path, direction: str = "forward") -> Path:
    """The review file of a model and direction: beside the model's folder, never inside it."""
    folder = Path(model).resolve()
    middle = "" if direction == "forward" else f".{direction}"
    return folder.with_name(f"{folder.name}{middle}.review.sqlite")


def value(db: sqlite3.Connection, query: str, *values: Any) -> Any:
    """The one value that a query finds; None if it finds none."""
    row = db.execute(query, values).fetchone()
    return None if row is None else row[0]


def dicts(db: sqlite3.Connection, query: str, *values: Any) -> list[dict[str, Any]]:
    """The rows that a query finds."""
    return [dict(row) for row in db.execute(query, values)]


def fact(db: sqlite3.Connection, name: str, default: Any = None) -> Any:
    """A stored value by its name, within a transaction; see `Database.fact`."""
    stored = value(db, "SELECT value FROM facts WHERE name = ?", name)
    return default if stored is None else json.loads(stored)


def set_facts(db: sqlite3.Connection, **facts: Any) -> None:
    """Store values under names, within a transaction."""
    rows = [(name, json.dumps(value)) for name, value in facts.items()]
    db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)


class Database:
    """A review file: a connection that writes, and a pool of connections that read without waiting."""

    def __init__(self, path: Path) -> None:
        _prepare(path)
        self.path = path
        self._writer = _connect(path)
        self._lock = threading.Lock()
        self._idle = deque([_connect(path, read_only=True)])
        self._closed = False
        self._files = {file: _identity(file) for file in (path, path.with_name(path.name + "-wal"))}

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for queries."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _connect(self.path, read_only=True)
        try:
            yield connection
        finally:
            if self._closed or len(self._idle) >= _IDLE_READERS:
                connection.close()
            else:
                self._idle.append(connection)

    def fact(self, name: str, default: Any = None) -> Any:
        """A stored value by its name."""
        with self.reading() as db:
            return fact(db, name, default)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk when the block ends, or none of it after an error."""
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            raise ProblemError(503, "Another request is writing; nothing was stored; try again.")
        db = self._writer
        try:
            self._check_in_place()
            db.execute("BEGIN IMMEDIATE")
            yield db
            self._check_in_place()
            db.execute("COMMIT")
        except sqlite3.Error as error:
            message = f"The review file cannot be written ({error}); nothing was stored; is the disk full?"
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                message = "Another program has locked the review file; nothing was stored; try again."
            raise ProblemError(503, message) from error
        finally:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            self._lock.release()

    def _check_in_place(self) -> None:
        """Refuse to write into a file that was moved: nobody would find the decision again."""
        for file, known in self._files.items():
            found = _identity(file)
            if known is None:
                self._files[file] = found
            elif found != known:
                raise ProblemError(
                    503,
                    f"{file.name} was moved, replaced or deleted while the server runs; nothing was stored; "
                    "put it back, or restart the server.",
                )

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        with self._lock:
            self._writer.close()


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _connect(path: Path, *, read_only: bool = False, create: bool = False) -> sqlite3.Connection:
    """A connection on which a commit returns when the change is on disk."""
    address = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    pragmas = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
    try:
        connection = sqlite3.connect(
            address, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
        )
        connection.row_factory = sqlite3.Row
        for pragma in ("query_only=ON",) if read_only else pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error as error:
        message = f"{path}: cannot be opened as a review file ({error}); restore a copy."
        raise ProblemError(503, message) from error
    return connection


def _prepare(path: Path) -> None:
    """Create the review file if it is missing, check it, and bring an older one up to date."""
    with closing(_connect(path, create=True)) as db:
        try:
            version = _checked_version(db, path)
            if version is None:
                db.executescript(
                    f"BEGIN IMMEDIATE; PRAGMA application_id={APPLICATION}; {_SCHEMA} "
                    f"PRAGMA user_version={VERSION}; COMMIT;"
                )
        except sqlite3.DatabaseError as error:
            raise BilexError(f"{path}: is damaged or no review file ({error}); {_RESTORE}") from error
    if version is not None and version < VERSION:
        _copy_into_new(path, path.with_name(f"{path.name}.version-{version}"))


def _checked_version(db: sqlite3.Connection, path: Path) -> int | None:
    """The version of a file, None for a new one; files of others, damaged and read-only ones are refused."""
    tables = value(db, "SELECT count(*) FROM sqlite_master")
    if tables and value(db, "PRAGMA application_id") != APPLICATION:
        raise BilexError(f"{path}: is an SQLite file of another program; move it away or rename the model.")
    try:
        db.executescript("BEGIN IMMEDIATE; ROLLBACK")
    except sqlite3.OperationalError as error:
        raise BilexError(
            f"{path}: cannot be written ({error}); end the program that has it open, or make it writable."
        ) from error
    damage = value(db, "PRAGMA quick_check(1)")
    if damage != "ok":
        raise BilexError(f"{path}: is damaged ({damage.splitlines()[0]}); {_RESTORE}")
    version = int(value(db, "PRAGMA user_version"))
    if version > VERSION:
        raise BilexError(
            f"{path}: has review format version {version}, and this bilex reads up to {VERSION}; "
            "install a newer bilex."
        )
    return version if tables else None


def repair(path: Path) -> tuple[dict[str, int], Path]:
    """Copy all readable rows of a damaged review file into a new one.

    Returns how many rows of each table were rescued, and where the damaged file is kept.
    """
    if not path.is_file():
        raise BilexError(f"{path}: is not there; nothing can be repaired.")
    with exclusive_lock(path):
        number = 1
        while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        return _copy_into_new(path, kept), kept


def _copy_into_new(path: Path, kept: Path) -> dict[str, int]:
    """Replace a damaged or older file by a new one with all readable rows; the earlier file is kept."""
    with temporary_path(path) as made:
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as old:
                _prepare(made)
                counts = _copy_rows(old, made)
        except sqlite3.DatabaseError as error:
            raise BilexError(f"{path}: cannot be read at all ({error}); restore a copy.") from error
        sync(made)
        kept.unlink(missing_ok=True)
        kept.hardlink_to(path)  # the earlier file has a name at every moment
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(kept.with_name(kept.name + suffix))
        made.replace(path)
    for suffix in ("-wal", "-shm"):
        made.with_name(made.name + suffix).unlink(missing_ok=True)
    return counts


def _copy_rows(old: sqlite3.Connection, made: Path) -> dict[str, int]:
    """Copy the readable rows of all tables but those that are computed from the model."""
    counts: dict[str, int] = {}
    old.execute("PRAGMA cell_size_check=ON")
    tables = old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    with closing(_connect(made)) as new:
        new.execute("PRAGMA foreign_keys=OFF")
        new.execute("BEGIN")
        for table, sql in tables:
            if table in _COMPUTED or table.startswith("sqlite_"):
                continue
            columns = [(name, key) for _, name, _, _, _, key in old.execute(f"PRAGMA table_info({table})")]
            names = ", ".join(name for name, _ in columns)
            insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
            before = new.total_changes
            keys = [name for name, key in sorted(columns, key=lambda column: column[1]) if key]
            for row in _by_key(old, table, keys) if "WITHOUT ROWID" in sql else _by_rowid(old, table):
                with suppress(sqlite3.IntegrityError):
                    new.execute(insert, row)
            counts[table] = new.total_changes - before
        new.execute("DELETE FROM facts WHERE name IN ('entries_of', 'entries_complete')")
        new.execute("COMMIT")
    return counts


def _by_rowid(old: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """The readable rows of a table, continued behind each damaged page."""
    after, step = 0, 1
    while after < _LARGEST_ROWID:
        query = f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
        try:
            for rowid, *row in old.execute(query, (after,)):
                after, step = rowid + 1, 1
                yield tuple(row)
            return
        except sqlite3.DatabaseError:
            after, step = after + step, step * 2


def _by_key(old: sqlite3.Connection, table: str, keys: list[str]) -> Iterator[tuple[object, ...]]:
    """The rows of a table without rowids, from both ends up to the damage."""
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.DatabaseError):
            by = ", ".join(f"{key} {order}" for key in keys)
            yield from old.execute(f"SELECT * FROM {table} ORDER BY {by}")
            return
