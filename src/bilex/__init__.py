"""bilex: word translation for every language pair.

The public names are few: `WordVectors`, `Lexicon`, `Translator`, `ManyLanguages`, `evaluate`,
`get_method` and `BilexError`. They are loaded when first used, so that `import bilex` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilex.aligners import get_method, methods
    from bilex.errors import BilexError
    from bilex.evaluation import evaluate
    from bilex.lexicon import Lexicon
    from bilex.many import ManyLanguages
    from bilex.translator import Translator
    from bilex.vectors import WordVectors

__version__ = "0.1.0"
_HOMES = {
    "BilexError": "bilex.errors",
    "Lexicon": "bilex.lexicon",
    "ManyLanguages": "bilex.many",
    "Translator": "bilex.translator",
    "WordVectors": "bilex.vectors",
    "evaluate": "bilex.evaluation",
    "get_method": "bilex.aligners",
    "methods": "bilex.aligners",
}
__all__ = [
    "BilexError",
    "Lexicon",
    "ManyLanguages",
    "Translator",
    "WordVectors",
    "evaluate",
    "get_method",
    "methods",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bilex' has no attribute '{name}'")
