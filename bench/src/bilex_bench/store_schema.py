"""The tables of a results file, and which files are such files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bilex.errors import BilexError

VERSION = 1
_APPLICATION = int.from_bytes(b"bilx", "big")

# Shared parts (see store_codec) stand in `parts` once, named by their SHA-256. `labels` has a row for each
# name that a grid gave to an experiment, since two tables of the paper may show one experiment.
_TABLES = """
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    setup TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    error TEXT,
    evaluation TEXT,
    seconds TEXT NOT NULL,
    gigabytes REAL,
    gpu_gigabytes REAL,
    device TEXT NOT NULL,
    environment TEXT NOT NULL,
    report TEXT NOT NULL,
    started TEXT NOT NULL,
    attempts INTEGER NOT NULL
);
CREATE TABLE labels (
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (key, label)
);
CREATE TABLE parts (
    sha256 TEXT PRIMARY KEY,
    content BLOB NOT NULL
);
CREATE TABLE predictions (
    key TEXT NOT NULL REFERENCES results (key),
    direction TEXT NOT NULL,
    words TEXT NOT NULL REFERENCES parts (sha256),
    own BLOB NOT NULL,
    PRIMARY KEY (key, direction)
);
CREATE TABLE samples (
    key TEXT NOT NULL REFERENCES results (key),
    name TEXT NOT NULL,
    words TEXT NOT NULL REFERENCES parts (sha256),
    source TEXT NOT NULL REFERENCES parts (sha256),
    target TEXT NOT NULL REFERENCES parts (sha256),
    PRIMARY KEY (key, name)
);
"""

_VIEW = """
CREATE VIEW scores AS
WITH directions (direction) AS (VALUES ('forward'), ('backward')),
     retrievals (retrieval) AS (VALUES ('nn'), ('csls')),
     named AS (
         SELECT results.*, coalesce(nullif(labels.label, ''), json_extract(setup, '$.method')) AS label
         FROM results LEFT JOIN labels ON labels.key = results.key
     )
SELECT json_extract(setup, '$.dataset') AS dataset,
       json_extract(setup, '$.pair') AS pair,
       json_extract(setup, '$.seeds') AS seeds,
       label,
       json_extract(setup, '$.method') AS method,
       json_extract(setup, '$.lm') AS lm,
       json_extract(setup, '$.tune') AS tune,
       json_extract(setup, '$.mixing') AS mixing,
       direction,
       retrieval,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '."p@1"') AS p1,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '."p@5"') AS p5,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '."p@10"') AS p10,
       json_extract(evaluation, '$.' || direction || '.' || retrieval || '.mrr') AS mrr,
       json_extract(evaluation, '$.' || direction || '.leak_free.' || retrieval || '."p@1"') AS p1_leak_free,
       json_extract(evaluation, '$.' || direction || '.covered') AS covered,
       json_extract(evaluation, '$.' || direction || '.total') AS total,
       (SELECT sum(value) FROM json_each(seconds)) AS seconds,
       gigabytes,
       gpu_gigabytes,
       device,
       json_extract(setup, '$.limit') AS word_limit,
       json_extract(setup, '$.seed') AS seed,
       json_extract(setup, '$.settings') AS settings,
       started,
       key
FROM named CROSS JOIN directions CROSS JOIN retrievals
WHERE status = 'done';
"""


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
        for statement in f"{_TABLES}{_VIEW}".split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
