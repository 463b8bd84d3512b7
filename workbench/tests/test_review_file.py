"""The review file under attack: moved, locked, damaged, read-only, and asked by many threads."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bilex.core.errors import BilexError
from bilex_workbench import schema
from bilex_workbench.repair import repair
from bilex_workbench.schema import review_file
from bilex_workbench.store import Store, remember


def decide(client, source, reviewer="aino"):
    body = {"source": source, "reviewer": reviewer, "verdict": "accept", "accepted": ["free text"]}
    return client.post("/api/review/decide", json=body)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors with /proc")
def test_threads_that_end_leave_no_connection_open(tmp_path):
    store = Store(tmp_path / "one.sqlite")

    def burst():
        with ThreadPoolExecutor(30) as pool:
            list(pool.map(lambda _: store.number("SELECT count(*) FROM facts"), range(300)))

    burst()
    before = open_files()
    for _ in range(6):
        burst()
    assert open_files() <= before + 3 * 8  # a pool of eight readers, of three files each
    store.close()


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


def test_a_lock_of_another_program_stops_no_reader_and_every_answer_is_true(client, bench, model):
    words = bench.engine.space.source.index_to_key
    other = sqlite3.connect(review_file(model), isolation_level=None, timeout=10)
    other.execute("BEGIN IMMEDIATE")
    answers: list[int] = []
    writers = [
        threading.Thread(target=lambda word=word: answers.append(decide(client, word).status_code))
        for word in words[:3]
    ]
    started = time.monotonic()
    for writer in writers:
        writer.start()
    time.sleep(0.5)
    with ThreadPoolExecutor(16) as pool:  # more than the pool holds
        reads = list(pool.map(lambda _: client.get("/api/entries?limit=1").status_code, range(64)))
    assert time.monotonic() - started < 5, "readers waited for the lock"
    for writer in writers:
        writer.join()
    other.execute("ROLLBACK")
    assert set(reads) == {200} and answers == [503] * 3
    time.sleep(0.2)
    assert client.get("/api/review/status").json()["decisions"] == 0  # nothing is stored later
    assert decide(client, words[0]).status_code == 200
    other.close()


def test_a_disk_that_is_full_stores_nothing_and_says_so(client, bench):
    bench.store._writer.execute("PRAGMA max_page_count=1")  # SQLite's own way to a full disk
    answer = client.post(
        "/api/review/note",
        json={"source": bench.engine.space.source.index_to_key[0], "reviewer": "a", "note": "x" * 9_000},
    )
    assert answer.status_code == 503 and "nothing was stored" in answer.json()["detail"]


def filled(path: Path, decisions: int) -> None:
    store = Store(path)
    with store.writing() as connection:
        for number in range(decisions):
            connection.execute(
                "INSERT INTO decisions (source, reviewer, verdict, accepted, rejected, candidates, kind, at) "
                "VALUES (?, 'aino', 'accept', '[]', '[]', '[]', 'review', '2026')",
                (f"word {number} " + "x" * 100,),
            )
            connection.execute(
                "INSERT INTO notes (source, reviewer, note, at) VALUES (?, 'aino', 'a note', '2026')",
                (f"word {number}",),
            )
        remember(connection, "entries_of", "a model")
    store.close()


def damage(path: Path, pages: slice) -> None:
    content = bytearray(path.read_bytes())
    for page in range(*pages.indices(len(content) // 4096)):
        content[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(content)


def test_a_damaged_file_is_refused_and_repaired(tmp_path):
    path = tmp_path / "en-fi.review.sqlite"
    filled(path, 3_000)
    damage(path, slice(-3, -1))
    with pytest.raises(BilexError, match="bilex review repair"):
        Store(path)
    rescued, kept = repair(path)
    assert kept.is_file() and rescued["decisions"] + rescued["notes"] > 5_000
    store = Store(path)
    words = [row["source"] for row in store.all("SELECT source FROM decisions ORDER BY id")]
    assert len(words) == rescued["decisions"] and words[0].startswith("word 0 ")
    assert store.fact("entries_of") is None  # the table is filled again
    store.close()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("at", [1, 5, 20, 60, 100])
def test_every_damaged_page_is_found_or_harmless(tmp_path, at):
    path = tmp_path / "en-fi.review.sqlite"
    filled(path, 3_000)
    damage(path, slice(at, at + 1))
    try:
        store = Store(path)
    except BilexError:
        rescued, _ = repair(path)
        assert rescued["decisions"] > 2_500 or rescued["notes"] == 3_000
        return
    assert store.number("SELECT count(*) FROM decisions") == 3_000
    store.close()


def test_a_file_that_is_no_database_cannot_be_repaired(tmp_path):
    path = tmp_path / "en-fi.review.sqlite"
    path.write_bytes(b"no database at all" * 100)
    before = path.read_bytes()
    with pytest.raises(BilexError, match="restore a copy"):
        repair(path)
    assert path.read_bytes() == before


def test_a_file_in_use_is_not_repaired(bench, model):
    with pytest.raises(BilexError, match="another 'bilex serve'"):
        repair(review_file(model))


def test_an_older_file_is_copied_before_it_is_changed(tmp_path, monkeypatch):
    path = tmp_path / "old.sqlite"
    filled(path, 10)
    version = schema.VERSION
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "DELETE FROM decisions;"))
    monkeypatch.setattr(schema, "VERSION", version + 1)
    store = Store(path)
    assert store.number("SELECT count(*) FROM decisions") == 0
    store.close()
    copy = sqlite3.connect(path.with_name(f"{path.name}.version-{version}"))
    assert copy.execute("SELECT count(*) FROM decisions").fetchone()[0] == 10
    assert copy.execute("PRAGMA user_version").fetchone()[0] == version
    copy.close()


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    folder = tmp_path / "read-only"
    folder.mkdir()
    path = folder / "one.sqlite"
    filled(path, 1)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")  # so that no other file needs to be written
    connection.close()
    path.chmod(0o444)
    folder.chmod(0o555)
    program = (
        "import sys, os; from pathlib import Path; from bilex_workbench.store import Store; "
        "os.geteuid() == 0 and os.setuid(65534); Store(Path(sys.argv[1]))"
    )
    open_to_all = shutil.copytree(folder, Path("/tmp") / f"bilex-read-only-{os.getpid()}")
    try:
        ended = subprocess.run(
            [sys.executable, "-c", program, str(open_to_all / "one.sqlite")],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    finally:
        open_to_all.chmod(0o755)
        shutil.rmtree(open_to_all)
        folder.chmod(0o755)
    assert "BilexError" in ended.stderr and "one.sqlite" in ended.stderr, ended.stderr
