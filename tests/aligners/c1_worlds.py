"""Small planted problems for the tests of aligners."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex import C1
from bilex.aligners import Aligner
from bilex.lexicon import Lexicon
from planted import planted


class World:
    """Two languages of which word i of one means word i of the other.

    Args:
        words: Words of the source language.
        dim: Dimension of the source language.
        target_words: Words of the target language; those beyond `words` mean nothing.
        target_dim: Dimension of the target language.
        noise: Of the target vectors, against vectors of variance 1.
    """

    def __init__(
        self,
        words: int = 600,
        dim: int = 20,
        target_words: int | None = None,
        target_dim: int | None = None,
        noise: float = 0.5,
        seed: int = 0,
    ) -> None:
        made = planted(
            words, dim, noise, seed, target_words=target_words, target_dim=target_dim, numbered=True
        )
        self.source, self.target = made.source, made.target

    def seeds(self, count: int) -> Lexicon:
        """The first true pairs."""
        return Lexicon([(f"s{i}", f"t{i}") for i in range(count)], "seeds.txt")

    def fit(self, aligner: Aligner, seeds: int | Lexicon = 100, **more: Any) -> Any:
        """Fit on so many of the first pairs, or on a given list."""
        lexicon = self.seeds(seeds) if isinstance(seeds, int) else seeds
        return aligner.fit(self.source, self.target, lexicon, **more)

    def precision(self, aligner: Aligner, first: int) -> float:
        """P@1, by cosine, of the source words from `first` on that have a translation."""
        last = min(len(self.source), len(self.target))
        x = aligner.source_map_(self.source.vectors[first:last])
        y = aligner.target_map_(self.target.vectors)
        return float(((x @ y.T).argmax(1) == np.arange(first, last)).mean())


def quick(**settings: Any) -> C1:
    """A C1 with few updates, on the CPU."""
    return C1(**{"preset": "paper", "device": "cpu", "updates": 8, "warm_up": 0, **settings})


def same_maps(one: Aligner, other: Aligner) -> bool:
    """Whether two fits came out the same to the bit."""
    return all(
        getattr(one, side).matrix.tobytes() == getattr(other, side).matrix.tobytes()
        for side in ("source_map_", "target_map_")
    )
