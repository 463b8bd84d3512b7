"""The list of commands."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

import bilex
from bilex.core.errors import BilexError, nearest_name

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
    "prepare": "",  # fills the caches of an image in advance; nobody else needs it, so it is not listed
}
_HOMES = {
    **{name: f"setup.{name}" for name in ("init", "completion", "prepare")},
    "join": "align_many.join",
    "export": "convert.export",
    "methods": "info.methods",
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

    `summaries` has one sentence per command, in the order a user meets them; a command without one is not
    listed. A command is `command` in a module whose name is `modules` and the command's name, or is found at
    its place in `homes`. Commands that other distributions register in the entry-point group `plugins`
    follow; they cannot replace others.
    """

    def __init__(
        self,
        *,
        summaries: Mapping[str, str],
        modules: str,
        homes: Mapping[str, str] | None = None,
        plugins: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.summaries, self.modules, self.homes, self.plugins = summaries, modules, homes or {}, plugins

    def _registered(self) -> dict[str, Any]:
        if self.plugins is None:
            return {}
        from importlib.metadata import entry_points

        found = entry_points(group=self.plugins)
        return {point.name: point for point in found if point.name not in self.summaries}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order a user meets them."""
        return [*(name for name, summary in self.summaries.items() if summary), *self._registered()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        found: click.Command | None = None
        if cmd_name in self.summaries:
            home = self.homes.get(cmd_name, f"{cmd_name.replace('-', '_')}.command")
            module, _, attribute = (self.modules + home).rpartition(".")
            found = getattr(importlib.import_module(module), attribute)
        elif point := self._registered().get(cmd_name):
            try:
                found = point.load()
            except (ImportError, AttributeError) as error:
                raise BilexError(
                    f"the command '{cmd_name}' ({point.value}) cannot be imported: {error}; "
                    "install the distribution that provides it again."
                ) from error
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, written without importing any of this group's own."""
        rows = []
        for name in self.list_commands(ctx):
            command = None if name in self.summaries else self.get_command(ctx, name)
            rows.append((name, command.get_short_help_str(100) if command else self.summaries[name]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command named first, or report which name is near."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            if self.plugins and name in _ELSEWHERE:
                folder = _ELSEWHERE[name]
                raise BilexError(
                    f"'bilex {name}' is part of bilex-{folder}, which is not installed here; "
                    f"run: pip install bilex-{folder} (in a copy of the repository: pip install ./{folder})."
                )
            hint = nearest_name(name, self.list_commands(ctx)) or f" See '{ctx.command_path} --help'."
            raise click.UsageError(f"There is no command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


commands = click.version_option(bilex.__version__, prog_name="bilex")(
    LazyCommands(
        name="bilex",
        summaries=SUMMARIES,
        modules="bilex.cli.",
        homes=_HOMES,
        plugins="bilex.commands",
        help=_HELP,
        epilog="'bilex COMMAND --help' shows examples. Start with 'bilex demo'.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
)
