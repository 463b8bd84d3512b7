"""A whole dictionary by lemmas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.lexicon.lemmas import lemmatiser
from bilex.model.induction import (
    InducedLexicon,
    Overrides,
    answers_of,
    check_overrides,
    may_answer,
    queries_of,
)
from bilex.model.lemma_lexicon import (
    VOTING_ANSWERS,
    Lemmas,
    Votes,
    lemma_entries,
    mutual_pairs,
    votes_of,
)
from bilex.model.space import Direction

if TYPE_CHECKING:
    from bilex.model.translator import Translator


def induce_by_lemma(
    translator: Translator,
    overrides: Overrides,
    languages: tuple[str, str] | None = None,
    progress: Progress = SILENT,
) -> InducedLexicon:
    """Every lemma with its best translations: its forms' votes joined, senses kept apart.

    Args:
        translator: The model.
        overrides: What to export; `k` counts translations a lemma.
        languages: Codes of the two languages; None for those that the model names.
        progress: Shows how far the work is.

    Raises:
        BilexError: simplemma is not there or does not know a language, or an option makes no sense.
    """
    check_overrides(translator, overrides)
    if overrides.direction == "both":
        raise BilexError("a dictionary by lemmas has one direction; choose forward or backward.")
    direction: Direction = overrides.direction
    sides = translator.space.source, translator.space.target
    codes = languages or translator.provenance.languages
    with progress.task("Finding lemmas", 2) as task:
        lemmas = []
        for words, code in zip(sides, codes, strict=True):
            lemmas.append(Lemmas.of(words, lemmatiser(code)))
            task.advance()
    query_side, key_side = lemmas if direction == "forward" else lemmas[::-1]
    pairs = _votes(translator, overrides, direction, query_side, key_side, progress)
    if overrides.mutual:
        back: Direction = "backward" if direction == "forward" else "forward"
        others = _votes(translator, replace(overrides, ranks=(1, None)), back, key_side, query_side, progress)
        pairs = mutual_pairs(pairs.best(1), others.best(1))
    entries = lemma_entries(translator, direction, pairs.best(overrides.k), query_side, key_side, progress)
    kept = tuple(
        entry
        for entry in entries
        if entry.known
        or (
            (overrides.min_score is None or (entry.score or 0) >= overrides.min_score)
            and (overrides.min_confidence is None or (entry.confidence or 0) >= overrides.min_confidence)
        )
    )
    return InducedLexicon(kept, "source" if direction == "forward" else "target")


def _votes(
    translator: Translator,
    overrides: Overrides,
    direction: Direction,
    query_side: Lemmas,
    key_side: Lemmas,
    progress: Progress,
) -> Votes:
    """Who answers whom, of lemmas that have a form among the words to translate."""
    queries = queries_of(translator, overrides, direction)
    found = answers_of(translator, overrides, queries, VOTING_ANSWERS, direction, progress)
    if overrides.keep is not None:
        kept = may_answer(translator, overrides.keep, direction)[found.rows] | found.known
        found.rows[~kept] = -1
        some = (found.rows >= 0).any(axis=1)
        queries = queries[some]
        found = type(found)(*(np.asarray(part)[some] for part in vars(found).values()))
    return votes_of(queries, found, query_side, key_side)
