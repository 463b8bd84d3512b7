"""`bilex benchmark`: run many setups, compare them, show them."""

from __future__ import annotations

from bilex.cli.group import subcommands

_SUMMARIES = {
    "grids": "List the ready grids, or write one out to edit.",
    "run": "Run every setup of a grid; what is finished is never repeated.",
    "merge": "Bring several results files together.",
    "tables": "Write the paper's tables with our figures beside the reported ones.",
    "figures": "Draw λ curves, t-SNE, heat map, frequency and time against accuracy.",
    "report": "Write one HTML page with all tables and figures.",
}

# \b makes click leave the lines of a paragraph as they are.
_HELP = """Run a grid of setups, and get the paper's tables and figures from it.

\b
Examples:
  bilex benchmark run quick -o quick.sqlite
  bilex benchmark report quick.sqlite -o quick.html
"""

command = subcommands("benchmark", _SUMMARIES, _HELP, package="bilex_bench.cli")
