"""Senses: the translations of a word in groups, where they fall into groups."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from bilex.model.space import Rows
from bilex.vectors import WordVectors

# Translations of different senses are less similar to each other than this, on average.
_SAME_SENSE = 0.3


def sense_numbers(queries: Rows, answers: Rows, words: WordVectors) -> npt.NDArray[np.int64]:
    """The number of each answer's sense, from 1 in order of the answers; 0 where there is one sense only.

    Answers are joined by average linkage while the mean cosine of two groups is at least 0.3.

    Args:
        queries: What each answer answers; answers to one query stand together.
        answers: Rows of the key vocabulary.
        words: That vocabulary.
    """
    numbers = np.zeros(len(queries), np.int64)
    if not len(queries):
        return numbers
    bounds = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1], True])
    for start, end in pairwise(bounds.tolist()):
        if end - start > 1:
            numbers[start:end] = _groups(np.asarray(words.vectors[answers[start:end]], np.float64))
    return numbers


def _groups(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    distance = np.maximum(1 - (units @ units.T)[np.triu_indices(len(units), 1)], 0)
    labels = fcluster(linkage(distance, "average"), 1 - _SAME_SENSE, "distance")
    order = {label: place for place, label in enumerate(dict.fromkeys(labels.tolist()), 1)}
    if len(order) == 1:
        return np.zeros(len(labels), np.int64)
    return np.array([order[label] for label in labels.tolist()], np.int64)
