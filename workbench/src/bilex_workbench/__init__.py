"""The workbench: review, correct, retrain and publish a dictionary in the browser (`bilex serve`).

A consumer of the other packages: no alignment algorithm lives here. What people decide is kept in one SQLite
file beside the model (`schema`, `store`, `decisions`). `engine` has the model open, `precompute` fills the
table, `state` holds both together. Each part of the REST interface stands in the module that does its work,
with its types; `server` puts them together, and `jobs` starts the process (`worker`) that fits or retrains.
"""

__version__ = "0.2.0"
