"""Words and their vectors, and nothing about two languages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from bilex.errors import BilexError

if TYPE_CHECKING:
    from bilex.vectors.fasttext import Subwords

FloatMatrix = npt.NDArray[np.float32]
Step = Literal["unit", "center"]


@dataclass(eq=False, repr=False)
class WordVectors:
    """A vocabulary with one vector a word, most frequent word first.

    The names are gensim's: `index_to_key`, `key_to_index`, `vectors`.

    Args:
        index_to_key: The words, in order of frequency; each once.
        vectors: One float32 row a word. May be a read-only memory map.
        preprocessing: The steps ("unit", "center") already applied to `vectors`, in order.
        subwords: fastText's character n-grams, which give vectors to words outside the vocabulary.
    """

    index_to_key: list[str]
    vectors: FloatMatrix
    preprocessing: tuple[Step, ...] = ()
    subwords: Subwords | None = None
    key_to_index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.index_to_key) != len(self.vectors):
            raise BilexError(
                f"{len(self.index_to_key)} words do not fit vectors of shape {self.vectors.shape}; "
                "one row a word is needed."
            )
        self.key_to_index = {word: index for index, word in enumerate(self.index_to_key)}
        if len(self.key_to_index) != len(self.index_to_key):
            raise BilexError("a word stands in the vocabulary twice; keep one vector for each word.")

    def __len__(self) -> int:
        return len(self.index_to_key)

    def __contains__(self, word: object) -> bool:
        return word in self.key_to_index

    def __getitem__(self, word: str) -> npt.NDArray[np.float32]:
        index = self.key_to_index.get(word)
        if index is not None:
            return np.asarray(self.vectors[index])
        if self.subwords is not None:
            return self.subwords.vector(word)
        raise KeyError(word)

    def __repr__(self) -> str:
        steps = "+".join(self.preprocessing) or "raw"
        return f"WordVectors({len(self)} words × {self.dim}, {steps})"

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """The row of each of `words`, all of which must be known."""
        return np.fromiter((self.key_to_index[word] for word in words), np.int64)

    def head(self, limit: int | None) -> WordVectors:
        """The `limit` most frequent words (all for None), sharing the memory of this one."""
        if limit is None or limit >= len(self):
            return self
        return WordVectors(self.index_to_key[:limit], self.vectors[:limit], self.preprocessing, self.subwords)

    def preprocessed(self, *steps: Step) -> WordVectors:
        """A copy with `steps` applied in order: "unit" (rows of length 1), "center" (mean row 0)."""
        vectors = np.array(self.vectors, dtype=np.float32)
        for step in steps:
            if step == "unit":
                vectors /= row_norms(vectors)[:, None]
            elif step == "center":
                vectors -= vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
            else:
                raise BilexError(f"preprocessing step '{step}' is not known; use unit or center.")
        return WordVectors(self.index_to_key, vectors, (*self.preprocessing, *steps), self.subwords)


def row_norms(vectors: FloatMatrix, block: int = 16384) -> npt.NDArray[np.float32]:
    """The Euclidean length of each row, summed in float64 block by block; a zero row counts as 1."""
    norms = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), block):
        rows = np.asarray(vectors[start : start + block], dtype=np.float64)
        norms[start : start + block] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    norms[norms == 0] = 1
    return norms


def lowercased_first(words: Sequence[str]) -> tuple[list[str], list[int]]:
    """Lower-case `words`; of those that become the same the first, most frequent, stays.

    Returns:
        The distinct lower-cased words and the position of each in `words`.
    """
    first: dict[str, int] = {}
    for index, word in enumerate(words):
        first.setdefault(word.lower(), index)
    return list(first), list(first.values())
