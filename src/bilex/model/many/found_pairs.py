"""Word pairs that languages get through each other: composed of seeds, or found in the common space."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.c1_settings import C1Constants
from bilex.aligners.induction import augmentation, induce_pairs, without_words_of
from bilex.aligners.rejected import without_pairs
from bilex.model.many.mapping import Two

_NO_PAIRS = np.zeros((0, 2), np.int64)


def every_two(languages: Sequence[str], known: Mapping[Two, object]) -> list[Two]:
    """Every two languages once, in the order that their seeds have."""
    return [
        two if two in known or two[::-1] not in known else two[::-1]
        for two in itertools.combinations(languages, 2)
    ]


def composed_pairs(two: Two, seeds: Mapping[Two, Pairs], languages: Sequence[str]) -> Pairs:
    """Pairs of two languages that share a translation in a third, and whose words no seed of theirs holds.

    Args:
        two: The two languages.
        seeds: Seed pairs of any two languages, as rows.
        languages: All languages.

    Returns:
        Each pair once.
    """
    a, b = two
    own = _of(seeds, a, b)
    found = [own[:0]]
    for third in languages:
        if third not in two:
            onward: dict[int, list[int]] = {}
            for middle, target in _of(seeds, third, b).tolist():
                onward.setdefault(middle, []).append(target)
            through = [
                (source, target)
                for source, middle in _of(seeds, a, third).tolist()
                for target in onward.get(middle, ())
            ]
            found.append(np.array(through, np.int64).reshape(-1, 2))
    return without_words_of(np.unique(np.concatenate(found), axis=0), own)


def _of(seeds: Mapping[Two, Pairs], a: str, b: str) -> Pairs:
    if (a, b) in seeds:
        return seeds[a, b]
    return seeds[b, a][:, ::-1] if (b, a) in seeds else _NO_PAIRS


def new_pairs(
    mapped: Mapping[str, torch.Tensor],
    seeds: Mapping[Two, Pairs],
    rejected: Mapping[Two, Pairs],
    constants: Mapping[Two, C1Constants],
    neighbours: int,
) -> dict[Two, Pairs]:
    """The pairs that every two languages find in the common space, as C1 finds them.

    Args:
        mapped: Unit rows of each language in the common space.
        seeds: By two languages; no pair with a word of theirs is added.
        rejected: Pairs that are never added.
        constants: How many words look for pairs, and how many pairs are kept.
        neighbours: k of CSLS.
    """
    found = {}
    for (a, b), own in seeds.items():
        of_two = constants[a, b]
        induced = induce_pairs(
            mapped[a],
            mapped[b],
            frequent=of_two.frequent,
            keep=of_two.augment,
            k=neighbours,
            full_csls=of_two.full_csls,
            device=mapped[a].device,
        )
        found[a, b] = without_pairs(augmentation(induced, own), rejected[a, b])
    return found
