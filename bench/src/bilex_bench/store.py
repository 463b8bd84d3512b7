"""The results file: every setup that was run, in one SQLite file that can be extended and merged.

SQLite checks the structure of its file, not its content, so each setup has a checksum over all its rows,
renewed in the transaction that changes them. What many setups share (the test words of a pair, vectors as
they were read) is stored once, in the table `parts`, under its SHA-256.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import check_output, write_errors
from bilex.core.locks import exclusive_lock
from bilex.core.typed_json import plain
from bilex.evaluation import Prediction
from bilex_bench.results import DirectionName, Result, Setup, WordSample

VERSION = 1
_APPLICATION = int.from_bytes(b"bilx", "big")
_SMALLEST_FILE = 100  # the header of an SQLite file; SQLite takes a smaller file for an empty one
_WAIT_SECONDS = 60  # for another process's write to end
_TABLES = ("labels", "predictions", "results", "samples")
_JSON_COLUMNS = ("evaluation", "seconds", "environment", "report")
_PLAIN_COLUMNS = ("status", "error", "gigabytes", "gpu_gigabytes", "device", "started", "attempts")
_COLUMNS = ("key", "setup", *_JSON_COLUMNS, *_PLAIN_COLUMNS)
# What SQLite refuses, and what to do.
_REFUSALS = {
    sqlite3.SQLITE_FULL: "the disk is full; earlier results are intact; free some space and run again",
    sqlite3.SQLITE_NOTADB: "is not a results file; choose another name",
    sqlite3.SQLITE_BUSY: "another process has written to it for a minute; run again when it has ended",
    sqlite3.SQLITE_READONLY: "may not be written; check its permissions and those of its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check the name and the permissions of its folder",
    sqlite3.SQLITE_CORRUPT: "is damaged ({message}); restore it from a copy, or move it away and start a new "
    "one",
}
_DAMAGED = "was changed or damaged since it was written; restore the file from a copy"


@dataclass(frozen=True)
class MergeReport:
    """What merging another results file changed."""

    added: int  # setups that only the other file had
    already: int  # setups that this file had, and that stay as they are
    replaced: int  # setups that failed in this file and are done in the other
    differing: int = 0  # setups done in both files with different metrics (part of `already`)


class ResultsStore(contextlib.AbstractContextManager["ResultsStore"]):
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
            create: Whether to create a file that does not exist.

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
            with write_errors(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
        elif path.stat().st_size < _SMALLEST_FILE:
            raise BilexError(f"{path}: is not a results file; choose another name.")
        with _plain_errors(path):
            connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                # A rollback journal, not WAL: between two results the file is complete and can be copied.
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

    def __exit__(self, *error: object) -> None:
        self.close()

    def claim(self) -> contextlib.AbstractContextManager[None]:
        """Lock the file for one runner, as long as the `with` block lasts; readers need no lock."""
        return exclusive_lock(self.path)

    def keys(self, status: str | None = "done") -> set[str]:
        """The keys of the setups with a status; None for all."""
        rows = self._execute("SELECT key FROM results WHERE ?1 IS NULL OR status = ?1", status)
        return {key for (key,) in rows}

    def attempts(self, key: str) -> int:
        """How often a setup was tried, according to its last result; 0 if never."""
        rows = self._execute("SELECT attempts FROM results WHERE key = ?", key)
        return int(rows[0][0]) if rows else 0

    def add(self, result: Result) -> bool:
        """Store a result, unless its setup is done already; return whether it was stored.

        A failed result of the same setup is replaced. The label of the setup joins those known for it. If
        the disk is full or the file cannot be written, all earlier results are intact.
        """
        key = result.setup.key
        with self._transaction():
            self._label([result.setup])
            is_new = not self._execute("SELECT 1 FROM results WHERE key = ? AND status = 'done'", key)
            if is_new:
                self._forget([key])
                self._insert("results", **_row(result))
                for direction, predictions in result.predictions.items():
                    words, own = _split_predictions(predictions)
                    self._insert(
                        "predictions", key=key, direction=direction, words=self._part(words), own=own
                    )
                for name, sample in result.samples.items():
                    words = _pack([sample.source_words, sample.target_words])
                    matrices = {"source": _pack_matrix(sample.source), "target": _pack_matrix(sample.target)}
                    parts = {part: self._part(content) for part, content in matrices.items()}
                    self._insert("samples", key=key, name=name, words=self._part(words), **parts)
            self._keep_checksums([key])
        return is_new

    def name(self, setups: Iterable[Setup]) -> None:
        """Remember the labels of setups, run or yet to be run.

        One experiment may have several names, such as "C2 (C1)" in one table of the paper and "C2 [mBERT]" in
        another; it is run once, and `results` shows it under each.
        """
        named = list(setups)
        with self._transaction():
            self._label(named)
            self._keep_checksums({setup.key for setup in named})

    def results(self, *, predictions: bool = False, samples: bool = False) -> list[Result]:
        """All results in the order they were added, one for each label of a setup.

        Args:
            predictions: Whether to read the answers to every test word, too.
            samples: Whether to read the vectors for plots, too.
        """
        self._check_checksums()
        rows = self._execute(
            f"SELECT labels.label, {', '.join(f'results.{name}' for name in _COLUMNS)} FROM results "
            "LEFT JOIN labels ON labels.key = results.key ORDER BY results.rowid, labels.rowid"
        )
        with _plain_errors(self.path):
            found = [_result(label, dict(zip(_COLUMNS, row, strict=True))) for label, *row in rows]
        if predictions:
            found = [replace(result, predictions=self.predictions(result.setup.key)) for result in found]
        if samples:
            found = [replace(result, samples=self.samples(result.setup.key)) for result in found]
        return found

    def predictions(self, key: str) -> dict[DirectionName, tuple[Prediction, ...]]:
        """The answers of a setup to every covered test word, by direction; empty if there are none."""
        rows = self._execute(
            "SELECT direction, content, own FROM predictions JOIN parts ON parts.sha256 = words "
            "WHERE key = ? ORDER BY direction DESC",
            key,
        )
        with _plain_errors(self.path):
            return {direction: _join_predictions(words, own) for direction, words, own in rows}

    def samples(self, key: str) -> dict[str, WordSample]:
        """The vectors of a setup that were kept for plots, by name; empty if there are none."""
        rows = self._execute(
            "SELECT name, w.content, s.content, t.content FROM samples JOIN parts AS w ON w.sha256 = words "
            "JOIN parts AS s ON s.sha256 = source JOIN parts AS t ON t.sha256 = target WHERE key = ? "
            "ORDER BY samples.rowid",
            key,
        )
        with _plain_errors(self.path):
            return {name: _join_sample(*parts) for name, *parts in rows}

    def merge(self, other: str | Path) -> MergeReport:
        """Add what another results file has, in one transaction; the other file stays as it is."""
        ResultsStore.open(other, create=False).close()  # reports what is wrong with it
        if Path(other).samefile(self.path):
            raise BilexError(f"{other}: cannot be merged into itself; name another file.")
        self._execute("ATTACH DATABASE ? AS other", str(other))
        try:
            with self._transaction():
                return self._take_over()
        finally:
            self._execute("DETACH DATABASE other")

    def _take_over(self) -> MergeReport:
        """Copy the rows of the attached file that are new or better."""
        ours = dict(self._execute("SELECT key, status FROM main.results"))
        theirs = self._execute("SELECT key, status FROM other.results ORDER BY rowid")
        new = [key for key, _ in theirs if key not in ours]
        better = [key for key, status in theirs if status == "done" and ours.get(key) == "failed"]
        [(differing,)] = self._execute(
            "SELECT count(*) FROM main.results AS a JOIN other.results AS b ON a.key = b.key "
            "WHERE a.status = 'done' AND b.status = 'done' AND json(a.evaluation) <> json(b.evaluation)"
        )
        self._forget([*new, *better])
        for key in (*new, *better):
            for table in ("results", "predictions", "samples"):
                self._execute(f"INSERT INTO main.{table} SELECT * FROM other.{table} WHERE key = ?", key)
        self._execute(
            "INSERT OR IGNORE INTO main.parts SELECT * FROM other.parts WHERE sha256 IN ("
            "SELECT words FROM main.predictions UNION SELECT words FROM main.samples "
            "UNION SELECT source FROM main.samples UNION SELECT target FROM main.samples)"
        )
        self._execute("INSERT OR IGNORE INTO main.labels SELECT * FROM other.labels")
        labelled = {key for (key,) in self._execute("SELECT key FROM other.labels")}
        self._keep_checksums({*new, *better, *labelled})
        return MergeReport(len(new), len(theirs) - len(new) - len(better), len(better), int(differing))

    def _label(self, setups: Iterable[Setup]) -> None:
        for setup in (setup for setup in setups if setup.label):
            self._execute("INSERT OR IGNORE INTO labels VALUES (?, ?)", setup.key, setup.label)

    def _forget(self, keys: Iterable[str]) -> None:
        for key in keys:
            for table in ("predictions", "samples", "results"):
                self._execute(f"DELETE FROM main.{table} WHERE key = ?", key)

    def _part(self, content: bytes) -> str:
        """Store a shared part once; return its name."""
        name = hashlib.sha256(content).hexdigest()
        self._execute("INSERT OR IGNORE INTO parts VALUES (?, ?)", name, content)
        return name

    def _insert(self, table: str, **row: Any) -> None:
        places = ", ".join("?" * len(row))
        self._execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())

    def _execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with _plain_errors(self.path):
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with _plain_errors(self.path), self._connection:  # commits, or rolls back after an error
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _keep_checksums(self, keys: Iterable[str]) -> None:
        """Renew the checksums of some setups; a file from before there were checksums gets all of them."""
        if not self._has_checksums():
            self._execute("CREATE TABLE main.checksums (key TEXT PRIMARY KEY, sha256 TEXT NOT NULL)")
            keys = self._all_keys()
        for key in keys:
            self._execute("INSERT OR REPLACE INTO main.checksums VALUES (?, ?)", key, self._checksum(key))

    def _check_checksums(self) -> None:
        """Compare everything with its checksum."""
        # A changed byte in an index hides rows from queries, though every row is intact.
        if self._execute("PRAGMA main.integrity_check(1)") != [("ok",)]:
            raise BilexError(f"{self.path}: an index of it {_DAMAGED}.")
        if self._has_checksums():
            kept = dict(self._execute("SELECT key, sha256 FROM main.checksums"))
            for key in self._all_keys() | set(kept):
                if kept.get(key) != self._checksum(key):
                    raise BilexError(f"{self.path}: what it holds of the setup {key} {_DAMAGED}.")
        for name, content in self._execute("SELECT sha256, content FROM main.parts"):
            if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != name:
                raise BilexError(f"{self.path}: a part of the predictions {_DAMAGED}.")

    def _has_checksums(self) -> bool:
        return bool(self._execute("SELECT 1 FROM main.sqlite_master WHERE name = 'checksums'"))

    def _all_keys(self) -> set[str]:
        return {key for table in _TABLES for (key,) in self._execute(f"SELECT key FROM main.{table}")}

    def _checksum(self, key: str) -> str:
        """A hash of all rows of a setup, independent of their order."""
        found = hashlib.sha256()
        for table in _TABLES:
            rows = self._execute(f"SELECT * FROM main.{table} WHERE key = ?", key)
            for row in sorted(map(repr, rows)):
                found.update(f"{table} {row}\n".encode("utf-8", "surrogatepass"))
        return found.hexdigest()


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables in a new file; refuse a file that is no results file of this version."""

    def is_empty() -> bool:
        return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    if is_empty():
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            if is_empty():  # another process may have been faster
                schema = (resources.files("bilex_bench") / "store_schema.sql").read_text(encoding="utf-8")
                for statement in schema.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise BilexError(f"{path}: is an SQLite file, but not a results file of bilex; choose another name.")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        advice = "update bilex" if version > VERSION else "start a new one, or use the bilex that wrote it"
        raise BilexError(
            f"{path}: is a results file of format {version}, and this bilex reads format {VERSION}; {advice}."
        )


@contextlib.contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite, and of content that cannot be decoded, into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        message = " ".join(str(error).split())
        kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        known = _REFUSALS.get(kind, "cannot be used ({message})")
        raise BilexError(f"{path}: {known.format(message=message)}.") from error
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        raise BilexError(
            f"{path}: is damaged, what it holds cannot be read ({error}); restore the file from a copy."
        ) from error


def _to_json(value: Any) -> str:
    """JSON that SQLite's own functions read: NaN and infinities are null, numpy's values plain ones."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def _row(result: Result) -> dict[str, Any]:
    values = {name: getattr(result, name) for name in _JSON_COLUMNS}
    written = {name: None if value is None else _to_json(value) for name, value in values.items()}
    own = {name: getattr(result, name) for name in _PLAIN_COLUMNS}
    return {"key": result.setup.key, "setup": _to_json(result.setup.as_dict())} | written | own


def _result(label: str | None, row: dict[str, Any]) -> Result:
    del row["key"]
    for name in ("setup", *_JSON_COLUMNS):
        row[name] = None if row[name] is None else json.loads(row[name])
    setup = Setup(**row.pop("setup"))
    return Result(setup=setup if label is None else replace(setup, label=label), **row)


def _pack(value: Any) -> bytes:
    """A plain value as compressed JSON; equal values give equal bytes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def _unpack(content: bytes) -> Any:
    return json.loads(zlib.decompress(content).decode("utf-8", "surrogatepass"))


def _pack_matrix(matrix: npt.NDArray[np.float32]) -> bytes:
    return zlib.compress(np.ascontiguousarray(matrix, dtype="<f4").tobytes(), 1)


def _join_sample(words: bytes, source: bytes, target: bytes) -> WordSample:
    source_words, target_words = map(tuple, _unpack(words))
    return WordSample(
        source_words,
        target_words,
        _unpack_matrix(source, len(source_words)),
        _unpack_matrix(target, len(target_words)),
    )


def _unpack_matrix(content: bytes, rows: int) -> npt.NDArray[np.float32]:
    flat = np.frombuffer(zlib.decompress(content), dtype="<f4")
    return flat.astype(np.float32).reshape(rows, -1 if rows else 0)


def _split_predictions(predictions: Sequence[Prediction]) -> tuple[bytes, bytes]:
    """What predictions share with those of other setups, and what is their own."""
    words = [[p.source, p.translations, p.band, int(p.identical)] for p in predictions]
    retrievals, ranked = (
        (list(predictions[0].answers), list(predictions[0].ranks)) if predictions else ([], [])
    )
    own = {
        "retrievals": retrievals,
        "ranked": ranked,
        "answers": [[p.answers[name] for name in retrievals] for p in predictions],
        "ranks": [[int(p.ranks[name]) for name in ranked] for p in predictions],
        "leaked": [place for place, p in enumerate(predictions) if p.leaked],
    }
    return _pack(words), _pack(own)


def _join_predictions(words: bytes, own: bytes) -> tuple[Prediction, ...]:
    rows, found = _unpack(words), _unpack(own)
    leaked = set(found["leaked"])
    return tuple(
        Prediction(
            source=source,
            translations=tuple(right),
            band=band,
            identical=bool(identical),
            leaked=place in leaked,
            answers={name: tuple(a) for name, a in zip(found["retrievals"], answers, strict=True)},
            ranks=dict(zip(found["ranked"], ranks, strict=True)),
        )
        for place, ((source, right, band, identical), answers, ranks) in enumerate(
            zip(rows, found["answers"], found["ranks"], strict=True)
        )
    )
