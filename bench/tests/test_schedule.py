"""The order of work, and what happens to families whose worker is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import runner_world as world
from bilex_bench.engine import Event, Finished, Job, Lost, Retried, run
from bilex_bench.results import Result, Setup, families
from bilex_bench.runner import in_order

SETUPS = [world.setup(method) for method in ("procrustes", "advanced", "c1")]
DIED, GONE = Lost("it died."), Lost("the machine is gone.", with_machine=True)


class Scripted:
    """An executor of two places; each attempt of a method yields so many results, then its last event."""

    def __init__(self, **script: list[tuple[int, Finished | Lost]]) -> None:
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
        count, end = script.pop(0) if script else (len(job.setups), Finished())
        for setup in job.setups[:count]:
            yield job, Result(setup=setup, status="done")
        yield job, end


def results(executor: Scripted, groups: Sequence[Sequence[Setup]]) -> list[Result]:
    return [event for _, event in run(executor, groups) if isinstance(event, Result)]


def test_families_come_in_the_order_given() -> None:
    executor = Scripted()
    assert [r.setup.method for r in results(executor, families(SETUPS))] == ["procrustes", "advanced", "c1"]


def test_a_lost_family_is_tried_once_more_alone_and_last() -> None:
    executor = Scripted(procrustes=[(0, DIED), (0, Lost("it died again."))])
    news = [event for _, event in run(executor, families(SETUPS))]
    assert [name for name, *_ in executor.started] == ["procrustes", "advanced", "c1", "procrustes"]
    assert executor.started[-1] == ("procrustes", 2, 0)
    assert [event.reason for event in news if isinstance(event, Retried)] == ["it died."]
    given_up = news[-1]
    assert isinstance(given_up, Result) and given_up.status == "failed" and given_up.attempts == 2
    assert "given up after 2 attempts" in str(given_up.error) and "it died again." in str(given_up.error)


def test_running_out_of_memory_is_tried_once_more() -> None:
    executor = Scripted(procrustes=[(0, Finished("memory ran out."))])
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
    [missing] = results(Scripted(procrustes=[(0, Finished())]), [SETUPS[:1]])
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
