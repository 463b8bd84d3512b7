"""How vectors are trained: what a user may set, and what the size of the corpus decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from bilex.core.errors import BilexError

Architecture = Literal["skipgram", "cbow"]

# Fewer than so many tokens: dimension, epochs, least count of a word, buckets for n-grams.
_BY_SIZE = (
    (500_000, (100, 20, 2, 50_000)),
    (5_000_000, (100, 8, 2, 100_000)),
    (50_000_000, (200, 5, 3, 500_000)),
    (500_000_000, (300, 5, 5, 1_000_000)),
    (None, (300, 5, 10, 2_000_000)),
)
_BYTES = 4
# fastText goes through a window word by word, and keeps its numbers in 32 bits.
_MOST = {
    "dim": 4096,
    "epochs": 10_000,
    "min_count": 2**31 - 1,
    "buckets": 2**31 - 1,
    "window": 1000,
    "negatives": 1000,
    "threads": 1024,
    "random_seed": 2**31 - 1,
}
_LONGEST_NGRAM = 100


@dataclass(frozen=True)
class TrainingSettings:
    """fastText's settings; None is decided by the size of the corpus (docs/guide/vectors.md).

    Args:
        architecture: "skipgram" (a word predicts its neighbours) or "cbow" (they predict it).
        dim: The dimension of the vectors.
        epochs: How often the corpus is read.
        min_count: Words that stand fewer times in the corpus get no vector.
        buckets: How many rows character n-grams share.
        limit: At most so many words, the most frequent ones, get vectors.
        window: How many neighbours to each side count at the most.
        ngrams: The shortest and the longest character n-gram; (0, 0) for none.
        negatives: How many random words a neighbour is distinguished from.
        learning_rate: The first learning rate, which falls to 0.
        subsampling: Words more frequent than this share of the tokens are left out at random.
        threads: How many threads train; with one the result is reproducible.
        random_seed: Fixes all random numbers.
    """

    architecture: Architecture = "skipgram"
    dim: int | None = None
    epochs: int | None = None
    min_count: int | None = None
    buckets: int | None = None
    limit: int = 200_000
    window: int = 5
    ngrams: tuple[int, int] = (3, 6)
    negatives: int = 5
    learning_rate: float = 0.05
    subsampling: float = 1e-4
    threads: int = 1
    random_seed: int = 0

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise BilexError(f"{name} is {value}; give a whole number up to {most:,}.")
        shortest, longest = self.ngrams
        if not (0 <= shortest <= longest <= _LONGEST_NGRAM and (shortest > 0) == (longest > 0)):
            raise BilexError(
                f"character n-grams of {shortest} to {longest} letters make no sense; give for example 3-6."
            )

    def for_size(self, tokens: int) -> TrainingSettings:
        """These settings with what was left open filled in for a corpus of so many tokens."""
        chosen = next(values for most, values in _BY_SIZE if most is None or tokens < most)
        names = ("dim", "epochs", "min_count", "buckets")
        left_open = {
            name: value for name, value in zip(names, chosen, strict=True) if getattr(self, name) is None
        }
        return replace(self, **left_open)  # type: ignore[arg-type]

    def arguments(self, vocabulary: int) -> dict[str, Any]:
        """The names that fastText has for filled-in settings, and their values.

        Args:
            vocabulary: How many words get vectors; no more n-gram rows than words are of use times 20.
        """
        shortest, longest = self.ngrams
        buckets = min(self.buckets or 0, max(1000, 20 * vocabulary)) if longest else 0
        return {
            "dim": self.dim,
            "epoch": self.epochs,
            "minCount": self.min_count,
            "bucket": buckets,
            "ws": self.window,
            "minn": shortest,
            "maxn": longest,
            "neg": self.negatives,
            "lr": self.learning_rate,
            "t": self.subsampling,
            "thread": self.threads,
            "seed": self.random_seed,
        }

    def memory(self, vocabulary: int) -> int:
        """How many bytes training takes: a row for each word and n-gram bucket, an output row per word."""
        arguments = self.arguments(vocabulary)
        rows = 2 * vocabulary + int(arguments["bucket"])
        return rows * int(arguments["dim"]) * _BYTES
