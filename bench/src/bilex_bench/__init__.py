"""The benchmark of bilex: many setups run, stored, compared and shown.

A separate distribution, which adds the commands `bilex benchmark`, `bilex data` and `bilex align-grid`.
"""

__version__ = "0.2.0"
