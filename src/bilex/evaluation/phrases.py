"""Accuracy on phrases that the vocabularies lack, beside the figures for words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bilex.core.progress import SILENT
from bilex.evaluation.metrics import mean_metrics
from bilex.evaluation.result import DirectionResult, Group, Prediction
from bilex.evaluation.scoring import METHODS, Scoring
from bilex.lexicon import Lexicon
from bilex.model.space import Direction, Space

ASKED, ANSWERED = "phrases", "words that only phrases translate"


def with_phrase_metrics(
    result: DirectionResult,
    scoring: Scoring,
    direction: Direction,
    lexicon: Lexicon,
    train: Lexicon | None,
    words: Space,
) -> DirectionResult:
    """The result of one direction with the figures for composed phrases added.

    The candidates are all words and all phrases of the test dictionary that can be composed. Counted are
    composed phrases as queries, and words none of whose translations is a word of the vocabulary.

    Args:
        result: The figures for words.
        scoring: The settings, with a space that holds the composed phrases too.
        direction: Whose words are queries.
        lexicon: The test dictionary, queries first.
        train: The seeds, likewise.
        words: The space without composed phrases.
    """
    query_side, key_side = words.sides(direction)
    golds = lexicon.translations()
    wanted = {
        query
        for query, found in golds.items()
        if query not in query_side or not any(g in key_side for g in found)
    }
    wider_queries, wider_keys = scoring.space.sides(direction)
    chosen = [pair for pair in lexicon.pairs if pair[0] in wanted]
    covered = Lexicon(chosen, lexicon.name).covered(wider_queries.key_to_index, wider_keys.key_to_index)
    if not len(covered):
        return result
    with SILENT.task("phrases") as task:
        found = scoring.direction(direction, covered, train, task)
    groups = {
        name: _group([p for p in found.predictions if (p.source in query_side) == word], scoring.precision_at)
        for name, word in ((ASKED, False), (ANSWERED, True))
    }
    present = {name: group for name, group in groups.items() if group.covered}
    return replace(result, phrases=present, phrase_predictions=found.predictions)


def _group(predictions: list[Prediction], precision_at: tuple[int, ...]) -> Group:
    ranks = {method: np.array([p.ranks[method] for p in predictions], np.int64) for method in METHODS}
    return Group(len(predictions), {m: mean_metrics(ranks[m], precision_at) for m in METHODS})
