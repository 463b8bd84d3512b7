"""Names of a package whose modules are imported when a name is first used, so that importing it is light."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` of a package, which finds a name in its module of `homes`, and its `__dir__`."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(importlib.import_module(homes[name]), name)

    def names() -> list[str]:
        module = sys.modules[package]
        public = getattr(module, "__all__", homes)
        return sorted({*public, *(name for name in vars(module) if name.startswith("__"))})

    return find, names
