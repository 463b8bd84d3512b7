"""Options that several commands share, and reading what they name."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.errors import BilexError

if TYPE_CHECKING:
    from bilex.lexicon import Coverage, Lexicon
    from bilex.progress import Progress
    from bilex.vectors import WordVectors


_HARDLY_ANY = 0.02
_FEW = 0.5

device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda",
    help="Where to compute; auto takes a GPU if there is one.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout, for programs.")
retrieval_option = click.option(
    "--method",
    "retrieval",
    type=click.Choice(["csls", "nn"]),
    default="csls",
    show_default=True,
    help="Rank by CSLS, or by plain similarity.",
)


def write_json_line(value: Any, *, indent: int | None = None) -> None:
    """One JSON value to stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=indent, default=str) + "\n")


def check_device(device: str) -> None:
    """Fail at once, not after minutes of reading, if a device is not there.

    Raises:
        BilexError: The device is not known or not there.
    """
    if device in ("auto", "cpu"):
        return
    from bilex.device import resolve_device

    resolve_device(device)


def read_vectors(path: str, limit: int | None, lowercase: bool, progress: Progress) -> WordVectors:
    """Read a vector file and warn of all that was left out of it."""
    from bilex.cli.console import warn
    from bilex.vectors import WordVectors

    vectors = WordVectors.load(path, limit=limit, lowercase=lowercase, progress=progress)
    for sentence in vectors.report.sentences() if vectors.report else []:
        warn(sentence)
    return vectors


def read_lexicon(path: str, lowercase: bool) -> Lexicon:
    """Read a dictionary and warn of what was odd about it."""
    from bilex.cli.console import warn
    from bilex.lexicon import Lexicon

    lexicon = Lexicon.read(path, lowercase=lowercase)
    if lexicon.report and (lexicon.report.broken or lexicon.report.extra_columns):
        warn(lexicon.report.sentence())
    return lexicon


def check_coverage(lexicon: Lexicon, source: WordVectors, target: WordVectors) -> Coverage:
    """Stop if a dictionary and two vocabularies cannot belong together; warn if few pairs are covered.

    Raises:
        BilexError: Under 2 % of the pairs are covered, or under 20 % where reading it otherwise (as
            with source and target swapped) would clearly cover more.
    """
    from bilex.cli.console import warn

    coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
    advice = coverage.advice()
    if coverage.fraction < _HARDLY_ANY or (coverage.is_low and advice):
        hint = advice or " Check that the dictionary belongs to these two languages, source word first."
        raise BilexError(f"{lexicon.name}: only {coverage.sentence()}.{hint}")
    if coverage.fraction < _FEW:
        warn(f"{lexicon.name}: only {coverage.sentence()}.{advice}")
    return coverage


def command_line() -> str:
    """The command line that is being run, as it can be typed again."""
    return shlex.join(["bilex", *(click.get_current_context().find_root().obj or ())])


def examples(*lines: str) -> str:
    """The end of a command's help: commands to copy."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def check_readable(*paths: str | None) -> None:
    """Name the first file that is not there, before any work starts.

    Raises:
        BilexError: A path does not exist.
    """
    for path in paths:
        if path is not None and not Path(path).exists():
            raise BilexError(f"{path}: there is no such file; check the name.")
