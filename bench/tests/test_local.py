"""Families in processes of their own: the same results, and no trouble of one is trouble of another."""

from __future__ import annotations

import multiprocessing
from contextlib import closing
from pathlib import Path

import pytest

import runner_world as world
from bilex.core.machine import Processor
from bilex_bench import local
from bilex_bench.engine import run
from bilex_bench.local import LocalExecutor, default_workers, how_it_ended, threads_for
from bilex_bench.results import Result, families
from bilex_bench.work import Workplace


def test_workers_survive_trouble_and_give_what_the_work_itself_gives(
    folder: world.KnownFolder, tmp_path: Path
) -> None:
    """One run with everything in it, since starting processes takes long."""

    def troublesome(trouble: str, times: int = 1000) -> world.Setup:
        settings = {"trouble": trouble, "times": times, "log": str(tmp_path / trouble)}
        return world.setup("troublesome", settings=settings)

    good = [world.setup("procrustes"), world.setup("advanced"), world.setup("procrustes", pair="cc-dd")]
    dies_once, error, memory = troublesome("die", times=1), troublesome("error"), troublesome("memory")
    plan = world.plan_for(folder, tmp_path)
    heard = world.Noted()
    heard.take(run(LocalExecutor(plan, 2), families([error, dies_once, memory, *good])))
    assert multiprocessing.active_children() == []
    found = {r.setup.key: r for r in heard.results}
    assert len(found) == len(heard.results) == 6
    elsewhere = Workplace(world.plan_for(folder, tmp_path / "elsewhere"))
    by_hand = [r for setup in good for r in elsewhere.run([setup])]
    for result in by_hand:
        assert world.outcomes([result]) == world.outcomes([found[result.setup.key]])
    assert found[error.key].error == "this method fails on purpose; do not use it."
    assert found[dies_once.key].status == "done" and found[dies_once.key].attempts == 2
    assert found[memory.key].status == "failed" and found[memory.key].attempts == 2
    assert "memory ran out" in str(found[memory.key].error)
    logs = [world.fits_logged(setup.settings["log"]) for setup in (error, dies_once, memory)]
    assert [len(lines) for lines in logs] == [1, 2, 2]
    assert len(heard.retried) == 2 and any("SIGKILL" in reason for reason in heard.retried)
    assert heard.most_at_once == 2
    assert heard.steps


def test_closing_the_events_ends_the_run_and_its_workers(folder: world.KnownFolder, tmp_path: Path) -> None:
    executor = LocalExecutor(world.plan_for(folder, tmp_path), 1)
    with closing(run(executor, families(world.grid()))) as all_news:
        assert any(isinstance(event, Result) for _, event in all_news)
    assert multiprocessing.active_children() == []


def test_workers_and_threads_fill_the_cores_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "processor", lambda: Processor("imitated", frozenset(), threads=16))
    monkeypatch.setattr(local, "total_memory", lambda: 64 << 30)
    assert default_workers(on_gpu=False) == 4 and threads_for(4) == 4
    assert default_workers(on_gpu=True) == 1 and threads_for(1) == 16
    assert threads_for(3) == 5
    monkeypatch.setattr(local, "total_memory", lambda: 13 << 30)
    assert default_workers(on_gpu=False) == 2
    monkeypatch.setattr(local, "processor", lambda: Processor("imitated", frozenset(), threads=2))
    assert default_workers(on_gpu=False) == 1 and threads_for(4) == 1


def test_the_end_of_a_worker_is_reported_in_words() -> None:
    assert "SIGKILL, as Linux does when memory runs out" in how_it_ended(-9)
    assert how_it_ended(-11) == "its worker process was killed by SIGSEGV."
    assert "exit code 1" in how_it_ended(1)
