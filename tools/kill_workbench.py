"""Kill the workbench's server at random moments while people review: no acknowledged decision may be lost.

    python -m tools.kill_workbench MODEL --rounds 100

MODEL is copied first. In each round a server is started, several clients send decisions as fast as they can,
and after a random number of answers the server gets SIGKILL. Then the review file must open and be whole, and
hold every decision that was answered with 200, exactly once.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bilex.model import Translator
from bilex_workbench.database import Database, review_file

TOKEN = "kill-test-token"
_CLIENTS = 4
_MOST_DECISIONS = 60
_LONGEST = 300.0  # seconds for a start, and for the decisions of a round


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--random-seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        shutil.copytree(options.model, model)
        acknowledged = run_rounds(model, options.rounds, options.random_seed)
    if not acknowledged:
        print("nothing was acknowledged, so that nothing was tested.")
        return 1
    print(f"{options.rounds} kills, {acknowledged} acknowledged decisions, none lost.")
    return 0


def run_rounds(model: Path, rounds: int, random_seed: int = 0) -> int:
    """Kill the server so many times.

    Args:
        model: A model that may be reviewed.
        rounds: How many kills.
        random_seed: Fixes when.

    Returns:
        How many decisions were acknowledged.

    Raises:
        AssertionError: One of them was lost or doubled, or the file is damaged.
    """
    rng = random.Random(random_seed)
    words = Translator.load(model).space.source.index_to_key
    acknowledged: list[tuple[str, str]] = []
    for number in range(rounds):
        count, later = rng.randint(1, _MOST_DECISIONS), rng.uniform(0, 0.02)
        acknowledged += _one_round(model, words, number, count, later)
        _check(model, acknowledged)
    return len(acknowledged)


def _one_round(model: Path, words: list[str], number: int, count: int, later: float) -> list[tuple[str, str]]:
    """Kill the server some milliseconds after it has acknowledged so many decisions."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bilex", "serve", str(model), "--port", str(port), "--token", TOKEN]
    server = subprocess.Popen(
        [*command, "--no-browser"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    done: list[tuple[str, str]] = []
    try:
        _wait(port, server)
        clients = [
            threading.Thread(target=_review, args=(port, words, f"round {number} client {client}", done))
            for client in range(_CLIENTS)
        ]
        for client in clients:
            client.start()
        end = time.monotonic() + _LONGEST
        while len(done) < count and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(later)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    for client in clients:
        client.join()
    return done


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers and its table is filled."""
    end = time.monotonic() + _LONGEST
    while time.monotonic() < end and server.poll() is None:
        try:
            entries = _request(port, "GET", "/api/model")["entries"]
            if isinstance(entries, dict) and entries["complete"]:
                return
            time.sleep(0.05)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.05)
    raise AssertionError("the server did not start")


def _review(port: int, words: list[str], reviewer: str, done: list[tuple[str, str]]) -> None:
    """Send decisions until the server is gone; those that were acknowledged are noted."""
    rng = random.Random(reviewer)
    for source in rng.sample(words, len(words)):
        body = {"source": source, "reviewer": reviewer, "verdict": "accept", "accepted": ["a free text"]}
        try:
            _request(port, "POST", "/api/review/decide", body)
        except (OSError, http.client.HTTPException, ValueError):
            return
        done.append((source, reviewer))


def _request(port: int, method: str, path: str, body: object = None) -> dict[str, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise ValueError(f"status {answer.status}")
        found: dict[str, object] = json.loads(content)
        return found
    finally:
        connection.close()


def _check(model: Path, acknowledged: list[tuple[str, str]]) -> None:
    path = review_file(model)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "the file is damaged"
    connection.close()
    database = Database(path)
    with database.reading() as db:
        kept = [tuple(row) for row in db.execute("SELECT source, reviewer FROM decisions")]
    database.close()
    lost = set(acknowledged) - set(kept)
    assert not lost, f"{len(lost)} acknowledged decisions are lost"
    assert len(set(kept)) == len(kept), "a decision was kept twice"


if __name__ == "__main__":
    sys.exit(main())
