"""The list of commands."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

import bilex
from bilex.core.errors import BilexError, nearest_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "bilex.commands"  # the entry-point group in which other distributions register commands

SUMMARIES = {
    "align": "Two vector files and a seed dictionary become a translation model.",
    "init": "Ask for languages and files, and write them to bilex.toml for 'bilex align'.",
    "translate": "Translate words with a model.",
    "lexicon": "Export a whole dictionary from a model.",
    "export": "Write the aligned vectors of a model for other programs.",
    "evaluate": "Score a model on a test dictionary.",
    "align-many": "Vectors of several languages become one model.",
    "join": "Join models of two languages into one of many.",
    "vectors": "Train word vectors from text.",
    "convert": "Convert vectors or dictionaries between formats.",
    "info": "Describe a vector file, a dictionary or a model.",
    "methods": "List the alignment methods and their settings.",
    "completion": "Let your shell complete what you type.",
    "demo": "Align the packaged sample, and show the results.",
    "prepare": "Compile and convert now what the first run would otherwise.",
}
# Commands of distributions that are installed on their own; they register in the entry-point group.
_ELSEWHERE = {
    **dict.fromkeys(("align-grid", "benchmark", "data"), "bench"),
    **dict.fromkeys(("serve", "review"), "workbench"),
}

# \b makes click leave the lines of a paragraph as they are.
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
        modules: What the full names of the commands' modules begin with.
        rest: click's own arguments of a group.
    """

    def __init__(self, *, summaries: dict[str, str], modules: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.summaries = summaries
        self.modules = modules

    def all_summaries(self) -> dict[str, str]:
        """One sentence for each command; a group that takes more commands adds theirs."""
        return self.summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order a user meets them."""
        return list(self.all_summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self.summaries:
            return None
        command: click.Command = importlib.import_module(self.modules + cmd_name.replace("-", "_")).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, written without importing any of this group's own."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.all_summaries().items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command named first, or say which name is near."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = nearest_name(args[0], self.list_commands(ctx)) or f" See '{ctx.command_path} --help'."
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


class OpenCommands(LazyCommands):
    """The commands of `bilex`: its own, and those that other distributions register as entry points.

    The entry points are read only for a command that is not bilex's own and for the list of all commands.
    """

    def all_summaries(self) -> dict[str, str]:
        """Own commands first, then those of other distributions."""
        more = {name: _load(found).get_short_help_str(limit=100) for name, found in _registered().items()}
        return self.summaries | more

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, of bilex or of another distribution."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in (registered := _registered()) | _ELSEWHERE:
            return own
        if cmd_name in registered:
            return _load(registered[cmd_name])
        folder = _ELSEWHERE[cmd_name]
        raise BilexError(
            f"'bilex {cmd_name}' is part of bilex-{folder}, which is not installed here; "
            f"run: pip install bilex-{folder} (in a copy of the repository: pip install ./{folder})."
        )


def _registered() -> dict[str, EntryPoint]:
    """The commands of other distributions by name; bilex's own names cannot be taken."""
    from importlib.metadata import entry_points

    return {found.name: found for found in entry_points(group=COMMANDS) if found.name not in SUMMARIES}


def _load(found: EntryPoint) -> click.Command:
    try:
        command: click.Command = found.load()
    except (ImportError, AttributeError) as error:
        raise BilexError(
            f"the command '{found.name}' ({found.value}) cannot be imported: {error}; "
            "install the distribution that provides it again."
        ) from error
    return command


def subcommands(name: str, summaries: dict[str, str], text: str, *, package: str) -> LazyCommands:
    """A command that is a group itself, each of whose commands has the module `PACKAGE.NAME_COMMAND`."""
    epilog = f"'bilex {name} COMMAND --help' shows examples."
    modules = f"{package}.{name}_"
    return LazyCommands(name=name, summaries=summaries, modules=modules, help=text, epilog=epilog)


commands = click.version_option(bilex.__version__, prog_name="bilex")(
    OpenCommands(
        name="bilex",
        summaries=SUMMARIES,
        modules="bilex.cli.",
        help=_HELP,
        epilog="'bilex COMMAND --help' shows examples. Start with 'bilex demo'.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
)
