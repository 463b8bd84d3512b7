"""A model and test dictionaries in either direction: what several timings take."""

from __future__ import annotations

import argparse
from pathlib import Path

from bilex.lexicon import Lexicon


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows the model, the test dictionaries and which way round they are."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("tests", nargs="+", type=Path)
    parser.add_argument("--reverse", action="store_true", help="from the target language to the source's")
    parser.add_argument("--swapped", action="store_true", help="the test dictionaries have the target first")
    return parser


def read_test(path: Path, options: argparse.Namespace) -> Lexicon:
    """A test dictionary with the language of the queries first."""
    lexicon = Lexicon.load(path)
    return lexicon.swapped() if options.reverse != options.swapped else lexicon
