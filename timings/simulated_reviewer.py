"""What reviewing is worth: a simulated reviewer works through the queue, or through words in random order.

    python -m timings.simulated_reviewer en.vec fi.vec TRAIN.tsv TEST.tsv --decisions 0 100 300

The oracle is a test dictionary. Half of its words are held back: nobody decides on them, and accuracy (P@1
by CSLS, the model alone) is measured on them. Of the other half the reviewer decides so many, in the order of
the workbench's queue or in random order: accepts what the dictionary has, types what is not among the
candidates. Then the model is retrained as the workbench does it (one round from the present maps), and
measured again. With --review train the reviewer decides on words of TRAIN that are no seeds, which are ten
times as many, and all of TEST is held back.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bilex.lexicon import Lexicon
from bilex.progress import SILENT
from bilex.recipe import Recipe, fit
from bilex.translator import Translator
from bilex.vectors import WordVectors
from bilex.workbench.decisions import rejected_by
from bilex.workbench.learning import retrained
from bilex.workbench.priority import priorities
from bilex.workbench.reviewing import CANDIDATES


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line of JSON for each number of decisions and order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("source", "target", "train", "test"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--limit", type=int, default=20_000, help="words of each language")
    parser.add_argument(
        "--seeds", type=int, default=500, help="pairs of TRAIN that the first model learns from"
    )
    parser.add_argument("--method", default="procrustes")
    parser.add_argument("--decisions", type=int, nargs="+", default=[0, 100, 200, 400])
    parser.add_argument("--random-seeds", type=int, default=3, help="how many random orders and splits")
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument(
        "--review", choices=["test", "train"], default="test", help="whose words are reviewed"
    )
    options = parser.parse_args(arguments)
    source, target = (
        WordVectors.load(path, limit=options.limit, lowercase=True)
        for path in (options.source, options.target)
    )
    train, test = (
        Lexicon.read(path).covered(source.key_to_index, target.key_to_index)
        for path in (options.train, options.test)
    )
    seeds = train.head(options.seeds)
    translator = Translator.of(fit(Recipe(method=options.method), source, target, seeds), source, target)
    known = (
        train.without(seeds, by="source").without(test, by="source") if options.review == "train" else None
    )
    words = len(known.golds()) if known else len(test.golds()) // 2
    print(json.dumps({"seeds": len(seeds), "to_review": words, "test_words": len(test.golds())}), flush=True)
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(options.random_seeds):
        for count in options.decisions:
            for order in ("queue", "random") if count else ("none",):
                right = accuracy_after(translator, test, known, order, count, number, options.updates)
                found.setdefault((order, count), []).append(right)
                print(
                    json.dumps({"split": number, "order": order, "decisions": count, "p@1": right}),
                    flush=True,
                )
    for (order, count), values in found.items():
        mean = round(100 * statistics.mean(values), 2)
        print(json.dumps({"order": order, "decisions": count, "runs": len(values), "mean p@1": mean}))
    return 0


def accuracy_after(
    translator: Translator,
    test: Lexicon,
    known: Lexicon | None,
    order: str,
    count: int,
    random_seed: int,
    updates: int,
) -> float:
    """P@1 on the words that are held back, after so many decisions and a retraining.

    Args:
        translator: The first model.
        test: The test dictionary.
        known: Further words to review, all of `test` being held back; None to review half of `test`.
        order: "queue" or "random".
        count: How many decisions; with 0 the model is retrained without any.
        random_seed: Fixes the halves and the random order.
        updates: Of the retraining.
    """
    golds = test.golds()
    words = sorted(golds)
    random.Random(random_seed).shuffle(words)
    half = len(words) // 2
    held_back, reviewed = (words[:half], words[half:]) if known is None else (words, sorted(known.golds()))
    oracle = golds if known is None else known.golds()
    chosen = ordered(translator, reviewed, order, random_seed)[:count]
    kept = {word: list(golds[word]) for word in held_back}
    after = retrained(
        translator,
        decide(translator, chosen, oracle),
        kept,
        updates=updates,
        random_seed=random_seed,
        progress=SILENT,
    )
    answers = after.translate(held_back, 1, model_only=True)
    right = sum(len(a) > 0 and a[0].word in golds[word] for word, a in zip(held_back, answers, strict=True))
    return right / len(held_back)


def ordered(translator: Translator, words: list[str], order: str, random_seed: int) -> list[str]:
    """The words in the order in which they are reviewed."""
    if order != "queue":
        shuffled = list(words)
        random.Random(f"order {random_seed}").shuffle(shuffled)
        return shuffled
    rows = translator.space.source.rows(words)
    found = translator.proposer("forward", "csls")(rows, 1)
    worth = priorities(found.confidence[:, 0], rows + 1, found.known[:, 0])
    return [words[place] for place in np.argsort(-worth, kind="stable")]


def decide(translator: Translator, words: list[str], golds: dict[str, tuple[str, ...]]) -> Lexicon:
    """What the reviewer says: the pairs that are right, and the candidates that were passed over."""
    if not words:
        return Lexicon([], "the simulated reviewer")
    pairs: list[tuple[str, str]] = []
    wrong: list[tuple[str, str]] = []
    for word, answer in zip(words, translator.translate(words, CANDIDATES), strict=True):
        shown = [found.word for found in answer]
        accepted = [found for found in shown if found in golds[word]] or list(golds[word][:1])
        pairs += [(word, found) for found in accepted]
        wrong += [(word, found) for found in rejected_by("accept", accepted, shown)]
    return Lexicon(pairs, "the simulated reviewer", rejected=tuple(wrong))


if __name__ == "__main__":
    sys.exit(main())
