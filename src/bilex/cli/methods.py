"""`bilex methods`: what can be chosen with --method, --preset and --set."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click

from bilex.cli.completion import complete_methods
from bilex.cli.options import examples, json_option, write_json_line


@click.command(epilog=examples("bilex methods", "bilex methods c1", "bilex methods --json"))
@click.argument("name", required=False, shell_complete=complete_methods)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the alignment methods, or the settings and presets of the method called NAME."""
    from rich.table import Table

    from bilex.aligners import get_method, methods
    from bilex.cli.console import show

    chosen = {name: get_method(name)} if name else methods()
    if as_json:
        described = {key: _described(method) for key, method in chosen.items()}
        write_json_line(described[name] if name else described, indent=2)
        return
    if not name:
        table = Table("method", "needs seeds", "what it does")
        for key, method in chosen.items():
            table.add_row(key, "yes" if method.needs_seeds else "no", method.summary)
        show(table)
        return
    method = chosen[name]
    explained = explanations(method)
    table = Table("setting", "default", "what it is", title=f"{name}: {method.summary}", title_justify="left")
    for setting, default in method.settings_fields().items():
        shown = "by preset" if default is None and method.presets else str(default)
        table.add_row(setting, shown, explained.get(setting, ""))
    show(table)
    if method.presets:
        table = Table("preset", "what it is", title="--preset", title_justify="left")
        for preset, summary in method.presets.items():
            table.add_row(preset, summary)
        show(table)
    show(f"Set one with --set NAME=VALUE, for example: --set {next(iter(method.settings_fields()))}=...")


def explanations(method: type[Any]) -> dict[str, str]:
    """What each setting of a method is, from the docstrings of its class and the classes it is made of."""
    found: dict[str, str] = {}
    for cls in reversed(method.__mro__):
        text = inspect.cleandoc(cls.__doc__ or "") if "__doc__" in vars(cls) else ""
        section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", text, re.M)
        if section is None:
            continue
        entries = re.split(r"^ {4}(?=\w+: )", section[1], flags=re.M)
        for entry in entries:
            name, colon, said = entry.partition(": ")
            if colon and name.isidentifier():
                found[name] = " ".join(said.split())
    return found


def _described(method: Any) -> dict[str, Any]:
    return {
        "summary": method.summary,
        "needs_seeds": method.needs_seeds,
        "fewest_pairs": method.fewest_pairs,
        "equal_dimensions": method.equal_dimensions,
        "metric": method.metric,
        "settings": method.settings_fields(),
        "explanations": explanations(method),
        "presets": method.presets,
    }
