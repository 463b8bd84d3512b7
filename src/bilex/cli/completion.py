"""`bilex completion`: lets a shell complete commands, options, methods and file names."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.options import examples
from bilex.core.errors import BilexError
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_BILEX_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")
_PLACES = {
    "bash": "bilex completion bash > ~/.bilex-complete.bash && echo '. ~/.bilex-complete.bash' >> ~/.bashrc",
    "zsh": "bilex completion zsh > ~/.bilex-complete.zsh && echo '. ~/.bilex-complete.zsh' >> ~/.zshrc",
    "fish": "bilex completion fish > ~/.config/fish/completions/bilex.fish",
}


@click.command(epilog=examples(*_PLACES.values()))
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def command(shell: str | None) -> None:
    """Write a script that makes a SHELL complete what you type after 'bilex'.

    Without SHELL the one that you use is taken. Completed are commands, options and their choices,
    methods, presets and file names.
    """
    from click.shell_completion import get_completion_class

    from bilex.cli.group import commands

    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    if chosen not in _SHELLS:
        raise BilexError(f"shell '{chosen}' is not known here; name bash, zsh or fish.")
    found = get_completion_class(chosen)
    if found is None:
        raise BilexError(f"the installed click completes nothing in {chosen}; install a newer click.")
    sys.stdout.write(found(commands, {}, "bilex", VARIABLE).source() + "\n")


def complete(instruction: str) -> int:
    """Answer a shell that asks what could stand where the cursor is."""
    from click.shell_completion import shell_complete

    from bilex.cli.group import commands

    return shell_complete(commands, {}, "bilex", VARIABLE, instruction)


def complete_methods(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The methods whose names begin as what was typed."""
    from click.shell_completion import CompletionItem

    from bilex.aligners import method_names

    return [CompletionItem(name) for name in method_names() if name.startswith(typed)]


def complete_presets(context: click.Context, parameter: click.Parameter, typed: str) -> list[Any]:
    """The presets of the method that stands on the line, or of the default one."""
    from click.shell_completion import CompletionItem

    from bilex.aligners import get_method, method_names

    method = context.params.get("method") or DEFAULT_METHOD
    presets = get_method(method).presets if method in method_names() else {}
    return [CompletionItem(name, help=said) for name, said in presets.items() if name.startswith(typed)]
