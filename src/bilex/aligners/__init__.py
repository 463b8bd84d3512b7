"""Methods that bring two languages' vectors into one space, one module a method."""

from bilex.aligners import network_steps  # so that saved networks are known to Map
from bilex.aligners.base import Aligner
from bilex.aligners.maps import Map
from bilex.aligners.registry import get_method, methods

__all__ = ["Aligner", "Map", "get_method", "methods", "network_steps"]
