"""The workbench under load: start, translations by many clients, pages of the table, memory.

    python -m research.workbench_load --words 200000 --work /tmp/load
    python -m research.workbench_load --words 200000 --work /tmp/load --data DATA --corpus FI.txt RU.txt

A planted model of that many words a language is made in the work folder (once). A server is started on it
with an empty table: so many clients at once ask for translations of random words, each asking again as soon
as it has its answer, while the table is being filled. Then the server is left alone for --idle seconds, in
which it fills at full speed. It is started once more on a table that was filled beforehand with random
translations, by the server's own code: answers are looked up now, and pages of the table are asked for.
With --data, the model is Procrustes of Finnish and Russian in that folder, so that entries have lemmas; with
--corpus, every second request of a client is for the examples of the word. Clients are coroutines of one
process that do next to nothing with an answer, since they share the processor with the server; the processor
time of both is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

import numpy as np
import psutil

from bilex.aligners import get_method
from bilex.aligners.maps import Map, Unit
from bilex.model import Translator
from bilex.model.answers import Proposals
from bilex.model.provenance import Provenance
from bilex.model.space import Rows, Space
from bilex.vectors import WordVectors
from bilex_workbench.database import Database, review_file
from bilex_workbench.engine import Engine
from bilex_workbench.precompute import Precompute
from research.packed import read_dictionary, read_vectors

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
    parser.add_argument("--requests", type=int, default=100, help="of each client")
    parser.add_argument("--idle", type=float, default=20, help="seconds in which only the table is filled")
    parser.add_argument("--no-table", action="store_true", help="measure nothing with a filled table")
    parser.add_argument("--data", type=Path, help="a folder with vectors of Finnish and Russian")
    parser.add_argument("--corpus", nargs=2, default=[], help="texts with examples, one per language")
    options = parser.parse_args(arguments)
    model = options.work / f"{'fi-ru' if options.data else 'planted'}-{options.words}"
    if not model.exists():
        make_model(model, options.words, options.data)
    options.vocabulary = Translator.load(model, verify=False).space.source.index_to_key
    _while_filling(model, options)
    if not options.no_table:
        _with_table(model, options)
    return 0


def _while_filling(model: Path, options: argparse.Namespace) -> None:
    for path in model.parent.glob(review_file(model).name + "*"):
        path.unlink()
    word = quote(options.vocabulary[0])
    with running(model, options.corpus) as server:
        until(lambda: ask("/api/model")["state"] == "ready", 60, 0.02)
        first = until(lambda: bool(ask(f"/api/translate?word={word}")), 60)
        say("first translation", seconds=round(first, 2))
        measure_translations("searched", server, options)
        say("memory after searches", **memory(server, model))
        done = ask("/api/model")["entries"]["done"]
        time.sleep(options.idle)
        more = ask("/api/model")["entries"]["done"] - done
        say("filling alone", words_a_second=round(more / options.idle, 1) if options.idle else None)
        say("memory while filling", **memory(server, model))


def _with_table(model: Path, options: argparse.Namespace) -> None:
    fill_table(model)
    with running(model, options.corpus) as server:
        until(lambda: bool(ask("/api/model")["entries"]["complete"]), 60, 0.02)
        measure_translations("looked up", server, options)
        measure_pages(options.words)
        say("memory with the table", **memory(server, model))


def make_model(folder: Path, words: int, data: Path | None = None) -> None:
    """Random vectors and the same with noise, or real ones; the CSLS terms are random, as no timing needs."""
    rng = np.random.default_rng(0)
    codes: tuple[str, ...] = ()
    maps = [Map([Unit()]), Map([Unit()])]
    if data is None:
        x = rng.standard_normal((words, _DIMENSION), dtype=np.float32)
        y = x + np.float32(_NOISE) * rng.standard_normal((words, _DIMENSION), dtype=np.float32)
        sides = []
        for rows, ending in ((x, "s"), (y, "t")):
            np.divide(rows, np.linalg.norm(rows, axis=1, keepdims=True), out=rows)
            sides.append(WordVectors([f"w{number}{ending}" for number in range(words)], rows, ("unit",)))
    else:
        codes = ("fi", "ru")
        sides = [read_vectors(data, code, words) for code in codes]
        aligner = get_method("procrustes")()
        aligner.fit(sides[0], sides[1], read_dictionary(data, "fi-ru", "train.freq.5k"))
        maps = [aligner.source_map_, aligner.target_map_]
        sides = [
            WordVectors(side.index_to_key, one(side.vectors), ("unit",))
            for side, one in zip(sides, maps, strict=True)
        ]
    space = Space(sides[0], sides[1])
    r_source, r_target = (rng.uniform(0.2, 0.25, words).astype(np.float32) for _ in sides)
    space.set_neighbourhoods(r_source, r_target)
    provenance = Provenance(method="planted")
    if codes:
        provenance = replace(provenance, source_language=codes[0], target_language=codes[1])
    Translator.of_parts(space, maps[0], maps[1], provenance=provenance).save(folder)


def fill_table(model: Path) -> None:
    """A table as filling leaves it, with random translations, which no timing of the table depends on."""
    database = Database(review_file(model))
    engine = Engine(model, database)
    rng = np.random.default_rng(1)

    def propose(queries: Rows, k: int) -> Proposals:
        found = Proposals.blank(len(queries), k)
        found.rows[:] = rng.integers(0, len(engine.space.target), found.rows.shape)
        found.scores[:] = -np.sort(-rng.uniform(0, 1, found.rows.shape).astype(np.float32))
        found.confidence[:] = found.scores
        return found

    with mock.patch.object(Translator, "proposer", lambda *_: propose):
        Precompute(engine, database).run()
    engine.close()
    database.close()


@contextmanager
def running(model: Path, corpus: Sequence[str] = ()) -> Iterator[psutil.Process]:
    """A server on the model; how long it took to answer is printed."""
    command = [sys.executable, "-m", "bilex", "serve", str(model), "--port", str(PORT), "--token", TOKEN]
    began = time.perf_counter()
    server = subprocess.Popen(
        [*command, "--no-browser", *(["--corpus", *corpus] if corpus else [])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(_answers, 600, 0.01)
        say("first page", seconds=round(time.perf_counter() - began, 2))
        yield psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait()


def _answers() -> bool:
    """Whether the page, its script and what it asks for first are all there."""
    try:
        return all(len(fetch(path)) > 0 for path in ("/", "/app.js", "/api/model"))
    except (OSError, http.client.HTTPException):
        return False


def until(true: Callable[[], bool], seconds: float, pause: float = 0.5) -> float:
    """Wait until something is true; the seconds that it took are returned."""
    began = time.perf_counter()
    while not true() and time.perf_counter() - began < seconds:
        time.sleep(pause)
    return time.perf_counter() - began


def fetch(path: str) -> bytes:
    """One answer of the server."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != HTTPStatus.OK:
        raise http.client.HTTPException(f"{path}: {answer.status}")
    return body


def ask(path: str) -> Any:
    """One answer of the interface."""
    return json.loads(fetch(path))


def measure_translations(name: str, server: psutil.Process, options: argparse.Namespace) -> None:
    """The time of a translation when so many clients ask at once, each on a connection of its own."""
    times: dict[str, list[float]] = {"translate": [], "examples": []}
    began, own, used = time.perf_counter(), time.process_time(), _processor_time(server)
    asyncio.run(_clients(options, times))
    count = sum(map(len, times.values()))
    per_second = count / (time.perf_counter() - began)
    say(
        f"translation, {name}",
        clients=options.clients,
        a_second=round(per_second),
        **quantiles(times["translate"]),
        **({"examples": quantiles(times["examples"])} if options.corpus else {}),
        server_cpu_ms=round(1000 * (_processor_time(server) - used) / count, 2),
        client_cpu_ms=round(1000 * (time.process_time() - own) / count, 2),
        load=psutil.getloadavg()[0],
    )


def _processor_time(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


async def _clients(options: argparse.Namespace, times: dict[str, list[float]]) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(options.clients):
            group.create_task(_client(number, options, times))


async def _client(number: int, options: argparse.Namespace, times: dict[str, list[float]]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    choice = random.Random(number)
    word = answer = ""
    for turn in range(options.requests):
        examples = bool(options.corpus) and turn % 2 == 1
        if not examples:
            word = quote(options.vocabulary[choice.randrange(options.words)])
        path = (
            f"/api/examples?source={word}&target={answer}" if examples else f"/api/translate?word={word}&k=5"
        )
        began = time.perf_counter()
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        times["examples" if examples else "translate"].append(time.perf_counter() - began)
        assert examples or body.count(b'"score"') == 5, body
        if options.corpus and not examples:
            answer = quote(json.loads(body)["translations"][0]["word"])
    writer.close()


def measure_pages(entries: int) -> None:
    """The time of pages of the table, for several orders, filters and places; of the queue and a preview."""
    table = ("sort=source_rank", "sort=-confidence", "sort=score", "q=99&sort=source", "mutual=true")
    paths = [f"/api/entries?limit=100&{query}&offset=" for query in table]
    for path in (*paths, "/api/review/next?reviewer=aino", "/api/publish/preview?"):
        times = []
        for number in range(20):
            place = str(number * max(1, entries // 25)) if path in paths else ""
            began = time.perf_counter()
            ask(path + place)
            times.append(time.perf_counter() - began)
        say("page", path=path, **quantiles(times))


def quantiles(times: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {
        "requests": len(times),
        "median_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
    }


def memory(process: psutil.Process, model: Path) -> dict[str, float]:
    """What the server holds, and held at most so far, beside the size of the model's files."""
    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    held = process.memory_info().rss
    peak = held
    status = Path(f"/proc/{process.pid}/status")
    if status.is_file():
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if "VmHWM" in line)
        peak = 1024 * int(line.split()[1])
    return {
        "resident_mb": round(held / 2**20),
        "peak_mb": round(peak / 2**20),
        "files_mb": round(size / 2**20),
        "peak_ratio": round(peak / size, 2),
    }


def say(what: str, **values: Any) -> None:
    """One line."""
    print(json.dumps({"what": what, **values}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
