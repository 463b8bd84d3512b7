"""Planted languages: word i of each means word i of all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from planted import pseudowords

ENDINGS = {"en": "s", "fi": "t", "fr": "r", "ru": "k"}


@dataclass(frozen=True)
class PlantedMany:
    """Several languages with one meaning a row."""

    vocabularies: dict[str, WordVectors]

    def pairs(self, a: str, b: str, first: int, last: int) -> Lexicon:
        """The true pairs of some ranks."""
        one, other = (self.vocabularies[code].index_to_key[first:last] for code in (a, b))
        return Lexicon(list(zip(one, other, strict=True)), f"{a}-{b}")


def planted_many(
    languages: str = "en fi fr ru", words: int = 800, dim: int = 20, noise: float = 0.6, seed: int = 0
) -> PlantedMany:
    """Random meanings, seen by each language rotated and blurred."""
    rng = np.random.default_rng(seed)
    meanings = rng.normal(size=(words, dim))
    found = {}
    for code in languages.split():
        rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
        vectors = meanings @ rotation + noise * rng.normal(size=(words, dim))
        found[code] = WordVectors(pseudowords(words, ENDINGS[code]), vectors.astype(np.float32))
    return PlantedMany(found)


def share_right(space: object, pairs: Lexicon) -> float:
    """P@1 with CSLS, forward."""
    from bilex.evaluation import evaluate

    figures = evaluate(space, pairs, bootstrap=0).forward.metrics["csls"]  # type: ignore[arg-type]
    return figures["p@1"] if figures else 0.0
