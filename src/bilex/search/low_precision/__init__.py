"""Lower precisions: 8-bit rows, their products, and how far these are off; no other package knows one.

A search stays exact with 8-bit rows: their products only propose scores, with a proven bound on the error,
and what comes near the best is scored again.
"""
