"""Attack a running workbench: unfinished requests, bursts, open event streams, guesses, kills during keep.

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
from pathlib import Path
from typing import Any

TOKEN = "attack-test-token-of-30-letters"
_LONGEST_START = 90.0


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
        times: dict[str, list[float]] = {"near": [], "far": []}
        guess = {"near": TOKEN[:-1] + "X", "far": "X" + TOKEN[1:]}
        order = random.Random(0).sample(["near", "far"] * 300, 600)
        for name in order:
            started = time.perf_counter()
            assert server.request("GET", "/api/model", token=guess[name])[0] == 401
            times[name].append(time.perf_counter() - started)
        medians = {name: statistics.median(part) * 1e6 for name, part in times.items()}
        spread = statistics.stdev(times["far"]) * 1e6
    return (
        f"guesses: 300 guesses of a password, {tried[401]} compared; 600 guesses of a token, median "
        f"{medians['near']:.0f} µs (all but the last letter right) and {medians['far']:.0f} µs "
        f"(the first letter wrong), standard deviation {spread:.0f} µs"
    )


def retraining(model: Path, seconds: float) -> str:
    """Kill the server at random moments of a retraining and of keep: nothing may be lost."""
    from bilex.model import Translator

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
        assert server.request("POST", "/api/learn", {"updates": 1})[0] == 202
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
        for beside in model.parent.glob("model.*"):
            if beside.is_dir():
                Translator.load(beside, verify=True)
    return f"retraining: {kills} kills, {kept} keeps acknowledged, nothing lost; killed in {dict(phases)}"


ATTACKS: dict[str, Callable[[Path, float], str]] = {
    attack.__name__: attack for attack in (slow, bursts, events, guesses, retraining)
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
