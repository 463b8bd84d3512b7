"""The words of each language that take part in aligning many together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.aligners.maps import Linear, Map, Unit
from bilex.lexicon import Lexicon
from bilex.model.many.mapping import Two
from bilex.vectors import WordVectors


@dataclass(frozen=True, eq=False)
class Part:
    """The most frequent words of a language, and those of its seeds.

    Attributes:
        words: Their unit vectors, in order of frequency; narrow vectors are padded with zeros.
        dim: The dimension that the vectors have in their file.
    """

    words: WordVectors
    dim: int

    def whole_map(self, matrix: npt.NDArray[np.floating]) -> Map:
        """The map of vectors as they come from their file, from a matrix for the rows of this part."""
        return Map([Unit(), Linear(np.asarray(matrix[: self.dim])), Unit()])


def take_part(
    vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon], frequent: int
) -> dict[str, Part]:
    """The words that a joint fit looks at, by language.

    Args:
        vocabularies: The vectors of each language as they came from their files.
        seeds: Word pairs by two languages; their words take part however rare they are.
        frequent: How many of the most frequent words of each language take part.
    """
    dimension = max(words.dim for words in vocabularies.values())
    used: dict[str, set[str]] = {language: set() for language in vocabularies}
    for two, lexicon in seeds.items():
        for place, language in enumerate(two):
            used[language].update(pair[place] for pair in lexicon.pairs)
    unit = Unit()
    parts = {}
    for language, words in vocabularies.items():
        rare = {words.key_to_index[word] for word in used[language] if word in words}
        chosen = sorted({*range(min(frequent, len(words))), *rare})
        wide = np.zeros((len(chosen), dimension), np.float32)
        wide[:, : words.dim] = unit(np.asarray(words.vectors[np.array(chosen)], np.float32))
        known = WordVectors([words.index_to_key[row] for row in chosen], wide, ("unit",))
        parts[language] = Part(known, words.dim)
    return parts
