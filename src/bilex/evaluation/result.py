"""What an evaluation found, as objects, a dict and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bilex.evaluation.metrics import Intervals, Metrics

if TYPE_CHECKING:
    from rich.console import RenderableType

Methods = dict[str, Metrics | None]


@dataclass(frozen=True)
class Prediction:
    """The answers to one test word.

    Attributes:
        source: The word asked for.
        golds: Its translations in the test dictionary that the vectors know.
        band: Its frequency band.
        identical: Whether a gold is spelt as the word itself.
        leaked: Whether one of its pairs stands in the training dictionary.
        answers: The best answers of each retrieval method, best first.
        ranks: The rank of the best gold among all words, by retrieval method.
    """

    source: str
    golds: tuple[str, ...]
    band: str
    identical: bool
    leaked: bool
    answers: dict[str, tuple[str, ...]]
    ranks: dict[str, int]


@dataclass(frozen=True)
class Group:
    """The figures over some of the covered source words."""

    covered: int
    metrics: Methods

    def as_dict(self) -> dict[str, Any]:
        """`covered` and one entry a retrieval method."""
        return {"covered": self.covered, **self.metrics}


@dataclass(frozen=True)
class DirectionResult:
    """One direction of an evaluation.

    Attributes:
        metrics: By retrieval method ("nn", "csls"), over the covered source words: the standard.
        intervals: 95 % bootstrap intervals of these; empty if none were asked for.
        covered: Distinct source words with at least one pair that has both words in the vectors.
        total: All distinct source words.
        pairs: All distinct pairs.
        pairs_covered: Those with both words in the vectors.
        oov_as_error: The figures over all distinct source words, the uncovered ones counted as wrong.
        per_pair: The figures over the covered pairs, each gold alone (the convention of xling-eval).
        leak_free: Without the source words that have a pair in the training dictionary; None when no
            training dictionary was given.
        bands: By frequency band of the source word.
        identical: Words that have a gold spelt like themselves.
        different: The others.
        predictions: The answers word by word.
        phrases: By kind, the figures for phrases that the vocabularies lack and that were composed.
        phrase_predictions: The answers to these, one by one.
    """

    metrics: Methods
    intervals: dict[str, Intervals]
    covered: int
    total: int
    pairs: int
    pairs_covered: int
    oov_as_error: Methods
    per_pair: Methods
    leak_free: Group | None
    bands: dict[str, Group]
    identical: Group
    different: Group
    predictions: tuple[Prediction, ...]
    phrases: dict[str, Group] = field(default_factory=dict)
    phrase_predictions: tuple[Prediction, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Everything but the single predictions, ready for JSON."""
        return {
            **self.metrics,
            "covered": self.covered,
            "total": self.total,
            "pairs": self.pairs,
            "pairs_covered": self.pairs_covered,
            "interval_95": {
                method: {name: list(ends) for name, ends in intervals.items()}
                for method, intervals in self.intervals.items()
            },
            "oov_as_error": self.oov_as_error,
            "per_pair": self.per_pair,
            "leak_free": self.leak_free.as_dict() if self.leak_free else None,
            "bands": {band: group.as_dict() for band, group in self.bands.items()},
            "identical": self.identical.as_dict(),
            "different": self.different.as_dict(),
            "phrases": {name: group.as_dict() for name, group in self.phrases.items()},
        }


@dataclass(frozen=True)
class Evaluation:
    """How well a space translates the words of a test dictionary, both ways.

    The primary figure is `forward.metrics["csls"]["p@1"]`.

    Attributes:
        forward: Source to target.
        backward: Target to source, with the same dictionary swapped.
        dictionary: The name of the test dictionary.
        settings: The arguments that the figures depend on.
    """

    forward: DirectionResult
    backward: DirectionResult
    dictionary: str
    settings: dict[str, Any]

    def as_dict(self, *, predictions: bool = False) -> dict[str, Any]:
        """Everything as plain values, fractions between 0 and 1.

        Args:
            predictions: Whether the answers word by word come along.
        """
        result: dict[str, Any] = {}
        for name, direction in (("forward", self.forward), ("backward", self.backward)):
            result[name] = direction.as_dict()
            if predictions:
                result[name]["predictions"] = [asdict(p) for p in direction.predictions]
                result[name]["phrase_predictions"] = [asdict(p) for p in direction.phrase_predictions]
        return {**result, "dictionary": self.dictionary, "settings": self.settings}

    def to_json(self, *, predictions: bool = False) -> str:
        """`as_dict` as indented JSON."""
        return json.dumps(self.as_dict(predictions=predictions), ensure_ascii=False, indent=2)

    def table(self, languages: tuple[str, str] = ("source", "target")) -> RenderableType:
        """Tables for a rich console: the figures, and their breakdown.

        Args:
            languages: The names of the two languages.
        """
        from bilex.evaluation.report import render

        return render(self, languages)
