"""The workbench: review, correct, retrain and publish a dictionary in the browser (`bilex serve`).

A consumer of the other packages: no alignment algorithm lives here. What people decide is kept in one SQLite
file beside the model (`schema`, `store`, `decisions`); the rest of the package reads it, serves it
(`routes`, `server`) or hands it to a process that retrains the model (`jobs`).
"""

__version__ = "0.2.0"
