"""What a method says about itself, for tables, plots and estimates; looked up without loading torch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from bilex.cli.lazily import loaded_when_used

if TYPE_CHECKING:
    from bilex.aligners import Aligner

_PLACE_OF_UNKNOWN = 50


@functools.cache
def about(method: str) -> type[Aligner] | None:
    """The class of a method; None for one that is not installed here, whose results may still be shown."""
    with loaded_when_used("torch", "scipy.linalg"):
        from bilex.aligners import methods

        return methods().get(method)


def place_of(method: str) -> int:
    """Where a method stands in tables; lower places come first."""
    found = about(method)
    return _PLACE_OF_UNKNOWN if found is None else found.place
