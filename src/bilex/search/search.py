"""Top-k search, the mean of the k best, CSLS and ranks: the public functions of this package."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.search import plain
from bilex.vectors.stored import Matrix, StoredRows, slices

if TYPE_CHECKING:
    import torch

    from bilex.search import cpu, gpu

Floats = plain.Floats
Rows = plain.Rows
AnyRows: TypeAlias = "npt.NDArray[np.float32] | StoredRows | torch.Tensor"

_PLACED_AT_ONCE = 1 << 16
_RANK_MEMORY = 256 << 20  # bytes of scores at a time
_RANK_COPIES = 3  # the products, their penalised form, and the masks of the comparison


def top_k(
    queries: AnyRows,
    keys: AnyRows,
    k: int,
    *,
    key_penalty: Floats | None = None,
    device: str | torch.device = "auto",
) -> tuple[Floats, Rows]:
    """For each query the k keys of highest score, best first, and their scores; all keys if there are fewer.

    The score is the dot product q·y, or 2·q·y − penalty(y) when `key_penalty` is given ("half CSLS": the
    penalty is the mean similarity of y to its neighbours). Scores are those of float64 arithmetic, rounded to
    float32; ties go to the lower index. Rows are taken as they are: give unit rows for cosines.
    """
    return KeySearch(keys, key_penalty=key_penalty, device=device).top_k(queries, k)


class KeySearch:
    """Keys that are searched more than once, and prepared only once; see `top_k`."""

    def __init__(
        self,
        keys: AnyRows,
        *,
        key_penalty: Floats | None = None,
        device: str | torch.device = "auto",
    ) -> None:
        self._keys, self._penalty, self._requested = keys, key_penalty, device

    def top_k(self, queries: AnyRows, k: int) -> tuple[Floats, Rows]:
        """For each query the k keys of highest score; see `bilex.search.top_k`."""
        shapes = queries.shape, self._keys.shape
        if queries.ndim != 2 or self._keys.ndim != 2 or shapes[0][1] != shapes[1][1]:
            raise BilexError(f"vectors of shapes {shapes[0]} and {shapes[1]} cannot be compared row by row.")
        if k < 1:
            raise BilexError(f"k must be at least 1, not {k}.")
        k = min(k, len(self._keys))
        few = self._requested in ("auto", "cpu") and plain.are_few(len(queries), len(self._keys))
        if few and _no_tensor(queries) and _no_tensor(self._keys):
            return plain.top_k(array(queries), self._keys, k, self._penalty)
        if not len(queries) or not len(self._keys):
            return np.zeros((len(queries), k), np.float32), np.zeros((len(queries), k), np.int64)
        if self._device.type == "cpu":
            return self._on_cpu.top_k(array(queries), k)
        import torch

        free = torch.cuda.mem_get_info(self._device)[0] if self._device.type == "cuda" else 1 << 31
        memory = min(max(free // 8, 1 << 26), 1 << 31)
        scores, rows = self._on_gpu.top_k(placed(queries, self._device), k, memory)
        return scores.cpu().numpy(), rows.cpu().numpy()

    @cached_property
    def _device(self) -> torch.device:
        return resolve_device(self._requested)

    @cached_property
    def _on_cpu(self) -> cpu.CpuSearch:
        from bilex.search import cpu

        return cpu.CpuSearch(array(self._keys), self._penalty)

    @cached_property
    def _on_gpu(self) -> gpu.GpuSearch:
        from bilex.search import gpu

        penalty = None if self._penalty is None else placed(self._penalty, self._device)
        return gpu.GpuSearch(placed(self._keys, self._device), penalty)


def mean_of_best(
    queries: AnyRows, keys: AnyRows, k: int = 10, *, device: str | torch.device = "auto"
) -> Floats:
    """For each query the mean of its k highest dot products with the keys (CSLS's r)."""
    scores, _ = top_k(queries, keys, k, device=device)
    if not len(keys):
        return np.zeros(len(queries), np.float32)
    return np.asarray(scores.mean(axis=1, dtype=np.float64), np.float32)


def neighbourhoods(
    source: AnyRows, target: AnyRows, k: int = 10, *, device: str | torch.device = "auto"
) -> tuple[Floats, Floats]:
    """CSLS's two terms: r of every source row and r of every target row, over k neighbours."""
    return mean_of_best(source, target, k, device=device), mean_of_best(target, source, k, device=device)


def csls_top_k(
    queries: AnyRows,
    keys: AnyRows,
    k: int,
    *,
    query_mean: Floats,
    key_mean: Floats,
    device: str | torch.device = "auto",
) -> tuple[Floats, Rows]:
    """For each query the k keys of highest CSLS, 2·q·y − r(q) − r(y), best first.

    `query_mean` and `key_mean` are r of each query and of each key; the rest is as in `top_k`.
    """
    scores, rows = top_k(queries, keys, k, key_penalty=key_mean, device=device)
    return scores - np.asarray(query_mean, np.float32)[:, None], rows


def ranks_of(
    queries: Floats,
    keys: AnyRows,
    chosen: Rows,
    penalties: Sequence[Floats | None],
    *,
    device: str = "auto",
) -> Rows:
    """The rank of one chosen key per query, 1 for the best, under each of several rankings.

    A ranking without penalty goes by q·y, one with numbers (one per key) by 2·q·y − penalty(y). A key of
    equal score and lower index counts as better. Returns ranks of shape (penalties, queries). Keys are
    counted in blocks of scores, so that memory stays bounded.
    """
    import torch

    place = resolve_device(device)
    on_device = placed(keys, place)
    bias = [None if p is None else placed(p, place) for p in penalties]
    index = torch.arange(len(keys), device=place)
    ranks = np.empty((len(penalties), len(queries)), np.int64)
    step = max(1, _RANK_MEMORY // (4 * _RANK_COPIES * max(1, len(keys))))
    for block in slices(len(queries), step):
        key = torch.as_tensor(chosen[block], device=place)[:, None]
        products = placed(queries[block], place) @ on_device.T
        for number, penalty in enumerate(bias):
            scores = products if penalty is None else torch.sub(2 * products, penalty)
            own = scores.gather(1, key)
            before = (scores > own).sum(1) + ((scores == own) & (index < key)).sum(1)
            ranks[number, block] = (before + 1).cpu().numpy()
    return ranks


def array(rows: AnyRows) -> Floats:
    """Rows as a numpy array; an array is not copied."""
    return np.asarray(rows) if _no_tensor(rows) else rows.cpu().numpy()  # type: ignore[union-attr]


def placed(rows: AnyRows, device: torch.device) -> torch.Tensor:
    """Rows as a tensor on a device; on the CPU an array is not copied, so the tensor is only for reading."""
    if not _no_tensor(rows):
        return rows.to(device)  # type: ignore[union-attr]
    import torch

    if isinstance(rows, StoredRows):
        whole = torch.empty(rows.shape, device=device)
        for block in slices(len(rows), _PLACED_AT_ONCE):
            whole[block] = torch.from_numpy(rows[block])
        return whole
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(rows, np.float32)).to(device)


def _no_tensor(rows: AnyRows) -> TypeGuard[Matrix]:
    """Whether rows are an array or stored in a file; torch need not be loaded to know it."""
    return isinstance(rows, (np.ndarray, StoredRows))
