"""Retraining with what people decided (`bilex.model.refine`), and the comparison of before and after.

Words that are held back are known, but never learned from; before and after are compared on them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bilex.core.progress import Progress
from bilex.fit.report import now
from bilex.model import Translator
from bilex.model.refine import refined
from bilex_workbench.intervals import wilson

_COMPARED_WORDS = 50_000
_LINES_AT_ONCE = 500
_ERROR = 0.05  # of the sign test

Report = Callable[..., None]


def retrain(order: dict[str, Any], progress: Progress, report: Report) -> dict[str, Any]:
    """Retrain a model and save the result under another name.

    Args:
        order: "model" and "output" (folders), "accepted", "rejected" (pairs), "held_out" (words with their
            right translations).
        progress: Who hears how far it is.
        report: Receives changed entries, some at a time, as `changes`.

    Returns:
        The comparison, for JSON.

    Raises:
        BilexError: The model cannot be read or written, or there is nothing to learn from.
    """
    started = time.monotonic()
    with progress.task("Opening the model"):
        earlier = Translator.load(order["model"], verify=True)
    pairs = [(str(a), str(b)) for a, b in order["accepted"]]
    wrong = tuple((str(a), str(b)) for a, b in order["rejected"])
    held_out = {str(word): [str(t) for t in targets] for word, targets in order["held_out"].items()}
    translator, refinement = refined(earlier, pairs, wrong, held_out=held_out, progress=progress)
    progress.say(refinement.note)
    with progress.task("Writing the model"):
        translator.save(Path(order["output"]))
    compared, changed = _compare(earlier, translator, progress, report)
    kept = [pair for pair in pairs if pair[0] not in held_out]
    return {
        "seconds": round(time.monotonic() - started, 1),
        "learned_from": {
            "seeds": len(earlier.seeds),
            "accepted": len(kept),
            "rejected": sum(pair[0] not in held_out for pair in wrong),
        },
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
    found: dict[str, Any] = {
        "words": len(words),
        "before": None,
        "after": None,
        "before_interval": None,
        "after_interval": None,
        "gained": 0,
        "lost": 0,
        "verdict": "too few to tell",
        "by": "decisions that the retraining did not learn from",
    }
    if not words:
        return found
    right = []
    for translator in (before, after):
        answers = translator.translate(words, 1, model_only=True)
        right.append([any(a.word in held_out[w] for a in one) for w, one in zip(words, answers, strict=True)])
    for name, rights in zip(("before", "after"), right, strict=True):
        share = wilson(sum(rights) / len(words), len(words))
        found[name], found[f"{name}_interval"] = share.share, [share.low, share.high]
    pairs = list(zip(*right, strict=True))
    gained, lost = pairs.count((False, True)), pairs.count((True, False))
    found["gained"], found["lost"] = gained, lost
    found["verdict"] = change_verdict(gained, lost)
    return found


def change_verdict(gained: int, lost: int) -> str:
    """Whether more words were gained than lost: "better", "worse" or "too few to tell".

    Args:
        gained: Words that only the new model answers rightly.
        lost: Words that only the earlier one answers rightly.
    """
    together = gained + lost
    tail = sum(math.comb(together, at) for at in range(min(gained, lost) + 1)) / 2**together
    if 2 * tail > _ERROR:
        return "too few to tell"
    return "better" if gained > lost else "worse"


def _compare(before: Translator, after: Translator, progress: Progress, report: Report) -> tuple[int, int]:
    """How many words were compared, and how many have another first translation; those are listed."""
    count = min(len(before.space.source), _COMPARED_WORDS)
    changed = 0
    rows = np.arange(count, dtype=np.int64)
    with progress.task("Comparing", 2 * count) as task:
        found = []
        for translator in (before, after):
            propose = translator.proposer("forward", "csls")
            blocks = [propose(rows[at : at + 4096], 1) for at in range(0, count, 4096)]
            found.append([(b.rows[:, 0], b.confidence[:, 0]) for b in blocks])
            task.advance(count)
    old_rows, old_sure = (np.concatenate(part) for part in zip(*found[0], strict=True))
    new_rows, new_sure = (np.concatenate(part) for part in zip(*found[1], strict=True))
    different = np.flatnonzero(old_rows != new_rows)
    words = before.space.source.index_to_key
    old, new = (model.whole_space.target.index_to_key for model in (before, after))
    for part in _parts(different.tolist()):
        changed += len(part)
        report(
            changes=[
                [
                    words[row],
                    row + 1,
                    old[old_rows[row]],
                    new[new_rows[row]],
                    _or_none(old_sure[row]),
                    _or_none(new_sure[row]),
                ]
                for row in part
            ]
        )
    return count, changed


def _parts(rows: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(rows), _LINES_AT_ONCE):
        yield rows[start : start + _LINES_AT_ONCE]


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
