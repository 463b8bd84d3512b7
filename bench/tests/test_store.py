"""The results file: what goes in comes out, whatever happens in between."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex_bench.results import Result, Setup
from bilex_bench.store import MergeReport, ResultsStore
from fabricated import fabricated, fabricated_results

HERE = Path(__file__).parent


def setup(**changes: object) -> Setup:
    given = {"dataset": "xling", "pair": "en-fi", "seeds": "5k", "method": "c1", "label": "C1"} | changes
    return Setup(**given)  # type: ignore[arg-type]


def failed(given: Setup, attempts: int = 1) -> Result:
    return Result(setup=given, status="failed", error="out of memory.", attempts=attempts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite"


def comparable(result: Result) -> dict[str, object]:
    """Everything but the vectors, which numpy compares."""
    return {part.name: getattr(result, part.name) for part in fields(result) if part.name != "samples"}


def test_everything_comes_back_equal(path: Path) -> None:
    given = fabricated_results(("en-fi", "fi-fr"), ("5k", "1k"), samples=("fi-fr",), failed=True, words=60)
    with ResultsStore.open(path) as store:
        assert all(store.add(result) for result in given)
    with ResultsStore.open(path, create=False) as store:
        found = store.results(predictions=True, samples=True)
        assert [comparable(result) for result in found] == [comparable(result) for result in given]
        assert any(p.leaked for result in given for p in result.predictions.get("forward", ()))
        for ours, theirs in zip(found, given, strict=True):
            assert ours.samples.keys() == theirs.samples.keys()
            for name, sample in theirs.samples.items():
                assert ours.samples[name].source_words == sample.source_words
                assert ours.samples[name].target_words == sample.target_words
                assert ours.samples[name].source.dtype == np.float32
                np.testing.assert_array_equal(ours.samples[name].source, sample.source)
                np.testing.assert_array_equal(ours.samples[name].target, sample.target)
        assert store.keys() == {result.setup.key for result in given if result.status == "done"}
        assert len(store.keys("failed")) == 1


def test_heavy_parts_are_left_out_unless_asked_for(path: Path) -> None:
    result = fabricated_results(("en-fi",), ("5k",), samples=("en-fi",), words=5)[-1]
    with ResultsStore.open(path) as store:
        store.add(result)
        (light,) = store.results()
        assert not light.predictions and not light.samples
        assert store.predictions(result.setup.key) == result.predictions
        assert list(store.samples(result.setup.key)) == list(result.samples)
        assert store.predictions("unknown") == {}


def test_words_of_a_pair_are_stored_once(path: Path) -> None:
    with ResultsStore.open(path) as store:
        for method in ("c1", "rcsls", "fipp", "procrustes"):
            store.add(fabricated(setup(method=method), 30))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM predictions").fetchone() == (8,)
        assert connection.execute("SELECT count(*) FROM parts").fetchone() == (2,)  # one per direction


def test_a_done_setup_stays_and_a_failed_one_is_replaced(path: Path) -> None:
    done = fabricated(setup(), 5)
    with ResultsStore.open(path) as store:
        assert store.attempts(done.setup.key) == 0
        assert store.add(failed(setup()))
        assert store.add(failed(setup(), attempts=2))
        assert store.attempts(done.setup.key) == 2
        assert store.keys() == set()
        assert store.add(done)
        assert not store.add(replace(done, device="cuda"))
        assert not store.add(failed(setup()))
        (kept,) = store.results(predictions=True)
        assert comparable(kept) == comparable(done)


def test_one_experiment_under_two_names(path: Path) -> None:
    first, second = setup(label="C2 (C1)"), setup(label="C2 [mBERT]")
    with ResultsStore.open(path) as store:
        store.name([first, second, setup(pair="en-fr")])
        store.add(fabricated(first, 5))
        assert [result.setup.label for result in store.results()] == ["C2 (C1)", "C2 [mBERT]"]
        assert len(store.keys(None)) == 1


def test_figures_that_json_has_not(path: Path) -> None:
    result = replace(
        fabricated(setup(), 5),
        report={"losses": [float("nan"), np.float32(0.5), np.arange(2)], "path": Path("x"), "pairs": (1, 2)},
    )
    with ResultsStore.open(path) as store:
        store.add(result)
        assert store.results()[0].report == {"losses": [None, 0.5, [0, 1]], "path": "x", "pairs": [1, 2]}


def test_the_view_reads_as_the_results_do(path: Path) -> None:
    given = [fabricated(setup(method=method, label=method.upper()), 40) for method in ("c1", "rcsls")]
    with ResultsStore.open(path) as store:
        for result in (*given, failed(setup(pair="en-ru"))):
            store.add(result)
    query = (
        "SELECT label, direction, retrieval, p1, p5, p10, mrr, p1_leak_free, covered, seconds, gigabytes, "
        "pair, seeds, dataset FROM scores"
    )
    with sqlite3.connect(path) as connection:
        rows = {row[:3]: row[3:] for row in connection.execute(query)}
    assert len(rows) == 8
    for result in given:
        for direction in ("forward", "backward"):
            for retrieval in ("nn", "csls"):
                expected = [
                    result.metric(direction, retrieval, name) for name in ("p@1", "p@5", "p@10", "mrr")
                ]
                expected.append(result.metric(direction, retrieval, leak_free=True))
                row = rows[result.setup.label, direction, retrieval]
                assert list(row[:5]) == expected
                assert row[5:] == (40, sum(result.seconds.values()), 2.5, "en-fi", "5k", "xling")


def test_merge(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    shared, own, theirs = (setup(method=name, label=name) for name in ("c1", "rcsls", "fipp"))
    broken = setup(method="procrustes")
    with ResultsStore.open(path) as store:
        for result in (fabricated(shared, 8), fabricated(own, 8), failed(broken)):
            store.add(result)
    with ResultsStore.open(other) as store:
        different = fabricated(shared, 9)
        both = fabricated_results(("ru-fr",), ("5k",), samples=("ru-fr",), words=8)
        for result in (different, fabricated(theirs, 8), fabricated(broken, 8), failed(own), *both):
            store.add(result)
        store.name([replace(shared, label="another name")])
        content = [comparable(result) for result in store.results(predictions=True)]
    with ResultsStore.open(path) as store:
        assert store.merge(other) == MergeReport(1 + len(both), 2, 1, 1)
        assert store.merge(other) == MergeReport(0, 4 + len(both), 0, 1)
        found = {result.setup.key: result for result in store.results(predictions=True, samples=True)}
        assert comparable(found[broken.key])["status"] == "done"
        for result in (fabricated(shared, 8), fabricated(own, 8), fabricated(theirs, 8), *both):
            assert found[result.setup.key].predictions == result.predictions
            assert found[result.setup.key].samples.keys() == result.samples.keys()
        assert "another name" in {result.setup.label for result in store.results()}
        with pytest.raises(BilexError, match="itself"):
            store.merge(path)
    with ResultsStore.open(other) as store:
        assert [comparable(result) for result in store.results(predictions=True)] == content


def spoil_version(path: Path, pragma: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(pragma)


@pytest.mark.parametrize(
    ("pragma", "sentence"),
    [
        ("PRAGMA user_version = 7", "format 7, and this bilex reads format 1; update bilex"),
        ("PRAGMA user_version = 0", "format 0, and this bilex reads format 1; start a new one"),
        ("PRAGMA application_id = 5", "not a results file of bilex"),
    ],
)
def test_files_of_another_version_are_refused(path: Path, pragma: str, sentence: str) -> None:
    ResultsStore.open(path).close()
    spoil_version(path, pragma)
    with pytest.raises(BilexError, match=sentence):
        ResultsStore.open(path)


def test_other_files_are_refused_and_left_alone(path: Path, tmp_path: Path) -> None:
    path.write_text("en\tfi\n" * 500, encoding="utf-8")
    with pytest.raises(BilexError, match="is not a results file"):
        ResultsStore.open(path)
    assert path.read_text(encoding="utf-8") == "en\tfi\n" * 500
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE bookmarks (address)")
    with pytest.raises(BilexError, match="not a results file of bilex"):
        ResultsStore.open(foreign)
    with pytest.raises(BilexError, match="is a folder"):
        ResultsStore.open(tmp_path)
    with pytest.raises(BilexError, match="no such results file"):
        ResultsStore.open(tmp_path / "missing.sqlite", create=False)
    assert not (tmp_path / "missing.sqlite").exists()


def test_a_damaged_file_is_reported(path: Path) -> None:
    with ResultsStore.open(path) as store:
        for result in fabricated_results(("en-fi",), ("5k", "1k"), words=60):
            store.add(result)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BilexError, match="is damaged"), ResultsStore.open(path) as store:
        store.results(predictions=True)
    with sqlite3.connect(path) as connection:
        path.write_bytes(whole)
        connection.execute("UPDATE predictions SET own = zeroblob(20)")
    with ResultsStore.open(path) as store, pytest.raises(BilexError, match="was changed or damaged"):
        store.results(predictions=True)


def test_a_full_disk_costs_only_the_result_that_did_not_fit(path: Path) -> None:
    given = fabricated_results(("en-fi", "en-fr"), ("5k", "1k"), words=100)
    kept = []
    with ResultsStore.open(path) as store:
        store._connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(BilexError, match=r"disk is full; earlier results are intact; free some space"):
            for result in given:
                store.add(result)
                kept.append(result)
        assert 0 < len(kept) < len(given)
        assert store.keys() == {result.setup.key for result in kept}
    with ResultsStore.open(path) as store:
        found = store.results(predictions=True)
        assert [comparable(result) for result in found] == [comparable(result) for result in kept]
        assert store.add(given[len(kept)])


def start(*code: str) -> subprocess.Popen[str]:
    lines = "\n".join(("import time", *code))
    return subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True)


def test_a_kill_leaves_whole_results(path: Path) -> None:
    writer = start(
        "from fabricated import fabricated",
        "from bilex_bench.results import Setup",
        "from bilex_bench.store import ResultsStore",
        f"store = ResultsStore.open({str(path)!r})",
        "lock = store.claim(); lock.__enter__()",
        "for seed in range(100000):",
        "    setup = Setup(dataset='xling', pair='en-fi', seeds='5k', method='c1', seed=seed)",
        "    store.add(fabricated(setup, 50)); print(seed, flush=True)",
    )
    try:
        caught = [writer.stdout.readline() for _ in range(5)]
        time.sleep(0.03)
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.communicate()[0]
    finished = len(caught) + len(rest.splitlines())
    with ResultsStore.open(path) as store, store.claim():  # the dead runner's lock keeps nobody out
        found = store.results(predictions=True)
        assert finished <= len(found) <= finished + 1
        for result in found:
            assert comparable(result) == comparable(fabricated(result.setup, 50))


def test_one_runner_at_a_time_and_readers_free(path: Path) -> None:
    with ResultsStore.open(path) as store:
        store.add(fabricated(setup(), 5))
    holder = start(
        "from bilex_bench.store import ResultsStore",
        f"with ResultsStore.open({str(path)!r}).claim():",
        "    print('held', flush=True); time.sleep(60)",
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with ResultsStore.open(path) as store:
            with pytest.raises(BilexError, match=f"is in use by another process \\({holder.pid}\\)"):
                store.claim().__enter__()
            assert len(store.results()) == 1
    finally:
        holder.terminate()
        holder.communicate()
    with ResultsStore.open(path) as store:
        with store.claim():
            assert list(path.parent.glob(".results.sqlite.*-lock"))
        with store.claim(), pytest.raises(BilexError, match="is in use"):
            store.claim().__enter__()
        assert not list(path.parent.glob(".results.sqlite.*-lock"))


def test_a_figure_that_was_changed_in_the_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with ResultsStore.open(path) as store:
        store.add(fabricated(setup()))
    content = path.read_bytes()
    place = content.index(b'"p@1":') + len(b'"p@1":0.')
    path.write_bytes(
        content[:place] + (b"8" if content[place : place + 1] == b"7" else b"7") + content[place + 1 :]
    )
    with ResultsStore.open(path) as store, pytest.raises(BilexError, match="was changed or damaged since"):
        store.results()


def test_a_byte_of_an_index_that_was_changed_is_reported(tmp_path: Path) -> None:
    """The rows are whole, but a look-up by their key would miss them."""
    path = tmp_path / "r.sqlite"
    with ResultsStore.open(path) as store:
        store.add(fabricated(setup()))
        whole = repr(store.results(predictions=True))
    content, key = path.read_bytes(), setup().key.encode()
    places = [at for at in range(len(content)) if content.startswith(key, at)]
    assert len(places) >= 2  # in a table, and in the index of its primary key
    for at in places:
        path.write_bytes(content[:at] + b"\x01" + content[at + 1 :])
        with (
            ResultsStore.open(path) as store,
            pytest.raises(BilexError, match="was changed or damaged since"),
        ):
            assert repr(store.results(predictions=True)) == whole


def test_bytes_of_the_schema_that_are_no_text_are_reported(tmp_path: Path) -> None:
    """SQLite quotes them in its complaint, which then is no text either."""
    path = tmp_path / "r.sqlite"
    with ResultsStore.open(path) as store:
        store.add(fabricated(setup()))
    content = path.read_bytes()
    at = content.index(b"CREATE TABLE ") + len(b"CREATE TABLE")
    path.write_bytes(content[:at] + b"\xad" + content[at + 1 :])
    with pytest.raises(BilexError, match="is damaged"), ResultsStore.open(path) as store:
        store.results(predictions=True)


def test_a_file_of_before_there_were_checksums_is_read_and_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with ResultsStore.open(path) as store:
        store.add(fabricated(setup()))
        expected = [comparable(one) for one in store.results()]
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE checksums")
    connection.commit()
    with ResultsStore.open(path) as store:
        assert [comparable(one) for one in store.results()] == expected
        store.name([])
        assert [comparable(one) for one in store.results()] == expected
    assert connection.execute("SELECT count(*) FROM checksums").fetchone()[0] == 1


@pytest.mark.parametrize("content", [b"", b"x"])
def test_reading_does_not_turn_a_small_file_into_a_results_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(BilexError, match="is not a results file"):
        ResultsStore.open(path, create=False)
    assert path.read_bytes() == content


# Labels of benchmark setups that would steer a terminal or break a table.


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\u202eturned", "\\u202eturned"),
        ("\x9b31m\ud800", "\\x9b31m\\ud800"),
        ("C1, λ = 0.2", "C1, λ = 0.2"),
    ],
)
def test_labels_are_one_harmless_line(label: str, shown: str) -> None:
    setup = Setup(dataset="xling", pair="en-fi", seeds="1k", method="c1", label=label)
    assert setup.label == shown
    assert Setup(**setup.as_dict()) == setup
    setup.label.encode("utf-8")
