"""The benchmark of bilex: many setups run, stored, compared and shown.

A distribution of its own, which adds the commands `bilex benchmark` and `bilex data` when it is installed.
"""

__version__ = "0.2.0"
