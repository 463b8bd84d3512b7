"""Any number of languages in one space: joined from models of two, or aligned together.

Importing this package is light: its modules are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.named_later import names_from

if TYPE_CHECKING:
    from bilex.many.core import ManyLanguages
    from bilex.many.polyglot import Polyglot, PolyglotEntry

__all__ = ["ManyLanguages", "Polyglot", "PolyglotEntry"]

__getattr__ = names_from(
    __name__,
    {
        "ManyLanguages": "bilex.many.core",
        "Polyglot": "bilex.many.polyglot",
        "PolyglotEntry": "bilex.many.polyglot",
    },
)
