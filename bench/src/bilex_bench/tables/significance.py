"""Tables of whether one method is really better than another, by paired tests over the same words.

Two methods answered the same test words. Under the null hypothesis, which method gave which answer does not
matter, and the sign of each difference is random. `sign_flip_p` computes how often random signs give a mean
difference at least as large; `bootstrap_interval` gives an interval of the difference.

Words that belong together are one unit, with one sign: a test dictionary has "dog → koira" forward and
"koira → dog" backward, and dictionaries made from one list of English words have a dog in every language.
Treated as independent, such words make a difference look more certain than it is. `meanings` finds them.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.csgraph
import scipy.stats

from bilex_bench.reported import counterpart
from bilex_bench.results import DIRECTIONS
from bilex_bench.tables.sheet import Direction, Method, Sheet, without_sweep
from bilex_bench.tables.table import Plain, Table, Value, number

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

DRAWS = 20_000
REPLICATES = 2_000
_ENUMERATE_UP_TO = 16
_TIE = 1e-9
_BASELINE = "C1"
_LEVEL = 0.05
_LEAST_P = 1e-4


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
        for node, listed in zip(numbers, entry.translations, strict=True):
            edges += [(node, nodes.setdefault((entry.target, word), len(nodes))) for word in listed]
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


def significance_tables(sheet: Sheet) -> Iterator[Table]:
    """Every method against the baseline: over all directions together, and in each direction."""
    against = _baseline(sheet)
    if against is None:
        return
    methods = [method for method in without_sweep(sheet.methods) if method is not against]
    pooled: list[tuple[str, str, Difference]] = []
    single: dict[tuple[str, Direction, str], tuple[float, float]] = {}  # difference and p
    for seeds in sheet.seeds:
        base = _scored(sheet, against, seeds)
        for method in methods if base else ():
            scored = _scored(sheet, method, seeds)
            both = {place: (own, base[place]) for place, own in scored.items() if place in base}
            if difference := compare(list(both.values())):
                pooled.append((seeds, method.name, difference))
            for direction, pair in both.items():
                if len(found := differences(*pair).scores):
                    single[seeds, direction, method.name] = float(found.mean()), sign_flip_p(found)
    yield _pooled_table(against.name, pooled)
    yield _single_table(sheet, against.name, single)


def _baseline(sheet: Sheet) -> Method | None:
    """The method that the sheet names, or C1, or what is nearest to it."""
    named = [method for method in sheet.methods if method.name == sheet.baseline]
    papers = [m for m in sheet.methods if (c := counterpart(m.setup)) and _BASELINE in c.names]
    by_method = [m for m in sheet.methods if m.setup.method == "c1" and m.setup.lm is None]
    return next(iter([*named, *papers, *by_method, *sheet.methods]), None)


def _scored(sheet: Sheet, method: Method, seeds: str) -> dict[Direction, Scored]:
    """Whether the first answer to each test word by CSLS is right; with several runs, how often."""
    found: dict[Direction, Scored] = {}
    for (pair, name), results in method.runs.items():
        predictions = [sheet.predictions(result) for result in results] if name == seeds else []
        for direction in DIRECTIONS:
            runs = [those[direction] for those in predictions if those.get(direction)]
            if runs:
                hits = [{p.source: float(p.ranks["csls"] <= 1) for p in run} for run in runs]
                kept = [p for p in runs[0] if all(p.source in hit for hit in hits)]
                scores = np.array([sum(hit[p.source] for hit in hits) / len(hits) for p in kept], np.float64)
                place = Direction(pair, direction)
                sources, right = tuple(p.source for p in kept), tuple(p.translations for p in kept)
                found[place] = Scored(*place.languages, sources, right, scores)
    return found


def _pooled_table(against: str, compared: Sequence[tuple[str, str, Difference]]) -> Table:
    corrected = holm([found.p for _, _, found in compared])
    rows: list[list[Value]] = []
    for (seeds, method, found), p in zip(compared, corrected, strict=True):
        interval = (number(100 * end, 2, signed=True) for end in (found.low, found.high))
        better = number(found.better, text=f"{found.better} : {found.worse}")
        counts = (number(count) for count in (found.directions, found.words, found.units))
        mean = number(100 * found.mean, 2, signed=True, bold=p < _LEVEL)
        rows.append([seeds, method, mean, *interval, _p(found.p), _p(p), better, *counts])
    return Table(
        "significance",
        f"Every method against {against}",
        f"Difference of P@1 × 100 by CSLS from {against}, mean over the directions that both have, with "
        f"its 95 % interval; bold where the corrected p is under {_LEVEL}.",
        [
            *("seeds", "method", "difference", "from", "to", "p", "p (Holm)"),
            *("better : worse", "directions", "words", "units"),
        ],
        rows,
        (
            f"p: paired approximate randomisation, two-sided, {DRAWS:,} draws (exact with few "
            f"differences). Interval: paired bootstrap, {REPLICATES:,} resamplings.",
            "A unit is what is flipped or resampled as one: all test words of all directions and pairs that "
            "translations link, since the same meanings are queried again and again.",
            f"p (Holm) is corrected for the number of comparisons in this table, {len(rows)}.",
            "better : worse counts directions.",
            "All this is about the choice of test words; what randomness does in training is not in it.",
        ),
    )


def _single_table(
    sheet: Sheet, against: str, compared: dict[tuple[str, Direction, str], tuple[float, float]]
) -> Table:
    corrected = holm([p for _, p in compared.values()])
    found = {
        place: number(100 * mean, 2, signed=True, bold=p < _LEVEL)
        for (place, (mean, _)), p in zip(compared.items(), corrected, strict=True)
    }
    methods = [m.name for m in sheet.methods if any(name == m.name for _, _, name in compared)]
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        for direction in sheet.directions(seeds):
            cells = [found.get((seeds, direction, name)) for name in methods]
            if any(cells):
                rows.append([seeds, str(direction), *cells])
    return Table(
        "significance-by-direction",
        f"Every method against {against} in each direction",
        f"Difference of P@1 × 100 by CSLS from {against}; bold where p is under {_LEVEL} after Holm's "
        f"correction for the number of comparisons in this table, {len(compared)}.",
        ["seeds", "direction", *methods],
        rows,
        ["p: the exact paired test on the words that one method answered rightly and the other did not."],
    )


def _p(value: float) -> Plain:
    return number(value, text=f"{value:.4f}" if value >= _LEAST_P else f"< {_LEAST_P:.4f}")
