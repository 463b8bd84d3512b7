"""Let two operations that change the model meet, for every pair of them: one wins, nothing is lost.

    python -m tools.workbench_pairs MODEL --rounds 20

In each round a server with a retrained model, a recalibration and some decisions gets two requests at the
same moment. Afterwards the model must be whole, every decision must be there, no answer may be a 5xx, and a
model that lost must be where the answers say.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from bilex.model import Translator
from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.database import Database, review_file, set_facts
from bilex_workbench.recalibration import Recalibration
from bilex_workbench.server import application
from bilex_workbench.versions import earlier_models, fingerprint, previous_folder, retrained_folder
from bilex_workbench.workbench import Settings, Workbench

_TOKEN = "pairs-test-token-of-30-letters"
_DECISIONS, _ENTRIES = 5, 150
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600.0, help="Stop after so long.")
    options = parser.parse_args(arguments)
    print(run_pairs(options.model, options.seconds, options.rounds))
    return 0


def run_pairs(model: Path, seconds: float, rounds: int = 20) -> str:
    """Run rounds of all pairs until they or the time are over.

    Raises:
        AssertionError: Something was lost or damaged.
    """
    end, done, answers = time.monotonic() + seconds, 0, Counter[int]()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "retrained"
        translator = Translator.load(model)
        translator.with_parts(seeds=translator.seeds.head(100)).save(other)
        combinations = list(itertools.combinations_with_replacement(OPERATIONS, 2))
        for _, (one, two) in itertools.product(range(rounds), combinations):
            if time.monotonic() > end:
                break
            answers.update(_one_round(Path(folder) / "round", model, other, one, two))
            done += 1
    return f"pairs: {done} rounds of {len(combinations)} pairs, answers {dict(answers)}, nothing lost"


def prepared(
    place: Path, model: Path, other: Path, words: list[str], *, waits: bool = True, earlier: int = 0
) -> Path:
    """A model with a retrained one that waits, some earlier ones, decisions, and a recalibration."""
    place.mkdir()
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
        for row, word in enumerate(words[:_ENTRIES]):
            db.execute(
                "INSERT INTO entries (row, source, source_key, target) VALUES (?, ?, ?, 'x')",
                (row, word, word),
            )
        for word in words[:_DECISIONS]:
            db.execute(
                "INSERT INTO decisions (source, reviewer, verdict, accepted, rejected, candidates, kind, at) "
                "VALUES (?, 'aino', 'accept', '[\"x\"]', '[]', '[]', 'review', '2026')",
                (word,),
            )
    database.close()
    return folder


def _one_round(place: Path, model: Path, other: Path, one: str, two: str) -> list[int]:
    words = Translator.load(model, verify=False).space.source.index_to_key
    # A model is restored only while none waits: pairs with restore are tried in both states by turns.
    waits = "restore" not in (one, two) or bool({"keep", "discard"} & {one, two})
    folder = prepared(place, model, other, words, waits=waits, earlier=1)
    bench = Workbench(Settings(work=place, fill=False), folder)
    bench.wait_until_ready()
    statuses: dict[str, list[int]] = {one: [], two: []}
    barrier = threading.Barrier(2)
    app = application(bench, AccessPolicy(_TOKEN, LOCAL))
    headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json"}
    with TestClient(
        app, base_url="http://127.0.0.1", headers=headers, raise_server_exceptions=False
    ) as client:

        def send(name: str) -> None:
            method, path, body = OPERATIONS[name]
            if name == "decide":
                body = {**body, "source": words[100]}
            content = body if isinstance(body, str) else None if body is None else json.dumps(body)
            barrier.wait()
            answer = client.request(method, path, content=content)
            statuses[name].append(answer.status_code)
            assert answer.status_code in (200, 202, 404, 409), f"{name}: {answer.status_code} {answer.text}"
            if answer.status_code == 409 and "busy" in answer.text:
                assert {"state", "operation", "generation"} <= set(answer.json()), answer.text

        threads = [threading.Thread(target=send, args=(name,)) for name in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.post("/api/job/cancel")
        bench.wait_until_ready()
        _check(client, folder, model, other, statuses)
    bench.stop()
    shutil.rmtree(place)
    return [status for found in statuses.values() for status in found]


def _check(
    client: TestClient, folder: Path, model: Path, other: Path, statuses: dict[str, list[int]]
) -> None:
    what = str(statuses)
    done = {name for name, found in statuses.items() if any(status < 300 for status in found)}
    assert all(status in (200, 202, 404, 409) for found in statuses.values() for status in found), what
    assert not {"keep", "discard"} <= done, what
    for name in ("keep", "discard", "restore", "apply", "fit", "learn"):
        assert sum(status < 300 for status in statuses.get(name, [])) <= 1, what
    opened = Translator.load(folder, verify=True)
    decisions = client.get("/api/publish/changes?format=csv").text
    assert decisions.count(",aino,") == _DECISIONS, what
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
            served = client.get("/api/translate", params={"word": word, "k": 3}).json()["translations"]
            for answer, shown in zip(opened.translate(word, 3), served, strict=True):
                same = (answer.confidence is None) == (shown["confidence"] is None)
                assert same and abs((answer.confidence or 0) - (shown["confidence"] or 0)) < 1e-4, what


if __name__ == "__main__":
    sys.exit(main())
