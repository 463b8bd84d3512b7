"""Methods that bring two languages' vectors into one space, one module a method."""

from bilex.aligners.base import Aligner, get_method, methods
from bilex.aligners.maps import Map

__all__ = ["Aligner", "Map", "get_method", "methods"]
