"""Any number of languages in one space: joined from models of two, or aligned together.

Importing this package is light: its modules are loaded when a name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilex.many.core import ManyLanguages
    from bilex.many.polyglot import Polyglot, PolyglotEntry

__all__ = ["ManyLanguages", "Polyglot", "PolyglotEntry"]

_HOMES = {"ManyLanguages": "core", "Polyglot": "polyglot", "PolyglotEntry": "polyglot"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bilex.many' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bilex.many.{_HOMES[name]}"), name)
