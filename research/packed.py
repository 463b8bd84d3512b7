"""What studies share: reading the packed vectors and dictionaries of the data folder, and P@1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.evaluation import evaluate
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

PAIRS = ("en-ru", "en-fi", "en-fr", "fi-fr", "fi-ru", "ru-fr")


def read_vectors(data: Path, language: str, limit: int | None = None) -> WordVectors:
    """The vectors of a language, expanded to float32 unit rows."""
    folder = data / "vectors"
    if not (folder / f"{language}.npz").exists():
        raise BilexError(f"{folder}: holds no {language}.npz; give the folder that has vectors/ in it.")
    words = (folder / f"{language}.txt").read_text(encoding="utf-8").split("\n")[:-1][:limit]
    with np.load(folder / f"{language}.npz") as packed:
        vectors = packed["q"][:limit].astype(np.float32) * packed["scale"][:limit]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return WordVectors(words, vectors, ("unit",))


def read_dictionary(data: Path, pair: str, name: str) -> Lexicon:
    """An XLING dictionary, name being "train.freq.5k", "train.freq.1k" or "test.freq.2k"."""
    return Lexicon.load(data / "dictionaries" / "xling" / pair / f"yacle.{name}.{pair}.tsv")


def four_metrics(space: Space, lexicon: Lexicon) -> list[float]:
    """P@1 in %: forward nearest neighbour and CSLS, backward likewise."""
    scores = evaluate(space, lexicon, bootstrap=0).as_dict()
    return [
        round(100 * scores[direction][search]["p@1"], 2)
        for direction in ("forward", "backward")
        for search in ("nn", "csls")
    ]
