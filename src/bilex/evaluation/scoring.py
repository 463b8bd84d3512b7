"""Scoring a space against a test dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.evaluation.result import (
    DirectionResult,
    Evaluation,
    Group,
    Prediction,
    Ranks,
    bootstrap_intervals,
    mean_metrics,
)
from bilex.lexicon import Lexicon
from bilex.lexicon.statistics import BANDS, band_of
from bilex.model.phrases import Composer, PhraseReader, missing_phrases, with_phrases
from bilex.model.space import CSLS_NEIGHBOURS, Direction, Retrieval, Rows, Space
from bilex.search import ranks_of

METHODS: tuple[Retrieval, ...] = ("nn", "csls")
ASKED, ANSWERED = "phrases", "words that only phrases translate"


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
    """Translate the words of a test dictionary in both directions, and count the right answers.

    The standard metrics are the paper's: over the distinct source words with at least one pair that has both
    words in the vectors, an answer is right if it is any of the word's golds. The result holds the other
    conventions too.

    Args:
        space: Two vocabularies in one space.
        lexicon: The test dictionary. Nothing is learned from it.
        train: The seed dictionary, for the score without leaked words.
        neighbours: The k of CSLS.
        precision_at: The n of each precision.
        bootstrap: Resamplings for the 95 % intervals; 0 for none.
        seed: Fixes the resampling.
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
    lexicon = lexicon.as_units(space.source.key_to_index, space.target.key_to_index)
    coverage = lexicon.coverage(space.source.key_to_index, space.target.key_to_index)
    phrases = missing_phrases(lexicon, space)
    wider = space
    if any(phrases.values()):
        wider, _ = with_phrases(space, phrases, compose or PhraseReader(space).vectors, neighbours)
    if not len(lexicon.index(wider.source.key_to_index, wider.target.key_to_index)):
        raise BilexError(
            f"{lexicon.name}: {coverage.sentence()}, so there is nothing to evaluate; check that it is a "
            f"dictionary of these two languages, source word first.{coverage.advice()}"
        )
    scoring = Scoring(space, neighbours, tuple(precision_at), bootstrap, seed)
    results = {}
    with progress.task("evaluate", total=2 * (len(METHODS) + 1)) as task:
        for direction in ("forward", "backward"):
            forward = direction == "forward"
            pairs = lexicon if forward else lexicon.swapped()
            seen = train if forward or train is None else train.swapped()
            result = scoring.direction(direction, pairs, seen, task)
            if wider is not space:
                result = _with_phrases(result, replace(scoring, space=wider), direction, pairs, seen, space)
            results[direction] = result
    settings = {"csls_neighbours": neighbours, "bootstrap": bootstrap, "seed": seed}
    return Evaluation(results["forward"], results["backward"], lexicon.name, settings)


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
        query_side, key_side = self.space.sides(direction)
        index = lexicon.index(query_side.key_to_index, key_side.key_to_index)
        pairs, repeats = np.unique(index, axis=0, return_counts=True)
        queries, query_of_pair = np.unique(pairs[:, 0], return_inverse=True)
        query_of_pair, golds = query_of_pair.reshape(-1), pairs[:, 1]
        answers: dict[str, Rows] = {}
        for method in METHODS:
            _, answers[method] = self.space.search(
                queries,
                max(self.precision_at),
                direction=direction,
                retrieval=method,
                neighbours=self.neighbours,
            )
            task.advance()
        pair_ranks = self._pair_ranks(direction, queries[query_of_pair], golds, query_of_pair, answers)
        task.advance()
        ranks: dict[str, Ranks] = {}
        for method in METHODS:
            ranks[method] = np.full(len(queries), np.iinfo(np.int64).max)
            np.minimum.at(ranks[method], query_of_pair, pair_ranks[method])
        gold_words: list[list[str]] = [[] for _ in queries]
        for query, row in zip(query_of_pair, golds, strict=True):
            gold_words[query].append(key_side.index_to_key[row])
        leaked = {source for source, _ in lexicon.leaks(train).pairs} if train is not None else set()
        predictions = tuple(
            Prediction(
                source=(word := query_side.index_to_key[row]),
                golds=tuple(gold_words[number]),
                band=band_of(row),
                identical=word in gold_words[number],
                leaked=word in leaked,
                answers={m: tuple(key_side.index_to_key[row] for row in answers[m][number]) for m in METHODS},
                ranks={m: int(ranks[m][number]) for m in METHODS},
            )
            for number, row in enumerate(queries.tolist())
        )

        def group(belongs: Callable[[Prediction], bool]) -> Group:
            return self.group([p for p in predictions if belongs(p)])

        bands = {band: group(lambda p, band=band: p.band == band) for band in BANDS}  # type: ignore[misc]
        total = len(lexicon.translations())
        return DirectionResult(
            metrics=group(lambda _: True).metrics,
            intervals={
                m: bootstrap_intervals(ranks[m], self.precision_at, replicates=self.bootstrap, seed=self.seed)
                for m in METHODS
                if self.bootstrap and len(queries)
            },
            covered=len(queries),
            total=total,
            pairs=len(set(lexicon.pairs)),
            pairs_covered=len(golds),
            oov_as_error={m: mean_metrics(ranks[m], self.precision_at, total) for m in METHODS},
            per_pair={m: mean_metrics(np.repeat(pair_ranks[m], repeats), self.precision_at) for m in METHODS},
            leak_free=group(lambda p: not p.leaked) if train is not None else None,
            bands={band: found for band, found in bands.items() if found.covered},
            identical=group(lambda p: p.identical),
            different=group(lambda p: not p.identical),
            predictions=predictions,
        )

    def group(self, predictions: Sequence[Prediction]) -> Group:
        """The metrics over some predictions."""
        ranks = {m: np.array([p.ranks[m] for p in predictions], np.int64) for m in METHODS}
        return Group(len(predictions), {m: mean_metrics(ranks[m], self.precision_at) for m in METHODS})

    def _pair_ranks(
        self,
        direction: Direction,
        queries: Rows,
        golds: Rows,
        query_of_pair: npt.NDArray[np.int64],
        answers: dict[str, Rows],
    ) -> dict[str, Ranks]:
        """The rank of each gold among all words of the key language.

        Within the answers it is the place there, so that metrics and answers cannot disagree; beyond, it is
        counted.
        """
        query_side, key_side = self.space.sides(direction)
        r_source, r_target = self.space.neighbourhoods(self.neighbours)
        counted = ranks_of(
            np.asarray(query_side.vectors[queries]),
            key_side.vectors,
            golds,
            [None, r_target if direction == "forward" else r_source],
            device=self.space.device,
        )
        result: dict[str, Ranks] = {}
        for method, beyond in zip(METHODS, counted, strict=True):
            shown = answers[method][query_of_pair] == golds[:, None]
            last = np.maximum(beyond, shown.shape[1] + 1)
            result[method] = np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, last)
        return result


def _with_phrases(
    result: DirectionResult,
    scoring: Scoring,
    direction: Direction,
    lexicon: Lexicon,
    train: Lexicon | None,
    words: Space,
) -> DirectionResult:
    """Add the metrics for composed phrases to the result of one direction.

    The candidates are all words and all phrases of the test dictionary that can be composed: `scoring` has a
    space that holds them, `words` is the one without. Counted are composed phrases as queries, and words none
    of whose translations is a word of the vocabulary.
    """
    query_side, key_side = words.sides(direction)
    wanted = {
        query
        for query, golds in lexicon.translations().items()
        if query not in query_side or not any(gold in key_side for gold in golds)
    }
    wider_queries, wider_keys = scoring.space.sides(direction)
    chosen = Lexicon([pair for pair in lexicon.pairs if pair[0] in wanted], lexicon.name)
    covered = chosen.covered(wider_queries.key_to_index, wider_keys.key_to_index)
    if not len(covered):
        return result
    with SILENT.task("phrases") as task:
        found = replace(scoring, bootstrap=0).direction(direction, covered, train, task)
    groups = {
        name: scoring.group([p for p in found.predictions if (p.source in query_side) == word])
        for name, word in ((ASKED, False), (ANSWERED, True))
    }
    present = {name: group for name, group in groups.items() if group.covered}
    return replace(result, phrases=present, phrase_predictions=found.predictions)
