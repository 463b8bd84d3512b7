"""The workbench's retraining job as a whole: from the request to the comparison, on the packaged sample.

    python -m research.workbench_retraining --work /tmp/retraining

A Procrustes of the sample's seeds is made in the work folder (once) and copied. A server is started on the
copy, the first words of the sample's test dictionary are decided as that dictionary would, and the job is
ordered and followed until it waits for keep or discard.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from bilex.aligners import get_method
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from research.workbench_load import PORT, TOKEN, ask, running, say, until

_CANDIDATES = 9
_LONGEST = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Decide, retrain, print one line of JSON for each phase and one for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--decisions", type=int, default=80)
    options = parser.parse_args(arguments)
    made, model = options.work / "sample", options.work / "retrained-sample"
    if not made.exists():
        make_model(made)
    for path in options.work.glob(model.name + "*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(made, model)
    with running(model) as server:
        until(lambda: bool(ask("/api/model")["entries"]["complete"]), _LONGEST, 0.1)
        decide(options.decisions)
        follow(server)
    return 0


def make_model(folder: Path) -> None:
    """Procrustes of the packaged sample."""
    sample = sample_path()
    source, target = (WordVectors.load(sample / language) for language in ("en", "fi"))
    seeds = Lexicon.load(sample / "seeds.tsv")
    aligner = get_method("procrustes")()
    Translator(aligner).fit(source, target, seeds, languages=("en", "fi"), progress=False).save(folder)


def decide(count: int) -> None:
    """Say of some words what the sample's test dictionary says."""
    right: dict[str, list[str]] = {}
    for source, target in Lexicon.load(sample_path() / "test.tsv").pairs:
        right.setdefault(source, []).append(target)
    for source in list(right)[:count]:
        shown = [one["word"] for one in ask(f"/api/translate?word={source}&k={_CANDIDATES}")["translations"]]
        accepted = [word for word in shown if word in right[source]]
        body = {"source": source, "reviewer": "oracle", "candidates": shown, "accepted": accepted}
        post("/api/review/decide", {**body, "verdict": "accept" if accepted else "none"})


def follow(server: psutil.Process) -> None:
    """Order the retraining and wait for its end."""
    began = time.perf_counter()
    post("/api/learn", {})
    used = {"user": 0.0, "system": 0.0}
    phase, since = "Starting", began
    while (job := ask("/api/job")["job"])["state"] == "running":
        for process in server.children():
            times = process.cpu_times()
            used = {"user": times.user, "system": times.system}
        if job["phase"] and job["phase"] != phase:
            say(phase, seconds=round(time.perf_counter() - since, 1))
            phase, since = job["phase"], time.perf_counter()
        time.sleep(0.05)
    say(phase, seconds=round(time.perf_counter() - since, 1))
    result = ask("/api/learn")["waiting"]
    say(
        "the job as a whole",
        state=job["state"],
        seconds=round(time.perf_counter() - began, 1),
        processor_seconds=round(sum(used.values()), 1),
        **{name: result[name] for name in ("learned_from", "held_out", "changed", "compared")},
    )


def post(path: str, body: dict[str, Any]) -> None:
    """One request with a body; its answer must be good."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


if __name__ == "__main__":
    sys.exit(main())
