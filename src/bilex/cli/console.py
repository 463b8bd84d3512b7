"""What the user sees: tables on stdout, progress, notes and warnings on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

import bilex
from bilex.core.progress import Display
from bilex.core.tables import table
from bilex.core.text import escape_control_characters, safe_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from bilex.model import Answer

_WIDTH_IN_PIPES = 160


def show(what: RenderableType) -> None:
    """Write a table or a text to stdout; into a pipe without boxes, and wide enough that nothing is cut."""
    from rich.console import Group
    from rich.table import Table

    terminal = sys.stdout.isatty()
    width = None if terminal else _WIDTH_IN_PIPES
    console = safe_console(file=sys.stdout, width=width, soft_wrap=isinstance(what, str))
    for part in what.renderables if isinstance(what, Group) else [what]:
        if isinstance(part, Table) and not terminal:
            part.box = None
            if part.title is not None:  # a title is broken at the width of its table
                console.print(part.title, soft_wrap=True)
                part.title = None
        console.print(part)


def note(sentence: str) -> None:
    """Write a sentence to stderr, such as what was written where."""
    click.echo(escape_control_characters(sentence), err=True)


def warn(sentence: str) -> None:
    """Write a warning to stderr."""
    click.secho(escape_control_characters(f"warning: {sentence}"), fg="yellow", err=True)


def progress(steps: int | None = None, *, verbose: bool = False) -> Display:
    """Bars on a terminal, lines elsewhere."""
    return Display(steps, verbose=verbose)


def show_facts(facts: dict[str, Any], title: str) -> None:
    """Show named values as a table."""
    show(table((), [(name.replace("_", " "), _readable(value)) for name, value in facts.items()], title))


def _readable(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_readable(part)}" for key, part in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "–"
    return str(value)


def answers_table(answers: Iterable[Answer], languages: tuple[str, str], title: str | None = None) -> Table:
    """Words and their translations, one per line; a word that has no vector says where its own came from."""
    headings = ({"source": "word", "target": "translation"}.get(name, name) for name in languages)
    rows: list[list[str] | None] = []
    for answer in answers:
        origin = "composed" if answer.composed else f"from {answer.origin}"
        mark = "" if origin == "from vocabulary" else f" ({origin})"
        for place, found in enumerate(answer):
            word = f"{found.word} (composed)" if found.composed else found.word
            sure = "–" if found.confidence is None else f"{found.confidence:.0%}"
            query = "" if place else f"{answer.word}{mark}"
            rows.append([query, word, f"{found.score:.3f}", "known" if found.known else sure])
        rows.append(None)
    return table([*headings, "score", "confidence"], rows, title, left=2)


def show_confidences(translator: bilex.Translator) -> None:
    """Report how far the confidences can be trusted, one sentence per direction."""
    parts = translator.calibration.parts
    for (direction, retrieval), part in parts.items():
        if retrieval != "csls":
            continue
        one, other = translator.provenance.language_names(direction)
        off = round(100 * (part.error - part.error_by_chance))
        points = "1 point" if off == 1 else f"{off} points"
        fit = f"are off by about {points}" if off > 0 else "fit, as far as so few words show"
        learned = f"learned on {part.words} held-out seed words, where they {fit}"
        show(f"Confidences, {one} to {other}: {learned}.")
    if not parts:
        show(f"There are no confidences ({translator.calibration.note}).")
