"""Does C1's lead over RCSLS with many seeds grow with the vocabulary?

Finnish–Russian with Finnish, or both, cut to the most frequent words, and English–Finnish with Finnish cut.
Seeds and words asked for are the same at every size: those that the smallest size covers. What is asked for
are the test words and a fifth of the words of the 5k training dictionary, which is held out. Answers are
searched in the whole vocabulary that was learned on, and in the smallest one, which only learning can
change.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bilex.aligners import get_method
from bilex.lexicon import Lexicon
from bilex.space import Space
from timings.data_or_program.common import Row, both_ways, hits, lead, markdown, percents, signed, vectors
from timings.packed import read_dictionary

WHAT = "vocabulary"
SHARE, SEED = 0.2, 1
METHODS: dict[str, dict[str, Any]] = {"c1": {"preset": "5k"}, "rcsls": {}}
Cut = tuple[str, int | None, int | None]


def cuts(sizes: list[int]) -> list[Cut]:
    """The pair and the words kept of each side; None keeps all."""
    return [
        *(("fi-ru", size, size) for size in sizes),
        *(("fi-ru", size, None) for size in sizes),
        *(("en-fi", None, size) for size in sizes),
        ("fi-ru", None, None),
        ("en-fi", None, None),
    ]


def run(options: argparse.Namespace, cut: Cut) -> list[Row]:
    """C1 and RCSLS on one cut."""
    pair, *kept = cut
    whole = [vectors(options.data, language, options.limit) for language in pair.split("-")]
    small = [side.head(min(options.sizes)) for side in whole]
    source, target = (side.head(size) for side, size in zip(whole, kept, strict=True))
    train, test = (
        read_dictionary(options.data, pair, name).covered(small[0].key_to_index, small[1].key_to_index)
        for name in ("train.freq.5k", "test.freq.2k")
    )
    seeds, held_out = train.without(test).split(SHARE, SEED)
    asked = Lexicon([*test.pairs, *held_out.pairs])
    row: Row = {
        "what": WHAT,
        "pair": pair,
        "words": [len(source), len(target)],
        "seeds": len(seeds),
        "asked": len(asked.golds()),
    }
    found = {}
    for name, settings in METHODS.items():
        started = time.perf_counter()
        aligner = get_method(name)(device=options.device, **settings).fit(source, target, seeds)
        seconds = time.perf_counter() - started
        found[name] = {
            "whole": hits(Space.from_aligner(aligner, source, target), asked),
            "smallest": hits(Space.from_aligner(aligner, *small), asked),
        }
        row[name] = {where: percents(right) for where, right in found[name].items()}
        row[name]["seconds"] = round(seconds, 1)
    row["c1 less rcsls"] = {
        where: lead(found["c1"][where], found["rcsls"][where]) for where in ("whole", "smallest")
    }
    return [row]


def summary(rows: list[Row]) -> str:
    """The rows as a table, small vocabularies first."""
    head = ["pair", "words", "seeds", "asked", "searched in", "C1 NN", "RCSLS NN", "C1 CSLS", "RCSLS CSLS"]
    lines = [
        [
            row["pair"],
            " × ".join(f"{words:,}" for words in row["words"]),
            row["seeds"],
            row["asked"],
            f"the {where} vocabulary",
            *(both_ways(row[name][where], search) for search in ("nn", "csls") for name in ("c1", "rcsls")),
            *(signed(row["c1 less rcsls"][where][search]) for search in ("nn", "csls")),
        ]
        for row in sorted(rows, key=lambda row: (row["pair"], row["words"]))
        for where in ("whole", "smallest")
    ]
    return "### C1 and RCSLS by size of the vocabulary\n\n" + markdown([*head, "lead NN", "lead CSLS"], lines)
