"""Retraining with what people decided: more rounds of stage C1 that start from the present maps.

The model's own space is the input, so the maps start where they are and no vector file is needed. A round's
dictionary is that of C1: the seeds with everything accepted, and the pairs that the model is sure of, found
anew in every round. Only the last round has contrastive updates. Rejected pairs are known negatives. Words
that are held back are never learned from; before and after are compared on them.

The pairs that a model finds repeat what its maps say already; what people know is news. So known pairs count
several times where they are few.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners.advanced import AdvancedMapping
from bilex.aligners.c1 import C1
from bilex.aligners.maps import Map
from bilex.core.progress import Progress
from bilex.fit.calibration import FEWEST_WORDS, Calibration
from bilex.fit.report import now
from bilex.lexicon import Lexicon
from bilex.model import Translator, calibrate
from bilex.model.inverse_map import inverse_map, taken_back
from bilex.model.provenance import Provenance, Retrained
from bilex.model.space import Side, Space
from bilex.model.unknown import OutOfVocabulary, Remapped
from bilex_workbench.intervals import wilson

UPDATES = 20
_FREQUENT = 20_000
_MOST_FOUND = 6_000
_ROUNDS = 3
_MOST_REPEATS = 5
_COMPARED_WORDS = 50_000
_LINES_AT_ONCE = 500
_ERROR = 0.05  # of the sign test

Report = Callable[..., None]


def retrain(order: dict[str, Any], progress: Progress, report: Report) -> dict[str, Any]:
    """Retrain a model and save the result under another name.

    Args:
        order: "model" and "output" (folders), "accepted", "rejected" (pairs), "held_out" (words with their
            right translations), "updates", "random_seed".
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
    decided = Lexicon(pairs, "decisions", rejected=wrong)
    translator = retrained(
        earlier,
        decided,
        held_out,
        updates=order.get("updates"),
        random_seed=int(order.get("random_seed") or 0),
        progress=progress,
    )
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
        "held_out": held_out_accuracy(earlier, translator, held_out),
        "changed": changed,
        "compared": compared,
        "made": now(),
    }


def retrained(
    earlier: Translator,
    decided: Lexicon,
    held_out: dict[str, list[str]],
    *,
    updates: int | None,
    random_seed: int,
    progress: Progress,
) -> Translator:
    """The model after the rounds of a retraining.

    Args:
        earlier: The present model.
        decided: Accepted and rejected pairs.
        held_out: Words that are not learned from, with their right translations.
        updates: Contrastive updates; None for the default.
        random_seed: Fixes the random choices.
        progress: Who hears how far it is.
    """
    seeds = earlier.seeds.corrected(decided)
    known = _without_words(seeds, set(held_out))
    device = earlier.space.device
    last = C1(
        iterations=1,
        warm_up=0,
        updates=UPDATES if updates is None else updates,
        seed=random_seed,
        device=device,
    )
    back: dict[Side, Map] = {
        "source": inverse_map(earlier, "source"),
        "target": inverse_map(earlier, "target"),
    }
    source = taken_back(earlier.space.source, back["source"])
    target = taken_back(earlier.space.target, back["target"])
    space = earlier.space
    for aligner in [*(AdvancedMapping(device=device) for _ in range(_ROUNDS - 1)), last]:
        with progress.task("Finding pairs that the model is sure of"):
            dictionary = _dictionary(earlier.with_parts(space=space), known, set(held_out))
        aligner.fit(source, target, dictionary, progress=progress)
        kept = None if aligner is last else _FREQUENT  # pairs are found among frequent words only
        space = Space.from_aligner(aligner, source.head(kept), target.head(kept))
    with progress.task("Measuring neighbourhoods"):
        space.neighbourhoods()
    learned: dict[Side, Map] = {"source": last.source_map_, "target": last.target_map_}
    onward = {side: Map([*back[side].steps, *learned[side].steps]) for side in learned}
    before: dict[Side, Map] = {"source": earlier.source_map, "target": earlier.target_map}
    maps = {side: Map([*before[side].steps, *onward[side].steps]) for side in before}
    unknown: list[OutOfVocabulary] = [Remapped(one, before, onward) for one in earlier.unknown]
    return earlier.with_parts(
        space=space,
        source_map=maps["source"],
        target_map=maps["target"],
        calibration=_calibration(earlier, space, held_out, random_seed),
        unknown=unknown,
        seeds=seeds,
        provenance=_provenance(earlier, decided),
    )


def _dictionary(model: Translator, known: Lexicon, held_out: set[str]) -> Lexicon:
    """What a round learns from: known pairs, repeated while they are few, and those the model is sure of.

    Known pairs count up to five times, and together no more than the found ones.
    """
    sure = _sure_pairs(model, known, held_out)
    repeats = max(1, min(_MOST_REPEATS, len(sure) // max(1, len(known))))
    return Lexicon(
        [*known.pairs] * repeats + sure, "seeds, decisions and sure pairs", rejected=known.rejected
    )


def _without_words(lexicon: Lexicon, words: set[str]) -> Lexicon:
    pairs = [pair for pair in lexicon.pairs if pair[0] not in words]
    wrong = tuple(pair for pair in lexicon.rejected if pair[0] not in words)
    return Lexicon(pairs, lexicon.name, rejected=wrong)


def _sure_pairs(model: Translator, lexicon: Lexicon, held_out: set[str]) -> list[tuple[str, str]]:
    """Mutual best pairs of frequent words that nobody decided on, best scores first."""
    found = model.lexicon(mutual=True, model_only=True, ranks=(1, _FREQUENT))
    settled = {source for source, _ in lexicon.pairs} | held_out
    wrong = set(lexicon.rejected)
    fresh = [e for e in found if e.source not in settled and (e.source, e.target) not in wrong]
    fresh.sort(key=lambda entry: entry.score or 0.0, reverse=True)
    return [(entry.source, entry.target) for entry in fresh[:_MOST_FOUND]]


def _calibration(
    earlier: Translator, space: Space, held_out: dict[str, list[str]], random_seed: int
) -> Calibration:
    """LearnIn anew where enough words were held back, else the earlier one: scores are of the same kind."""
    pairs = [(word, target) for word, targets in held_out.items() for target in targets]
    unseen = Lexicon(pairs, "held-out decisions").without(earlier.seeds, by="source")
    if len(unseen.translations()) < FEWEST_WORDS:
        return earlier.calibration
    learned = calibrate(space, unseen, random_seed)
    return learned if learned.parts else earlier.calibration


def _provenance(earlier: Translator, decided: Lexicon) -> Provenance:
    before, seeds, space = earlier.provenance, earlier.seeds.corrected(decided), earlier.space
    rounds = 0 if before.retrained is None else before.retrained.rounds
    return replace(
        before,
        seed_pairs=len(seeds),
        seed_pairs_covered=len(seeds.index(space.source.key_to_index, space.target.key_to_index)),
        recalibrated={},
        retrained=Retrained(rounds=rounds + 1, accepted=len(decided), rejected=len(decided.rejected)),
        made=now(),
    )


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
    words, answers = before.space.source.index_to_key, before.space.target.index_to_key
    for part in _parts(different.tolist()):
        changed += len(part)
        report(
            changes=[
                [
                    words[row],
                    row + 1,
                    answers[old_rows[row]],
                    answers[new_rows[row]],
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
