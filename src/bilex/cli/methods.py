"""`bilex methods`: what can be chosen with --method and --set."""

from __future__ import annotations

from typing import Any

import click

from bilex.cli.options import examples, json_option, write_json_line


@click.command(epilog=examples("bilex methods", "bilex methods c1", "bilex methods --json"))
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the alignment methods, or the settings of the method called NAME."""
    from rich.table import Table

    from bilex.cli.console import show
    from bilex.cli.lazily import loaded_when_used

    with loaded_when_used("torch", "scipy.linalg"):  # which describing the methods does not use
        from bilex.aligners import get_method, methods

        chosen = {name: get_method(name)} if name else methods()
    if as_json:
        described = {key: _described(method) for key, method in chosen.items()}
        write_json_line(described[name] if name else described, indent=2)
        return
    if name:
        table = Table("setting", "default", title=f"{name}: {chosen[name].summary}", title_justify="left")
        for setting, default in chosen[name].settings_fields().items():
            table.add_row(setting, str(default))
    else:
        table = Table("method", "needs seeds", "what it does")
        for key, method in chosen.items():
            table.add_row(key, "yes" if method.needs_seeds else "no", method.summary)
    show(table)


def _described(method: Any) -> dict[str, Any]:
    return {
        "summary": method.summary,
        "needs_seeds": method.needs_seeds,
        "fewest_pairs": method.fewest_pairs,
        "equal_dimensions": method.equal_dimensions,
        "metric": method.metric,
        "settings": method.settings_fields(),
    }
