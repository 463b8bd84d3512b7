"""Two vocabularies in one space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.search import KeySearch, mean_of_best, neighbourhoods
from bilex.vectors import WordVectors
from bilex.vectors.stored import check_mapped_files, row_norms, unit_rows

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner, Metric
    from bilex.aligners.maps import Map

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Direction = Literal["forward", "backward"]
Side = Literal["source", "target"]
Retrieval = Literal["csls", "nn"]
Searcher = Callable[[Rows | Floats, int], tuple[Floats, Rows]]

T = TypeVar("T")

CSLS_NEIGHBOURS = 10
SIDES: tuple[Side, Side] = ("source", "target")
OPPOSITE: dict[Direction, Direction] = {"forward": "backward", "backward": "forward"}


def directed(pair: tuple[T, T], direction: Direction) -> tuple[T, T]:
    """Two things of source and target language, that of the query language first."""
    if direction not in OPPOSITE:
        raise BilexError(f"direction '{direction}' is not known; use forward or backward.")
    return pair if direction == "forward" else pair[::-1]


class SearchableKeys(Protocol):
    """Keys that are ready for any number of searches."""

    def top_k(self, queries: Floats, k: int) -> tuple[Floats, Rows]:
        """Scores and rows of the k best keys of each query."""


@dataclass(eq=False)
class Space:
    """The vectors of two languages in one space.

    Args:
        source: Source words with their vectors in the common space.
        target: Target words.
        metric: "cosine" (rows are made unit, unless `preprocessing` ends with "unit") or "dot".
        device: Where searches run: "auto", "cpu" or "cuda".
    """

    source: WordVectors
    target: WordVectors
    metric: Metric = "cosine"
    device: str = "auto"
    _means: dict[int, tuple[Floats, Floats]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.source.dim != self.target.dim:
            raise BilexError(
                f"vectors of dimension {self.source.dim} and {self.target.dim} are not in one space; "
                "align them first."
            )
        if not len(self.source) or not len(self.target):
            raise BilexError("a space needs at least one word in each language; one of the two is empty.")
        if self.metric not in ("cosine", "dot"):
            raise BilexError(f"metric '{self.metric}' is not known; use cosine or dot.")
        for side in SIDES if self.metric == "cosine" else ():
            words = self.words(side)
            if words.preprocessing[-1:] != ("unit",):
                steps = (*words.preprocessing, "unit")
                setattr(self, side, WordVectors(words.index_to_key, unit_rows(words.vectors), steps))

    @classmethod
    def from_aligner(cls, aligner: Aligner, source: WordVectors, target: WordVectors) -> Space:
        """Map two whole vocabularies, as they came from their files, by a fitted aligner."""
        options = aligner.metric, aligner.device
        source = map_words(source, aligner.source_map_, *options)
        return cls(source, map_words(target, aligner.target_map_, *options), *options)

    @property
    def dim(self) -> int:
        """The dimension of the common space."""
        return self.source.dim

    @property
    def places(self) -> tuple[dict[str, int], dict[str, int]]:
        """The rows of all source and all target words, by word."""
        return self.source.key_to_index, self.target.key_to_index

    def words(self, side: Side) -> WordVectors:
        """The vocabulary of one language."""
        return self.source if side == "source" else self.target

    def sides(self, direction: Direction) -> tuple[WordVectors, WordVectors]:
        """The query and the key language of a direction."""
        return directed((self.source, self.target), direction)

    def neighbourhoods(self, k: int = CSLS_NEIGHBOURS) -> tuple[Floats, Floats]:
        """CSLS's mean similarities r of every source and every target word; computed once, then kept."""
        if k not in self._means:
            self._means[k] = neighbourhoods(self.source.vectors, self.target.vectors, k, device=self.device)
        return self._means[k]

    def set_neighbourhoods(self, r_source: Floats, r_target: Floats, k: int = CSLS_NEIGHBOURS) -> None:
        """Set the mean similarities, which a saved model has."""
        if r_source.shape != (len(self.source),) or r_target.shape != (len(self.target),):
            raise BilexError(
                f"CSLS terms of shape {r_source.shape} and {r_target.shape} do not fit vocabularies of "
                f"{len(self.source)} and {len(self.target)} words; make the model again."
            )
        self._means[k] = (r_source, r_target)

    def search(
        self,
        queries: Rows | Floats,
        k: int = 10,
        *,
        direction: Direction = "forward",
        retrieval: Retrieval = "csls",
        neighbours: int = CSLS_NEIGHBOURS,
    ) -> tuple[Floats, Rows]:
        """The k best words of the other language for each query.

        Args:
            queries: Row numbers of the query language, or vectors in the common space, one per row.
            k: How many answers per query.
            direction: "forward" from source words, "backward" from target words.
            retrieval: "csls", or "nn" for the plain similarity.
            neighbours: The k of CSLS's r.

        Returns:
            Scores and rows of the key language, best first, each of shape (queries, k).
        """
        return self.searcher(direction=direction, retrieval=retrieval, neighbours=neighbours)(queries, k)

    def first_answers(self, queries: Rows, direction: Direction = "forward") -> Rows:
        """The row of the best answer to each query row, by CSLS."""
        return self.search(queries, 1, direction=direction)[1][:, 0]

    def searcher(
        self,
        *,
        direction: Direction = "forward",
        retrieval: Retrieval = "csls",
        neighbours: int = CSLS_NEIGHBOURS,
    ) -> Searcher:
        """`search` as a function of queries and k, which prepares the key vocabulary only once."""
        if retrieval not in ("csls", "nn"):
            raise BilexError(f"retrieval '{retrieval}' is not known; use csls or nn.")
        check_mapped_files()
        query_side, _ = self.sides(direction)
        r_queries, r_keys = None, None
        if retrieval == "csls":
            r_queries, r_keys = directed(self.neighbourhoods(neighbours), direction)
        keys = self._keys(direction, r_keys)

        def search(queries: Rows | Floats, k: int) -> tuple[Floats, Rows]:
            if k < 1:
                raise BilexError(f"k is {k}; at least 1 answer is needed.")
            check_mapped_files()
            by_row = queries.ndim == 1 and np.issubdtype(queries.dtype, np.integer)
            vectors = np.asarray(query_side.vectors[queries]) if by_row else self._checked(queries)
            scores, rows = keys.top_k(vectors, k)
            if r_queries is not None:
                own = r_queries[queries] if by_row else self._mean_of_best(vectors, direction, neighbours)
                scores = scores - np.asarray(own)[:, None]
            return scores, rows

        return search

    def _keys(self, direction: Direction, penalty: Floats | None) -> SearchableKeys:
        """The prepared keys of a direction."""
        return KeySearch(self.sides(direction)[1].vectors, key_penalty=penalty, device=self.device)

    def _mean_of_best(self, vectors: Floats, direction: Direction, neighbours: int) -> Floats:
        """CSLS's term of vectors that are no words of the space."""
        return mean_of_best(vectors, self.sides(direction)[1].vectors, neighbours, device=self.device)

    def scores(
        self,
        queries: Rows,
        answers: Rows,
        *,
        direction: Direction = "forward",
        retrieval: Retrieval = "csls",
    ) -> Floats:
        """The score of each query row with the answer row at the same place, as `search` would give it."""
        query_side, key_side = self.sides(direction)
        similar: Floats = np.einsum(
            "ij,ij->i", np.asarray(query_side.vectors[queries]), np.asarray(key_side.vectors[answers])
        )
        if retrieval == "nn" or not len(queries):
            return similar
        csls: Floats = 2 * similar - self.density(queries, answers, direction=direction)
        return csls

    def density(self, queries: Rows, answers: Rows, *, direction: Direction = "forward") -> Floats:
        """The sum of the CSLS terms of each query row and of the answer row at the same place."""
        r_queries, r_keys = directed(self.neighbourhoods(), direction)
        total: Floats = r_queries[queries] + r_keys[answers]
        return total

    def _checked(self, vectors: Rows | Floats) -> Floats:
        """Query vectors, made unit where the metric is the cosine."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise BilexError(
                f"query vectors of shape {vectors.shape} do not fit a space of dimension {self.dim}; "
                "map them into the space first."
            )
        return unit_rows(vectors) if self.metric == "cosine" else np.ascontiguousarray(vectors, np.float32)


def map_words(words: WordVectors, into: Map, metric: Metric = "cosine", device: str = "cpu") -> WordVectors:
    """A vocabulary, as it came from its file, in the common space; unit where the metric is the cosine."""
    gpu = None
    if device != "cpu":  # which does not import torch
        from bilex.core.device import resolve_device

        found = resolve_device(device)
        gpu = None if found.type == "cpu" else found
    if metric != "cosine":
        mapped = np.ascontiguousarray(into(words.vectors, device=gpu), dtype=np.float32)
        return WordVectors(words.index_to_key, mapped)
    if gpu is not None:
        from bilex.aligners.maps import Map, Unit

        mapped = Map([*into.steps, Unit()])(words.vectors, device=gpu)
    else:
        mapped = np.ascontiguousarray(into(words.vectors), dtype=np.float32)
        mapped /= row_norms(mapped)[:, None]
    return WordVectors(words.index_to_key, mapped, ("unit",))
