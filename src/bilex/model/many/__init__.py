"""Any number of languages in one space: joined from models of two, or aligned together.

Importing this package is light: its modules are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.model.many.core import ManyLanguages
    from bilex.model.many.polyglot import Polyglot, PolyglotEntry

__all__ = ["ManyLanguages", "Polyglot", "PolyglotEntry"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ManyLanguages": "bilex.model.many.core",
        "Polyglot": "bilex.model.many.polyglot",
        "PolyglotEntry": "bilex.model.many.polyglot",
    },
)
