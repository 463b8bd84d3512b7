"""The workbench under load: start, translations by many clients, pages of the table, memory.

    python -m timings.workbench_load --words 200000 --work /tmp/load

A planted model of that many words a language is made in the work folder (once). A server is started on it;
then so many clients at once ask for translations of random words, first while the table is empty (every
answer is a search, gathered into batches) and, with --fill, again when it is filled (answers are looked up).
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import psutil

from bilex.aligners.maps import Map, Unit
from bilex.space import Space
from bilex.translator import Translator
from bilex.translator.provenance import Provenance
from bilex.vectors import WordVectors
from bilex.workbench.schema import review_file

TOKEN = "load-test-token"
PORT = 8799
_DIMENSION = 300
_NOISE = 1.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the model, measure, print one line of JSON for each measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--requests", type=int, default=50, help="of each client")
    parser.add_argument("--fill", type=float, default=0, help="wait at most so many seconds for the table")
    options = parser.parse_args(arguments)
    model = options.work / f"planted-{options.words}"
    if not model.exists():
        make_model(model, options.words)
    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    server, started = start(model)
    try:
        say("first page", seconds=round(started, 2))
        process = psutil.Process(server.pid)
        until(lambda: ask("/api/model")["state"] == "ready", 60)
        ask("/api/translate?word=w0s&k=11")  # the first search makes the keys ready
        measure_translations("searched", options, k=11)
        say("memory after searches", **memory(process, size))
        if options.fill:
            waited = until(lambda: bool(ask("/api/model")["entries"]["complete"]), options.fill)
            entries = ask("/api/model")["entries"]
            say("table", seconds=round(waited), done=entries["done"], complete=entries["complete"])
            measure_translations("looked up", options, k=5, words=entries["done"])
            measure_pages(entries["done"])
            say("memory at the end", **memory(process, size))
    finally:
        server.terminate()
        server.wait()
    return 0


def make_model(folder: Path, words: int) -> None:
    """Random vectors and the same with noise; the CSLS terms are random too, which no timing depends on."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((words, _DIMENSION), dtype=np.float32)
    y = x + np.float32(_NOISE) * rng.standard_normal((words, _DIMENSION), dtype=np.float32)
    sides = []
    for rows, ending in ((x, "s"), (y, "t")):
        np.divide(rows, np.linalg.norm(rows, axis=1, keepdims=True), out=rows)
        sides.append(WordVectors([f"w{number}{ending}" for number in range(words)], rows, ("unit",)))
    space = Space(sides[0], sides[1])
    r_source, r_target = (rng.uniform(0.2, 0.25, words).astype(np.float32) for _ in sides)
    space.keep_neighbourhoods(r_source, r_target)
    Translator(space, Map([Unit()]), Map([Unit()]), provenance=Provenance(method="planted")).save(folder)


def start(model: Path) -> tuple[subprocess.Popen[bytes], float]:
    """A server on the model, its table empty, and the seconds until it answered."""
    for path in model.parent.glob(review_file(model).name + "*"):
        path.unlink()
    command = [sys.executable, "-m", "bilex", "serve", str(model), "--port", str(PORT), "--token", TOKEN]
    began = time.perf_counter()
    server = subprocess.Popen([*command, "--no-browser"], stdout=subprocess.DEVNULL)
    until(_answers, 60, 0.02)
    return server, time.perf_counter() - began


def _answers() -> bool:
    try:
        return bool(ask("/api/model"))
    except (OSError, http.client.HTTPException):
        return False


def until(true: Callable[[], bool], seconds: float, pause: float = 0.5) -> float:
    """Wait until something is true; the seconds that it took are returned."""
    began = time.perf_counter()
    while not true() and time.perf_counter() - began < seconds:
        time.sleep(pause)
    return time.perf_counter() - began


def ask(path: str, connection: http.client.HTTPConnection | None = None) -> Any:
    """One answer of the server."""
    own = connection or http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    own.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    found = json.loads(own.getresponse().read())
    if connection is None:
        own.close()
    return found


def measure_translations(name: str, options: argparse.Namespace, *, k: int, words: int | None = None) -> None:
    """The time of a translation when so many clients ask at once, each on a connection of its own."""
    times: list[float] = []

    def client(number: int) -> None:
        rng = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        for _ in range(options.requests):
            word = quote(f"w{rng.randrange(words or options.words)}s")
            began = time.perf_counter()
            found = ask(f"/api/translate?word={word}&k={k}", connection)
            times.append(time.perf_counter() - began)
            assert len(found["translations"]) == k
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(f"translation, {name}", clients=options.clients, **quantiles(times))


def measure_pages(entries: int) -> None:
    """The time of a page of the table, for several orders, filters and places."""
    for query in ("sort=source_rank", "sort=-confidence", "sort=score", "q=99&sort=source", "mutual=true"):
        times = []
        for number in range(20):
            offset = number * max(1, entries // 25)
            began = time.perf_counter()
            ask(f"/api/entries?limit=100&offset={offset}&{query}")
            times.append(time.perf_counter() - began)
        say("page of the table", query=query, **quantiles(times))


def quantiles(times: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {
        "requests": len(times),
        "median_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
    }


def memory(process: psutil.Process, size: int) -> dict[str, float]:
    """What the server holds, beside the size of the model's files."""
    held = process.memory_full_info()
    return {
        "resident_mb": round(held.rss / 2**20),
        "own_mb": round(held.uss / 2**20),
        "files_mb": round(size / 2**20),
        "ratio": round(held.rss / size, 2),
    }


def say(what: str, **values: Any) -> None:
    """One line."""
    print(json.dumps({"what": what, **values}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
