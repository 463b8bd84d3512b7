"""Methods that bring two languages' vectors into one space, one module a method."""

from bilex.aligners import network_steps  # so that saved networks are known to Map
from bilex.aligners.base import Aligner, get_method, methods
from bilex.aligners.maps import Map

__all__ = ["Aligner", "Map", "get_method", "methods", "network_steps"]
