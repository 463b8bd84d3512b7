"""`bilex methods`: what can be chosen with --method, --preset and --set."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import bilex
from bilex.cli.console import show, table
from bilex.cli.options import METHODS, as_command, write_json_line


@as_command("bilex methods", "bilex methods c1", "bilex methods --json")
def command(name: Annotated[str | None, {"type": str, **METHODS}] = None, *, json: bool = False) -> None:
    """List the alignment methods, or the settings and presets of the method called NAME."""
    chosen = {name: bilex.get_method(name)} if name else bilex.methods()
    if json:
        described = {key: _described(method) for key, method in chosen.items()}
        write_json_line(described[name] if name else described, indent=2)
        return
    if not name:
        rows = [(key, "yes" if one.needs_seeds else "no", one.summary) for key, one in chosen.items()]
        show(table(("method", "needs seeds", "what it does"), rows))
        return
    method = chosen[name]
    said, settings = explanations(method), method.settings_fields()
    rows = [
        (key, "by preset" if default is None and method.presets else str(default), said.get(key, ""))
        for key, default in settings.items()
    ]
    show(table(("setting", "default", "what it is"), rows, f"{name}: {method.summary}"))
    if method.presets:
        show(table(("preset", "what it is"), method.presets.items(), "--preset"))
    show(f"Set one with --set NAME=VALUE, for example: --set {next(iter(settings))}=...")


def explanations(method: type[Any]) -> dict[str, str]:
    """What each setting of a method is, from the docstrings of its class and the classes it is made of."""
    found: dict[str, str] = {}
    for cls in reversed(method.__mro__):
        text = inspect.cleandoc(vars(cls).get("__doc__") or "")
        section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", text, re.M)
        for entry in re.split(r"^ {4}(?=\w+: )", section[1], flags=re.M) if section else ():
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
