"""`bilex.toml`: the options of `bilex align` for a project, so that it can be repeated and shared."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from bilex.cli.options import Grouped
from bilex.core.errors import BilexError, nearest_name

FILE, TABLE = "bilex.toml", "align"
_PATHS = ("source_vectors", "target_vectors", "seeds", "corrections", "rejected", "output", "checkpoint")

config_option = click.option(
    "--config",
    metavar="FILE",
    expose_value=False,
    help=f"Read options from this project file; those of the command line win.  [default: {FILE} in this "
    "folder, where no vectors are named]",
)


class ProjectCommand(Grouped):
    """A command that takes options from a project file where the command line leaves them out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the project file that --config names; without vectors, the one in this folder."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        path = given.get("config")
        if not isinstance(path, str) and not isinstance(given.get("source_vectors"), str):
            path = FILE if Path(FILE).is_file() else None
        if isinstance(path, str):
            ctx.default_map = read_project(Path(path), self.get_params(ctx))
        return super().parse_args(ctx, args)


def read_project(path: Path, params: list[click.Parameter]) -> dict[str, Any]:
    """The options of a project file by parameter, with paths relative to the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}); check the name.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BilexError(f"{path}: is not valid TOML ({error}); correct it, or run 'bilex init'.") from error
    options = content.get(TABLE)
    if not isinstance(options, dict):
        raise BilexError(f"{path}: has no table [{TABLE}]; 'bilex init' writes an example.")
    known = {_key(param): param for param in params}
    found: dict[str, Any] = {}
    for key, value in options.items():
        param = known.get(key)
        if param is None or param.name is None:
            raise BilexError(f"{path}: [{TABLE}] has no option '{key}'.{nearest_name(key, known)}")
        several = value if isinstance(value, list) else [value]
        if param.name in _PATHS:
            several = [str(path.parent / str(one)) for one in several]
        found[param.name] = several if getattr(param, "multiple", False) else several[0]
    return found


def _key(param: click.Parameter) -> str:
    """The key of a parameter: the long name of its option."""
    longest = max(param.opts, key=len) if isinstance(param, click.Option) else param.name or ""
    return longest.lstrip("-").replace("-", "_")
