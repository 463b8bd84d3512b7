"""The order of work, families whose worker is lost, and families in processes on this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import runner_world as world
from bilex.core.machine import Processor
from bilex_bench import local
from bilex_bench.engine import Ended, Event, Job, Retried, run
from bilex_bench.local import LocalExecutor, default_workers, how_it_ended, threads_for
from bilex_bench.results import Result, Setup, families
from bilex_bench.runner import in_order
from bilex_bench.work import Workplace

SETUPS = [world.setup(method) for method in ("procrustes", "advanced", "c1")]
DIED, GONE = Ended("it died."), Ended("the machine is gone.", with_machine=True)


class Scripted:
    """An executor of two places; each attempt of a method yields so many results, then its last event."""

    def __init__(self, **script: list[tuple[int, Ended]]) -> None:
        self.script = script
        self.running: list[Job] = []
        self.started: list[tuple[str, int, int]] = []  # method, attempt, families beside it
        self.asked: list[list[Setup]] = []

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *error: object) -> None:
        assert not self.running

    def has_room(self) -> bool:
        return len(self.running) < 2

    def start(self, job: Job) -> None:
        self.started.append((job.setups[0].method, job.attempt, len(self.running)))
        self.asked.append(list(job.setups))
        self.running.append(job)

    def events(self) -> Iterator[tuple[Job, Event]]:
        job = self.running.pop(0)
        script = self.script.get(job.setups[0].method)
        count, end = script.pop(0) if script else (len(job.setups), Ended())
        for setup in job.setups[:count]:
            yield job, Result(setup=setup, status="done")
        yield job, end


def results(executor: Scripted, groups: Sequence[Sequence[Setup]]) -> list[Result]:
    return [event for _, event in run(executor, groups) if isinstance(event, Result)]


def test_families_come_in_the_order_given() -> None:
    executor = Scripted()
    assert [r.setup.method for r in results(executor, families(SETUPS))] == ["procrustes", "advanced", "c1"]


def test_a_lost_family_is_tried_once_more_alone_and_last() -> None:
    executor = Scripted(procrustes=[(0, DIED), (0, Ended("it died again."))])
    news = [event for _, event in run(executor, families(SETUPS))]
    assert [name for name, *_ in executor.started] == ["procrustes", "advanced", "c1", "procrustes"]
    assert executor.started[-1] == ("procrustes", 2, 0)
    assert [event.reason for event in news if isinstance(event, Retried)] == ["it died."]
    given_up = news[-1]
    assert isinstance(given_up, Result) and given_up.status == "failed" and given_up.attempts == 2
    assert "given up after 2 attempts" in str(given_up.error) and "it died again." in str(given_up.error)


def test_running_out_of_memory_is_tried_once_more() -> None:
    executor = Scripted(procrustes=[(0, Ended("memory ran out."))])
    assert [r.status for r in results(executor, families(SETUPS))] == ["done"] * 3
    assert executor.started[-1] == ("procrustes", 2, 0)


def test_what_has_arrived_is_not_asked_for_again() -> None:
    family = [world.setup(), world.setup(lm="m", mixing=0.2), world.setup(lm="m", mixing=0.4)]
    executor = Scripted(procrustes=[(1, DIED)])
    assert len(results(executor, [family])) == 3
    assert executor.asked == [family, family[1:]]


def test_a_family_lost_after_its_last_result_is_done() -> None:
    executor = Scripted(procrustes=[(1, DIED)])
    assert [r.status for r in results(executor, [SETUPS[:1]])] == ["done"]
    assert len(executor.started) == 1


def test_a_machine_may_vanish_a_few_times_without_a_family_being_given_up() -> None:
    executor = Scripted(procrustes=[(0, GONE)] * 4)
    assert [r.status for r in results(executor, [SETUPS[:1]])] == ["done"]
    assert [attempt for _, attempt, _ in executor.started] == [1] * 5
    [given_up] = results(Scripted(procrustes=[(0, GONE)] * 5), [SETUPS[:1]])
    assert "5 times" in str(given_up.error)


def test_a_family_that_ends_without_all_its_results_is_no_success() -> None:
    [missing] = results(Scripted(procrustes=[(0, Ended())]), [SETUPS[:1]])
    assert missing.status == "failed"


def test_one_worker_goes_pair_by_pair_and_several_begin_with_the_longest() -> None:
    setups = [world.setup(m, pair=p) for m in ("procrustes", "c1") for p in ("aa-bb", "cc-dd")]
    seconds = {s.family: 100.0 if s.method == "c1" else 2.0 for s in setups}

    def order(workers: int) -> list[tuple[str, str]]:
        return [(f[0].method, f[0].pair) for f in in_order(setups, seconds, workers)]

    assert order(1) == [(m, p) for p in ("aa-bb", "cc-dd") for m in ("procrustes", "c1")]
    assert order(2) == [(m, p) for m in ("c1", "procrustes") for p in ("aa-bb", "cc-dd")]


@pytest.mark.parametrize("workers", [1, 3])
def test_no_setup_is_lost_in_ordering(workers: int) -> None:
    setups = [*world.grid(), world.setup(lm="m", mixing=0.5)]
    ordered = [s for family in in_order(setups, {}, workers) for s in family]
    assert sorted(s.key for s in ordered) == sorted(s.key for s in setups)
    assert len(in_order(setups, {}, workers)) == 8


# Families in processes of their own: the same results, and no trouble of one is trouble of another.


@pytest.mark.slow
@pytest.mark.promise
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
