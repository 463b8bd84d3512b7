"""How well vectors separate the senses of a printed dictionary.

    bilex align en.npy fi.npy --seeds seeds.tsv --method procrustes --limit 40000 -o en-fi
    python -m research.senses en-fi freedict-eng-fin.index [--reverse]

FreeDict numbers the senses of a headword. Two translations of one headword stand within one sense or across
two; printed are the mean cosine of both kinds of pairs in the model's space, how many are above and below
0.3, which is where `bilex lexicon --lemmas` parts senses, and the area under the curve of separating them.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from bilex import Translator
from bilex.lexicon.articles import read_article
from bilex.lexicon.formats.stardict import indexed_articles
from bilex.vectors import WordVectors

SAME_SENSE = 0.3
_NUMBERED = re.compile(r"\s*\d{1,2}[.)]\s")


def senses(index: Path) -> Iterator[list[tuple[str, ...]]]:
    """The translations of each numbered sense, of each headword with several."""
    for _, _, data in indexed_articles(index):
        lines = (data or b"").decode("utf-8", "replace").split("\n")
        numbered = [line for line in lines if _NUMBERED.match(line)]
        found = [read_article(line, "").translations for line in numbered]
        if len(found) > 1:
            yield found


def cosines(index: Path, words: WordVectors) -> tuple[int, list[float], list[float]]:
    """How many headwords there are, and the cosines of pairs within a sense and across senses."""
    headwords, within, across = 0, list[float](), list[float]()
    for found in senses(index):
        rows = [
            (number, words.key_to_index[word.lower()])
            for number, sense in enumerate(found)
            for word in dict.fromkeys(sense)
            if word.lower() in words
        ]
        if len({number for number, _ in rows}) < 2:
            continue
        headwords += 1
        vectors = np.asarray(words.vectors[np.array([row for _, row in rows])], np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        for (one, first), (other, second) in itertools.combinations(zip(rows, vectors, strict=True), 2):
            if one[1] != other[1]:
                (within if one[0] == other[0] else across).append(float(first @ second))
    return headwords, within, across


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a row for each dictionary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("dictionaries", nargs="+", type=Path)
    parser.add_argument("--reverse", action="store_true", help="translations are in the source language")
    options = parser.parse_args(arguments)
    space = Translator.load(options.model).space
    words = space.source if options.reverse else space.target
    print(
        "dictionary             headwords pairs within  across cosine within  across above 0.3  below   area"
    )
    for path in options.dictionaries:
        headwords, within, across = cosines(path, words)
        area = mannwhitneyu(within, across).statistic / (len(within) * len(across))
        above = 100 * np.mean(np.array(within) >= SAME_SENSE)
        below = 100 * np.mean(np.array(across) < SAME_SENSE)
        print(
            f"{path.stem:22} {headwords:9,} {len(within):12,} {len(across):7,} {np.mean(within):13.3f}"
            f" {np.mean(across):7.3f} {above:9.0f} {below:6.0f} {area:6.3f}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
