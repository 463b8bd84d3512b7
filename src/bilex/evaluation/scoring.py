"""One direction of an evaluation: answers, ranks and figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.core.progress import Task
from bilex.evaluation.metrics import Ranks, bootstrap_intervals, mean_metrics
from bilex.evaluation.result import DirectionResult, Group, Prediction
from bilex.lexicon import Lexicon
from bilex.lexicon.ranks import BANDS, band_of
from bilex.model.space import Direction, Retrieval, Space
from bilex.search.ranking import ranks_of

METHODS: tuple[Retrieval, ...] = ("nn", "csls")


@dataclass(frozen=True)
class _Asked:
    """The covered part of a test dictionary, as rows of the query and the key vocabulary.

    Pairs are sorted by query; `query_of_pair[i]` is the place of pair i's word in `queries`.
    """

    words: list[str]
    queries: npt.NDArray[np.int64]
    query_of_pair: npt.NDArray[np.int64]
    golds: npt.NDArray[np.int64]
    repeats: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scoring:
    """The settings of an evaluation, and the steps of one direction."""

    space: Space
    neighbours: int
    precision_at: tuple[int, ...]
    bootstrap: int
    seed: int

    def direction(
        self, direction: Direction, lexicon: Lexicon, train: Lexicon | None, task: Task
    ) -> DirectionResult:
        """Evaluate one direction; `lexicon` and `train` have the query language first."""
        asked = self._asked(direction, lexicon)
        answers: dict[str, npt.NDArray[np.int64]] = {}
        for method in METHODS:
            _, answers[method] = self.space.search(
                asked.queries,
                max(self.precision_at),
                direction=direction,
                retrieval=method,
                neighbours=self.neighbours,
            )
            task.advance()
        pair_ranks = self._pair_ranks(direction, asked, answers)
        task.advance()
        ranks = {method: _best_of_each(asked, pair_ranks[method]) for method in METHODS}
        predictions = self._predictions(direction, asked, answers, ranks, lexicon, train)

        def group(belongs: Callable[[Prediction], bool]) -> Group:
            chosen = np.array([belongs(p) for p in predictions], bool)
            return Group(
                int(chosen.sum()), {m: mean_metrics(ranks[m][chosen], self.precision_at) for m in METHODS}
            )

        bands = {band: group(lambda p, band=band: p.band == band) for band in BANDS}  # type: ignore[misc]
        total = len(lexicon.translations())
        return DirectionResult(
            metrics={m: mean_metrics(ranks[m], self.precision_at) for m in METHODS},
            intervals=self._intervals(ranks),
            covered=len(asked.words),
            total=total,
            pairs=len(set(lexicon.pairs)),
            pairs_covered=len(asked.golds),
            oov_as_error={m: mean_metrics(ranks[m], self.precision_at, total) for m in METHODS},
            per_pair={
                m: mean_metrics(np.repeat(pair_ranks[m], asked.repeats), self.precision_at) for m in METHODS
            },
            leak_free=group(lambda p: not p.leaked) if train is not None else None,
            bands={band: found for band, found in bands.items() if found.covered},
            identical=group(lambda p: p.identical),
            different=group(lambda p: not p.identical),
            predictions=predictions,
        )

    def _asked(self, direction: Direction, lexicon: Lexicon) -> _Asked:
        query_side, key_side = self.space.sides(direction)
        index = lexicon.index(query_side.key_to_index, key_side.key_to_index)
        pairs, repeats = np.unique(index, axis=0, return_counts=True)
        queries, query_of_pair = np.unique(pairs[:, 0], return_inverse=True)
        words = [query_side.index_to_key[row] for row in queries]
        return _Asked(words, queries, query_of_pair.reshape(-1), pairs[:, 1], repeats)

    def _pair_ranks(
        self, direction: Direction, asked: _Asked, answers: dict[str, npt.NDArray[np.int64]]
    ) -> dict[str, Ranks]:
        """The rank of each gold among all words of the key language.

        Within the answers shown it is the place there, so that figures and answers cannot disagree;
        beyond, it is counted.
        """
        query_side, key_side = self.space.sides(direction)
        r_source, r_target = self.space.neighbourhoods(self.neighbours)
        counted = ranks_of(
            np.asarray(query_side.vectors[asked.queries[asked.query_of_pair]]),
            key_side.vectors,
            asked.golds,
            [None, r_target if direction == "forward" else r_source],
            device=self.space.device,
        )
        result: dict[str, Ranks] = {}
        for method, beyond in zip(METHODS, counted, strict=True):
            shown = answers[method][asked.query_of_pair] == asked.golds[:, None]
            depth = shown.shape[1]
            result[method] = np.where(
                shown.any(axis=1), shown.argmax(axis=1) + 1, np.maximum(beyond, depth + 1)
            )
        return result

    def _intervals(self, ranks: dict[Retrieval, Ranks]) -> dict[str, dict[str, tuple[float, float]]]:
        if not self.bootstrap or not len(ranks["nn"]):
            return {}
        return {
            method: bootstrap_intervals(
                ranks[method], self.precision_at, replicates=self.bootstrap, seed=self.seed
            )
            for method in METHODS
        }

    def _predictions(
        self,
        direction: Direction,
        asked: _Asked,
        answers: dict[str, npt.NDArray[np.int64]],
        ranks: dict[Retrieval, Ranks],
        lexicon: Lexicon,
        train: Lexicon | None,
    ) -> tuple[Prediction, ...]:
        _, key_side = self.space.sides(direction)
        leaked = {source for source, _ in lexicon.leaks(train).pairs} if train is not None else set()
        golds: list[list[str]] = [[] for _ in asked.words]
        for query, row in zip(asked.query_of_pair, asked.golds, strict=True):
            golds[query].append(key_side.index_to_key[row])
        return tuple(
            Prediction(
                source=word,
                golds=tuple(golds[number]),
                band=band_of(int(asked.queries[number])),
                identical=word in golds[number],
                leaked=word in leaked,
                answers={m: tuple(key_side.index_to_key[row] for row in answers[m][number]) for m in METHODS},
                ranks={m: int(ranks[m][number]) for m in METHODS},
            )
            for number, word in enumerate(asked.words)
        )


def _best_of_each(asked: _Asked, pair_ranks: Ranks) -> Ranks:
    """The rank of each query's best gold."""
    best = np.full(len(asked.words), np.iinfo(np.int64).max)
    np.minimum.at(best, asked.query_of_pair, pair_ranks)
    return best
