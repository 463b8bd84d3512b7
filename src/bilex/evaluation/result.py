"""What an evaluation found: metrics with intervals, predictions, tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.tables import table
from bilex.core.typed_json import OTHERS, as_json, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

Ranks = npt.NDArray[np.int64]

_REPLICATES_AT_ONCE = 64


class Metrics(dict[str, float]):
    """Fractions between 0 and 1 by name, "p@1" to "mrr"; also as attributes, `p_at_1` to `mrr`.

    Examples:
        >>> Metrics({"p@1": 0.5, "mrr": 0.6}).p_at_1
        0.5
    """

    def __getattr__(self, name: str) -> float:
        try:
            return self[name.replace("p_at_", "p@")]
        except KeyError:
            raise AttributeError(f"there is no metric '{name}'; there are {', '.join(dir(self))}") from None

    def __dir__(self) -> list[str]:  # for tab completion
        return [name.replace("@", "_at_") for name in self]


MetricsByRetrieval = dict[str, Metrics | None]


def _per_query(ranks: Ranks, precision_at: Sequence[int]) -> npt.NDArray[np.float64]:
    """What each query adds to each metric, shape (queries, metrics)."""
    return np.stack([*(ranks <= n for n in precision_at), 1.0 / ranks], axis=1).astype(np.float64)


def _metric_names(precision_at: Sequence[int]) -> list[str]:
    return [*(f"p@{n}" for n in precision_at), "mrr"]


def mean_metrics(ranks: Ranks, precision_at: Sequence[int], denominator: int | None = None) -> Metrics | None:
    """Precision at each n and mean reciprocal rank; None if there is nothing to divide by.

    `ranks` are those of the best correct answers, from 1. With a `denominator` greater than their number,
    queries without an answer count as failures.
    """
    count = len(ranks) if denominator is None else denominator
    if not count:
        return None
    means = _per_query(ranks, precision_at).sum(axis=0) / count
    return Metrics(zip(_metric_names(precision_at), means.tolist(), strict=True))


def bootstrap_intervals(
    ranks: Ranks, precision_at: Sequence[int], *, replicates: int, seed: int
) -> dict[str, tuple[float, float]]:
    """95 % percentile bootstrap intervals of the metrics, resampling the queries; at least one is needed."""
    values = _per_query(ranks, precision_at)
    count = len(values)
    generator = np.random.default_rng(seed)
    means = np.empty((replicates, values.shape[1]))
    for start in range(0, replicates, _REPLICATES_AT_ONCE):
        size = min(_REPLICATES_AT_ONCE, replicates - start)
        times = generator.multinomial(count, np.full(count, 1 / count), size=size)
        means[start : start + size] = times @ values / count
    intervals = np.quantile(means, [0.025, 0.975], axis=0).T.tolist()
    return {
        name: (low, high) for name, (low, high) in zip(_metric_names(precision_at), intervals, strict=True)
    }


@dataclass(frozen=True)
class Prediction:
    """The answers to one test word.

    Attributes:
        source: The word.
        translations: Those in the test dictionary that have vectors.
        band: Its frequency band.
        identical: Whether a translation is spelt as the word itself.
        leaked: Whether one of its pairs is in the training dictionary.
        answers: The best answers by retrieval ("nn", "csls"), best first.
        ranks: The rank of the best correct translation among all words, by retrieval.
    """

    source: str
    translations: tuple[str, ...]
    band: str
    identical: bool
    leaked: bool
    answers: dict[str, tuple[str, ...]]
    ranks: dict[str, int]


@dataclass(frozen=True)
class Group:
    """The metrics over some of the covered source words."""

    covered: int
    metrics: MetricsByRetrieval = field(metadata=OTHERS)


@dataclass(frozen=True)
class DirectionResult:
    """One direction of an evaluation.

    Attributes:
        metrics: By retrieval ("nn", "csls"), over the covered source words: the standard.
        intervals: 95 % bootstrap intervals of these; empty without resampling.
        covered: Distinct source words with at least one pair that has both words in the vectors.
        total: All distinct source words.
        pairs: All distinct pairs.
        pairs_covered: Those with both words in the vectors.
        oov_as_error: The metrics over all distinct source words, the uncovered ones counted as wrong.
        per_pair: The metrics over the covered pairs, each translation alone (the convention of xling-eval).
        leak_free: Without the source words that have a pair in the training dictionary; None without one.
        bands: By frequency band of the source word.
        identical: Words that have a translation spelt like themselves.
        different: The others.
        predictions: The answers word by word.
        phrases: By kind, the metrics for composed phrases that the vocabularies lack.
        phrase_predictions: The answers to these.
    """

    metrics: MetricsByRetrieval = field(metadata=OTHERS)
    intervals: dict[str, dict[str, tuple[float, float]]]
    covered: int
    total: int
    pairs: int
    pairs_covered: int
    oov_as_error: MetricsByRetrieval
    per_pair: MetricsByRetrieval
    leak_free: Group | None
    bands: dict[str, Group]
    identical: Group
    different: Group
    predictions: tuple[Prediction, ...]
    phrases: dict[str, Group] = field(default_factory=dict)
    phrase_predictions: tuple[Prediction, ...] = ()

    @property
    def csls(self) -> Metrics:
        """The standard metrics with CSLS retrieval, as in `result.csls.p_at_1`."""
        return self._standard("csls")

    @property
    def nn(self) -> Metrics:
        """The standard metrics with nearest-neighbour retrieval."""
        return self._standard("nn")

    def _standard(self, retrieval: str) -> Metrics:
        found = self.metrics[retrieval]
        if found is None:
            raise BilexError("no word of the test dictionary is in the vectors; only phrases were evaluated.")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Everything but the single predictions, ready for JSON."""
        found = as_json(replace(self, predictions=(), phrase_predictions=()))
        del found["predictions"], found["phrase_predictions"]
        found["interval_95"] = found.pop("intervals")
        return found


@dataclass(frozen=True)
class Evaluation:
    """How well a space translates the words of a test dictionary, in both directions.

    The primary metric is `evaluation.csls.p_at_1`, which is `evaluation.forward.csls.p_at_1`.

    Attributes:
        forward: Source to target.
        backward: Target to source, with the same dictionary swapped.
        dictionary: The name of the test dictionary.
        settings: The arguments that the metrics depend on.
    """

    forward: DirectionResult
    backward: DirectionResult
    dictionary: str
    settings: dict[str, Any]

    @property
    def csls(self) -> Metrics:
        """The forward metrics with CSLS retrieval."""
        return self.forward.csls

    @property
    def nn(self) -> Metrics:
        """The forward metrics with nearest-neighbour retrieval."""
        return self.forward.nn

    def as_dict(self, *, predictions: bool = False) -> dict[str, Any]:
        """Everything as plain values, fractions between 0 and 1.

        Args:
            predictions: Whether to include the answers word by word.
        """
        result: dict[str, Any] = {}
        for name, direction in (("forward", self.forward), ("backward", self.backward)):
            result[name] = direction.as_dict()
            if predictions:
                result[name]["predictions"] = plain(direction.predictions)
                result[name]["phrase_predictions"] = plain(direction.phrase_predictions)
        return {**result, "dictionary": self.dictionary, "settings": self.settings}

    def to_json(self, *, predictions: bool = False) -> str:
        """`as_dict` as indented JSON."""
        return json.dumps(self.as_dict(predictions=predictions), ensure_ascii=False, indent=2)

    def table(self, languages: tuple[str, str] = ("source", "target")) -> RenderableType:
        """Two tables for a rich console: the metrics by convention, and P@1 by kind of word.

        Args:
            languages: The names of the two languages.
        """
        from rich.console import Group as Renderables

        one, other = languages
        directions = {f"{one} to {other}": self.forward, f"{other} to {one}": self.backward}
        measured = [self.forward.metrics, *(group.metrics for group in self.forward.phrases.values())]
        names = [name.upper() for name in next(m for found in measured for m in found.values() if m)]
        conventions: list[list[str] | None] = []
        kinds: list[list[str] | None] = []
        for direction, result in directions.items():
            standard = "covered words (standard)"
            rows = [(name, standard, result.metrics, result.covered) for name in ("nn", "csls")]
            rows.append(("csls", "all words, uncovered wrong", result.oov_as_error, result.total))
            if (free := result.leak_free) is not None:
                rows.append(("csls", "covered, not in the seeds", free.metrics, free.covered))
            for retrieval, label, metrics, words in rows:
                intervals = result.intervals.get(retrieval) if label == standard else None
                low, high = next(iter(intervals.values())) if intervals else (0, 0)
                interval = f"{100 * low:.1f}–{100 * high:.1f}" if intervals else ""
                cells = _percentages(metrics[retrieval], len(names))
                conventions.append([direction, retrieval.upper(), label, *cells, interval, str(words)])
            groups = {f"rank {band}": group for band, group in result.bands.items()}
            groups |= {"spelt alike": result.identical, "spelt differently": result.different}
            groups |= {f"{name} (composed)": group for name, group in result.phrases.items()}
            for name, group in groups.items():
                kinds.append([direction, name, str(group.covered), _percentages(group.metrics["csls"])[0]])
            conventions.append(None)
            kinds.append(None)
        headings = ["direction", "search", "counted over", *names, f"95 % of {names[0]}", "words"]
        title = "P@1 with CSLS by kind of word"
        return Renderables(
            table(headings, conventions, self.dictionary, left=3),
            table(("direction", "words", "number", "P@1"), kinds, title, left=2),
        )


def _percentages(metrics: Metrics | None, count: int = 1) -> list[str]:
    """Metrics in per cent; dashes if there was nothing to count."""
    return [f"{100 * value:.1f}" for value in metrics.values()] if metrics else ["–"] * count
