"""The paper's tables from results: as Markdown, LaTeX, CSV and plain values."""

from bilex.benchmark.tables.build import TABLE_NAMES, build_tables
from bilex.benchmark.tables.table import Column, Table

__all__ = ["TABLE_NAMES", "Column", "Table", "build_tables"]
