"""The process that fits or retrains: an order on stdin, progress and result on stdout, as JSON lines."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.core.progress import Progress, Task
from bilex.data import sample_path
from bilex.fit.report import now
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.refine import refined
from bilex.model.space import Rows
from bilex.vectors import WordVectors
from bilex_workbench.intervals import wilson

_SECONDS_BETWEEN = 0.1
_NICENESS = 5
_COMPARED_WORDS = 50_000
_LINES_AT_ONCE = 500
_ERROR = 0.05  # of the sign test

Report = Callable[..., None]


def report(**what: Any) -> None:
    """One line to the server."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class _ReportedTask:
    def __init__(self, name: str, total: float | None) -> None:
        self._name, self._total, self._done, self._told = name, total, 0.0, 0.0
        report(phase=name, done=0, total=total)

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on, and report it if the last report is a while ago."""
        self._done += steps
        if time.monotonic() - self._told > _SECONDS_BETWEEN:
            self._told = time.monotonic()
            shown = ", ".join(f"{name} {value}" for name, value in figures.items())
            report(phase=self._name, done=self._done, total=self._total, message=shown)


class ReportedProgress:
    """A `Progress` that the server hears of."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A phase of the work."""
        yield _ReportedTask(name, total)

    def say(self, message: str) -> None:
        """A line of its own."""
        report(message=message)


def fit(order: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Read two vector files and a dictionary, fit, and save."""
    if order["sample"]:
        files = {"source": "en", "target": "fi", "seeds": "seeds.tsv"}
        order |= {side: str(sample_path() / name) for side, name in files.items()}
        order["languages"] = ["en", "fi"]
    languages = tuple(order["languages"])
    seeds = Lexicon.load(order["seeds"], languages=languages) if order["seeds"] else None
    source, target = (
        WordVectors.load(order[side], limit=order["limit"], lowercase=True, progress=progress)
        for side in ("source", "target")
    )
    if seeds is not None and len(seeds):
        progress.say(seeds.coverage(source.key_to_index, target.key_to_index).sentence() + ".")
    method, settings = get_method(order["method"]), {}
    if order["updates"] is not None and "updates" in method.settings_fields():
        settings["updates"] = order["updates"]
    translator = Translator(method(**settings), encoder=order["language_model"]).fit(
        source, target, seeds, lowercase=True, languages=languages, progress=progress
    )
    with progress.task("Writing the model"):
        translator.save(Path(order["output"]))
    return {"folder": order["output"]}


def retrain(order: dict[str, Any], progress: Progress, report: Report) -> dict[str, Any]:
    """Retrain a model and save the result under another name."""
    started = time.monotonic()
    with progress.task("Opening the model"):
        earlier = Translator.load(order["model"], verify=True)
    pairs, wrong = ([(source, target) for source, target in order[name]] for name in ("accepted", "rejected"))
    held_out: dict[str, list[str]] = order["held_out"]
    translator, refinement = refined(earlier, pairs, wrong, held_out=held_out, progress=progress)
    progress.say(refinement.note)
    with progress.task("Writing the model"):
        translator.save(Path(order["output"]))
    decided = {word: word not in held_out for word, _ in (*pairs, *wrong)}
    compared, changed = _compare(earlier, translator, decided, progress, report)
    accepted, rejected = (sum(source not in held_out for source, _ in part) for part in (pairs, wrong))
    return {
        "seconds": round(time.monotonic() - started, 1),
        "learned_from": {"seeds": len(earlier.seeds), "accepted": accepted, "rejected": rejected},
        "refinement": refinement.as_dict(),
        "held_out": held_out_accuracy(earlier, translator, held_out),
        "changed": changed,
        "compared": compared,
        "made": now(),
    }


def held_out_accuracy(
    before: Translator, after: Translator, held_out: dict[str, list[str]]
) -> dict[str, Any]:
    """The share of held-out words whose first answer is right, before and after, and whether it changed.

    The verdict is that of an exact sign test on the words that only one of the two models answers rightly:
    "better" or "worse" at 95 %, else "too few to tell".
    """
    words = [word for word in held_out if word in before.space.source and word in after.space.source]
    found: dict[str, Any] = {"words": len(words), "by": "decisions that the retraining did not learn from"}
    right: dict[str, list[bool]] = {}
    for name, translator in (("before", before), ("after", after)):
        answers = translator.translate(words, 1, model_only=True) if words else []
        right[name] = [
            any(answer.word in held_out[word] for answer in one)
            for word, one in zip(words, answers, strict=True)
        ]
        share = wilson(sum(right[name]) / len(words), len(words)) if words else None
        found[name] = share.share if share else None
        found[f"{name}_interval"] = [share.low, share.high] if share else None
    pairs = list(zip(right["before"], right["after"], strict=True))
    gained, lost = pairs.count((False, True)), pairs.count((True, False))
    return {**found, "gained": gained, "lost": lost, "verdict": change_verdict(gained, lost)}


def change_verdict(gained: int, lost: int) -> str:
    """Whether more words were gained than lost: "better", "worse" or "too few to tell"."""
    together = gained + lost
    tail = sum(math.comb(together, at) for at in range(min(gained, lost) + 1)) / 2**together
    if 2 * tail > _ERROR:
        return "too few to tell"
    return "better" if gained > lost else "worse"


def _compare(
    before: Translator, after: Translator, decided: dict[str, bool], progress: Progress, report: Report
) -> tuple[int, int]:
    """How many words were compared, and how many have another first translation; those are listed.

    Each is listed with the decision that it is nearest to: one on the word itself, or on the decided word
    with the highest similarity. `decided` says of each decided word whether it was learned from.
    """
    count = min(len(before.space.source), _COMPARED_WORDS)
    rows = np.arange(count, dtype=np.int64)
    found = []
    with progress.task("Comparing", 2 * count) as task:
        for translator in (before, after):
            propose = translator.proposer("forward", "csls")
            blocks = [propose(rows[at : at + 4096], 1) for at in range(0, count, 4096)]
            for name in ("rows", "confidence"):
                found.append(np.concatenate([getattr(block, name)[:, 0] for block in blocks]))
            task.advance(count)
    old_rows, old_sure, new_rows, new_sure = found
    different = np.flatnonzero(old_rows != new_rows)
    words = before.space.source.index_to_key
    old, new = (model.whole_space.target.index_to_key for model in (before, after))
    learned = [word for word, counts in decided.items() if counts and word in before.space.source]
    for start in range(0, len(different), _LINES_AT_ONCE):
        part = different[start : start + _LINES_AT_ONCE]
        near = _nearest(before, part, learned)
        report(
            changes=[
                [
                    words[row],
                    row + 1,
                    old[old_rows[row]],
                    new[new_rows[row]],
                    _or_none(old_sure[row]),
                    _or_none(new_sure[row]),
                    *((words[row], 1.0) if words[row] in decided else one),
                ]
                for row, one in zip(part.tolist(), near, strict=True)
            ]
        )
    return count, len(different)


def _nearest(model: Translator, rows: Rows, learned: Sequence[str]) -> list[tuple[str | None, float | None]]:
    """For each row the decided word with the most similar vector, and the similarity."""
    if not learned:
        return [(None, None)] * len(rows)
    source = model.space.source
    vectors = np.asarray(source.vectors[source.rows(learned)], np.float32)
    near = np.asarray(source.vectors[rows], np.float32) @ vectors.T
    best = near.argmax(axis=1)
    return [(learned[at], float(near[number, at])) for number, at in enumerate(best.tolist())]


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _end_with_the_server() -> None:
    """Wait for the end of stdin, which the server holds open while it lives."""
    sys.stdin.read()
    os._exit(1)


def main() -> int:
    """Do what stdin orders."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    try:
        if order["kind"] == "learn":
            result = retrain(order, ReportedProgress(), report)
        else:
            result = fit(order, ReportedProgress())
    except BilexError as error:
        report(error=str(error))
        return 2
    except MemoryError:
        report(error="There is not enough memory for this; use fewer words.")
        return 2
    report(result=result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
