"""From setups to results in a file: what is done is skipped, the rest is run and kept at once."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bilex.core.errors import BilexError
from bilex_bench.datasets import DataFolder
from bilex_bench.events import News
from bilex_bench.live import View
from bilex_bench.results import Result
from bilex_bench.setups import Setup, families
from bilex_bench.store import ResultsStore
from bilex_bench.workplace import WorkPlan, sweep


@dataclass(frozen=True)
class Outcome:
    """What a run has brought.

    Attributes:
        done: Setups that were run and went well.
        failed: Setups that were run and failed.
        skipped: Setups that needed no run: done before, or failed before and not to be tried again.
    """

    done: int
    failed: int
    skipped: int


def todo(setups: Iterable[Setup], store: ResultsStore, *, retry_failed: bool = False) -> list[Setup]:
    """The setups that are yet to be run, each experiment once."""
    known = store.keys("done") if retry_failed else store.keys(None)
    found: dict[str, Setup] = {}
    for setup in setups:
        if setup.key not in known:
            found.setdefault(setup.key, setup)
    return list(found.values())


def check_data(setups: Iterable[Setup], folders: Mapping[str, DataFolder]) -> None:
    """See that all vectors and dictionaries are there, before anything runs."""
    missing: dict[str, None] = {}
    for dataset, pair, seeds in dict.fromkeys((s.dataset, s.pair, s.seeds) for s in setups):
        if dataset not in folders:
            missing[f"data set '{dataset}' has no folder; give one with --data {dataset}=FOLDER."] = None
            continue
        try:
            folders[dataset].check(pair, seeds)
        except BilexError as error:
            missing[str(error)] = None
    if missing:
        first, *others = missing
        more = f" ({len(others)} more things are missing, such as: {others[0]})" if others else ""
        raise BilexError(f"{first}{more}")


def in_order(setups: Iterable[Setup], cost: Mapping[str, float], workers: int) -> list[list[Setup]]:
    """Families in the order of work.

    One worker goes through the families pair by pair, so that vocabularies are read once. Several workers
    begin with the longest families, so that none is left with a long one when the others have ended; of
    families that cost about the same, those with the same vocabularies follow each other. Families whose
    cost is not known come first, since they may be long.
    """
    groups = families(setups)
    place: dict[tuple[str, str, int | None], int] = {}
    for group in groups:
        place.setdefault((group[0].dataset, group[0].pair, group[0].limit), len(place))

    def by_vocabulary(group: list[Setup]) -> int:
        return place[(group[0].dataset, group[0].pair, group[0].limit)]

    def about(group: list[Setup]) -> float:
        seconds = cost.get(group[0].family)
        return -math.inf if seconds is None else -(max(1, round(seconds)).bit_length())

    if workers == 1:
        return sorted(groups, key=by_vocabulary)
    return sorted(groups, key=lambda group: (about(group), by_vocabulary(group)))


def run_setups(
    setups: Sequence[Setup],
    plan: WorkPlan,
    store: ResultsStore,
    run: Callable[[Sequence[Sequence[Setup]]], Generator[News, None, None]],
    view: View,
    *,
    order: Sequence[Sequence[Setup]],
) -> Outcome:
    """Run setups and keep each result as soon as it is there."""
    store.name(setups)
    with contextlib.suppress(OSError):
        sweep(Path(plan.work))
    waiting = sum(map(len, order))
    counts = {"done": 0, "failed": 0}
    try:
        if waiting:
            with view, contextlib.closing(run(order)) as all_news:
                for news in all_news:
                    if isinstance(news, Result):
                        _keep(store, news)
                        counts[news.status] += 1
                    view.show(news)
    except BaseException as error:
        kept = sum(counts.values())
        if kept or not isinstance(error, BilexError):
            view.say(
                f"Stopped: {kept} of {waiting} setups were finished and are kept in {store.path}; "
                "run the same command to go on."
            )
        raise
    return Outcome(**counts, skipped=len({setup.key for setup in setups}) - waiting)


def _keep(store: ResultsStore, result: Result) -> None:
    """Store a result, earlier attempts counted."""
    earlier = store.attempts(result.setup.key)
    store.add(replace(result, attempts=result.attempts + earlier) if earlier else result)
