"""`bilex data`: the data sets of the benchmark."""

from __future__ import annotations

from bilex.cli.group import subcommands

_SUMMARIES = {
    "list": "List the known data sets, and what of them is in a folder.",
    "get": "Fetch a data set; goes on where an earlier attempt stopped.",
    "check": "Check a data folder: what is there, coverage, leaks.",
}

# \b makes click leave the lines of a paragraph as they are.
_HELP = """List, fetch and check the data sets of the benchmark.

\b
Examples:
  bilex data list
  bilex data get xling -o data
  bilex data get fasttext-wiki --languages en,fi -o data
  bilex data check data
"""

command = subcommands("data", _SUMMARIES, _HELP, package="bilex_bench.cli")
