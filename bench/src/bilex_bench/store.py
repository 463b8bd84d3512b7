"""The results file: every setup that was run, in one SQLite file that can be added to and merged.

SQLite checks the structure of its file, not its content, so each setup has a checksum over all its rows,
renewed in the transaction that changes them; what setups share is named by its own hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex.core.files import check_output, written_plainly
from bilex.core.locks import exclusive_lock
from bilex.evaluation import Prediction
from bilex_bench import store_codec as codec
from bilex_bench.results import DirectionName, Result, Setup, WordSample

if TYPE_CHECKING:
    from typing import Self


_SMALLEST_FILE = 100  # the header of an SQLite file; a smaller one would be made into a new results file
_WAIT_SECONDS = 60  # for another process's write to end
_JSON_COLUMNS = ("evaluation", "seconds", "environment", "report")
_PLAIN_COLUMNS = ("status", "error", "gigabytes", "gpu_gigabytes", "device", "started", "attempts")
_TABLES = ("labels", "predictions", "results", "samples")
VERSION = 1
_APPLICATION = int.from_bytes(b"bilx", "big")
_COLUMNS = ("key", "setup", *_JSON_COLUMNS, *_PLAIN_COLUMNS)


@dataclass(frozen=True)
class MergeReport:
    """What came of merging another results file into one."""

    added: int  # setups that only the other file had
    already: int  # setups that were here already, and stay as they are
    replaced: int  # setups that had failed here and are done in the other file
    differing: int = 0  # setups done in both files with unequal figures (counted in `already` too)


class ResultsStore:
    """A results file. Use `ResultsStore.open`, best in a `with` statement.

    Every `add` is one transaction that is on the disk when it returns: a process killed at any moment, or a
    full disk, costs at most the result that was being added. Readers may read while a runner writes.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True) -> Self:
        """Open a results file.

        Args:
            path: The file.
            create: Whether a file that is not there is made.

        Raises:
            BilexError: The file is missing, damaged, of another version, or something else.
        """
        path = Path(path)
        if not create and not path.exists():
            raise BilexError(
                f"{path}: there is no such results file; check the name, or run 'bilex benchmark run' first."
            )
        if path.is_dir():
            raise BilexError(f"{path}: is a folder; a results file is one SQLite file.")
        if create:
            check_output(path, folder=path.exists())  # a database of another kind is refused by name below
            with written_plainly(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
        elif path.stat().st_size < _SMALLEST_FILE:
            raise BilexError(f"{path}: is not a results file; choose another name.")
        with _plain_errors(path):
            connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                # A rollback journal, not WAL: between two results the file is whole by itself, to be copied.
                connection.execute("PRAGMA synchronous = FULL")
                _prepare(connection, path)
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise sqlite3.DatabaseError(found)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def claim(self) -> contextlib.AbstractContextManager[None]:
        """Be the one runner of this file, as long as the `with` block lasts; readers need not."""
        return exclusive_lock(self.path)

    def keys(self, status: str | None = "done") -> set[str]:
        """The keys of the setups with a status; None for all."""
        rows = self._rows("SELECT key FROM results WHERE ? IS NULL OR status = ?", (status, status))
        return {key for (key,) in rows}

    def attempts(self, key: str) -> int:
        """How often a setup was tried by now, as its last result says; 0 if never."""
        rows = self._rows("SELECT attempts FROM results WHERE key = ?", (key,))
        return int(rows[0][0]) if rows else 0

    def add(self, result: Result) -> bool:
        """Keep a result, unless its setup is done already; return whether it was kept.

        A failed result of the same setup is replaced. The label of the setup joins those known for it. If
        the disk is full or the file cannot be written, all earlier results are intact.
        """
        key = result.setup.key
        with self._transaction():
            self._label(result.setup)
            known = self._rows("SELECT status FROM results WHERE key = ?", (key,))
            if known and known[0][0] == "done":
                keep_checksums(self._connection, [key])
                return False
            self._forget(key)
            self._insert("results", _row(result))
            for direction, predictions in result.predictions.items():
                words, own = codec.split_predictions(predictions)
                row = {"key": key, "direction": direction, "words": self._part(words), "own": own}
                self._insert("predictions", row)
            for name, sample in result.samples.items():
                parts = zip(("words", "source", "target"), codec.split_sample(sample), strict=True)
                self._insert("samples", {"key": key, "name": name} | {n: self._part(p) for n, p in parts})
            keep_checksums(self._connection, [key])
        return True

    def name(self, setups: Iterable[Setup]) -> None:
        """Remember the labels of setups, run or yet to be run.

        One experiment may have several names, such as "C2 (C1)" in one table of the paper and "C2 [mBERT]" in
        another; it is run once, and `results` shows it under each. A runner calls this before it starts.
        """
        with self._transaction():
            named = list(setups)
            for setup in named:
                self._label(setup)
            keep_checksums(self._connection, {setup.key for setup in named})

    def results(self, *, predictions: bool = False, samples: bool = False) -> list[Result]:
        """All results in the order they were added, one for each label of a setup.

        Args:
            predictions: Whether the answers to every test word are read too.
            samples: Whether the vectors for pictures are read too.
        """
        with _plain_errors(self.path):
            check_checksums(self._connection, self.path)
        rows = self._rows(
            f"SELECT labels.label, {', '.join(f'results.{name}' for name in _COLUMNS)} FROM results "
            "LEFT JOIN labels ON labels.key = results.key ORDER BY results.rowid, labels.rowid"
        )
        with _readable(self.path):
            found = [_result(label, dict(zip(_COLUMNS, row, strict=True))) for label, *row in rows]
        if predictions:
            found = [replace(result, predictions=self.predictions(result.setup.key)) for result in found]
        if samples:
            found = [replace(result, samples=self.samples(result.setup.key)) for result in found]
        return found

    def predictions(self, key: str) -> dict[DirectionName, tuple[Prediction, ...]]:
        """The answers of a setup to every covered test word, by direction; empty if it has none."""
        rows = self._rows(
            "SELECT direction, content, own FROM predictions JOIN parts ON parts.sha256 = words "
            "WHERE key = ? ORDER BY direction DESC",
            (key,),
        )
        with _readable(self.path):
            return {direction: codec.join_predictions(words, own) for direction, words, own in rows}

    def samples(self, key: str) -> dict[str, WordSample]:
        """The vectors of a setup that were kept for pictures, by name; empty if there are none."""
        rows = self._rows(
            "SELECT name, w.content, s.content, t.content FROM samples JOIN parts AS w ON w.sha256 = words "
            "JOIN parts AS s ON s.sha256 = source JOIN parts AS t ON t.sha256 = target WHERE key = ? "
            "ORDER BY samples.rowid",
            (key,),
        )
        with _readable(self.path):
            return {name: codec.join_sample(*parts) for name, *parts in rows}

    def merge(self, other: str | Path) -> MergeReport:
        """Add what another results file has, in one transaction; the other file stays as it is."""
        other = Path(other)
        with ResultsStore.open(other, create=False):  # to hear what is wrong with it, if anything is
            pass
        if other.samefile(self.path):
            raise BilexError(f"{other}: cannot be merged into itself; name another file.")
        with _plain_errors(self.path):
            self._connection.execute("ATTACH DATABASE ? AS other", (str(other),))
        try:
            with self._transaction():
                return self._take_over()
        finally:
            self._connection.execute("DETACH DATABASE other")

    def _take_over(self) -> MergeReport:
        ours = dict(self._rows("SELECT key, status FROM main.results"))
        theirs = self._rows("SELECT key, status FROM other.results ORDER BY rowid")
        new = [key for key, _ in theirs if key not in ours]
        better = [key for key, status in theirs if status == "done" and ours.get(key) == "failed"]
        differing = self._rows(
            "SELECT count(*) FROM main.results AS a JOIN other.results AS b ON a.key = b.key "
            "WHERE a.status = 'done' AND b.status = 'done' AND a.evaluation <> b.evaluation"
        )[0][0]
        columns = ", ".join(_COLUMNS)
        for key in (*new, *better):
            self._forget(key)
            self._write(
                f"INSERT INTO main.results ({columns}) SELECT {columns} FROM other.results WHERE key = ?", key
            )
            self._write(
                "INSERT OR IGNORE INTO main.parts SELECT * FROM other.parts WHERE sha256 IN ("
                "SELECT words FROM other.predictions WHERE key = ?1 "
                "UNION SELECT words FROM other.samples WHERE key = ?1 "
                "UNION SELECT source FROM other.samples WHERE key = ?1 "
                "UNION SELECT target FROM other.samples WHERE key = ?1)",
                key,
            )
            for table in ("predictions", "samples"):
                self._write(f"INSERT INTO main.{table} SELECT * FROM other.{table} WHERE key = ?", key)
        self._write("INSERT OR IGNORE INTO main.labels SELECT * FROM other.labels")
        labelled = self._rows("SELECT key FROM other.labels")
        keep_checksums(self._connection, {*new, *better, *(key for (key,) in labelled)})
        return MergeReport(len(new), len(theirs) - len(new) - len(better), len(better), int(differing))

    def _label(self, setup: Setup) -> None:
        if setup.label:
            self._write("INSERT OR IGNORE INTO main.labels VALUES (?, ?)", setup.key, setup.label)

    def _forget(self, key: str) -> None:
        for table in ("predictions", "samples", "results"):
            self._write(f"DELETE FROM main.{table} WHERE key = ?", key)

    def _part(self, content: bytes) -> str:
        """Keep a shared part once; return its name."""
        name = codec.digest(content)
        self._write("INSERT OR IGNORE INTO parts VALUES (?, ?)", name, content)
        return name

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        places = ", ".join("?" * len(row))
        self._write(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())

    def _write(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _plain_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of a block, or nothing of it."""
        with _plain_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _row(result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {"key": result.setup.key, "setup": codec.to_json(result.setup.as_dict())}
    for name in _JSON_COLUMNS:
        value = getattr(result, name)
        row[name] = None if value is None else codec.to_json(value)
    return row | {name: getattr(result, name) for name in _PLAIN_COLUMNS}


def _result(label: str | None, row: dict[str, Any]) -> Result:
    setup = Setup(**json.loads(row["setup"]))
    if label is not None:
        setup = replace(setup, label=label)
    read: dict[str, Any] = {
        name: None if row[name] is None else json.loads(row[name]) for name in _JSON_COLUMNS
    }
    return Result(setup=setup, **read, **{name: row[name] for name in _PLAIN_COLUMNS})


@contextlib.contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's complaints about a file into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise BilexError(f"{path}: {_complaint(error)}.") from error
    except UnicodeDecodeError as error:  # a complaint that quotes a damaged byte of the schema
        raise BilexError(f"{path}: {_complaint(sqlite3.DatabaseError('the schema is not text'))}.") from error


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn content that does not decode into one sentence."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise BilexError(
            f"{path}: holds a result that cannot be read back ({error}); restore the file from a copy."
        ) from error


def _complaint(error: sqlite3.Error) -> str:
    """A clause about what SQLite refused, with what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF
    known = {
        sqlite3.SQLITE_FULL: "the disk is full; earlier results are intact; free some space and run again",
        sqlite3.SQLITE_NOTADB: "is not a results file; choose another name",
        sqlite3.SQLITE_BUSY: "another process has written to it for a minute; run again when it has ended",
        sqlite3.SQLITE_READONLY: "may not be written; check its permissions and those of its folder",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened; check the name and the permissions of its folder",
    }
    if kind in known:
        return known[kind]
    stated = " ".join(str(error).split())
    if kind in (sqlite3.SQLITE_CORRUPT, None):
        return f"is damaged ({stated}); restore it from a copy, or move it away and start a new one"
    return f"cannot be used ({stated})"


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in a new file; refuse a file that is no results file of this version."""
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


def keep_checksums(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Write down the checksums of some setups as they are now; within a transaction.

    A file of before there were checksums gets those of all its setups.
    """
    if not _has_checksums(connection):
        connection.execute("CREATE TABLE main.checksums (key TEXT PRIMARY KEY, sha256 TEXT NOT NULL)")
        keys = _keys(connection)
    for key in keys:
        row = (key, _digest(connection, key))
        connection.execute("INSERT OR REPLACE INTO main.checksums VALUES (?, ?)", row)


def check_checksums(connection: sqlite3.Connection, path: Path) -> None:
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
        if not isinstance(content, bytes) or codec.digest(content) != name:
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
