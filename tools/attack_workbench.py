"""Attack a workbench: broken connections, bursts, guesses, kills, full disks, clocks, operations at once.

    python -m tools.attack_workbench MODEL slow bursts events guesses --seconds 60

MODEL is copied first, and served on this machine's loopback only. Each attack prints one line with its counts
and raises an AssertionError if a promise of docs/reference/promises.md is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import psutil
from starlette.testclient import TestClient

from bilex.model import Translator
from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.database import Database, review_file, set_facts
from bilex_workbench.decisions import Decision, record
from bilex_workbench.server import application
from bilex_workbench.statistics import Recalibration
from bilex_workbench.versions import earlier_models, fingerprint, previous_folder, retrained_folder
from bilex_workbench.workbench import Settings, Workbench

TOKEN = "attack-test-token-of-30-letters"
PASSWORD = "pass-word-1"  # so short that guesses are limited
_BEARER = {"Authorization": f"Bearer {TOKEN}"}
_LONGEST = 300.0  # seconds for a start, and for the decisions of a round
_DECISIONS, _ENTRIES = 5, 150  # of a prepared model
_GONE = (httpx.HTTPError, ValueError)  # what requests raise when the server was killed


class Server:
    """`bilex serve` in a separate process; the `with` block begins when its table is filled."""

    def __init__(self, model: Path, token: str = TOKEN, environment: dict[str, str] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.log = Path(tempfile.mkstemp(suffix=".log")[1])
        command = [sys.executable, "-m", "bilex", "serve", str(model), "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = psutil.Popen(
                [*command, "--token", token, "--no-browser"],
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
            )
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=100,
        )

    def __enter__(self) -> Server:
        end = time.monotonic() + _LONGEST
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(*_GONE, KeyError):
                found = self.request("GET", "/api/model")[1]
                if found["state"] == "failed" or (found["entries"] or {}).get("complete"):
                    return self
            time.sleep(0.05)
        raise AssertionError(f"the server did not start: {self.log.read_text(encoding='utf-8')[-2000:]}")

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.terminate()
        try:
            self.process.wait(20)
        except psutil.TimeoutExpired:
            self.kill()
        self._client.close()
        self.log.unlink(missing_ok=True)

    def kill(self) -> None:
        """End the server with SIGKILL."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.kill()
        self.process.wait()

    def request(
        self, method: str, path: str, body: object = None, token: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of a response."""
        headers = {"Authorization": f"Bearer {token}"} if token else None
        answer = self._client.request(method, path, json=body, headers=headers)
        return answer.status_code, answer.json()

    def decide(self, source: str, reviewer: str, accepted: str = "a free text") -> int:
        """Accept a translation; the status of the response."""
        body = {"source": source, "reviewer": reviewer, "verdict": "accept", "accepted": [accepted]}
        return self.request("POST", "/api/review/decide", body)[0]

    def job(self) -> Any:
        """The current or last job."""
        return self.request("GET", "/api/job")[1]["job"]

    def connect(self, content: bytes) -> socket.socket:
        """A connection that has sent some bytes."""
        connection = socket.create_connection(("127.0.0.1", self.port), 5)
        with contextlib.suppress(OSError):  # the server closed it already
            connection.sendall(content)
        return connection


@contextlib.contextmanager
def served(folder: Path, work: Path) -> Iterator[tuple[Workbench, TestClient]]:
    """A workbench in this process whose table is not filled, and a client of it."""
    bench = Workbench(Settings(work=work, fill=False), folder)
    bench.wait_until_ready()
    app = application(bench, AccessPolicy(TOKEN, LOCAL))
    options: Any = {"base_url": "http://127.0.0.1", "headers": _BEARER, "raise_server_exceptions": False}
    with TestClient(app, **options) as client:
        yield bench, client
    bench.stop()


def other_model(model: Path, folder: Path) -> tuple[Path, list[str]]:
    """A second model of the same words, which can wait as the retrained one; and the source words."""
    translator = Translator.load(model)
    translator.with_parts(seeds=translator.seeds.head(100)).save(folder / "other")
    return folder / "other", translator.space.source.index_to_key


def prepared(
    place: Path, model: Path, other: Path, words: list[str], *, waits: bool = True, earlier: int = 0
) -> Path:
    """A model with a retrained one that waits, some earlier ones, decisions, and a recalibration."""
    folder = place / "model"
    shutil.copytree(model, folder)
    if waits:
        shutil.copytree(other, retrained_folder(folder))
    for number in range(1, earlier + 1):
        shutil.copytree(other, previous_folder(folder) / str(number))
    database = Database(review_file(folder))
    change = Recalibration(slope=2.0, shift=-1.0, decisions=50, at="2026", model=fingerprint(folder))
    with database.writing() as db:
        if waits:
            set_facts(db, waiting={"model": fingerprint(retrained_folder(folder))})
        set_facts(db, recalibration=asdict(change))
        db.executemany(
            "INSERT INTO entries (row, source, source_key, target) VALUES (?, ?, ?, 'x')",
            [(row, word, word) for row, word in enumerate(words[:_ENTRIES])],
        )
        for word in words[:_DECISIONS]:
            record(db, Decision(word, "aino", "accept", ("x",)))
    database.close()
    return folder


def _count_decisions(folder: Path) -> int:
    with contextlib.closing(sqlite3.connect(review_file(folder))) as db:
        return int(db.execute("SELECT count(*) FROM decisions").fetchone()[0])


def _temporaries(folder: Path) -> list[str]:
    return [one.name for one in folder.rglob("*.bilex-*") if not one.name.endswith("-lock")]


def _is_sentence(text: object) -> bool:
    return isinstance(text, str) and 20 < len(text) < 400 and "\n" not in text and text.endswith((".", "?"))


def slow(model: Path, seconds: float) -> str:
    """More unfinished headers, and bodies without a token, than a process may have files."""
    unfinished = (
        b"GET / HTTP/1.1\r\nHost: 127",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\nto",
    )
    with Server(model) as server:
        held = []
        with contextlib.suppress(OSError):  # this process may not open more
            for number in range(1_100):
                held.append(server.connect(unfinished[number % 2]))
        waits, wrong = [], 0
        for _ in range(20):
            started = time.monotonic()
            try:
                wrong += server.request("GET", "/api/model")[0] != 200
            except httpx.HTTPError:
                wrong += 1
            waits.append(time.monotonic() - started)
        time.sleep(min(seconds, 25))
        files, log = server.process.num_fds(), server.log.stat().st_size
        for connection in held:
            connection.close()
    assert not wrong, f"{wrong} of 20 requests were kept out by {len(held)} unfinished ones"
    assert files < 150, f"{files} files are still open"
    assert log < 100_000, f"the log has {log:,} bytes"
    return (
        f"slow: {len(held)} unfinished requests, 20 others answered in at most {max(waits):.2f} s, "
        f"{files} files open after the timeout, log of {log:,} bytes"
    )


def bursts(model: Path, seconds: float) -> str:
    """Bursts of 30 requests with a pause between them: files and memory must not grow."""
    with Server(model) as server:
        words = [row["source"] for row in server.request("GET", "/api/entries?limit=200")[1]["rows"]]
        rng, answers, end = random.Random(0), Counter[int](), time.monotonic() + seconds
        history: list[tuple[int, float]] = []

        def one(number: int) -> int:
            word = rng.choice(words)
            if number % 10 == 0:
                return server.decide(word, f"r{number}")
            paths = (f"translate?word={word}", "entries?limit=50", f"suggest?word={word[:2]}")
            return server.request("GET", f"/api/{rng.choice(paths)}")[0]

        while time.monotonic() < end:
            with ThreadPoolExecutor(30) as pool:
                answers.update(pool.map(one, range(30)))
            time.sleep(min(1.0, seconds / 60))
            history.append((server.process.num_fds(), server.process.memory_full_info().uss / 1e6))
    assert set(answers) == {200}, answers
    early, late = history[len(history) // 6 : len(history) // 3], history[-len(history) // 6 :]
    files = [round(statistics.median(f for f, _ in part)) for part in (early, late)]
    memory = [statistics.median(m for _, m in part) for part in (early, late)]
    assert files[1] <= files[0] + 5, f"descriptors grew from {files[0]} to {files[1]}"
    assert memory[1] <= memory[0] + 40, f"memory grew from {memory[0]:.0f} to {memory[1]:.0f} MB"
    return (
        f"bursts: {len(history)} bursts, {answers.total():,} requests in {seconds:.0f} s, all answered; "
        f"descriptors {files[0]} -> {files[1]}, memory {memory[0]:.0f} -> {memory[1]:.0f} MB"
    )


def events(model: Path, seconds: float) -> str:
    """Many event streams, most of them broken off: others are answered, and nothing is left open."""
    stream = f"GET /api/job/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with Server(model) as server:
        before, opened, end = server.process.num_fds(), 0, time.monotonic() + min(seconds, 20)
        while time.monotonic() < end:
            streams = [server.connect(stream.encode()) for _ in range(60)]
            opened += len(streams)
            assert server.request("GET", "/api/model")[0] == 200
            for one in streams:
                one.close()
        time.sleep(1)
        files = server.process.num_fds()
    assert files <= before + 10, f"descriptors grew from {before} to {files}"
    return f"events: {opened} streams, descriptors {before} -> {files}"


def guesses(model: Path, seconds: float) -> str:
    """Guess a short password: only a few guesses per minute are compared."""
    with Server(model, PASSWORD) as server:
        tried = Counter(server.request("GET", "/api/model", token=f"guess{n}")[0] for n in range(300))
    assert tried[401] <= 20 and tried[429] == 300 - tried[401], tried
    return f"guesses: 300 guesses of a password, {tried[401]} compared"


def decisions(model: Path, seconds: float) -> str:
    """Kill the server at random moments while four clients decide: no acknowledged decision may be lost."""
    rng, rounds, end = random.Random(0), 0, time.monotonic() + seconds
    words = Translator.load(model).space.source.index_to_key
    acknowledged: list[tuple[str, str]] = []
    while time.monotonic() < end or rounds < 5:
        done: list[tuple[str, str]] = []
        count, later = rng.randint(1, 60), rng.uniform(0, 0.02)
        with Server(model) as server:

            def review(reviewer: str, server: Server = server, done: list[tuple[str, str]] = done) -> None:
                with contextlib.suppress(*_GONE):
                    for source in random.Random(reviewer).sample(words, len(words)):
                        assert server.decide(source, reviewer) == 200
                        done.append((source, reviewer))

            names = [f"round {rounds} client {number}" for number in range(4)]
            clients = [threading.Thread(target=review, args=(name,)) for name in names]
            for client in clients:
                client.start()
            stop = time.monotonic() + _LONGEST
            while len(done) < count and time.monotonic() < stop:
                time.sleep(0.002)
            time.sleep(later)
            server.kill()
            for client in clients:
                client.join()
        acknowledged += done
        rounds += 1
        with contextlib.closing(sqlite3.connect(review_file(model))) as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "the file is damaged"
            kept = db.execute("SELECT source, reviewer FROM decisions").fetchall()
        Database(review_file(model)).close()
        lost = set(acknowledged) - set(kept)
        assert not lost, f"{len(lost)} acknowledged decisions are lost"
        assert len(set(kept)) == len(kept), "a decision was kept twice"
    return f"decisions: {rounds} kills, {len(acknowledged)} acknowledged decisions, none lost"


def kills(model: Path, seconds: float) -> str:
    """Kill the worker or the server during a retraining, and the server during keep."""
    rng, found, took, rounds = random.Random(0), Counter[str](), 0.5, 0
    with tempfile.TemporaryDirectory() as name:
        other, words = other_model(model, Path(name))
        end = time.monotonic() + seconds
        while time.monotonic() < end or rounds < 4:
            aim = ("keep", "worker", "keep", "server", "server at any time")[rounds % 5]
            folder = prepared(Path(name) / f"round{rounds}", model, other, words)
            old, new = fingerprint(folder), fingerprint(other)
            with Server(folder) as server:
                if aim == "keep":
                    threading.Timer(rng.uniform(0, 1.2 * took), server.kill).start()
                    started = time.monotonic()
                    with contextlib.suppress(*_GONE):
                        found["keep acknowledged"] += server.request("POST", "/api/learn/keep")[0] == 200
                        took = time.monotonic() - started
                    server.process.wait()
                else:
                    _kill_retraining(server, aim, rng)
            with served(folder, folder.parent):  # ends what was begun
                assert _count_decisions(folder) == _DECISIONS
            Translator.load(folder, verify=True)
            now = fingerprint(folder)
            beside = retrained_folder(folder) if now == old else earlier_models(folder)[1]
            Translator.load(beside, verify=True)
            if aim == "keep":
                assert {now, fingerprint(beside)} == {old, new}, "a model is lost"
                found[f"keep, the {'old' if now == old else 'new'} model is there"] += 1
            else:
                assert now == old, "the model was changed"
                again = fingerprint(beside) != new
                found[f"{aim}, the {'new' if again else 'earlier'} retrained model is there"] += 1
            found["temporaries left for the next write"] += bool(_temporaries(folder.parent))
            shutil.rmtree(folder.parent)
            rounds += 1
    return f"kills: {rounds} kills, no model or decision lost: {dict(found)}"


def _kill_retraining(server: Server, aim: str, rng: random.Random) -> None:
    """Start a retraining, and kill its process or the server, mostly when the model begins to be written."""
    assert server.request("POST", "/api/learn", {})[0] == 202
    if aim == "server at any time":
        time.sleep(rng.uniform(0, 8))
    else:
        job = server.job()
        while job["state"] == "running" and job["phase"] not in ("Writing the model", "Comparing"):
            job = server.job()
        time.sleep(rng.uniform(0, 0.15))
    workers = server.process.children()
    if aim == "worker" and workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            workers[0].kill()
        while (job := server.job())["state"] == "running":
            time.sleep(0.02)
        assert job["state"] == "done" or _is_sentence(job["detail"]), job
    server.kill()
    _, alive = psutil.wait_procs(workers, 60)
    assert not alive, "a worker was left behind"


_PHASES = (
    *("starting", "Opening the model", "Measuring neighbourhoods", "Choosing how far decisions reach"),
    *("Comparing answers", "Writing the model", "Comparing"),
)
_PATHS = {"keep": "/api/learn/keep", "apply": "/api/audit/apply", "learn": "/api/learn"}


def full_disk(model: Path, seconds: float) -> str:
    """Fill the disk in each phase of a retraining, and during keep and apply, down to some free pages."""
    found, end = Counter[str](), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        other, words = other_model(model, Path(name))
        disk = Path(name) / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], check=False)
        if mounted.returncode:
            return "full_disk: not tried; only root may mount a small disk"
        try:
            pages = (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
            plans = [("learn", phase, 0) for _ in range(2) for phase in _PHASES]
            plans += [("learn", "starting", free) for free in pages[::2]]
            plans += [(operation, "", free) for free in pages for operation in ("keep", "apply")]
            for operation, phase, free in plans:
                if time.monotonic() < end:
                    folder = prepared(disk / "place", model, other, words)
                    _decide(folder)
                    found[_one_full_disk(disk, folder, operation, phase, free)] += 1
                    shutil.rmtree(folder.parent)
        finally:
            subprocess.run(["umount", "-l", disk], check=False)
    return f"full_disk: {found.total()} of {len(plans)} rounds, no model or decision lost: {dict(found)}"


def _decide(folder: Path) -> None:
    """Enough decisions on words of the model that a retraining has something to choose."""
    space, database = Translator.load(folder).space, Database(review_file(folder))
    pairs = zip(space.source.index_to_key[250:450], space.target.index_to_key[250:450], strict=True)
    with database.writing() as db:
        for source, target in pairs:
            record(db, Decision(source, "b", "accept", (target,), (), (target,)))
    database.close()


def _one_full_disk(disk: Path, folder: Path, operation: str, phase: str, free: int) -> str:
    old, new = fingerprint(folder), fingerprint(retrained_folder(folder))
    before, filler = _count_decisions(folder), disk / "filler"
    with served(folder, disk) as (bench, client):
        words = bench.engine.space.source.index_to_key
        if operation == "learn":
            assert client.post("/api/learn", json={}).status_code == 202
            while (job := bench.job) and job.state == "running" and job.phase != phase:
                time.sleep(0.001)
            if job and job.state != "running":
                phase += ", not met"
        _fill(filler, free)
        answer = None if operation == "learn" else client.post(_PATHS[operation])
        body = {"source": words[100], "reviewer": "late", "verdict": "accept", "accepted": ["x"]}
        stored = client.post("/api/review/decide", json=body)
        assert stored.status_code == 200 or _is_sentence(stored.json()["detail"]), stored.text
        worked, message = _outcome(bench, answer)
        bench.wait_until_ready()
        assert client.get("/api/translate", params={"word": words[0]}).status_code == 200
        Translator.load(folder, verify=True)
        now = fingerprint(folder)
        assert now == old or (operation != "learn" and worked), f"the model changed; {message}"
        if operation == "keep":
            beside = earlier_models(folder)[1] if worked else retrained_folder(folder)
            assert (now, fingerprint(beside)) == ((new, old) if worked else (old, new)), f"lost; {message}"
        for one in (retrained_folder(folder), *earlier_models(folder).values()):
            assert not one.exists() or Translator.load(one, verify=True)
        filler.unlink()
        if not worked:
            again = client.post(_PATHS[operation], json={} if operation == "learn" else None)
            assert again.status_code in (200, 202) and _outcome(bench, again)[0], again.text
        bench.wait_until_ready()
    assert not _temporaries(folder.parent), f"{_temporaries(folder.parent)} are left"
    assert _count_decisions(folder) == before + (stored.status_code == 200)
    return f"{operation}{phase and f' ({phase})'} {'done' if worked else 'refused'}"


def _outcome(bench: Workbench, answer: Any) -> tuple[bool, str | None]:
    """Whether the job or the request succeeded, and otherwise its message: one sentence."""
    if answer is not None and answer.status_code != 202:
        message = answer.json().get("detail")
        worked = answer.status_code == 200
        assert worked or (answer.status_code in (400, 409, 503) and _is_sentence(message)), answer.text
        return worked, message
    while (job := bench.job) and job.state == "running":
        time.sleep(0.02)
    assert job and (job.state == "done" or _is_sentence(job.detail)), job
    return job.state == "done", job.detail


def _fill(filler: Path, free: int) -> None:
    """Fill a disk but for some pages."""
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        file.truncate(max(0, file.tell() - 4096 * free))


_CLOCK = """
import datetime, time
real, plain = time.time, datetime.datetime
def now():
    with open({jump!r}) as file:
        return real() + float(file.read() or 0)
class Jumping(plain):
    @classmethod
    def now(cls, tz=None):
        return plain.fromtimestamp(now(), tz)
time.time, datetime.datetime = now, Jumping
"""  # the clock of the day only: setting it leaves the monotonic one as it is, too


def clock(model: Path, seconds: float) -> str:
    """Let the server's clock jump by a day, forwards and back: order, sessions and limits must not follow."""
    jump, patched = model.with_name("jump"), model.with_name("patched")
    patched.mkdir()
    (patched / "sitecustomize.py").write_text(_CLOCK.format(jump=str(jump)), encoding="utf-8")
    jump.write_text("0", encoding="ascii")
    environment = {"PYTHONPATH": os.pathsep.join([str(patched), os.environ.get("PYTHONPATH", "")])}
    days, times = ("0", "86400", "-86400", "0", "-86400", "86400"), set()
    word = Translator.load(model).space.source.index_to_key[0]
    with (
        Server(model, PASSWORD, environment) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=100) as browser,
    ):
        browser.post("/", data={"token": PASSWORD})
        for number in range(24):
            jump.write_text(days[number % len(days)], encoding="ascii")
            assert server.decide(word, "a", f"x{number}") == 200
            found = server.request("GET", f"/api/entry?source={word}")[1]
            assert found["accepted"] == [f"x{number}"], found
            times.add(found["history"][0]["at"][:10])
            assert browser.get("/api/model").status_code == 200, "the session ended"
        for number in range(23, 12, -1):
            undone = server.request("POST", "/api/review/undo", {"reviewer": "a"})[1]["undone"]
            assert undone["accepted"] == [f"x{number}"], undone
        for _ in range(20):
            assert server.request("GET", "/api/model", token="wrong")[0] == 401
        for day in days:
            jump.write_text(day, encoding="ascii")
            status = server.request("GET", "/api/model", token="wrong")[0]
            assert status == 429, f"a jump of {day} freed guesses"
        time.sleep(61)
        assert server.request("GET", "/api/model", token="wrong")[0] == 401, "a jump kept a limit on"
    assert len(times) == 3, times
    return (
        "clock: 24 decisions and 11 undos on 3 dates with jumps of one and two days, all in the order "
        "in which they came; the session stayed open; 6 jumps neither lifted nor prolonged the limit"
    )


OPERATIONS: dict[str, tuple[str, str, Any]] = {
    "keep": ("POST", "/api/learn/keep", None),
    "discard": ("POST", "/api/learn/discard", None),
    "learn": ("POST", "/api/learn", {}),
    "apply": ("POST", "/api/audit/apply", None),
    "recalibrate back": ("DELETE", "/api/audit/recalibrate", None),
    "restore": ("POST", "/api/models/restore", {"number": 1}),
    "import": ("POST", "/api/publish/import?reviewer=importer", "source,target,verdict\nfirst,word,yes\n"),
    "fit": ("POST", "/api/setup/fit", {"sample": True, "name": "fitted", "method": "procrustes"}),
    "decide": ("POST", "/api/review/decide", {"reviewer": "late", "verdict": "accept", "accepted": ["x"]}),
}


def pairs(model: Path, seconds: float, rounds: int = 20) -> str:
    """Two operations at the same moment, for every pair of them: one wins, nothing is lost."""
    end, done, answers = time.monotonic() + seconds, 0, Counter[int]()
    combinations = list(itertools.combinations_with_replacement(OPERATIONS, 2))
    with tempfile.TemporaryDirectory() as name:
        other, words = other_model(model, Path(name))
        for _, both in itertools.product(range(rounds), combinations):
            if time.monotonic() > end:
                break
            # A model is restored only while none waits: pairs with restore are tried in both states.
            waits = "restore" not in both or bool({"keep", "discard"} & {*both})
            folder = prepared(Path(name) / "round", model, other, words, waits=waits, earlier=1)
            with served(folder, folder.parent) as (bench, client):
                statuses = _at_once(client, both, words[100])
                client.post("/api/job/cancel")
                bench.wait_until_ready()
                _check_pair(client, folder, model, other, statuses)
            shutil.rmtree(folder.parent)
            answers.update(status for _, status in statuses)
            done += 1
    return f"pairs: {done} rounds of {len(combinations)} pairs, answers {dict(answers)}, nothing lost"


def _at_once(client: TestClient, names: Sequence[str], word: str) -> list[tuple[str, int]]:
    """The status of each of two requests that are sent at the same moment."""
    barrier = threading.Barrier(len(names))

    def send(name: str) -> tuple[str, int]:
        method, path, body = OPERATIONS[name]
        if name == "decide":
            body = {**body, "source": word}
        content = body if isinstance(body, str) else None if body is None else json.dumps(body)
        barrier.wait()
        answer = client.request(method, path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 202, 404, 409), f"{name}: {answer.status_code} {answer.text}"
        if answer.status_code == 409 and "busy" in answer.text:
            assert {"state", "operation", "generation"} <= set(answer.json()), answer.text
        return name, answer.status_code

    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(send, names))


def _check_pair(
    client: TestClient, folder: Path, model: Path, other: Path, statuses: list[tuple[str, int]]
) -> None:
    what = str(statuses)
    succeeded = [name for name, status in statuses if status < 300]
    done = set(succeeded)
    assert not {"keep", "discard"} <= done, what
    for name in ("keep", "discard", "restore", "apply", "fit", "learn"):
        assert succeeded.count(name) <= 1, what
    opened = Translator.load(folder, verify=True)
    assert client.get("/api/publish/changes?format=csv").text.count(",aino,") == _DECISIONS, what
    replaced = {"keep", "restore"} & done
    if replaced:
        beside = {fingerprint(one) for one in earlier_models(folder).values()}
        assert fingerprint(folder) == fingerprint(other) or "apply" in done, what
        assert fingerprint(model) in beside or "apply" in done, what
        assert not retrained_folder(folder).exists() or "learn" in done, what
    elif "discard" in done:
        assert not retrained_folder(folder).exists(), what
    if not replaced and "apply" not in done:
        assert fingerprint(folder) == fingerprint(model), what
    for one in earlier_models(folder).values():
        Translator.load(one, verify=True)
    if "apply" in done:
        for word in opened.space.source.index_to_key[300:303]:
            found = client.get("/api/translate", params={"word": word, "k": 3}).json()["translations"]
            for answer, shown in zip(opened.translate(word, 3), found, strict=True):
                same = (answer.confidence is None) == (shown["confidence"] is None)
                assert same and abs((answer.confidence or 0) - (shown["confidence"] or 0)) < 1e-4, what


ATTACKS: dict[str, Callable[[Path, float], str]] = {
    attack.__name__: attack
    for attack in (slow, bursts, events, guesses, decisions, kills, full_disk, clock, pairs)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run some attacks and print what they found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("attacks", nargs="*", choices=[[], *ATTACKS], help="All if none is named.")
    parser.add_argument("--seconds", type=float, default=60.0, help="How long an attack may last.")
    options = parser.parse_args(arguments)
    for name in options.attacks or ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            shutil.copytree(options.model, model)
            print(ATTACKS[name](model, options.seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
