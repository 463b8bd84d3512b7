"""The list of commands."""

from __future__ import annotations

import importlib
from typing import Any

import click

import bilex
from bilex.errors import nearest_name

_SUMMARIES = {
    "align": "Two vector files and a seed dictionary become a translation model.",
    "translate": "Translate words with a model.",
    "lexicon": "Export a whole dictionary from a model.",
    "evaluate": "Score a model on a test dictionary.",
    "convert": "Convert vectors or dictionaries between formats.",
    "info": "Describe a vector file, a dictionary or a model.",
    "methods": "List the alignment methods and their settings.",
    "data": "List, fetch and check the data sets of the benchmark.",
    "benchmark": "Run a grid of setups; tables, figures and a report from it.",
    "completion": "Let your shell complete what you type.",
    "demo": "Align the packaged sample, and show what comes out.",
}

# \b is how click is told to leave the lines of a paragraph as they are.
_HELP = """Word translation for every language pair.

From two files of word vectors and a small dictionary to translations of every word:

\b
  bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi
  bilex translate en-fi dog house
  bilex lexicon en-fi --mutual -o dictionary.tsv
  bilex evaluate en-fi test.tsv
"""


class LazyCommands(click.Group):
    """A group that imports a command's module when it is called, not for the list of commands.

    Args:
        summaries: One sentence for each command, in the order a user meets them.
        prefix: What the names of the commands' modules begin with.
        rest: click's own arguments of a group.
    """

    def __init__(self, *, summaries: dict[str, str], prefix: str = "", **rest: Any) -> None:
        super().__init__(**rest)
        self.summaries = summaries
        self.prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order a user meets them."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self.summaries:
            return None
        command: click.Command = importlib.import_module(f"bilex.cli.{self.prefix}{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, written without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command named first, or say which name is near."""
        if args and args[0] not in self.summaries and not args[0].startswith("-"):
            hint = nearest_name(args[0], self.summaries) or f" See '{ctx.command_path} --help'."
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


def subcommands(name: str, summaries: dict[str, str], text: str) -> LazyCommands:
    """A command that is a group itself, each of whose commands has the module `NAME_COMMAND`.

    Args:
        name: Its name.
        summaries: One sentence for each of its commands.
        text: Its help.
    """
    return LazyCommands(
        name=name,
        summaries=summaries,
        prefix=f"{name}_",
        help=text,
        epilog=f"'bilex {name} COMMAND --help' shows examples.",
    )


@click.group(
    cls=LazyCommands,
    summaries=_SUMMARIES,
    help=_HELP,
    epilog="'bilex COMMAND --help' shows examples. Start with 'bilex demo'.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(bilex.__version__, prog_name="bilex")
def commands() -> None:
    """All commands of `bilex`."""
