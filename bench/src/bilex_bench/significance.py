"""Whether one method is really better than another: paired tests over the same words.

Two methods answered the same test words. Under the null hypothesis, which method gave which answer does not
matter, and the sign of each difference is random. `sign_flip_p` computes how often random signs give a mean
difference at least as large; `bootstrap_interval` gives an interval of the difference.

Words that belong together are one unit, with one sign: a test dictionary has "dog → koira" forward and
"koira → dog" backward, and dictionaries made from one list of English words have a dog in every language.
Treated as independent, such words make a difference look more certain than it is. `meanings` finds them.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.csgraph
import scipy.stats

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

DRAWS = 20_000
REPLICATES = 2_000
_ENUMERATE_UP_TO = 16
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of one method on the test words of one direction."""

    source: str  # the language of the words
    target: str  # the language of the answers
    words: tuple[str, ...]  # distinct
    translations: tuple[tuple[str, ...], ...]  # of each word
    scores: Array  # one per word: 1 or 0 for P@1, a share over several runs, or a reciprocal rank


@dataclass(frozen=True)
class Difference:
    """By how much one method is better than another, and how certain that is."""

    directions: int
    words: int  # that both methods answered, over all directions
    units: int  # independent ones among them
    mean: float  # over directions, of the mean difference, first minus second, as a fraction
    low: float  # of the 95 % interval
    high: float
    p: float  # of the two-sided test
    better: int  # directions in which the first is better
    worse: int


def compare(
    directions: Sequence[tuple[Scored, Scored]],
    *,
    draws: int = DRAWS,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Difference | None:
    """Compare two methods over the words that both have; None if there is none.

    In one direction each word is a unit; over several, each meaning.
    """
    common = [found for first, second in directions if (found := differences(first, second)).words]
    if not common:
        return None
    units = meanings(common) if len(common) > 1 else [np.arange(len(common[0].words))]
    count = 1 + max(int(numbers.max()) for numbers in units)
    sums = np.zeros((count, len(common)))
    sizes = np.zeros((count, len(common)))
    for column, (entry, numbers) in enumerate(zip(common, units, strict=True)):
        np.add.at(sums[:, column], numbers, entry.scores)
        np.add.at(sizes[:, column], numbers, 1.0)
    means = sums.sum(axis=0) / sizes.sum(axis=0)
    low, high = bootstrap_interval(sums, sizes, replicates=replicates, seed=seed)
    return Difference(
        directions=len(common),
        words=int(sizes.sum()),
        units=count,
        mean=float(means.mean()),
        low=low,
        high=high,
        p=sign_flip_p((sums / sizes.sum(axis=0)).mean(axis=1), draws=draws, seed=seed),
        better=int((means > _TIE).sum()),
        worse=int((means < -_TIE).sum()),
    )


def differences(first: Scored, second: Scored) -> Scored:
    """The differences of the scores, over the words that both have."""
    scores = dict(zip(second.words, second.scores, strict=True))
    places = [place for place, word in enumerate(first.words) if word in scores]
    words = tuple(first.words[place] for place in places)
    return Scored(
        first.source,
        first.target,
        words,
        tuple(first.translations[place] for place in places),
        first.scores[places] - np.array([scores[word] for word in words], dtype=np.float64),
    )


def sign_flip_p(values: Array, *, draws: int = DRAWS, seed: int = 0) -> float:
    """The two-sided p of the sum of paired differences, by flipping their signs.

    If all differences that are not zero are equally large, as with P@1 in one direction, this is the exact
    binomial (McNemar's) test. Up to 16 of them, all flips are enumerated. Otherwise flips are drawn, and p is
    (1 + those as extreme) / (1 + draws), which is conservative.
    """
    values = values[np.abs(values) > _TIE * np.abs(values).max(initial=0.0)]
    count = len(values)
    if not count:
        return 1.0
    sizes = np.abs(values)
    if np.allclose(sizes, sizes[0], rtol=_TIE, atol=0):
        fewer = min(int((values > 0).sum()), int((values < 0).sum()))
        return min(1.0, 2 * float(scipy.stats.binom.cdf(fewer, count, 0.5)))
    extreme = abs(values.sum()) - _TIE * sizes.sum()
    if count <= _ENUMERATE_UP_TO:
        kept = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return float((np.abs(2 * (kept @ values) - values.sum()) >= extreme).mean())
    flipped = 2 * _random_subset_sums(values, draws, seed) - values.sum()
    found = int((np.abs(flipped) >= extreme).sum())
    return (1 + found) / (1 + draws)


def bootstrap_interval(
    sums: Array, sizes: Array, *, replicates: int = REPLICATES, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """A percentile interval of the mean difference, resampling units.

    `sums` and `sizes` hold the summed differences and the number of words of each unit (rows) in each
    direction (columns). A resampling has the mean over directions of the mean over its words in each.
    """
    times = _resamplings(len(sums), replicates, seed)
    words = times @ sizes
    directions = (words > 0).sum(axis=1)
    means = np.divide(times @ sums, words, out=np.zeros_like(words), where=words > 0).sum(axis=1) / directions
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def meanings(scored: Sequence[Scored]) -> list[Numbers]:
    """The number of each word's unit, by direction.

    Two words are in one unit if a chain of translations, in any direction or pair, connects them.
    """
    nodes: dict[Hashable, int] = {}
    edges: list[tuple[int, int]] = []
    queried: list[list[int]] = []
    for entry in scored:
        numbers = [nodes.setdefault((entry.source, word), len(nodes)) for word in entry.words]
        queried.append(numbers)
        for number, listed in zip(numbers, entry.translations, strict=True):
            edges += [(number, nodes.setdefault((entry.target, word), len(nodes))) for word in listed]
    links = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = scipy.sparse.coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(len(nodes),) * 2)
    _, components = scipy.sparse.csgraph.connected_components(graph, directed=False)
    _, compact = np.unique(components[np.concatenate(queried).astype(int)], return_inverse=True)
    ends = np.cumsum([len(numbers) for numbers in queried])[:-1]
    return [part.astype(np.int64) for part in np.split(compact, ends)]


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of p values, which bounds the probability of any false positive.

    The smallest is multiplied by their number m, the next by m − 1, ..., none smaller than one before it.
    """
    order = np.argsort(values, kind="stable")
    steps = np.asarray(values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]


def _random_subset_sums(values: Array, draws: int, seed: int) -> Array:
    """Sums over random subsets of the values; each random byte decides on eight of them."""
    eights = np.pad(values, (0, -len(values) % 8)).reshape(-1, 8)
    all_bytes = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    sums = eights @ all_bytes.T.astype(np.float64)  # of each eight, by byte
    drawn = np.random.default_rng(seed).integers(0, 256, (len(eights), draws), dtype=np.uint8)
    total = np.zeros(draws)
    for of_bytes, row in zip(sums, drawn, strict=True):
        total += of_bytes[row]
    return total


@functools.lru_cache(maxsize=4)
def _resamplings(units: int, replicates: int, seed: int) -> Array:
    """How often each unit is drawn in each resampling; one row per resampling."""
    generator = np.random.default_rng(seed)
    times = np.empty((replicates, units))
    for row in times:
        row[:] = np.bincount(generator.integers(0, units, units), minlength=units)
    return times
