"""Scoring a space against a test dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.evaluation.result import (
    DirectionResult,
    Evaluation,
    Group,
    MetricsByRetrieval,
    Prediction,
    Ranks,
    bootstrap_intervals,
    mean_metrics,
)
from bilex.lexicon import Lexicon
from bilex.lexicon.statistics import BANDS, band_of
from bilex.model.space import CSLS_NEIGHBOURS, Direction, Retrieval, Rows, Space, directed
from bilex.model.unknown import Composer, PhraseReader, with_phrases
from bilex.search import ranks_of

RETRIEVALS: tuple[Retrieval, ...] = ("nn", "csls")


def evaluate(
    space: Space,
    lexicon: Lexicon,
    *,
    train: Lexicon | None = None,
    neighbours: int = CSLS_NEIGHBOURS,
    precision_at: Sequence[int] = (1, 5, 10),
    bootstrap: int = 1000,
    seed: int = 0,
    compose: Composer | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Translate the words of a test dictionary in both directions, and count the correct answers.

    The standard metrics are the paper's: over the distinct source words with at least one pair that has both
    words in the vectors, an answer is correct if it is any of the word's translations. The result holds the
    other conventions too.

    Args:
        space: Two vocabularies in one space.
        lexicon: The test dictionary. Nothing is learned from it.
        train: The seed dictionary, for the score without leaked words.
        neighbours: The k of CSLS.
        precision_at: The n of each precision.
        bootstrap: Resamplings for the 95 % intervals; 0 for none.
        seed: The random seed of the resampling.
        compose: Gives vectors to phrases that the vocabularies lack, as `Translator.phrase_vectors` does;
            None composes them of their words in the space.
        progress: Receives how far the work is.

    Raises:
        BilexError: No pair of the dictionary has both words in the vectors, or a setting makes no sense.

    Examples:
        >>> evaluate(space, Lexicon.load("test.tsv")).csls.p_at_1  # doctest: +SKIP
        0.409
    """
    if not precision_at or min(precision_at) < 1 or bootstrap < 0:
        raise BilexError("precision_at needs whole numbers from 1 on, and bootstrap 0 or more resamplings.")
    lexicon = lexicon.as_units(*space.places)
    wider, _ = with_phrases(space, lexicon, compose or PhraseReader(space).vectors, neighbours)
    if not len(lexicon.index(*wider.places)):
        coverage = lexicon.coverage(*space.places)
        raise BilexError(
            f"{lexicon.name}: {coverage.sentence()}, so there is nothing to evaluate; check that it is a "
            f"dictionary of these two languages, source word first.{coverage.advice()}"
        )
    scoring = _Scoring(space, wider, neighbours, tuple(precision_at), bootstrap, seed)
    with progress.task("evaluate", total=2 * (len(RETRIEVALS) + 1)) as task:
        forward = scoring.direction("forward", lexicon, train, task)
        backward = scoring.direction("backward", lexicon.swapped(), train and train.swapped(), task)
    settings = {"csls_neighbours": neighbours, "bootstrap": bootstrap, "seed": seed}
    return Evaluation(forward, backward, lexicon.name, settings)


@dataclass(frozen=True)
class _Scoring:
    """Evaluates directions of a space; `wider` is the space with composed phrases, if there are any."""

    space: Space
    wider: Space
    neighbours: int
    precision_at: tuple[int, ...]
    bootstrap: int
    seed: int

    def direction(
        self, direction: Direction, lexicon: Lexicon, train: Lexicon | None, task: Task
    ) -> DirectionResult:
        """Evaluate one direction; `lexicon` and `train` have the query language first."""
        predictions, pair_ranks, repeats = self._predictions(self.space, direction, lexicon, train, task)
        composed = self._composed(direction, lexicon, train)
        words, total = self.space.sides(direction)[0], len(lexicon.translations())
        by_band = {band: [p for p in predictions if p.band == band] for band in BANDS}
        by_kind = {
            "phrases": [p for p in composed if p.source not in words],
            "words that only phrases translate": [p for p in composed if p.source in words],
        }
        return DirectionResult(
            metrics=self._metrics(predictions),
            intervals={
                m: bootstrap_intervals(
                    _ranks(predictions, m), self.precision_at, replicates=self.bootstrap, seed=self.seed
                )
                for m in RETRIEVALS
                if self.bootstrap and predictions
            },
            covered=len(predictions),
            total=total,
            pairs=len(set(lexicon.pairs)),
            pairs_covered=len(repeats),
            oov_as_error=self._metrics(predictions, total),
            per_pair={
                m: mean_metrics(np.repeat(pair_ranks[m], repeats), self.precision_at) for m in RETRIEVALS
            },
            leak_free=None if train is None else self._group(p for p in predictions if not p.leaked),
            bands={band: self._group(found) for band, found in by_band.items() if found},
            identical=self._group(p for p in predictions if p.identical),
            different=self._group(p for p in predictions if not p.identical),
            predictions=predictions,
            phrases={kind: self._group(found) for kind, found in by_kind.items() if found},
            phrase_predictions=composed,
        )

    def _metrics(
        self, predictions: Sequence[Prediction], denominator: int | None = None
    ) -> MetricsByRetrieval:
        return {m: mean_metrics(_ranks(predictions, m), self.precision_at, denominator) for m in RETRIEVALS}

    def _group(self, predictions: Iterable[Prediction]) -> Group:
        chosen = list(predictions)
        return Group(len(chosen), self._metrics(chosen))

    def _predictions(
        self, space: Space, direction: Direction, lexicon: Lexicon, train: Lexicon | None, task: Task
    ) -> tuple[tuple[Prediction, ...], dict[str, Ranks], npt.NDArray[np.int64]]:
        """The answers to all covered words; for each distinct pair its rank, and how often it is listed.

        The rank of a correct translation within the answers is its place there, so that metrics and answers
        cannot disagree; beyond, it is counted among all words.
        """
        query_side, key_side = space.sides(direction)
        index = lexicon.index(*directed(space.places, direction))
        pairs, repeats = np.unique(index, axis=0, return_counts=True)
        queries, query_of_pair = np.unique(pairs[:, 0], return_inverse=True)
        query_of_pair, correct = query_of_pair.reshape(-1), pairs[:, 1]
        penalties = [None, directed(space.neighbourhoods(self.neighbours), direction)[1]]
        vectors = np.asarray(query_side.vectors[queries[query_of_pair]])
        counted = ranks_of(vectors, key_side.vectors, correct, penalties, device=space.device)
        task.advance()
        answers: dict[str, Rows] = {}
        pair_ranks: dict[str, Ranks] = {}
        ranks: dict[str, Ranks] = {}
        for retrieval, beyond in zip(RETRIEVALS, counted, strict=True):
            _, answers[retrieval] = space.search(
                queries,
                max(self.precision_at),
                direction=direction,
                retrieval=retrieval,
                neighbours=self.neighbours,
            )
            shown = answers[retrieval][query_of_pair] == correct[:, None]
            last = np.maximum(beyond, shown.shape[1] + 1)
            pair_ranks[retrieval] = np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, last)
            ranks[retrieval] = np.full(len(queries), np.iinfo(np.int64).max)
            np.minimum.at(ranks[retrieval], query_of_pair, pair_ranks[retrieval])
            task.advance()
        words = key_side.index_to_key
        translations: list[list[str]] = [[] for _ in queries]
        for query, row in zip(query_of_pair, correct, strict=True):
            translations[query].append(words[row])
        leaked = {source for source, _ in lexicon.leaks(train).pairs} if train is not None else set()
        predictions = tuple(
            Prediction(
                source=(word := query_side.index_to_key[row]),
                translations=tuple(translations[number]),
                band=band_of(row),
                identical=word in translations[number],
                leaked=word in leaked,
                answers={m: tuple(words[row] for row in answers[m][number]) for m in RETRIEVALS},
                ranks={m: int(ranks[m][number]) for m in RETRIEVALS},
            )
            for number, row in enumerate(queries.tolist())
        )
        return predictions, pair_ranks, repeats

    def _composed(
        self, direction: Direction, lexicon: Lexicon, train: Lexicon | None
    ) -> tuple[Prediction, ...]:
        """The answers that need composed phrases, which the vocabularies lack.

        The candidates are all words and all phrases of the test dictionary that can be composed. Counted are
        composed phrases as queries, and words none of whose translations is a word of the vocabulary.
        """
        query_side, key_side = self.space.sides(direction)
        wanted = {
            query
            for query, translations in lexicon.translations().items()
            if query not in query_side or not any(word in key_side for word in translations)
        }
        chosen = Lexicon([pair for pair in lexicon.pairs if pair[0] in wanted])
        if self.wider is self.space or not len(chosen.index(*directed(self.wider.places, direction))):
            return ()
        return self._predictions(self.wider, direction, chosen, train, SILENT)[0]


def _ranks(predictions: Sequence[Prediction], retrieval: str) -> Ranks:
    return np.array([p.ranks[retrieval] for p in predictions], np.int64)
