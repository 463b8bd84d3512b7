"""The benchmark: many setups run, stored, compared and shown."""

from bilex.benchmark.results import Result
from bilex.benchmark.setups import Setup

__all__ = ["Result", "Setup"]
