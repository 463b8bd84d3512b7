"""From a grid to a results file: nothing is run twice, nothing that is finished is lost."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import runner_world as world
from bilex import BilexError
from bilex.cli import run as bilex
from bilex_bench.engine import Begun, Ended, Event, Job, Retried, Step
from bilex_bench.results import Result, Setup
from bilex_bench.runner import (
    Outcome,
    View,
    check_data,
    combined,
    estimate,
    in_a_line,
    run_setups,
)
from bilex_bench.store import ResultsStore
from bilex_bench.work import Workplace, WorkPlan
from fabricated import fabricated

SCRIPT = Path(__file__).with_name("world_cli.py")
LONGEST = 600  # seconds that a test waits for what takes seconds on a quiet machine


class InProcess:
    """An executor without processes, one family at a time."""

    def __init__(self, plan: WorkPlan) -> None:
        self.plan = plan
        self.ran: list[Setup] = []
        self.job: Job | None = None

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.job = None

    def has_room(self) -> bool:
        return self.job is None

    def start(self, job: Job) -> None:
        self.job = job

    def events(self) -> Iterator[tuple[Job, Event]]:
        job, self.job = self.job, None
        assert job is not None
        yield job, Begun()
        for result in Workplace(self.plan).run(job.setups):
            self.ran.append(result.setup)
            yield job, result
        yield job, Ended()


def test_what_is_done_is_not_run_again_and_what_failed_only_on_request(
    folder: world.KnownFolder, tmp_path: Path
) -> None:
    fails = world.setup(
        "troublesome", settings={"trouble": "error", "times": 2, "log": str(tmp_path / "log")}
    )
    setups = [world.setup(), world.setup("advanced"), fails]
    engine = InProcess(world.plan_for(folder, tmp_path))
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        assert run_setups(setups[:1], engine, store) == Outcome(1, 0, 0)
        assert run_setups(setups, engine, store) == Outcome(1, 1, 1)
        assert run_setups(setups, engine, store) == Outcome(0, 0, 3)
        assert run_setups(setups, engine, store, retry_failed=True) == Outcome(0, 1, 2)
        assert store.attempts(fails.key) == 2
        assert run_setups(setups, engine, store, retry_failed=True) == Outcome(1, 0, 2)
        assert [s.method for s in engine.ran] == ["procrustes", "advanced", *["troublesome"] * 3]


def test_one_experiment_under_two_labels_is_run_once(folder: world.KnownFolder, tmp_path: Path) -> None:
    setups = [world.setup(label="this"), world.setup(label="that")]
    engine = InProcess(world.plan_for(folder, tmp_path))
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        run_setups(setups, engine, store)
        assert sorted(result.setup.label for result in store.results()) == ["that", "this"]
    assert len(engine.ran) == 1


def test_missing_files_are_reported_before_anything_runs(folder: world.KnownFolder) -> None:
    check_data(world.grid(), {"world": folder})
    with pytest.raises(BilexError, match="has no dictionaries for 'aa-zz'"):
        check_data([*world.grid(), world.setup(pair="aa-zz")], {"world": folder})
    with pytest.raises(BilexError, match=r"--data world=FOLDER"):
        check_data(world.grid(), {})


def test_a_full_disk_ends_the_run_with_one_sentence_and_keeps_what_there_was(
    folder: world.KnownFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = ResultsStore.add
    added: list[Result] = []

    def add(store: ResultsStore, result: Result) -> bool:
        if len(added) == 2:
            raise BilexError(f"{store.path}: the disk is full; earlier results are intact.")
        added.append(result)
        return kept(store, result)

    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        monkeypatch.setattr(ResultsStore, "add", add)
        with pytest.raises(BilexError, match="disk is full"):
            run_setups(world.grid(), InProcess(world.plan_for(folder, tmp_path)), store)
        assert "2 of 8 setups were finished" in capsys.readouterr().err
        monkeypatch.undo()
        assert run_setups(world.grid(), InProcess(world.plan_for(folder, tmp_path)), store) == Outcome(
            6, 0, 2
        )


def test_a_second_runner_is_refused(
    folder: world.KnownFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = write_grid(tmp_path / "grid.toml", folder.path)
    with ResultsStore.open(tmp_path / "r.sqlite") as store, store.claim():
        assert (
            bilex(["benchmark", "run", str(grid), "-o", str(tmp_path / "r.sqlite"), "--device", "cpu"]) == 2
        )
    said = capsys.readouterr().err
    assert "is in use by" in said and len(said.strip().splitlines()) == 1


def test_a_dry_run_shows_a_table_and_writes_nothing(
    folder: world.KnownFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = write_grid(tmp_path / "grid.toml", folder.path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert bilex(["benchmark", "run", str(grid), "--device", "cpu", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "8 setups in 8 families would run, 0 of 8 need no run." in shown
    assert "Procrustes" in shown and "not measured" in shown and "never measured" in shown
    assert sorted(tmp_path.rglob("*")) == before
    chosen = ["--methods", "procrustes", "--pairs", "cc-dd", "--seeds", "1k", "--dry-run", "--device", "cpu"]
    assert bilex(["benchmark", "run", str(grid), *chosen]) == 0
    assert "1 setups in 1 families would run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--methods", "procrutes"], "Did you mean 'Procrustes'?"),
        (["--pairs", "aa-cc"], "aa-cc"),
        (["--seeds", "7k"], "7k"),
        (["--data", "elsewhere=/nowhere"], "elsewhere"),
        (["--ray", "127.0.0.1:1"], "no Ray cluster answers there"),
    ],
)
def test_senseless_options_are_refused_in_one_sentence(
    options: list[str],
    said: str,
    folder: world.KnownFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = write_grid(tmp_path / "grid.toml", folder.path)
    results = tmp_path / "r.sqlite"
    assert bilex(["benchmark", "run", str(grid), "-o", str(results), "--device", "cpu", *options]) == 2
    caught = capsys.readouterr().err
    assert said in caught and caught.startswith("bilex: error: ") and len(caught.splitlines()) == 1


def write_grid(path: Path, data: Path, log: Path | None = None, trouble: str = "sleep") -> Path:
    """The grid of `world.grid`; with a log half of its fits are logged, and take a second or wait."""
    settings = f'settings = {{ trouble = "{trouble}", log = "{log}", seconds = 1.0 }}' if log else ""
    second = "troublesome" if log else "advanced"
    path.write_text(
        f"""
        about = "for tests"
        [grid]
        seeds = ["1k", "500"]
        [data.world]
        path = "{data}"
        [[method]]
        name = "procrustes"
        label = "Procrustes"
        [[method]]
        name = "{second}"
        {settings}
        """,
        encoding="utf-8",
    )
    return path


def started(grid: Path, results: Path, *more: str) -> subprocess.Popen[str]:
    """A run in a process group of its own, as a shell would start it."""
    command = [
        sys.executable,
        str(SCRIPT),
        "benchmark",
        "run",
        str(grid),
        "-o",
        str(results),
        "--device",
        "cpu",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=environment,
    )


def wait_for(what: str, seconds: float, check: object) -> None:
    deadline = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s"
        time.sleep(0.05)


def processes_of(group: int) -> list[str]:
    """The commands of the living processes of a session."""
    found = subprocess.run(["ps", "-e", "-o", "sid=,stat=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in found.stdout.splitlines()]
    return [row[2] for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


def read(results: Path) -> list[Result]:
    with ResultsStore.open(results, create=False) as store:
        return store.results(predictions=True)


def count_done(results: Path) -> int:
    if not results.exists() or not results.stat().st_size:  # the runner is just making it
        return 0
    with ResultsStore.open(results, create=False) as store:
        return len(store.keys("done"))


@pytest.mark.slow
@pytest.mark.promise
def test_ctrl_c_stops_everything_and_the_same_command_goes_on(
    folder: world.KnownFolder, tmp_path: Path
) -> None:
    results, log = tmp_path / "r.sqlite", tmp_path / "log"
    grid = write_grid(tmp_path / "grid.toml", folder.path, log, trouble="wait")
    process = started(grid, results, "--workers", "1")
    try:
        wait_for("a first result", LONGEST, lambda: process.poll() is not None or count_done(results) >= 1)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=LONGEST)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 130, output
    wait_for("the end of all processes", LONGEST, lambda: not processes_of(process.pid))
    kept = count_done(results)
    assert 1 <= kept < 8, output
    assert f"{kept} of 8 setups were finished and are kept in {results}" in output
    assert "Traceback" not in output
    Path(f"{log}.go").touch()
    again = started(grid, results, "--workers", "1")
    output, _ = again.communicate(timeout=LONGEST)
    assert again.returncode == 0, output
    assert f"{8 - kept} setups were run; {kept} were there already; 8 of 8 are done" in output
    assert len(world.fits_logged(log)) <= 5, "at most the family that was cut off was fitted again"


@pytest.mark.slow
@pytest.mark.promise
def test_killed_at_random_moments_and_resumed_the_results_are_those_of_one_go(
    folder: world.KnownFolder, tmp_path: Path
) -> None:
    whole, log = tmp_path / "whole.sqlite", tmp_path / "log"
    grid = write_grid(tmp_path / "grid.toml", folder.path, log)
    begun = time.monotonic()
    process = started(grid, whole, "--workers", "2")
    output, _ = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, output
    one_go = time.monotonic() - begun
    log.unlink()
    results, rng = tmp_path / "r.sqlite", random.Random(6)
    kept = 0
    for _ in range(3):
        process = started(grid, results, "--workers", "2")
        time.sleep(rng.uniform(0.5, 1.0) * one_go)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LONGEST)
        wait_for("the end of all processes", LONGEST, lambda group=process.pid: not processes_of(group))
        assert count_done(results) >= kept, "nothing that was finished is lost"
        kept = count_done(results)
    process = started(grid, results, "--workers", "2")
    output, _ = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, output
    assert world.outcomes(read(results)) == world.outcomes(read(whole))
    assert len(world.fits_logged(log)) <= 4 + 3 * 2, "no more fits than families, and those cut off"


@pytest.mark.slow
@pytest.mark.promise
def test_workers_do_not_outlive_a_runner_that_was_killed(folder: world.KnownFolder, tmp_path: Path) -> None:
    results = tmp_path / "r.sqlite"
    grid = write_grid(tmp_path / "grid.toml", folder.path, tmp_path / "log")
    process = started(grid, results, "--workers", "2")
    wait_for("a first result", LONGEST, lambda: process.poll() is not None or count_done(results) >= 1)
    process.kill()
    process.wait()
    wait_for("the end of all processes", LONGEST, lambda: not processes_of(process.pid))


def done(**more: object) -> Result:
    figures = {"nn": {"p@1": 0.25}, "csls": {"p@1": 0.5}, "leak_free": None}
    return Result(
        setup=world.setup(label="Procrustes"),
        status="done",
        evaluation={"forward": figures, "backward": figures},
        seconds={"fit": 1.0, "evaluate": 0.5},
        **more,  # type: ignore[arg-type]
    )


def test_lines_tell_results_failures_and_retries(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_a_line(done()) == "Procrustes, aa-bb, 1k seeds: P@1 → 50.0, ← 50.0 (1.5 s)"
    with View(2) as view:
        job = Job([world.setup()], attempt=2)
        failed = Result(setup=world.setup(), status="failed", error="it died.", attempts=2)
        for event in (Begun(), done(), Retried("it died."), failed):
            view.show(job, event)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[1/2] Procrustes")
    assert "It is tried once more." in lines[1]
    assert lines[2].startswith("[2/2]") and "failed: it died." in lines[2]


def test_a_terminal_shows_bars_running_families_and_results() -> None:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=160)
    with View(3, console) as view:
        job, other = Job([world.setup()]), Job([world.setup("advanced")], attempt=2)
        step = Step("iteration 2 of 3", 20, 50, {"loss": 0.25})
        for event in (Begun(), step, done()):
            view.show(job, event)
        view.show(other, Result(setup=other.setups[0], status="failed", error="it died.", attempts=2))
    shown = terminal.getvalue()
    for text in ("2/3", "20/50", "iteration 2 of 3", "loss 0.25", "50.0", "it died."):
        assert text in shown


def test_what_killed_workers_left_half_written_is_removed(folder: world.KnownFolder, tmp_path: Path) -> None:
    place = Workplace(world.plan_for(folder, tmp_path))
    left = place.fits / ".abc.bilex-tmp"
    left.mkdir(parents=True)
    list(place.run([world.setup()]))
    assert not left.exists() and list(place.fits.iterdir())


# Estimates: what was measured counts, and what is shared counts once.


def setup(**changes: object) -> Setup:
    given = {"dataset": "own", "pair": "en-fi", "seeds": "5k", "method": "c1", "limit": 90_000} | changes
    return Setup(**given)  # type: ignore[arg-type]


def test_what_was_never_measured_has_no_estimate() -> None:
    (found,) = estimate([setup()])
    assert (found.seconds, found.gigabytes) == (None, None)
    assert combined([found], lambda setup: setup.family) == {setup().family: (None, None)}


def test_a_fit_and_a_tuning_count_once(tmp_path: Path) -> None:
    lm = {"lm": "e5-small-q4"}
    setups = [setup(), setup(**lm, mixing=0.2), setup(**lm, mixing=0.4), setup(**lm, mixing="auto")]
    measured = {"fit": 31.0, "tune": 310.0, "encode": 62.0, "trial": 93.0, "combine": 3.1, "evaluate": 6.2}
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        store.add(replace(fabricated(setup(limit=31_000, **lm, mixing="auto"), 5), seconds=measured))
        alone, first, second, auto = estimate(setups, store)
    seconds = {step: 90 / 31 * cost for step, cost in measured.items()}
    assert alone.seconds == pytest.approx(seconds["fit"] + seconds["evaluate"])
    again = seconds["combine"] + seconds["evaluate"]
    assert first.seconds == pytest.approx(seconds["tune"] + seconds["encode"] + again)
    assert second.seconds == pytest.approx(again)
    assert auto.seconds == pytest.approx(again + seconds["trial"])


def test_the_median_of_earlier_results_counts_and_the_most_memory(tmp_path: Path) -> None:
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        for seed, seconds in enumerate((2.0, 3.0, 50.0)):
            done = fabricated(setup(seed=seed), 5)
            store.add(replace(done, seconds={"fit": seconds, "evaluate": 1.0}, gigabytes=seconds))
        store.add(replace(fabricated(setup(seed=9), 5), seconds={"fit": 1e9}, device="cuda"))
        c1, rcsls = estimate([setup(), setup(method="rcsls")], store)
    assert c1.seconds == pytest.approx(4.0) and c1.gigabytes == 50.0
    assert rcsls.seconds is None and rcsls.gigabytes is None
