"""`bilex completion`: lets a shell complete commands, options, methods and file names."""

from __future__ import annotations

import os
from typing import Annotated

import click

from bilex.cli.options import as_command
from bilex.core.errors import BilexError

VARIABLE = "_BILEX_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@as_command(
    "bilex completion bash > ~/.bilex-complete.bash && echo '. ~/.bilex-complete.bash' >> ~/.bashrc",
    "bilex completion zsh > ~/.bilex-complete.zsh && echo '. ~/.bilex-complete.zsh' >> ~/.zshrc",
    "bilex completion fish > ~/.config/fish/completions/bilex.fish",
)
def command(shell: Annotated[str | None, {"type": click.Choice(_SHELLS)}] = None) -> None:
    """Write a script that makes a SHELL complete what you type after 'bilex'.

    Without SHELL the one that you use is taken. Commands, options and their choices, methods, presets and
    file names are completed.
    """
    from click.shell_completion import get_completion_class

    from bilex.cli.group import commands

    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    if chosen not in _SHELLS:
        raise BilexError(f"shell '{chosen}' is not known here; name bash, zsh or fish.")
    found = get_completion_class(chosen)
    if found is None:
        raise BilexError(f"the installed click completes nothing in {chosen}; install a newer click.")
    click.echo(found(commands, {}, "bilex", VARIABLE).source())
