"""Options that several commands share, and reading what they name."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.core.errors import BilexError
from bilex.core.files import check_ordinary
from bilex.core.text import encodable

if TYPE_CHECKING:
    from bilex.core.progress import Progress
    from bilex.lexicon import Coverage, Lexicon
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


class Grouped(click.Command):
    """A command whose help lists its options in groups, everyday ones first.

    Args:
        groups: The names of the parameters of each group, by its title; all others are "Advanced".
        rest: As for any command.
    """

    def __init__(self, *, groups: Mapping[str, Sequence[str]], **rest: Any) -> None:
        super().__init__(**rest)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per group."""
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        records = {option.name: option.get_help_record(ctx) for option in options}
        grouped = {name for names in self.groups.values() for name in names}
        rest = [name for name in records if name not in grouped]
        for title, names in {**self.groups, "Advanced": rest}.items():
            shown = [record for name in names if (record := records.get(name)) is not None]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)


class _RandomSeed(click.ParamType):  # type: ignore[type-arg]
    """A whole number; a file's name in its place is a slip of `--seeds`."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or a hint."""
        try:
            return int(value)
        except ValueError:
            hint = f" Did you mean --seeds {value}?" if _looks_like_file(str(value)) else ""
            self.fail(
                f"'{value}' is not a whole number; --random-seed fixes what is random.{hint}", param, ctx
            )


def _looks_like_file(text: str) -> bool:
    return Path(text).suffix != "" or Path(text).exists()


seed_option = click.option(
    "--random-seed",
    "seed",
    type=_RandomSeed(),
    default=0,
    show_default=True,
    help="Fixes what is random.",
)


def limit_option(help: str, *, default: int | None = None, least: int = 1) -> Any:
    """`--limit`."""
    return click.option(
        "--limit",
        type=click.IntRange(min=least),
        default=default,
        show_default=default is not None,
        help=help,
    )


words_limit_option = limit_option(
    "Read only so many of the most frequent words of each language.", default=200_000
)
retrieval_option = click.option(
    "--retrieval",
    type=click.Choice(["csls", "nn"]),
    default="csls",
    show_default=True,
    help="Rank by CSLS, or by plain similarity.",
)


model_only_option = click.option(
    "--model-only",
    is_flag=True,
    help="The model's own opinion: known translations do not come first, rejected ones are not left out.",
)


def direction_options(*directions: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--direction` and `--reverse`, which is short for `--direction backward`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--direction",
            type=click.Choice(directions),
            help="Whose words are translated: the source language's (forward) or the target language's "
            "(backward).  [default: forward]",
        )
        @click.option("--reverse", is_flag=True, help="Short for --direction backward.")
        @functools.wraps(function)
        def wrapped(*args: Any, direction: str | None, reverse: bool, **rest: Any) -> Any:
            if reverse and direction not in (None, "backward"):
                raise BilexError(
                    f"--reverse means --direction backward, not {direction}; give one of the two."
                )
            chosen = "backward" if reverse else direction or "forward"
            return function(*args, direction=chosen, **rest)

        return wrapped

    return decorate


def write_json_line(value: Any, *, indent: int | None = None) -> None:
    """One JSON value to stdout."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    sys.stdout.write(encodable(text) + "\n")


def check_device(device: str) -> None:
    """Fail at once, not after minutes of reading, if a device is not there."""
    if device in ("auto", "cpu"):
        return
    from bilex.core.device import resolve_device

    resolve_device(device)


def read_vectors(path: str, limit: int | None, lowercase: bool, progress: Progress) -> WordVectors:
    """Read a vector file and warn of all that was left out of it."""
    from bilex.cli.console import warn
    from bilex.vectors import WordVectors

    vectors = WordVectors.load(path, limit=limit, lowercase=lowercase, progress=progress)
    for sentence in vectors.report.sentences() if vectors.report else []:
        warn(sentence)
    return vectors


def check_coverage(lexicon: Lexicon, source: WordVectors, target: WordVectors) -> Coverage:
    """Stop if a dictionary and two vocabularies cannot belong together; warn if few pairs are covered."""
    from bilex.cli.console import warn

    lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
    coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
    advice = coverage.advice()
    if coverage.fraction < _HARDLY_ANY or (coverage.is_low and advice):
        hint = advice or " Check that the dictionary belongs to these two languages, source word first."
        raise BilexError(f"{lexicon.name}: only {coverage.sentence()}.{hint}")
    if coverage.fraction < _FEW and coverage.frequent_missing:
        warn(f"{lexicon.name}: only {coverage.sentence()}.{advice}")
    return coverage


def command_line() -> str:
    """The command line that is being run, as it can be typed again."""
    return shlex.join(["bilex", *(click.get_current_context().find_root().obj or ())])


def examples(*lines: str) -> str:
    """The end of a command's help: commands to copy."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def check_readable(*paths: str | None) -> None:
    """Name the first file that is not there or none to be read, before any work starts."""
    for path in paths:
        if path is not None and not Path(path).exists():
            raise BilexError(f"{path}: there is no such file; check the name.")
        if path is not None:
            check_ordinary(path)
