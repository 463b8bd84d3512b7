"""What reviewing is worth: a simulated reviewer works through the queue, or through words in random order.

    python -m research.simulated_reviewer en.npy fi.npy TRAIN.tsv TEST.tsv --review test train --splits 10

The oracle is a dictionary. With --review test it is the test dictionary: half of its words are held back,
which nobody decides on, and accuracy (P@1 by CSLS, the model alone) is measured on them. Of the other half
the reviewer decides so many, in the order of the workbench's queue or in random order: accepts what the
dictionary has, types what is not among the candidates. With --review train the reviewer decides on words of
TRAIN that are no seeds, which are several times as many, and all of TEST is held back. Then the model is
retrained as the workbench does it, and measured again.

A split is a draw of the seeds, of the halves and of the random order. Beside the accuracy on the words that
are held back, a line has `corrected`, the share of the decisions that gave the word another translation, and
`dictionary`, the precision of the entries of the oracle's and the held-back words after the review: decided
words are right, the others are what the retrained model says; `weighted` weighs each word by 1/rank.
The last lines have means over the splits and the difference between queue and random with its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.refine import refined
from bilex.vectors import WordVectors
from bilex_workbench.precompute import COMPARED, Priorities, leads, sample_rows
from bilex_workbench.review import CANDIDATES

_MEASURES = ("p@1", "corrected", "dictionary", "weighted")
Golds = dict[str, tuple[str, ...]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one line of JSON for each split, number of decisions and order, then the means."""
    options = _parser().parse_args(arguments)
    source, target = (
        WordVectors.load(path, limit=options.limit, lowercase=True)
        for path in (options.source, options.target)
    )
    train, test = (
        Lexicon.load(path).covered(source.key_to_index, target.key_to_index)
        for path in (options.train, options.test)
    )
    found: list[dict[str, Any]] = []
    for split in range(options.first_split, options.first_split + options.splits):
        for number in options.seeds:
            seeds = drawn(train.without(test, by="source"), number, split)
            translator = Translator(options.method).fit(source, target, seeds)
            for review in options.review:
                oracle, held_back = divided(train, test, seeds, review, split)
                for count in options.decisions:
                    for order in ("queue", "random") if count else ("none",):
                        words = ordered(translator, sorted(oracle), order, split)[:count]
                        line = {"review": review, "seeds": number, "decisions": count, "order": order}
                        line |= measured(translator, words, oracle, held_back)
                        found.append({**line, "split": split})
                        print(json.dumps(found[-1]), flush=True)
    for line in summary(found):
        print(json.dumps(line))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("source", "target", "train", "test"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--limit", type=int, default=20_000, help="words of each language")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[200], help="pairs of TRAIN that the first model learns from"
    )
    parser.add_argument("--method", default="procrustes")
    parser.add_argument("--decisions", type=int, nargs="+", default=[0, 50, 100, 200])
    parser.add_argument("--splits", type=int, default=10, help="how many draws")
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument(
        "--review", choices=["test", "train"], nargs="+", default=["test"], help="whose words are reviewed"
    )
    return parser


def drawn(train: Lexicon, count: int, split: int) -> Lexicon:
    """So many random pairs of the training dictionary."""
    pairs = list(train.pairs)
    random.Random(f"seeds {split}").shuffle(pairs)
    return Lexicon(pairs[:count], train.name)


def divided(train: Lexicon, test: Lexicon, seeds: Lexicon, review: str, split: int) -> tuple[Golds, Golds]:
    """What the reviewer knows, and the words that are held back with their translations."""
    if review == "train":
        return train.without(seeds, by="source").without(
            test, by="source"
        ).translations(), test.translations()
    golds = test.translations()
    words = sorted(golds)
    random.Random(f"halves {split}").shuffle(words)
    half = len(words) // 2
    return {word: golds[word] for word in words[half:]}, {word: golds[word] for word in words[:half]}


def measured(translator: Translator, words: list[str], oracle: Golds, held_back: Golds) -> dict[str, float]:
    """The measures after the reviewer decided on these words and the model was retrained.

    Args:
        translator: The first model.
        words: The words that the reviewer decides on.
        oracle: All words that the reviewer knows.
        held_back: Words that nobody decides on, with their right translations.
    """
    before = _first_answers(translator, words)
    decided = decide(translator, words, oracle)
    after, _ = refined(translator, decided.pairs, decided.rejected, held_out=held_back)
    tested = _rights(after, held_back, ())
    entries = {**_rights(after, oracle, words), **tested}
    rank = {word: 1 + row for word, row in translator.space.source.key_to_index.items() if word in entries}
    weights = {word: 1 / rank[word] for word in entries}
    wrong_before = sum(before[word] not in oracle[word] for word in words)
    return {
        "p@1": sum(tested.values()) / len(tested),
        "corrected": wrong_before / len(words) if words else 0.0,
        "dictionary": sum(entries.values()) / len(entries),
        "weighted": sum(weights[word] for word in entries if entries[word]) / sum(weights.values()),
    }


def _first_answers(translator: Translator, words: Sequence[str]) -> dict[str, str | None]:
    if not words:
        return {}
    answers = translator.translate(list(words), 1, model_only=True)
    return {word: found[0].word if len(found) else None for word, found in zip(words, answers, strict=True)}


def _rights(translator: Translator, golds: Golds, decided: Iterable[str]) -> dict[str, bool]:
    """Whether each word's entry is right; those that were decided on are."""
    answers = _first_answers(translator, list(golds))
    return {**{word: answers[word] in golds[word] for word in golds}, **dict.fromkeys(decided, True)}


def ordered(translator: Translator, words: list[str], order: str, split: int) -> list[str]:
    """The words in the order in which they are reviewed."""
    if order != "queue":
        shuffled = list(words)
        random.Random(f"order {split}").shuffle(shuffled)
        return shuffled
    rows = translator.space.source.rows(words)
    propose = translator.proposer("forward", "csls")
    priorities = Priorities(leads(propose(sample_rows(len(translator.space.source)), COMPARED)))
    worth = priorities(rows, propose(rows, COMPARED), np.ones(len(rows), bool))
    return [words[place] for place in np.argsort(-worth, kind="stable")]


def decide(translator: Translator, words: list[str], golds: Golds) -> Lexicon:
    """What the reviewer says: the pairs that are right, and the candidates that are wrong."""
    if not words:
        return Lexicon([], "the simulated reviewer")
    pairs: list[tuple[str, str]] = []
    wrong: list[tuple[str, str]] = []
    for word, answer in zip(words, translator.translate(words, CANDIDATES), strict=True):
        shown = [found.word for found in answer]
        accepted = [found for found in shown if found in golds[word]] or list(golds[word][:1])
        pairs += [(word, found) for found in accepted]
        wrong += [(word, found) for found in shown if found not in golds[word]]
    return Lexicon(pairs, "the simulated reviewer", rejected=tuple(wrong))


def summary(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the splits in percent, and queue minus random with the half width of its 95 % interval."""
    made = []
    for cell in dict.fromkeys((line["review"], line["seeds"], line["decisions"]) for line in lines):
        review, seeds, count = cell
        by_order: dict[str, dict[int, dict[str, Any]]] = {}
        for line in lines:
            if (line["review"], line["seeds"], line["decisions"]) == cell:
                by_order.setdefault(line["order"], {})[line["split"]] = line
        row: dict[str, Any] = {"review": review, "seeds": seeds, "decisions": count}
        for measure in _MEASURES:
            values = {order: [s[measure] for s in splits.values()] for order, splits in by_order.items()}
            row[measure] = {order: round(100 * statistics.mean(v), 2) for order, v in values.items()}
            if "queue" in by_order:
                pairs = zip(values["queue"], values["random"], strict=True)
                row[measure] |= difference([100 * (a - b) for a, b in pairs])
        made.append(row)
    return made


def difference(values: Sequence[float]) -> dict[str, float]:
    """The mean of paired differences, and half the width of Student's 95 % interval."""
    found = {"difference": round(statistics.mean(values), 2)}
    if len(values) > 1:
        spread = statistics.stdev(values) / math.sqrt(len(values))
        found["interval"] = round(float(student.ppf(0.975, len(values) - 1)) * spread, 2)
    return found


if __name__ == "__main__":
    sys.exit(main())
