"""The benchmark's report: one self-contained HTML page."""

from bilex_bench.report.page import report_page

__all__ = ["report_page"]
