"""The process that fits or retrains: an order on stdin, progress and result on stdout, as JSON lines."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.core.progress import Progress, Task
from bilex.data import sample_path
from bilex.evaluation.without_gold import Share
from bilex.fit.report import now
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.refine import refined
from bilex.vectors import WordVectors
from bilex_workbench.statistics import or_none

_REPORT_SECONDS = 0.1
_NICENESS = 5
_COMPARED_WORDS, _BLOCK = 50_000, 4096
_SIGNIFICANCE = 0.05


def _report(**fields: Any) -> None:
    """Send one line to the server."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class _Reported:
    """A `Progress`, and each of its tasks, that send lines to the server."""

    def __init__(self, name: str = "", total: float | None = None) -> None:
        self._name, self._total, self._done, self._reported = name, total, 0.0, 0.0

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        _report(phase=name, done=0, total=total)
        yield _Reported(name, total)

    def advance(self, steps: float = 1, **metrics: float | int | str) -> None:
        self._done += steps
        if time.monotonic() - self._reported > _REPORT_SECONDS:
            self._reported = time.monotonic()
            shown = ", ".join(f"{name} {value}" for name, value in metrics.items())
            _report(phase=self._name, done=self._done, total=self._total, message=shown)

    def log(self, message: str) -> None:
        _report(message=message)


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
        progress.log(seeds.coverage(source.key_to_index, target.key_to_index).sentence() + ".")
    method, settings = get_method(order["method"]), {}
    if order["updates"] is not None and "updates" in method.settings_fields():
        settings["updates"] = order["updates"]
    translator = Translator(method(**settings), encoder=order["language_model"]).fit(
        source, target, seeds, lowercase=True, languages=languages, progress=progress
    )
    with progress.task("Writing the model"):
        translator.save(Path(order["output"]))
    return {"folder": order["output"]}


def retrain(order: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Retrain a model, save the result under another name, and compare the two."""
    started = time.monotonic()
    with progress.task("Opening the model"):
        earlier = Translator.load(order["model"], verify=True)
    accepted, rejected = ([tuple(pair) for pair in order[name]] for name in ("accepted", "rejected"))
    held_out: dict[str, list[str]] = order["held_out"]
    translator, refinement = refined(earlier, accepted, rejected, held_out=held_out, progress=progress)
    progress.log(refinement.note)
    with progress.task("Writing the model"):
        translator.save(Path(order["output"]))
    decided = {source for source, _ in (*accepted, *rejected)}
    compared, changes = compare(earlier, translator, decided, decided - held_out.keys(), progress)
    learned = {
        name: sum(source not in held_out for source, _ in pairs)
        for name, pairs in (("accepted", accepted), ("rejected", rejected))
    }
    return {
        "seconds": round(time.monotonic() - started, 1),
        "learned_from": {"seeds": len(earlier.seeds), **learned},
        "refinement": refinement.as_dict(),
        "held_out": held_out_accuracy(earlier, translator, held_out),
        "changed": len(changes),
        "changes": changes,
        "compared": compared,
        "made": now(),
    }


def held_out_accuracy(
    before: Translator, after: Translator, held_out: dict[str, list[str]]
) -> dict[str, Any]:
    """The share of held-out words whose first answer is right, before and after, and whether it changed.

    The verdict is that of an exact sign test on the words that only one of the two models answers correctly:
    "better" or "worse" at 95 %, else "too few to tell".
    """
    words = [word for word in held_out if word in before.space.source and word in after.space.source]
    found: dict[str, Any] = {"words": len(words), "by": "decisions that the retraining did not learn from"}
    right: list[list[bool]] = []
    for name, translator in (("before", before), ("after", after)):
        answers = translator.translate(words, 1, model_only=True) if words else []
        right.append([bool({one.word for one in answer} & {*held_out[answer.word]}) for answer in answers])
        share = Share.of_count(sum(right[-1]), len(words)) if words else None
        found[name] = share and share.share
        found[f"{name}_interval"] = share and (share.low, share.high)
    pairs = list(zip(*right, strict=True))
    gained, lost = pairs.count((False, True)), pairs.count((True, False))
    return {**found, "gained": gained, "lost": lost, "verdict": sign_test(gained, lost)}


def sign_test(gained: int, lost: int) -> str:
    """Whether more words were gained than lost: "better", "worse" or "too few to tell"."""
    total = gained + lost
    tail = sum(math.comb(total, at) for at in range(min(gained, lost) + 1)) / 2**total
    if 2 * tail > _SIGNIFICANCE:
        return "too few to tell"
    return "better" if gained > lost else "worse"


def compare(
    before: Translator, after: Translator, decided: set[str], learned: set[str], progress: Progress
) -> tuple[int, list[list[Any]]]:
    """How many words were compared, and those with another first translation.

    Each has the decision nearest to it: one on the word itself, or on the learned word with the most similar
    vector.
    """
    source = before.space.source
    words, count = source.index_to_key, min(len(source), _COMPARED_WORDS)
    found = []
    with progress.task("Comparing", 2 * count) as task:
        for translator in (before, after):
            propose = translator.proposer("forward", "csls")
            blocks = [propose(np.arange(at, min(at + _BLOCK, count)), 1) for at in range(0, count, _BLOCK)]
            found += [
                np.concatenate([getattr(block, name)[:, 0] for block in blocks])
                for name in ("rows", "confidence")
            ]
            task.advance(count)
    old_rows, old_confidence, new_rows, new_confidence = found
    old, new = (model.whole_space.target.index_to_key for model in (before, after))
    candidates = sorted(word for word in learned if word in source)
    vectors = np.asarray(source.vectors[source.rows(candidates)], np.float32)
    changes = []
    for row in np.flatnonzero(old_rows != new_rows).tolist():
        near: tuple[str | None, float | None] = (words[row], 1.0) if words[row] in decided else (None, None)
        if candidates and words[row] not in decided:
            similar = vectors @ np.asarray(source.vectors[row], np.float32)
            near = candidates[int(similar.argmax())], float(similar.max())
        confidences = or_none(old_confidence[row]), or_none(new_confidence[row])
        changes.append([words[row], row + 1, old[old_rows[row]], new[new_rows[row]], *confidences, *near])
    return count, changes


def _end_with_the_server() -> None:
    """Wait for the end of stdin, which the server keeps open."""
    sys.stdin.read()
    os._exit(1)


def main() -> int:
    """Run the job that stdin orders."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    try:
        _report(result=(retrain if order["kind"] == "learn" else fit)(order, _Reported()))
    except BilexError as error:
        _report(detail=str(error))
    except MemoryError:
        _report(detail="There is not enough memory for this; use fewer words.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
