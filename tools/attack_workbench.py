"""Attack a running workbench: unfinished requests, bursts, event streams, guesses, kills, full disks, clocks.

    python -m tools.attack_workbench MODEL slow bursts events guesses --seconds 60

MODEL is copied first, and served on this machine's loopback only. Each attack prints one line with its counts
and raises an AssertionError if a promise of docs/reference/promises.md is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from scipy.stats import mannwhitneyu
from starlette.testclient import TestClient

from bilex.model import Translator
from bilex_workbench.access import LOCAL, AccessPolicy, same
from bilex_workbench.database import Database, review_file
from bilex_workbench.decisions import Decision, record
from bilex_workbench.server import application
from bilex_workbench.versions import earlier_models, fingerprint, retrained_folder
from bilex_workbench.workbench import Settings, Workbench

# mypy knows the files of this folder as modules of their own, not as parts of tools.
prepared: Callable[..., Path] = import_module("tools.workbench_pairs").prepared
TOKEN = "attack-test-token-of-30-letters"
_LONGEST_START = 300.0


class Server:
    """`bilex serve` in a process of its own.

    Args:
        model: The model to serve.
        options: Further options of the command.
        token: What requests must carry.
        environment: Variables of its environment.
    """

    def __init__(
        self,
        model: Path,
        options: Sequence[str] = (),
        token: str = TOKEN,
        environment: dict[str, str] | None = None,
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.token = token
        self.log = Path(tempfile.mkstemp(suffix=".log")[1])
        command = [sys.executable, "-m", "bilex", "serve", str(model), "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--token", token, "--no-browser", *options],
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
            )

    def __enter__(self) -> Server:
        self.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self.log.unlink(missing_ok=True)

    def kill(self) -> None:
        """End the server with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def wait(self) -> dict[str, Any]:
        """Wait until the model is open and its table filled; what it says is returned."""
        end = time.monotonic() + _LONGEST_START
        while time.monotonic() < end and self.process.poll() is None:
            try:
                found = self.request("GET", "/api/model")[1]
                if found["state"] == "failed" or (found["entries"] or {}).get("complete"):
                    return found
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                pass
            time.sleep(0.05)
        raise AssertionError(f"the server did not start: {self.log.read_text(encoding='utf-8')[-2000:]}")

    def request(
        self, method: str, path: str, body: object = None, token: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=100)
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()

    @property
    def files(self) -> int:
        """How many files and connections the server has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def memory(self) -> float:
        """Its resident memory without mapped files, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
        return int(line.split()[1]) / 1024


def slow(model: Path, seconds: float) -> str:
    """More unfinished headers, and bodies without a token, than a process may have files."""
    with Server(model) as server:
        held = []
        for number in range(1_100):
            try:
                connection = socket.create_connection(("127.0.0.1", server.port), 5)
            except OSError:
                break  # this process may not open more
            with_body = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\nto"
            held.append(connection)
            with_header = b"GET / HTTP/1.1\r\nHost: 127"
            with contextlib.suppress(OSError):  # the server closed it already
                connection.sendall(with_body if number % 2 else with_header)
        waits, wrong = [], 0
        for _ in range(20):
            started = time.monotonic()
            try:
                wrong += server.request("GET", "/api/model")[0] != 200
            except OSError:
                wrong += 1
            waits.append(time.monotonic() - started)
        time.sleep(min(seconds, 25))
        files, log = server.files, server.log.stat().st_size
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
        rng, answers = random.Random(0), Counter[int]()
        lock, end = threading.Lock(), time.monotonic() + seconds
        history: list[tuple[int, float]] = []

        def one(number: int) -> None:
            word = rng.choice(words)
            if number % 10 == 0:
                body = {"source": word, "reviewer": f"r{number}", "verdict": "accept", "accepted": ["text"]}
                status = server.request("POST", "/api/review/decide", body)[0]
            else:
                paths = (
                    f"/api/translate?word={word}",
                    "/api/entries?limit=50",
                    f"/api/suggest?word={word[:2]}",
                )
                status = server.request("GET", rng.choice(paths))[0]
            with lock:
                answers[status] += 1

        count = 0
        while time.monotonic() < end:
            with ThreadPoolExecutor(30) as pool:
                list(pool.map(one, range(30)))
            count += 1
            time.sleep(min(1.0, seconds / 60))
            history.append((server.files, server.memory))
        assert set(answers) == {200}, answers
        early, late = history[len(history) // 6 : len(history) // 3], history[-len(history) // 6 :]
        files = [round(statistics.median(f for f, _ in part)) for part in (early, late)]
        memory = [statistics.median(m for _, m in part) for part in (early, late)]
        assert files[1] <= files[0] + 5, f"descriptors grew from {files[0]} to {files[1]}"
        assert memory[1] <= memory[0] + 40, f"memory grew from {memory[0]:.0f} to {memory[1]:.0f} MB"
        return (
            f"bursts: {count} bursts, {answers.total():,} requests in {seconds:.0f} s, all answered; "
            f"descriptors {files[0]} -> {files[1]}, memory {memory[0]:.0f} -> {memory[1]:.0f} MB"
        )


def events(model: Path, seconds: float) -> str:
    """Many event streams, most of them broken off: others are answered, and nothing is left open."""
    with Server(model) as server:
        before = server.files
        opened = 0
        end = time.monotonic() + min(seconds, 20)
        while time.monotonic() < end:
            streams = []
            for _ in range(60):
                stream = socket.create_connection(("127.0.0.1", server.port), 5)
                stream.sendall(
                    b"GET /api/job/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
                    + server.token.encode()
                    + b"\r\n\r\n"
                )
                streams.append(stream)
                opened += 1
            assert server.request("GET", "/api/model")[0] == 200
            for stream in streams:
                stream.close()
        time.sleep(1)
        files = server.files
        assert files <= before + 10, f"descriptors grew from {before} to {files}"
        return f"events: {opened} streams, descriptors {before} -> {files}"


def guesses(model: Path, seconds: float) -> str:
    """Guess a short password, and measure whether the time of an answer says how much of a guess is right."""
    password = "pass-word-1"
    with Server(model, token=password) as server:
        tried = Counter(server.request("GET", "/api/model", token=f"guess{n}")[0] for n in range(300))
    assert tried[401] <= 20 and tried[429] == 300 - tried[401], tried
    with Server(model) as server:
        over_http = _timed(lambda guess: server.request("GET", "/api/model", token=guess)[0] == 401, 2_000)
    alone = _timed(lambda guess: not same(guess, TOKEN), 100_000)
    return (
        f"guesses: 300 guesses of a password, {tried[401]} compared; of a token, 2,000 of each kind over "
        f"HTTP: {over_http}; 100,000 of each kind of the comparison alone: {alone}"
    )


def _timed(refused: Callable[[str], bool], count: int) -> str:
    """Whether a guess whose last letter is wrong takes longer than one whose first letter is wrong."""
    times: dict[str, list[float]] = {"near": [], "far": []}
    guess = {"near": TOKEN[:-1] + "X", "far": "X" + TOKEN[1:]}
    for name in random.Random(0).sample(["near", "far"] * count, 2 * count):
        started = time.perf_counter()
        assert refused(guess[name])
        times[name].append((time.perf_counter() - started) * 1e6)
    near, far = (statistics.median(times[name]) for name in ("near", "far"))
    p = mannwhitneyu(times["near"], times["far"]).pvalue
    return f"median {near:.2f} µs (last letter wrong), {far:.2f} µs (first), Mann-Whitney p = {p:.3f}"


def retraining(model: Path, seconds: float) -> str:
    """Kill the server at random moments of a retraining and of keep: nothing may be lost."""
    rng, phases, kept = random.Random(0), Counter[str](), 0
    end, kills = time.monotonic() + seconds, 0
    words = Translator.load(model).space.source.index_to_key
    while time.monotonic() < end or not kills:
        server = Server(model)
        server.wait()
        decisions = server.request("GET", "/api/review/status")[1]["decisions"]
        assert decisions == kills, f"{decisions} of {kills} decisions are left"
        body = {"source": words[kills], "reviewer": "a", "verdict": "accept", "accepted": [words[0]]}
        assert server.request("POST", "/api/review/decide", body)[0] == 200
        assert server.request("POST", "/api/learn", {})[0] == 202
        until = time.monotonic() + rng.uniform(0.2, 8)
        while time.monotonic() < until and server.request("GET", "/api/job")[1]["job"]["state"] == "running":
            time.sleep(0.02)
        job = server.request("GET", "/api/job")[1]["job"]
        if job["state"] == "done":
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                threading.Timer(rng.uniform(0, 0.05), server.kill).start()
                kept += server.request("POST", "/api/learn/keep")[0] == 200
        phases[job["phase"] if job["state"] == "running" else f"keep after {job['state']}"] += 1
        server.kill()
        server.log.unlink(missing_ok=True)
        kills += 1
        Translator.load(model, verify=True)
        for beside in (retrained_folder(model), *earlier_models(model).values()):
            if beside.is_dir():
                Translator.load(beside, verify=True)
    return f"retraining: {kills} kills, {kept} keeps acknowledged, nothing lost; killed in {dict(phases)}"


def kills(model: Path, seconds: float) -> str:
    """Kill the worker or the server while the retrained model is written, and the server during keep."""
    rng, found, took = random.Random(0), Counter[str](), 0.5
    with tempfile.TemporaryDirectory() as name:
        other, words = _other(model, Path(name))
        end, rounds = time.monotonic() + seconds, 0
        while time.monotonic() < end or rounds < 4:
            aim = ("keep", "worker", "keep", "server")[rounds % 4]
            folder = prepared(Path(name) / f"round{rounds}", model, other, words)
            old, new = fingerprint(folder), fingerprint(other)
            server = Server(folder)
            server.wait()
            if aim == "keep":
                delay = rng.uniform(0, 1.2 * took)
                threading.Timer(delay, server.kill).start()
                started = time.monotonic()
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    found["keep acknowledged"] += server.request("POST", "/api/learn/keep")[0] == 200
                    took = time.monotonic() - started
                server.process.wait()
            else:
                _kill_while_writing(server, rng.uniform(0, 0.15), aim)
            server.log.unlink(missing_ok=True)
            assert _worker(folder) is None, "a worker was left behind"
            restored = Workbench(Settings(work=folder.parent, fill=False), folder)  # ends what was begun
            restored.wait_until_ready()
            with restored.database.reading() as db:
                assert db.execute("SELECT count(*) FROM decisions").fetchone()[0] == 5
            restored.stop()
            Translator.load(folder, verify=True)
            beside = retrained_folder(folder) if fingerprint(folder) == old else earlier_models(folder)[1]
            if aim == "keep":
                assert {fingerprint(folder), fingerprint(beside)} == {old, new}, "a model is lost"
                found[
                    "keep, the " + ("old" if fingerprint(folder) == old else "new") + " model is there"
                ] += 1
            else:
                assert fingerprint(folder) == old, "the model was changed"
                again = fingerprint(beside) != new
                found[f"{aim}, the {'new' if again else 'earlier'} retrained model is there"] += 1
            Translator.load(beside, verify=True)
            left = [one.name for one in folder.parent.rglob("*.bilex-*") if not one.name.endswith("-lock")]
            found["temporaries left for the next write"] += bool(left)
            shutil.rmtree(folder.parent)
            rounds += 1
    return f"kills: {rounds} kills, no model or decision lost: {dict(found)}"


def _kill_while_writing(server: Server, delay: float, aim: str) -> None:
    """Start a retraining, and kill its process or the server soon after the model began to be written."""
    assert server.request("POST", "/api/learn", {})[0] == 202
    job = server.request("GET", "/api/job")[1]["job"]
    while job["state"] == "running" and job["phase"] not in ("Writing the model", "Comparing"):
        job = server.request("GET", "/api/job")[1]["job"]
    time.sleep(delay)
    worker = next(iter(_children(server.process.pid)), None)
    if aim == "worker" and worker is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        while (job := server.request("GET", "/api/job")[1]["job"])["state"] == "running":
            time.sleep(0.02)
        assert job["state"] == "done" or _is_sentence(job["detail"]), job
    server.kill()
    end = time.monotonic() + 60
    while worker is not None and Path(f"/proc/{worker}/fd").exists() and time.monotonic() < end:
        time.sleep(0.05)  # it ends when the server does


def _children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text(encoding="ascii").split()]


def _worker(folder: Path) -> int | None:
    """A process that writes something beside a model."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(folder.parent) in str(file.readlink()) for file in (process / "fd").iterdir()):
                return int(process.name)
    return None


def _is_sentence(text: object) -> bool:
    return isinstance(text, str) and 20 < len(text) < 400 and "\n" not in text and text.endswith((".", "?"))


def _other(model: Path, place: Path) -> tuple[Path, list[str]]:
    """A second model of the same words, which can wait as the retrained one."""
    translator = Translator.load(model)
    translator.with_parts(seeds=translator.seeds.head(100)).save(place / "other")
    return place / "other", translator.space.source.index_to_key


def full_disk(model: Path, seconds: float) -> str:
    """Fill the disk in each phase of a retraining, and during keep and apply, down to some free pages."""
    found, end = Counter[str](), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        other, words = _other(model, Path(name))
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
        finally:
            subprocess.run(["umount", "-l", disk], check=False)
    return f"full_disk: {found.total()} of {len(plans)} rounds, no model or decision lost: {dict(found)}"


_PHASES = (
    "starting",
    "Opening the model",
    "Measuring neighbourhoods",
    "Choosing how far decisions reach",
    "Comparing answers",
    "Writing the model",
    "Comparing",
)


def _decide(folder: Path) -> None:
    """Enough decisions on words of the model that a retraining has something to choose."""
    space, database = Translator.load(folder).space, Database(review_file(folder))
    pairs = zip(space.source.index_to_key[250:450], space.target.index_to_key[250:450], strict=True)
    with database.writing() as db:
        for source, target in pairs:
            record(db, Decision(source, "b", "accept", (target,), (), (target,), None, "", "review"))
    database.close()


_PATHS = {"keep": "/api/learn/keep", "apply": "/api/audit/apply", "learn": "/api/learn"}


def _one_full_disk(disk: Path, folder: Path, operation: str, phase: str, free: int) -> str:
    old, new = fingerprint(folder), fingerprint(retrained_folder(folder))
    bench = Workbench(Settings(work=disk, fill=False), folder)
    bench.wait_until_ready()
    app = application(bench, AccessPolicy(TOKEN, LOCAL))
    headers, filler = {"Authorization": f"Bearer {TOKEN}"}, disk / "filler"
    with TestClient(
        app, base_url="http://127.0.0.1", headers=headers, raise_server_exceptions=False
    ) as client:
        word, late = bench.engine.space.source.index_to_key[0], bench.engine.space.source.index_to_key[100]
        if operation == "learn":
            assert client.post("/api/learn", json={}).status_code == 202
            while (job := bench.jobs.describe()) and job.state == "running" and job.phase != phase:
                time.sleep(0.001)
            if job and job.state != "running":
                phase += ", not met"
        _fill(filler, free)
        answer = None if operation == "learn" else client.post(_PATHS[operation])
        body = {"source": late, "reviewer": "late", "verdict": "accept", "accepted": ["x"]}
        stored = client.post("/api/review/decide", json=body)
        assert stored.status_code == 200 or _is_sentence(stored.json()["detail"]), stored.text
        worked, said = _outcome(bench, answer)
        bench.wait_until_ready()
        assert client.get("/api/translate", params={"word": word}).status_code == 200
        Translator.load(folder, verify=True)
        now = fingerprint(folder)
        assert now == old or (operation != "learn" and worked), f"the model changed; the server said: {said}"
        if operation == "keep":
            beside = earlier_models(folder)[1] if worked else retrained_folder(folder)
            assert (now, fingerprint(beside)) == ((new, old) if worked else (old, new)), f"lost; {said}"
        for one in (retrained_folder(folder), *earlier_models(folder).values()):
            assert not one.exists() or Translator.load(one, verify=True)
        filler.unlink()
        if not worked:
            again = client.post(_PATHS[operation], json={} if operation == "learn" else None)
            assert again.status_code in (200, 202) and _outcome(bench, again)[0], again.text
        bench.wait_until_ready()
    bench.stop()
    left = [one.name for one in folder.parent.rglob("*.bilex-*") if not one.name.endswith("-lock")]
    assert not left, f"{left} are left"
    database = Database(review_file(folder))
    with database.reading() as db:
        kept = db.execute("SELECT count(*) FROM decisions").fetchone()[0]
    assert kept == 205 + (stored.status_code == 200)
    database.close()
    shutil.rmtree(folder.parent)
    return f"{operation}{phase and f' ({phase})'} {'done' if worked else 'refused'}"


def _outcome(bench: Workbench, answer: Any) -> tuple[bool, str | None]:
    """Whether the job or the request did what it should, and what was said otherwise: one sentence."""
    if answer is not None and answer.status_code != 202:
        said = answer.json().get("detail")
        worked = answer.status_code == 200
        assert worked or (answer.status_code in (400, 409, 503) and _is_sentence(said)), answer.text
        return worked, said
    while (job := bench.jobs.describe()) and job.state == "running":
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
    days, times, password = ("0", "86400", "-86400", "0", "-86400", "86400"), [], "pass-word-1"
    word = Translator.load(model).space.source.index_to_key[0]
    with Server(model, token=password, environment=environment) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)
        connection.request("POST", "/", f"token={password}")
        cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
        connection.close()
        for number in range(24):
            jump.write_text(days[number % len(days)], encoding="ascii")
            body = {"source": word, "reviewer": "a", "verdict": "accept", "accepted": [f"x{number}"]}
            assert server.request("POST", "/api/review/decide", body)[0] == 200
            found = server.request("GET", f"/api/entry?source={word}")[1]
            assert found["accepted"] == [f"x{number}"], found
            times.append(found["history"][0]["at"][:10])
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)
            connection.request("GET", "/api/model", headers={"Cookie": cookie})
            assert connection.getresponse().status == 200, "the session ended"
            connection.close()
        for number in range(23, 12, -1):
            undone = server.request("POST", "/api/review/undo", {"reviewer": "a"})[1]["undone"]
            assert undone["accepted"] == [f"x{number}"], undone
        for _ in range(20):
            assert server.request("GET", "/api/model", token="wrong")[0] == 401
        for day in days:
            jump.write_text(day, encoding="ascii")
            assert server.request("GET", "/api/model", token="wrong")[0] == 429, (
                f"a jump of {day} freed guesses"
            )
        time.sleep(61)
        assert server.request("GET", "/api/model", token="wrong")[0] == 401, "a jump kept a limit on"
    assert len(set(times)) == 3, times
    return (
        "clock: 24 decisions and 11 undos on 3 dates with jumps of one and two days, all in the order "
        "in which they came; the session stayed open; 6 jumps neither lifted nor prolonged the limit"
    )


ATTACKS: dict[str, Callable[[Path, float], str]] = {
    attack.__name__: attack for attack in (slow, bursts, events, guesses, retraining, kills, full_disk, clock)
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
