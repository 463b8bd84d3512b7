"""The review file: created, brought up to date, repaired; moved, locked, damaged and read-only files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.model import Translator
from bilex_workbench import database
from bilex_workbench.database import Database, fact, repair, review_file, set_facts
from bilex_workbench.workbench import Settings, Workbench

# What people decided, as the first versions of the file stored it.
VERSION_1 = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, reviewer TEXT NOT NULL, verdict TEXT NOT NULL,
    accepted TEXT NOT NULL, rejected TEXT NOT NULL, candidates TEXT NOT NULL, best TEXT,
    note TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL, at TEXT NOT NULL, undone TEXT
);
CREATE TABLE notes (
    source TEXT NOT NULL, reviewer TEXT NOT NULL, note TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (source, reviewer)
) WITHOUT ROWID;
CREATE TABLE entries (row INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE, source_key TEXT NOT NULL);
CREATE TABLE audits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL, reviewer TEXT NOT NULL, size INTEGER NOT NULL, strata TEXT NOT NULL
);
"""
LATER = {
    2: "ALTER TABLE audits ADD COLUMN model TEXT;",
    4: "ALTER TABLE decisions ADD COLUMN unsure TEXT NOT NULL DEFAULT '[]';",
    6: """
       DROP TABLE notes;
       CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, reviewer TEXT NOT NULL,
       note TEXT NOT NULL, at TEXT NOT NULL, UNIQUE (source, reviewer));
       """,
}
DECISION = (
    "INSERT INTO decisions (source, reviewer, verdict, accepted, rejected, candidates, kind, at) "
    "VALUES (?, 'aino', 'accept', '[\"house\"]', '[\"barn\"]', '[]', 'review', '2026')"
)


def decide(client, source, reviewer="aino"):
    body = {"source": source, "reviewer": reviewer, "verdict": "accept", "accepted": ["free text"]}
    return client.post("/api/review/decide", json=body)


def count(path, table):
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_the_review_file_is_beside_the_model(bench, model):
    assert review_file(model).is_file() and review_file(model).parent == model.parent
    bench.stop()
    Translator.load(model, verify=True)  # nothing was added to the folder


def test_two_servers_on_one_model(bench, model, tmp_path):
    with pytest.raises(BilexError, match="is in use by another process"):
        Workbench(Settings(work=tmp_path), model)
    with pytest.raises(BilexError, match="is in use by another process"):
        repair(review_file(model))
    bench.stop()
    Workbench(Settings(work=tmp_path), model).stop()


def test_a_newer_file_is_one_sentence(model, tmp_path):
    path = review_file(model)
    Database(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version={database.VERSION + 1}")
    with pytest.raises(BilexError, match="install a newer bilex"):
        Workbench(Settings(work=tmp_path), model)


@pytest.mark.parametrize("version", range(1, database.VERSION))
def test_an_older_file_is_copied_and_brought_up_to_date(tmp_path, version):
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_1 + "".join(sql for number, sql in LATER.items() if number <= version))
        old.execute(f"PRAGMA application_id={database.APPLICATION}")
        old.execute(f"PRAGMA user_version={version}")
        old.execute("INSERT INTO entries (row, source, source_key) VALUES (0, 'talo', 'talo')")
        old.execute("INSERT INTO facts VALUES ('entries_of', '\"a model\"'), ('measured', '{\"a\": 1}')")
        old.execute("INSERT INTO notes (source, reviewer, note, at) VALUES ('talo', 'a', 'x', '2026')")
        old.execute("INSERT INTO audits (created, reviewer, size, strata) VALUES ('2026', 'a', 5, '[]')")
        old.execute(DECISION, ("talo",))
        old.commit()
    opened = Database(path)
    with opened.reading() as db:
        (decision,) = db.execute("SELECT accepted, rejected, unsure FROM decisions").fetchall()
        assert tuple(decision) == ('["house"]', '["barn"]', "[]")
        assert db.execute("SELECT note FROM notes").fetchone()[0] == "x"
        assert tuple(db.execute("SELECT size, model FROM audits").fetchone()) == (5, None)
        assert fact(db, "measured") == {"a": 1}
        assert fact(db, "entries_of") is None  # the table is filled again
    opened.close()
    copy = path.with_name(f"{path.name}.version-{version}")
    assert count(copy, "decisions") == 1
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == version


def test_files_of_others_are_refused(tmp_path):
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE mine (x)")
    with pytest.raises(BilexError, match="another program"):
        Database(other)
    garbage = tmp_path / "garbage.sqlite"
    garbage.write_bytes(b"no database at all" * 100)
    for open_it, message in ((Database, r"garbage\.sqlite"), (repair, "restore a copy")):
        with pytest.raises(BilexError, match=message):
            open_it(garbage)
    assert garbage.read_bytes() == b"no database at all" * 100


def test_an_error_undoes_the_whole_transaction(tmp_path):
    opened = Database(tmp_path / "one.sqlite")
    with pytest.raises(RuntimeError), opened.writing() as db:
        set_facts(db, a=1)
        raise RuntimeError
    with opened.reading() as db:
        assert fact(db, "a") is None
    opened.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors with /proc")
def test_threads_that_end_leave_no_connection_open(tmp_path):
    opened = Database(tmp_path / "one.sqlite")

    def read(_):
        with opened.reading() as db:
            return fact(db, "a")

    def burst():
        with ThreadPoolExecutor(30) as pool:
            list(pool.map(read, range(300)))
        return len(list(Path("/proc/self/fd").iterdir()))

    before = burst()
    assert max(burst() for _ in range(3)) <= before + 3 * 8  # a pool of eight readers, of three files each
    opened.close()


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_file_that_was_moved_away_takes_no_decision(client, bench, model, suffix):
    words = bench.engine.space.source.index_to_key
    assert decide(client, words[0]).status_code == 200
    path = review_file(model)
    path = path.with_name(path.name + suffix)
    path.rename(path.with_name("elsewhere"))
    answer = decide(client, words[1])
    assert answer.status_code == 503 and "nothing was stored" in answer.json()["detail"]
    assert client.get("/api/entries").status_code == 200
    path.with_name("elsewhere").rename(path)
    assert decide(client, words[1]).status_code == 200
    assert client.get("/api/review/status").json()["decisions"] == 2


def test_a_lock_of_another_program_stops_no_reader_and_every_answer_is_true(
    client, bench, model, monkeypatch
):
    bench.database._writer.execute("PRAGMA busy_timeout=1000")
    monkeypatch.setattr(database, "_BUSY_SECONDS", 1.0)
    words = bench.engine.space.source.index_to_key
    other = sqlite3.connect(review_file(model), isolation_level=None, timeout=10)
    other.execute("BEGIN IMMEDIATE")
    answers: list[int] = []
    writers = [
        threading.Thread(target=lambda word=word: answers.append(decide(client, word).status_code))
        for word in words[:3]
    ]
    for writer in writers:
        writer.start()
    time.sleep(0.2)
    with ThreadPoolExecutor(16) as pool:  # more than the pool holds
        reads = list(pool.map(lambda _: client.get("/api/entries?limit=1").status_code, range(64)))
    assert not other.execute("SELECT count(*) FROM decisions").fetchone()[0]
    for writer in writers:
        writer.join()
    other.execute("ROLLBACK")
    assert set(reads) == {200} and answers == [503] * 3
    time.sleep(0.2)
    assert client.get("/api/review/status").json()["decisions"] == 0  # nothing is stored later
    assert decide(client, words[0]).status_code == 200
    other.close()


def test_a_disk_that_is_full_stores_nothing_and_says_so(client, bench):
    bench.database._writer.execute("PRAGMA max_page_count=1")  # SQLite's own way to a full disk
    answer = client.post(
        "/api/review/note",
        json={"source": bench.engine.space.source.index_to_key[0], "reviewer": "a", "note": "x" * 9_000},
    )
    assert answer.status_code == 503 and "nothing was stored" in answer.json()["detail"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A review file with many decisions and notes."""
    path = tmp_path_factory.mktemp("filled") / "en-fi.review.sqlite"
    opened = Database(path)
    with opened.writing() as db:
        for number in range(3_000):
            db.execute(DECISION, (f"word {number} " + "x" * 100,))
            db.execute(
                "INSERT INTO notes (source, reviewer, note, at) VALUES (?, 'aino', 'a note', '2026')",
                (f"word {number}",),
            )
        set_facts(db, entries_of="a model")
    opened.close()
    return path


def damaged(filled: Path, folder: Path, pages: slice) -> Path:
    content = bytearray(filled.read_bytes())
    for page in range(*pages.indices(len(content) // 4096)):
        content[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path = folder / filled.name
    path.write_bytes(content)
    return path


def test_a_damaged_file_is_refused_and_repaired(filled, tmp_path):
    path = damaged(filled, tmp_path, slice(-3, -1))
    with pytest.raises(BilexError, match="bilex review repair"):
        Database(path)
    rescued, kept = repair(path)
    assert kept.is_file() and rescued["decisions"] + rescued["notes"] > 5_000
    opened = Database(path)
    with opened.reading() as db:
        words = [source for (source,) in db.execute("SELECT source FROM decisions ORDER BY id")]
        assert fact(db, "entries_of") is None  # the table is filled again
    assert len(words) == rescued["decisions"] and words[0].startswith("word 0 ")
    opened.close()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("at", [1, 5, 20, 60, 100])
def test_every_damaged_page_is_found_or_harmless(filled, tmp_path, at):
    path = damaged(filled, tmp_path, slice(at, at + 1))
    try:
        Database(path).close()
    except BilexError:
        rescued, _ = repair(path)
        assert rescued["decisions"] > 2_500 or rescued["notes"] == 3_000
    else:
        assert count(path, "decisions") == 3_000


def test_a_file_that_cannot_be_written_is_refused_at_the_start(filled):
    program = (
        "import sys, os; from pathlib import Path; from bilex_workbench.database import Database; "
        "os.geteuid() == 0 and os.setuid(65534); Database(Path(sys.argv[1]))"
    )
    folder = Path("/tmp") / f"bilex-read-only-{os.getpid()}"  # where any user may read
    folder.mkdir()
    try:
        path = Path(shutil.copy(filled, folder))
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode=DELETE")  # so that no other file needs to be written
        path.chmod(0o444)
        folder.chmod(0o555)
        ended = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert "ProblemError" in ended.stderr and path.name in ended.stderr, ended.stderr
