"""All alignment methods: those of this package, and those that other distributions register.

A method of this package is one module and one line in the table below. Another distribution registers an
aligner in its pyproject.toml:

    [project.entry-points."bilex.aligners"]
    mine = "my_package.mine:Mine"
"""

from __future__ import annotations

import importlib
import warnings
from importlib.metadata import EntryPoint, entry_points

from bilex.aligners.base import Aligner
from bilex.core.errors import BilexError, nearest_name

GROUP = "bilex.aligners"
_OWN = {
    "advanced": "advanced:AdvancedMapping",
    "c1": "c1:C1",
    "fipp": "fipp:FIPP",
    "lnmap": "lnmap:LNMap",
    "procrustes": "procrustes:Procrustes",
    "rcsls": "rcsls:RCSLS",
    "vecmap-identical": "vecmap:VecMapIdentical",
    "vecmap-semi": "vecmap:VecMapSemi",
    "vecmap-supervised": "vecmap:VecMapSupervised",
    "vecmap-unsupervised": "vecmap:VecMapUnsupervised",
}


def method_names() -> list[str]:
    """The names of all methods, none of which is imported for that."""
    return sorted({*_OWN, *_registered(), *_imported()})


def get_method(name: str) -> type[Aligner]:
    """The method called `name`; no other method is imported.

    Raises:
        BilexError: There is none, or the distribution that has it is broken.
    """
    if name in _OWN:
        module, _, cls = _OWN[name].partition(":")
        found: type[Aligner] = getattr(importlib.import_module(f"bilex.aligners.{module}"), cls)
        return found
    if name in (registered := _registered()):
        entry = registered[name]
        try:
            found = entry.load()
        except Exception as error:
            home = entry.dist.name if entry.dist is not None else entry.value
            raise BilexError(
                f"the method '{name}' of {home} cannot be imported ({error}); install {home} again."
            ) from error
        return found
    if name in (imported := _imported()):
        return imported[name]
    known = method_names()
    raise BilexError(
        f"method '{name}' is not known; choose one of {', '.join(known)}.{nearest_name(name, known)}"
    )


def methods() -> dict[str, type[Aligner]]:
    """Every method by name; a broken one of another distribution is left out with a warning."""
    found = {}
    for name in method_names():
        try:
            found[name] = get_method(name)
        except BilexError as error:
            warnings.warn(str(error), stacklevel=2)
    return found


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _imported() -> dict[str, type[Aligner]]:
    """Subclasses with a name of their own, such as one defined in a notebook."""
    named: dict[str, type[Aligner]] = {}
    waiting: list[type[Aligner]] = Aligner.__subclasses__()
    while waiting:
        cls = waiting.pop()
        waiting.extend(cls.__subclasses__())
        if "name" in vars(cls):
            named[cls.name] = cls
    return named
