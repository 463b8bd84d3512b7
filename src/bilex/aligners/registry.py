"""All alignment methods: those of this package, and those that other distributions register.

A distribution of its own registers an aligner in its pyproject.toml:

    [project.entry-points."bilex.aligners"]
    mine = "my_package.mine:Mine"
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import TYPE_CHECKING

from bilex.aligners.base import Aligner
from bilex.core.errors import BilexError, nearest_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bilex.aligners"


def methods() -> dict[str, type[Aligner]]:
    """Every method by name: of this package, of other distributions, and of modules already imported.

    A distribution whose method cannot be imported is left out with a warning; the name of one of bilex's
    own methods cannot be taken.
    """
    from importlib.metadata import entry_points

    package = importlib.import_module("bilex.aligners")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"bilex.aligners.{module.name}")
    for found in entry_points(group=GROUP):
        try:
            found.load()
        except Exception as error:
            warnings.warn(_not_loaded(found, error), stacklevel=2)
    return dict(sorted(_named().items()))


def get_method(name: str) -> type[Aligner]:
    """The method called `name`.

    Raises:
        BilexError: There is none; the nearest names are reported.
    """
    known = methods()
    if name in known:
        return known[name]
    raise BilexError(
        f"method '{name}' is not known; choose one of {', '.join(known)}.{nearest_name(name, known)}"
    )


def _named() -> dict[str, type[Aligner]]:
    """The subclasses that have a name of their own, by name."""
    named: dict[str, type[Aligner]] = {}
    waiting: list[type[Aligner]] = Aligner.__subclasses__()
    while waiting:
        cls = waiting.pop()
        waiting.extend(cls.__subclasses__())
        taken = named.get(vars(cls).get("name", ""))
        if "name" in vars(cls) and not (taken is not None and _is_own(taken)):
            named[cls.name] = cls
    return named


def _is_own(cls: type[Aligner]) -> bool:
    return cls.__module__.startswith("bilex.aligners.")


def _not_loaded(found: EntryPoint, error: Exception) -> str:
    home = found.dist.name if found.dist is not None else found.value
    return f"the method '{found.name}' of {home} cannot be imported ({error}); install {home} again."
