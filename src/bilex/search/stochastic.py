"""Best partners under CSLS when random masking hides some of the candidates, both ways from one product.

VecMap's self-learning asks, some hundred times, for each frequent word's best partner while most
scores are set to zero at random. Here one product of the two vocabularies serves the neighbourhood
means of CSLS, the objective and both directions; and on the CPU, where only the scores that can matter
are kept, the random mask is a hash of a score's place, computed for the few that would win.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from bilex.core.device import resolve_device, with_less_memory
from bilex.search.search import AnyRows, placed

if TYPE_CHECKING:
    from bilex.search.stochastic_cpu import CpuMatcher

_FEWEST_ROWS = 256


class Matches(NamedTuple):
    """Partners of both directions, and how similar the two sides are.

    Attributes:
        forward: For each source row its best target row, on the matcher's device.
        backward: For each target row its best source row.
        objective: The mean, over both directions, of each row's highest similarity (nothing hidden).
    """

    forward: torch.Tensor
    backward: torch.Tensor
    objective: float


class ScoreBlocks:
    """The scores x·yᵀ, as many rows at a time as memory holds, in one buffer that is used again.

    Args:
        memory: Bytes of the buffer.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._buffer = torch.empty(0, 0)

    def rooms(self, x: torch.Tensor, y: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Where to put the scores: first row of x, and a part of the buffer, in the precision of x."""
        rows = min(len(x), max(_FEWEST_ROWS, self.memory // (4 * len(y))))
        if self._buffer.shape != (rows, len(y)) or self._buffer.dtype != x.dtype:
            self._buffer = torch.empty(0)
            self._buffer = torch.empty(rows, len(y), dtype=x.dtype, device=x.device)
        for start in range(0, len(x), rows):
            yield start, self._buffer[: len(x) - start]

    def hold_all(self, x: torch.Tensor) -> bool:
        """Whether the buffer still holds the scores of every row after a pass."""
        return len(self._buffer) == len(x)


class StochasticMatcher:
    """Finds partners again and again between sets of rows, reusing its memory and what it has seen.

    What is found depends on the seed and on how many calls there were before, never on what these saw.

    Args:
        k: Neighbours in CSLS's terms.
        seed: Where the random numbers start.
        device: "auto", "cpu" or "cuda".
        memory: Bytes of scores that a GPU holds at a time; scores that do not fit are computed twice.
        calls: How many calls of another matcher are to count as made, which this one goes on from.
    """

    def __init__(
        self,
        k: int = 10,
        seed: int = 0,
        device: str | torch.device = "auto",
        memory: int = 2 << 30,
        calls: int = 0,
    ) -> None:
        self.k = k
        self.device = resolve_device(device)
        self._blocks = ScoreBlocks(memory)
        self._random = np.random.default_rng(seed)
        for _ in range(calls):
            self._keys()
        self._cpu: CpuMatcher | None = None

    def __call__(self, source: AnyRows, target: AnyRows, keep: float) -> Matches:
        """Match two sets of rows by CSLS, each score kept with probability `keep`.

        A row x that asks scores each y by x·y − r(y)/2: half of CSLS without the term r(x), which all its
        scores have in common. A score that is not kept counts as zero, so it can still win over negative
        ones. While masking is random (keep < 1), the rows are rounded to what is multiplied fastest: on a GPU
        bfloat16, on a newer CPU 8 bits with one scale a row. Either moves a cosine by about 0.0006, far less
        than randomness does. With keep = 1 all is float32.

        Args:
            source: Source rows, at least one, as a numpy array or a torch tensor.
            target: Target rows, at least one, likewise. A CPU rounds a tensor that comes again once, unless
                torch has changed it meanwhile.
            keep: From 0 to 1; with 1 nothing is random.
        """
        x, y = placed(source, self.device), placed(target, self.device)
        keys = self._keys()
        if self.device.type == "cpu":
            from bilex.search.stochastic_cpu import CpuMatcher

            self._cpu = self._cpu or CpuMatcher(self.k)
            return Matches(*self._cpu(x, y, keep, keys))
        from bilex.search.stochastic_gpu import GpuMatching

        def match(memory: int) -> Matches:
            self._blocks.memory = memory
            return Matches(*GpuMatching(x, y, self.k, keep, keys[0]).run(self._blocks))

        return with_less_memory(self._blocks.memory, 4 * _FEWEST_ROWS * len(y), match)

    def _keys(self) -> tuple[int, int]:
        """The random keys of the next call, for each direction."""
        return int(self._random.integers(2**63)), int(self._random.integers(2**63))
