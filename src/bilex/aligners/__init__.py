"""Methods that bring two languages' vectors into one space, one module per method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.aligners.maps import Map
    from bilex.aligners.registry import get_method, method_names, methods

__all__ = ["Aligner", "Map", "get_method", "method_names", "methods"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Aligner": "bilex.aligners.base",
        "Map": "bilex.aligners.maps",
        "get_method": "bilex.aligners.registry",
        "method_names": "bilex.aligners.registry",
        "methods": "bilex.aligners.registry",
    },
)
