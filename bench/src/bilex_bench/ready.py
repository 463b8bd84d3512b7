"""The grids that come with the package."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name

# In the order in which a reader meets them.
_NAMES = (
    "quick",
    "paper-main",
    "paper-panlex",
    "paper-c2-over-others",
    "paper-lms",
    "paper-ablation",
    "paper-lambda",
    "shared-data",
    "no-seeds",
)


def ready_grids() -> dict[str, str]:
    """What each ready grid is for, in one sentence, by name."""
    return {name: str(tomllib.loads(ready_text(name))["about"]) for name in _NAMES}


def ready_text(name: str) -> str:
    """The TOML text of a ready grid."""
    if name not in _NAMES:
        raise BilexError(
            f"there is no ready grid '{name}'; there are {', '.join(_NAMES)}.{nearest_name(name, _NAMES)}"
        )
    file = resources.files("bilex_bench") / "grids" / f"{name}.toml"
    if not file.is_file():
        raise BilexError(f"{file}: the grid is missing from this installation; install bilex again.")
    return file.read_text(encoding="utf-8")


def grid_text(name: str | Path) -> tuple[str, str, Path]:
    """A grid by name or file."""
    if str(name) in _NAMES:
        return str(name), ready_text(str(name)), Path()
    path = Path(name)
    if not path.exists():
        raise BilexError(
            f"{name}: there is neither such a file nor a ready grid of that name; ready are "
            f"{', '.join(_NAMES)}.{nearest_name(str(name), _NAMES)}"
        )
    try:
        return path.stem, path.read_text(encoding="utf-8-sig"), path.parent
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BilexError(f"{name}: cannot be read ({reason}).") from error
