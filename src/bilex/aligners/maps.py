"""Maps from one language's vectors into the common space.

A map is a short chain of steps. Most methods need one matrix; some centre first, and LNMap is a small
network. All methods produce this class, so that saving, loading and mapping new vectors are written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.stored import LONGEST, SHORTEST, StoredRows, unit_rows_float32

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[np.float32]


class MapStep:
    """One stage of a map: some tensors, and a function of rows.

    A subclass sets `kind` and the names of its tensors in `parts`, and defines `__call__` and, for speed,
    `on_device`.
    """

    kind: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()
    _known: ClassVar[dict[str, type[MapStep]]] = {}

    def __init_subclass__(cls) -> None:
        MapStep._known[cls.kind] = cls

    def __init__(self, *tensors: npt.ArrayLike) -> None:
        for name, tensor in zip(self.parts, tensors, strict=True):
            setattr(self, name, np.ascontiguousarray(tensor, dtype=np.float32))

    def __call__(self, rows: Array) -> Array:
        """Transform rows; the result may have another width."""
        raise NotImplementedError

    def on_device(self, rows: torch.Tensor) -> torch.Tensor:
        """The same for rows on a device; by default through the host."""
        import torch

        return torch.from_numpy(self(rows.cpu().numpy())).to(rows.device)


class Unit(MapStep):
    """Divide each row by its length."""

    kind = "unit"

    def __call__(self, rows: Array) -> Array:
        """Rows of length one; zero rows stay zero."""
        return unit_rows_float32(rows)

    def on_device(self, rows: torch.Tensor) -> torch.Tensor:
        """The same on a device; rows with lengths beyond float32 go through the host."""
        norms: torch.Tensor = rows.norm(dim=1, keepdim=True)
        if bool(((norms < SHORTEST) | ~(norms < LONGEST)).any()):
            return super().on_device(rows)
        return rows / norms


class Center(MapStep):
    """Subtract the mean vector of the vocabulary that the map was learned on."""

    kind = "center"
    parts = ("mean",)
    mean: Array

    def __call__(self, rows: Array) -> Array:
        """Rows less the mean."""
        return rows - self.mean

    def on_device(self, rows: torch.Tensor) -> torch.Tensor:
        """The same on a device."""
        return rows - rows.new_tensor(self.mean)


class Linear(MapStep):
    """Multiply by a matrix from the right."""

    kind = "linear"
    parts = ("matrix",)
    matrix: Array

    def __call__(self, rows: Array) -> Array:
        """Rows times the matrix."""
        return rows @ self.matrix

    def on_device(self, rows: torch.Tensor) -> torch.Tensor:
        """The same on a device."""
        return rows @ rows.new_tensor(self.matrix)


# Steps of maps that are small networks (LNMap).


class Dense(MapStep):
    """Multiply by a matrix from the right and add a row."""

    kind = "dense"
    parts = ("matrix", "bias")
    matrix: Array
    bias: Array

    def __call__(self, rows: Array) -> Array:
        """Rows times the matrix, plus the bias."""
        return rows @ self.matrix + self.bias


class PReLU(MapStep):
    """Multiply what is negative by a learned slope."""

    kind = "prelu"
    parts = ("slope",)
    slope: Array

    def __call__(self, rows: Array) -> Array:
        """Rows with their negative numbers times the slope."""
        return np.where(rows >= 0, rows, self.slope * rows)


class Tanh(MapStep):
    """Squash into (−1, 1)."""

    kind = "tanh"

    def __call__(self, rows: Array) -> Array:
        """The hyperbolic tangent of each number."""
        return np.tanh(rows)


class _Mapper(MapStep):
    """A network with one hidden layer, tanh in between, and the unit rows before and after it."""

    kind = "mapper"
    parts: ClassVar[tuple[str, ...]] = ("matrix_in", "bias_in", "matrix_out", "bias_out")
    matrix_in: Array
    bias_in: Array
    matrix_out: Array
    bias_out: Array

    def _before_and_after(self, rows: Array) -> tuple[Array, Array]:
        hidden = np.tanh(rows @ self.matrix_in + self.bias_in)
        unit = Unit()
        return unit(rows), unit(hidden @ self.matrix_out + self.bias_out)


class MappedBesideOwn(_Mapper):
    """Rows carried over by a mapper, then the rows as they were; both of unit length."""

    kind = "mapped-beside-own"

    def __call__(self, rows: Array) -> Array:
        """Twice as wide rows: first what the mapper makes of them, then themselves."""
        own, mapped = self._before_and_after(rows)
        return np.concatenate([mapped, own], axis=1)


class OwnBesideMapped(_Mapper):
    """Rows as they were, then the rows mapped; both of unit length; in models of older versions."""

    kind = "own-beside-mapped"

    def __call__(self, rows: Array) -> Array:
        """Twice as wide rows: first themselves, then what the mapper makes of them."""
        own, mapped = self._before_and_after(rows)
        return np.concatenate([own, mapped], axis=1)


_LAYERS = tuple(f"{part}_{number}" for number in (1, 2) for part in ("matrix", "bias", "slope"))
_ENCODER = (*_LAYERS, "matrix_3", "bias_3")


class OwnBesideEncoders(_Mapper):
    """What one encoder makes of rows, then what another encoder and a mapper make of them; of unit length."""

    kind = "own-beside-encoders"
    parts = (
        *(f"own_{part}" for part in _ENCODER),
        *(f"other_{part}" for part in _ENCODER),
        *_Mapper.parts,
    )

    def __call__(self, rows: Array) -> Array:
        """First the rows in their own latent space, then in that of the other language."""
        _, mapped = self._before_and_after(self._encoded(rows, "other"))
        return np.concatenate([Unit()(self._encoded(rows, "own")), mapped], axis=1)

    def _encoded(self, rows: Array, name: str) -> Array:
        tensors = [getattr(self, f"{name}_{part}") for part in _ENCODER]
        for matrix, bias, slope in (tensors[:3], tensors[3:6]):
            rows = PReLU(slope)(Dense(matrix, bias)(rows))
        return Dense(*tensors[6:])(rows)


class Local(MapStep):
    """Shift unit rows by pulls of anchors near them; in models that older versions refined.

    A unit row u becomes u + step · Σ w·pull / (1 + Σ w), made unit, with w = exp((u·anchor − 1) / width);
    anchors with a cosine below 0.25 do not count. Lengths stay.
    """

    kind = "local"
    parts = ("anchors", "pulls", "width", "step")
    anchors: Array
    pulls: Array
    width: Array
    step: Array

    def __call__(self, rows: Array) -> Array:
        """The shifted rows."""
        unit = unit_rows_float32(rows)
        cosines = unit @ self.anchors.T
        weights = np.where(cosines < 0.25, 0, np.exp((cosines - 1) / self.width))
        shift = (weights @ self.pulls) / (1 + weights.sum(axis=1, keepdims=True))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.where(
            shift.any(axis=1)[:, None], unit_rows_float32(unit + self.step * shift) * lengths, rows
        )


class Map:
    """A chain of steps from a language's own vectors into the common space.

    Args:
        steps: What is done to a row, in order.
    """

    def __init__(self, steps: Sequence[MapStep]) -> None:
        self.steps = list(steps)

    def __call__(
        self, vectors: npt.ArrayLike, block: int = 16384, *, device: torch.device | None = None
    ) -> Array:
        """Map rows in blocks, so that memory is bounded."""
        rows = vectors if isinstance(vectors, StoredRows) else np.asarray(vectors)
        if rows.ndim != 2:
            raise BilexError(f"a map takes rows of vectors, not an array of shape {rows.shape}.")
        first = self._apply(np.asarray(rows[:block], np.float32), device)
        if len(rows) <= block:
            return first
        mapped = np.empty((len(rows), first.shape[1]), np.float32)
        mapped[:block] = first
        for start in range(block, len(rows), block):
            part = np.asarray(rows[start : start + block], np.float32)
            mapped[start : start + block] = self._apply(part, device)
        return mapped

    def _apply(self, rows: Array, device: torch.device | None) -> Array:
        if device is None:
            for step in self.steps:
                rows = step(rows)
            return rows
        import torch

        moved = torch.tensor(rows, device=device)
        for step in self.steps:
            moved = step.on_device(moved)
        result: Array = moved.cpu().numpy()
        return result

    @property
    def matrix(self) -> Array:
        """The matrix of a map that has exactly one."""
        matrices = [step.matrix for step in self.steps if isinstance(step, Linear)]
        if len(matrices) != 1:
            raise BilexError(f"this map is a chain of {[s.kind for s in self.steps]}, not one matrix.")
        return matrices[0]

    def state(self, prefix: str) -> tuple[list[str], dict[str, Array]]:
        """The kinds of the steps, and their tensors named `prefix.number.part`."""
        tensors = {
            f"{prefix}.{number}.{part}": getattr(step, part)
            for number, step in enumerate(self.steps)
            for part in step.parts
        }
        return [step.kind for step in self.steps], tensors

    @classmethod
    def from_state(cls, prefix: str, kinds: Sequence[str], tensor: Callable[[str], Any]) -> Map:
        """Rebuild a map from what `state` gave."""
        steps = []
        for number, kind in enumerate(kinds):
            step = MapStep._known.get(kind)
            if step is None:
                raise BilexError(f"map step '{kind}' is not known to this version of bilex; upgrade bilex.")
            steps.append(step(*(tensor(f"{prefix}.{number}.{part}") for part in step.parts)))
        return cls(steps)


def maps_state(source: Map, target: Map) -> tuple[dict[str, list[str]], dict[str, Array]]:
    """Both maps of an alignment, for a JSON file and a safetensors file; `maps_from_state` reads them."""
    source_kinds, source_tensors = source.state("source_map")
    target_kinds, target_tensors = target.state("target_map")
    return {"source_map": source_kinds, "target_map": target_kinds}, {**source_tensors, **target_tensors}


def maps_from_state(kinds: Mapping[str, Any], tensors: Mapping[str, Any]) -> tuple[Map, Map]:
    """The source and the target map that `maps_state` described."""
    source, target = (
        Map.from_state(side, kinds[side], tensors.__getitem__) for side in ("source_map", "target_map")
    )
    return source, target
