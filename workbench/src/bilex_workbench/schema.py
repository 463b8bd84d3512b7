"""The review file: its tables, its version, and the steps from each version to the next."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import filelock

from bilex.core.errors import BilexError
from bilex.core.files import sync, temporary_path

APPLICATION = 0x62696C78  # "bilx", in the file's header
SUFFIX = ".review.sqlite"

# Decisions are never deleted: taking one back sets `undone`. Entries and candidates are derived from the
# model and may be made again at any time; they are keyed by the row of the source word.
_VERSION_1 = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'none', 'skip')),
    accepted TEXT NOT NULL,
    rejected TEXT NOT NULL,
    candidates TEXT NOT NULL,
    best TEXT,
    note TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL CHECK (kind IN ('review', 'audit', 'import', 'resolution')),
    at TEXT NOT NULL,
    undone TEXT
);
CREATE INDEX decisions_by_source ON decisions (source, id);
CREATE INDEX decisions_by_reviewer ON decisions (reviewer, id);
CREATE TABLE notes (
    source TEXT NOT NULL, reviewer TEXT NOT NULL, note TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (source, reviewer)
) WITHOUT ROWID;
CREATE TABLE entries (
    row INTEGER PRIMARY KEY,
    source TEXT NOT NULL UNIQUE,
    target TEXT,
    source_key TEXT NOT NULL,
    target_key TEXT,
    score REAL,
    model_confidence REAL,
    confidence REAL,
    target_rank INTEGER,
    mutual INTEGER,
    identical INTEGER NOT NULL DEFAULT 0,
    known INTEGER NOT NULL DEFAULT 0,
    priority REAL NOT NULL DEFAULT 0,
    shuffled INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'unreviewed',
    accepted TEXT NOT NULL DEFAULT '[]',
    reviewers TEXT NOT NULL DEFAULT '[]',
    decisions INTEGER NOT NULL DEFAULT 0,
    decided TEXT,
    noted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX entries_by_status_priority ON entries (status, priority DESC, row);
CREATE INDEX entries_by_priority ON entries (priority, row);
CREATE INDEX entries_by_status ON entries (status, row);
CREATE INDEX entries_by_confidence ON entries (confidence, row);
CREATE INDEX entries_by_score ON entries (score, row);
CREATE INDEX entries_by_target_rank ON entries (target_rank, row);
CREATE INDEX entries_by_source_key ON entries (source_key, row);
CREATE INDEX entries_by_target_key ON entries (target_key, row);
CREATE INDEX entries_by_decided ON entries (decided, row);
CREATE INDEX entries_shuffled ON entries (shuffled, row);
CREATE TABLE candidates (
    direction INTEGER NOT NULL, row INTEGER NOT NULL, answers BLOB NOT NULL, PRIMARY KEY (direction, row)
) WITHOUT ROWID;
CREATE TABLE audits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL, reviewer TEXT NOT NULL, size INTEGER NOT NULL, strata TEXT NOT NULL
);
CREATE TABLE audit_items (
    audit INTEGER NOT NULL REFERENCES audits (id),
    number INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_rank INTEGER NOT NULL,
    best TEXT NOT NULL,
    confidence REAL,
    stratum INTEGER NOT NULL,
    shown TEXT NOT NULL,
    verdict TEXT,
    is_right INTEGER,
    decision INTEGER REFERENCES decisions (id),
    PRIMARY KEY (audit, number)
) WITHOUT ROWID;
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    source TEXT NOT NULL, source_rank INTEGER NOT NULL, before TEXT, after TEXT,
    confidence_before REAL, confidence_after REAL
);
"""
# Which model an audit is about: its answers say nothing of another model's confidences.
_VERSION_2 = "ALTER TABLE audits ADD COLUMN model TEXT;"
# The queue has another order: entries are made again, which leaves decisions as they are.
_VERSION_3 = "DELETE FROM facts WHERE name = 'entries_of';"
# Kinds, headwords and explicit verdicts. `forms` has the words of both languages that are listed under
# another one; `marks` what people say of an entry beside decisions; `batches` what bulk actions changed.
_VERSION_4 = """
ALTER TABLE decisions ADD COLUMN unsure TEXT NOT NULL DEFAULT '[]';
ALTER TABLE entries ADD COLUMN kind TEXT NOT NULL DEFAULT 'content';
ALTER TABLE entries ADD COLUMN headword TEXT;
ALTER TABLE entries ADD COLUMN answer TEXT;
ALTER TABLE entries ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN assignee TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_by_kind ON entries (kind, row);
CREATE INDEX entries_by_headword ON entries (headword, row);
CREATE INDEX entries_fresh ON entries (fresh, priority DESC, row);
CREATE INDEX entries_by_assignee ON entries (assignee, row);
CREATE TABLE forms (
    side INTEGER NOT NULL, row INTEGER NOT NULL, head INTEGER NOT NULL, PRIMARY KEY (side, row)
) WITHOUT ROWID;
CREATE TABLE marks (
    source TEXT PRIMARY KEY, kind TEXT, assignee TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL, reviewer TEXT NOT NULL, action TEXT NOT NULL, before TEXT NOT NULL, undone TEXT
);
DELETE FROM facts WHERE name = 'entries_of';
"""
# What an entry says beside its translations, as JSON; the newest row of a word counts.
_VERSION_5 = """
CREATE TABLE articles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL, article TEXT NOT NULL, reviewer TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX articles_by_source ON articles (source, id);
"""
# Which decision a change of a retraining is near; notes in the order in which they were written, since clocks
# jump.
_VERSION_6 = """
ALTER TABLE changes ADD COLUMN near TEXT;
ALTER TABLE changes ADD COLUMN similarity REAL;
ALTER TABLE notes RENAME TO notes_5;
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL, reviewer TEXT NOT NULL, note TEXT NOT NULL, at TEXT NOT NULL,
    UNIQUE (source, reviewer)
);
INSERT INTO notes (source, reviewer, note, at) SELECT source, reviewer, note, at FROM notes_5 ORDER BY at;
DROP TABLE notes_5;
"""
# The forms of a headword, for the examples of all of them.
_VERSION_7 = "CREATE INDEX forms_by_head ON forms (side, head, row);"
MIGRATIONS: tuple[str, ...] = (
    _VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6, _VERSION_7,
)  # fmt: skip
VERSION = len(MIGRATIONS)


def review_file(model: str | Path, direction: str = "forward") -> Path:
    """The review file of a model: beside its folder, never inside it; one for each direction."""
    folder = Path(model).resolve()
    return folder.with_name(folder.name + ("" if direction == "forward" else f".{direction}") + SUFFIX)


def connect(
    path: Path, seconds: float = 5.0, *, read_only: bool = False, create: bool = False
) -> sqlite3.Connection:
    """A connection on which a commit returns when the change is on the disk."""
    address = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    try:
        connection = sqlite3.connect(
            address, timeout=seconds, isolation_level=None, check_same_thread=False, uri=True
        )
        connection.row_factory = sqlite3.Row
        if read_only:
            connection.execute("PRAGMA query_only=ON")
        else:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
    except sqlite3.Error as error:
        raise BilexError(f"{path}: cannot be opened as a review file ({error}); restore a copy.") from error
    return connection


def prepare(path: Path) -> None:
    """Make the review file if it is missing, check it, and bring an older one up to this version.

    Before an older file is changed, a copy of it is kept as FILE.version-N.
    """
    connection = connect(path, create=True)
    try:
        application, version, tables = (
            connection.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if tables and application != APPLICATION:
            raise BilexError(
                f"{path}: is an SQLite file of another program; move it away or rename the model."
            )
        _check_whole(connection, path)
        if version > VERSION:
            raise BilexError(
                f"{path}: has review format version {version}, and this bilex reads up to {VERSION}; "
                "install a newer bilex."
            )
        if 0 < version < VERSION:
            _back_up(connection, path.with_name(f"{path.name}.version-{version}"))
        for number in range(version, VERSION):
            _migrate(connection, number)
    except sqlite3.DatabaseError as error:
        raise BilexError(
            f"{path}: is damaged or no review file ({error}); restore a copy, or run 'bilex review repair'."
        ) from error
    finally:
        connection.close()


def lock(path: Path) -> filelock.BaseFileLock:
    """Take the lock that the server of a review file holds."""
    held = filelock.FileLock(f"{path}.lock")
    try:
        held.acquire(timeout=0)
    except filelock.Timeout as error:
        raise BilexError(
            f"{path}: another 'bilex serve' has this model open; use that one or end it first."
        ) from error
    except OSError as error:
        raise BilexError(f"{held.lock_file}: cannot be written ({error.strerror or error}).") from error
    return held


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged file, and one that cannot be written."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        raise BilexError(
            f"{path}: cannot be written ({error}); end the program that has it open, or make it writable."
        ) from error
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise BilexError(
            f"{path}: is damaged ({found.splitlines()[0]}); restore a copy, or run 'bilex review repair'."
        )


def _back_up(connection: sqlite3.Connection, path: Path) -> None:
    """Copy the file as it is; an earlier copy of the same version stays."""
    if path.exists():
        return
    with temporary_path(path) as temporary:
        copy = sqlite3.connect(temporary)
        try:
            connection.backup(copy)
        finally:
            copy.close()
        sync(temporary)
        temporary.replace(path)


def _migrate(connection: sqlite3.Connection, number: int) -> None:
    """One step, whole or not at all: SQLite's schema changes are part of the transaction."""
    script = f"BEGIN IMMEDIATE;{MIGRATIONS[number]}PRAGMA user_version={number + 1};COMMIT;"
    try:
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.executescript(script)
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
