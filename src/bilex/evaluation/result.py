"""What an evaluation found: metrics with intervals, predictions, tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

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
        golds: Its translations in the test dictionary that have vectors.
        band: Its frequency band.
        identical: Whether a translation is spelt as the word itself.
        leaked: Whether one of its pairs is in the training dictionary.
        answers: The best answers by retrieval ("nn", "csls"), best first.
        ranks: The rank of the best correct translation among all words, by retrieval.
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
    """The metrics over some of the covered source words."""

    covered: int
    metrics: MetricsByRetrieval

    def as_dict(self) -> dict[str, Any]:
        """`covered` and the metrics by retrieval."""
        return {"covered": self.covered, **self.metrics}


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

    metrics: MetricsByRetrieval
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
        intervals = {
            retrieval: {name: list(ends) for name, ends in found.items()}
            for retrieval, found in self.intervals.items()
        }
        return {
            **self.metrics,
            "covered": self.covered,
            "total": self.total,
            "pairs": self.pairs,
            "pairs_covered": self.pairs_covered,
            "interval_95": intervals,
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
                result[name]["predictions"] = [asdict(p) for p in direction.predictions]
                result[name]["phrase_predictions"] = [asdict(p) for p in direction.phrase_predictions]
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
        return Renderables(self._conventions(directions), _breakdown(directions))

    def _conventions(self, directions: dict[str, DirectionResult]) -> Table:
        """The metrics of each direction by convention."""
        from rich.table import Column, Table

        measured = [self.forward.metrics, *(group.metrics for group in self.forward.phrases.values())]
        names = [name.upper() for name in next(m for methods in measured for m in methods.values() if m)]
        numbers = [*names, f"95 % of {names[0]}", "words"]
        columns = (Column(name, justify="right") for name in numbers)
        table = Table(
            "direction", "search", *columns, "counted over", title=self.dictionary, title_justify="left"
        )
        for direction, result in directions.items():
            rows = [
                (retrieval, result.metrics, result.covered, "covered words (standard)")
                for retrieval in ("nn", "csls")
            ]
            rows.append(("csls", result.oov_as_error, result.total, "all words, uncovered wrong"))
            if (free := result.leak_free) is not None:
                rows.append(("csls", free.metrics, free.covered, "covered, not in the seeds"))
            for retrieval, metrics, words, label in rows:
                intervals = result.intervals.get(retrieval) if metrics is result.metrics else None
                low, high = next(iter(intervals.values())) if intervals else (0, 0)
                interval = f"{100 * low:.1f}–{100 * high:.1f}" if intervals else ""
                cells = _percentages(metrics[retrieval], len(names))
                table.add_row(direction, retrieval.upper(), *cells, interval, str(words), label)
            table.add_section()
        return table


def _breakdown(directions: dict[str, DirectionResult]) -> Table:
    """P@1 of each direction by kind of word."""
    from rich.table import Column, Table

    columns = ("direction", "words", Column("number", justify="right"), Column("P@1", justify="right"))
    table = Table(*columns, title="P@1 with CSLS by kind of word", title_justify="left")
    for direction, result in directions.items():
        groups = {f"rank {band}": group for band, group in result.bands.items()}
        groups |= {"spelt alike": result.identical, "spelt differently": result.different}
        groups |= {f"{name} (composed)": group for name, group in result.phrases.items()}
        for name, group in groups.items():
            table.add_row(direction, name, str(group.covered), _percentages(group.metrics["csls"])[0])
        table.add_section()
    return table


def _percentages(metrics: Metrics | None, count: int = 1) -> list[str]:
    """Metrics in per cent; dashes if there was nothing to count."""
    return [f"{100 * value:.1f}" for value in metrics.values()] if metrics else ["–"] * count
