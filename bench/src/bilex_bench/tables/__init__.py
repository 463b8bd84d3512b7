"""The paper's tables from results: as Markdown, LaTeX, CSV and plain values."""

from bilex_bench.tables.build import TABLE_NAMES, build_tables
from bilex_bench.tables.table import Column, Table

__all__ = ["TABLE_NAMES", "Column", "Table", "build_tables"]
