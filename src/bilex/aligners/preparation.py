"""What VecMap and LNMap do to vectors before they look at them: unit length, mean 0, unit length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.aligners.maps import Array, Center, Map, MapStep, Unit


class Prepared(NamedTuple):
    """Prepared rows, and the steps that would prepare a new vector the same way."""

    rows: Array
    steps: list[MapStep]


def unit_center_unit(vectors: npt.ArrayLike) -> Prepared:
    """Divide rows by their length, subtract the mean of the vocabulary, divide by the length again."""
    unit = Map([Unit()])(vectors)
    steps: list[MapStep] = [Unit(), Center(unit.mean(axis=0, dtype=np.float64)), Unit()]
    return Prepared(Map(steps[1:])(unit), steps)
