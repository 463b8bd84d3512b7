from __future__ import annotations

import sqlite3

import pytest

from bilex.core.errors import BilexError
from bilex_workbench import schema
from bilex_workbench.articles import Article, article_of, keep_article
from bilex_workbench.decisions import decisions_about, refresh
from bilex_workbench.schema import review_file
from bilex_workbench.state import Settings, Workbench
from bilex_workbench.store import Store, remember


def test_the_review_file_is_beside_the_model(bench, model):
    assert review_file(model).is_file() and review_file(model).parent == model.parent
    bench.stop()
    from bilex.model import Translator

    Translator.load(model, verify=True)  # nothing was added to the sealed folder


def test_a_newer_file_is_one_sentence(model, tmp_path):
    path = review_file(model)
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    with pytest.raises(BilexError, match="install a newer bilex"):
        Workbench(Settings(work=tmp_path), model)


def test_an_older_file_is_brought_up_to_date(tmp_path, monkeypatch):
    path = tmp_path / "old.sqlite"
    Store(path).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE more (x);"))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    store = Store(path)
    assert store.all("SELECT * FROM more") == []
    assert store.number("PRAGMA user_version") == schema.VERSION
    store.close()


def test_entries_in_the_order_of_an_older_version_are_made_again(tmp_path, monkeypatch):
    path = tmp_path / "old.sqlite"
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
        older.setattr(schema, "VERSION", 2)
        store = Store(path)
        with store.writing() as connection:
            remember(connection, "entries_of", "a model")
        store.close()
    store = Store(path)
    assert store.fact("entries_of") is None
    store.close()


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "old.sqlite"
    Store(path).close()
    version = schema.VERSION
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE more (x); SELECT nonsense;"))
    monkeypatch.setattr(schema, "VERSION", version + 1)
    with pytest.raises(BilexError, match="damaged"):
        Store(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == version
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'more'").fetchone()


def test_files_of_others_are_refused(tmp_path):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(BilexError, match="another program"):
        Store(other)
    garbage = tmp_path / "garbage.sqlite"
    garbage.write_bytes(b"no database at all" * 100)
    with pytest.raises(BilexError, match=r"garbage\.sqlite"):
        Store(garbage)


def test_two_servers_on_one_model(bench, model, tmp_path):
    with pytest.raises(BilexError, match="another 'bilex serve'"):
        Workbench(Settings(work=tmp_path), model)
    bench.stop()
    Workbench(Settings(work=tmp_path), model).stop()


def test_an_error_undoes_the_whole_transaction(tmp_path):
    store = Store(tmp_path / "one.sqlite")
    with pytest.raises(RuntimeError), store.writing() as connection:
        connection.execute("INSERT INTO facts VALUES ('a', '1')")
        raise RuntimeError
    assert store.fact("a") is None
    store.close()


@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_decisions_of_every_earlier_version_are_kept(tmp_path, monkeypatch, version):
    path = tmp_path / "old.sqlite"
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:version])
        older.setattr(schema, "VERSION", version)
        store = Store(path)
        with store.writing() as connection:
            connection.execute("INSERT INTO entries (row, source, source_key) VALUES (0, 'talo', 'talo')")
            connection.execute(
                "INSERT INTO decisions (source, reviewer, verdict, accepted, rejected, candidates, kind, at) "
                "VALUES ('talo', 'a', 'accept', '[\"house\"]', '[\"barn\"]', '[]', 'review', '2026')"
            )
            connection.execute(
                "INSERT INTO notes (source, reviewer, note, at) VALUES ('talo', 'a', 'x', '2026')"
            )
        store.close()
    store = Store(path)
    (decision,) = decisions_about(store, "talo")
    assert (decision.accepted, decision.rejected, decision.unsure) == (("house",), ("barn",), ())
    with store.writing() as connection:
        refresh(connection, "talo")
        keep_article(connection, "talo", Article(part_of_speech="noun"), "a")
    assert article_of(store, "talo").part_of_speech == "noun"
    assert tuple(store.one("SELECT status, noted FROM entries")) == ("corrected", 1)
    store.close()
