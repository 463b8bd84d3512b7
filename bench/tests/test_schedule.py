"""The order of work, and what happens to families whose worker is lost."""

from __future__ import annotations

import pytest

import runner_world as world
from bilex_bench.engine import Finished, Lost, Schedule
from bilex_bench.results import Result, families
from bilex_bench.runner import in_order

SETUPS = [world.setup(method) for method in ("procrustes", "advanced", "c1")]


def drained(schedule: Schedule) -> list[str]:
    """Run one job after the other to its end; the methods in the order they were run."""
    order = []
    while (job := schedule.next()) is not None:
        order.append(job.setups[0].method)
        job.setups = []
        schedule.ended(job, Finished())
    return order


def test_families_come_in_the_order_given() -> None:
    schedule = Schedule(families(SETUPS))
    assert drained(schedule) == ["procrustes", "advanced", "c1"]
    assert not schedule


def test_a_lost_family_is_tried_once_more_alone_and_last() -> None:
    schedule = Schedule(families(SETUPS))
    lost, second = schedule.next(), schedule.next()
    assert lost and second
    assert schedule.ended(lost, Lost("it died.")) == []
    third = schedule.next()
    assert third and third.setups[0].method == "c1"
    assert schedule.next() is None, "a family to be tried alone waits for the others"
    for job in (second, third):
        job.setups = []
        schedule.ended(job, Finished())
    again = schedule.next()
    assert again is lost and again.alone and again.last_attempt and again.attempt == 2
    assert schedule.next() is None, "nothing runs beside it"
    [given_up] = schedule.ended(again, Lost("it died again."))
    assert given_up.status == "failed" and given_up.attempts == 2
    assert "it died again." in str(given_up.error)
    assert not schedule


def test_what_has_arrived_is_not_asked_for_again() -> None:
    family = [world.setup(), world.setup(lm="m", mixing=0.2), world.setup(lm="m", mixing=0.4)]
    schedule = Schedule([family])
    job = schedule.next()
    assert job
    schedule.received(job, Result(setup=family[0], status="done"))
    schedule.ended(job, Lost("it died."))
    again = schedule.next()
    assert again and again.setups == family[1:]


def test_a_family_lost_after_its_last_result_is_done() -> None:
    schedule = Schedule([[SETUPS[0]]])
    job = schedule.next()
    assert job
    schedule.received(job, Result(setup=SETUPS[0], status="done"))
    assert schedule.ended(job, Lost("it died.")) == []
    assert not schedule


def test_a_machine_may_vanish_a_few_times_without_a_family_being_given_up() -> None:
    schedule = Schedule([[SETUPS[0]]])
    for _ in range(4):
        job = schedule.next()
        assert job and not job.alone
        assert schedule.ended(job, Lost("the machine is gone.", with_machine=True)) == []
    job = schedule.next()
    assert job
    [given_up] = schedule.ended(job, Lost("the machine is gone.", with_machine=True))
    assert "5 times" in str(given_up.error)
    assert not schedule


def test_a_family_that_ends_without_all_its_results_is_no_success() -> None:
    schedule = Schedule([[SETUPS[0]]])
    job = schedule.next()
    assert job
    [missing] = schedule.ended(job, Finished())
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
