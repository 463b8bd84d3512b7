"""Maps from one language's vectors into the common space.

A map is a short chain of steps. Most methods need one matrix; some centre first, and LNMap is a small
network. All methods produce this class, so that saving, loading and mapping new vectors are written once.
"""

from __future__ import annotations

import operator
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
    """One stage of a map: some tensors, and a function of rows and of them.

    A subclass sets `kind`, the names of its tensors in `parts`, which become attributes, `function`, and
    whether that also takes rows on a device; or it defines `__call__` itself.
    """

    kind: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()
    function: ClassVar[Callable[..., Any]]
    on_any_device: ClassVar[bool] = False
    known: ClassVar[dict[str, type[MapStep]]] = {}

    def __init_subclass__(cls) -> None:
        MapStep.known[cls.kind] = cls

    def __init__(self, *tensors: npt.ArrayLike) -> None:
        for name, tensor in zip(self.parts, tensors, strict=True):
            setattr(self, name, np.ascontiguousarray(tensor, dtype=np.float32))

    @property
    def tensors(self) -> dict[str, Array]:
        """The tensors by name."""
        return {name: getattr(self, name) for name in self.parts}

    def __call__(self, rows: Array) -> Array:
        """Transform rows; the result may have another width."""
        result: Array = self.function(rows, *self.tensors.values())
        return result

    def on_device(self, rows: torch.Tensor) -> torch.Tensor:
        """The same for rows on a device."""
        import torch

        if not self.on_any_device:
            return torch.from_numpy(self(rows.cpu().numpy())).to(rows.device)
        result: torch.Tensor = self.function(rows, *map(rows.new_tensor, self.tensors.values()))
        return result


class Unit(MapStep):
    """Divide each row by its length; zero rows stay zero."""

    kind, function = "unit", staticmethod(unit_rows_float32)

    def on_device(self, rows: torch.Tensor) -> torch.Tensor:
        """The same on a device; rows with lengths beyond float32 go through the host."""
        norms: torch.Tensor = rows.norm(dim=1, keepdim=True)
        if bool(((norms < SHORTEST) | ~(norms < LONGEST)).any()):
            return super().on_device(rows)
        return rows / norms


class Center(MapStep):
    """Subtract the mean vector of the vocabulary that the map was learned on."""

    kind, parts, on_any_device = "center", ("mean",), True
    function = staticmethod(operator.sub)


class Linear(MapStep):
    """Multiply by a matrix from the right."""

    kind, parts, on_any_device = "linear", ("matrix",), True
    function = staticmethod(operator.matmul)
    matrix: Array


# Steps of maps that are small networks (LNMap), and of models of older versions.


def _dense(rows: Array, matrix: Array, bias: Array) -> Array:
    return rows @ matrix + bias


def _prelu(rows: Array, slope: Array) -> Array:
    return np.where(rows >= 0, rows, slope * rows)


def _mapper(rows: Array, matrix_in: Array, bias_in: Array, matrix_out: Array, bias_out: Array) -> Array:
    return unit_rows_float32(_dense(np.tanh(_dense(rows, matrix_in, bias_in)), matrix_out, bias_out))


def _encoder(rows: Array, *tensors: Array) -> Array:
    for matrix, bias, slope in (tensors[:3], tensors[3:6]):
        rows = _prelu(_dense(rows, matrix, bias), slope)
    return _dense(rows, *tensors[6:])


def _mapped_beside_own(rows: Array, *mapper: Array) -> Array:
    return np.concatenate([_mapper(rows, *mapper), unit_rows_float32(rows)], axis=1)


def _own_beside_mapped(rows: Array, *mapper: Array) -> Array:
    return np.concatenate([unit_rows_float32(rows), _mapper(rows, *mapper)], axis=1)


def _own_beside_encoders(rows: Array, *tensors: Array) -> Array:
    own, other, mapper = tensors[:8], tensors[8:16], tensors[16:]
    mapped = _mapper(_encoder(rows, *other), *mapper)
    return np.concatenate([unit_rows_float32(_encoder(rows, *own)), mapped], axis=1)


def _local(rows: Array, anchors: Array, pulls: Array, width: Array, step: Array) -> Array:
    unit = unit_rows_float32(rows)
    cosines = unit @ anchors.T
    weights = np.where(cosines < 0.25, 0, np.exp((cosines - 1) / width))
    shift = (weights @ pulls) / (1 + weights.sum(axis=1, keepdims=True))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(shift.any(axis=1)[:, None], unit_rows_float32(unit + step * shift) * lengths, rows)


_MAPPER = ("matrix_in", "bias_in", "matrix_out", "bias_out")
_LAYERS = tuple(f"{part}_{number}" for number in (1, 2) for part in ("matrix", "bias", "slope"))
_ENCODER = (*_LAYERS, "matrix_3", "bias_3")


class Dense(MapStep):
    """Multiply by a matrix from the right and add a row."""

    kind, parts, function = "dense", ("matrix", "bias"), staticmethod(_dense)


class PReLU(MapStep):
    """Multiply what is negative by a learned slope."""

    kind, parts, function = "prelu", ("slope",), staticmethod(_prelu)


class Tanh(MapStep):
    """Squash into (−1, 1)."""

    kind, function = "tanh", staticmethod(np.tanh)


class MappedBesideOwn(MapStep):
    """Twice as wide rows: first what a mapper makes of them, then themselves; both of unit length."""

    kind, parts, function = "mapped-beside-own", _MAPPER, staticmethod(_mapped_beside_own)


class OwnBesideMapped(MapStep):
    """The same in the other order; in models of older versions."""

    kind, parts, function = "own-beside-mapped", _MAPPER, staticmethod(_own_beside_mapped)


class OwnBesideEncoders(MapStep):
    """What one encoder makes of rows, then what another encoder and a mapper make of them; of unit length."""

    kind, function = "own-beside-encoders", staticmethod(_own_beside_encoders)
    parts = (*(f"{side}_{part}" for side in ("own", "other") for part in _ENCODER), *_MAPPER)


class Local(MapStep):
    """Shift unit rows by pulls of anchors near them; in models that older versions refined.

    A unit row u becomes u + step · Σ w·pull / (1 + Σ w), made unit, with w = exp((u·anchor − 1) / width);
    anchors with a cosine below 0.25 do not count. Lengths stay.
    """

    kind, parts, function = "local", ("anchors", "pulls", "width", "step"), staticmethod(_local)


class Map:
    """A chain of steps from a language's own vectors into the common space.

    Args:
        steps: What is done to a row, in order.
    """

    def __init__(self, steps: Sequence[MapStep]) -> None:
        self.steps = list(steps)

    @classmethod
    def linear(cls, matrix: npt.ArrayLike) -> Map:
        """Unit rows times a matrix, divided by their lengths again."""
        return cls([Unit(), Linear(matrix), Unit()])

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
            f"{prefix}.{number}.{part}": tensor
            for number, step in enumerate(self.steps)
            for part, tensor in step.tensors.items()
        }
        return [step.kind for step in self.steps], tensors

    @classmethod
    def from_state(cls, prefix: str, kinds: Sequence[str], tensor: Callable[[str], Any]) -> Map:
        """Rebuild a map from what `state` gave."""
        steps = []
        for number, kind in enumerate(kinds):
            step = MapStep.known.get(kind)
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
