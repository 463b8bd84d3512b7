"""Methods that bring two languages' vectors into one space, one module per method."""

from bilex.aligners.base import Aligner
from bilex.aligners.maps import Map
from bilex.aligners.registry import get_method, method_names, methods

__all__ = ["Aligner", "Map", "get_method", "method_names", "methods"]
