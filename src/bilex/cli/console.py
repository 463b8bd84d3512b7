"""What the user sees: tables on stdout, progress and warnings on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bilex.core.progress import BarProgress, LineProgress, Progress, Steps
from bilex.core.text import escape_control_characters, safe_console

_WIDTH_IN_PIPES = 160


def show(what: RenderableType) -> None:
    """Write a table or a text to stdout; into a pipe without boxes, and wide enough that nothing is cut."""
    if sys.stdout.isatty():
        safe_console(file=sys.stdout, soft_wrap=isinstance(what, str)).print(what)
        return
    console = safe_console(file=sys.stdout, width=_WIDTH_IN_PIPES, soft_wrap=isinstance(what, str))
    for part in what.renderables if isinstance(what, Group) else [what]:
        if isinstance(part, Table):
            part.box = None
            if part.title is not None:  # a title is broken at the width of its table
                console.print(part.title, soft_wrap=True)
                part.title = None
        console.print(part)


def warn(sentence: str) -> None:
    """Write a warning to stderr."""
    text = Text(escape_control_characters(f"warning: {sentence}"), style="yellow")
    safe_console(stderr=True, soft_wrap=True).print(text)


def progress(steps: int | None = None, *, verbose: bool = False) -> Steps:
    """Bars on a terminal, lines elsewhere."""
    return Steps(BarProgress() if sys.stderr.isatty() else LineProgress(), steps, verbose=verbose)


@contextmanager
def interruptible(checkpoint: str | Path | None, listener: Progress) -> Iterator[None]:
    """Where Ctrl-C ends the work inside, say what a checkpoint has kept of it."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint and Path(checkpoint).exists():
            listener.say(f"What was finished is kept in {checkpoint}; run the same command to go on from it.")
        raise
