"""bilex: word translation for every language pair.

>>> from bilex import C1, C2, Lexicon, Translator, WordVectors

The public names are loaded when first used, so that `import bilex` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bilex.core.errors import fitting_libraries
from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.aligners import get_method, methods
    from bilex.aligners.c1 import C1
    from bilex.core.errors import BilexError
    from bilex.encoders.settings import C2
    from bilex.evaluation import evaluate
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.model.many import ManyLanguages
    from bilex.vectors import WordVectors

__version__ = "0.2.0"
__all__ = [
    "C1",
    "C2",
    "BilexError",
    "Lexicon",
    "ManyLanguages",
    "Translator",
    "WordVectors",
    "evaluate",
    "get_method",
    "methods",
]

_find, __dir__ = lazy_exports(
    __name__,
    {
        "C1": "bilex.aligners.c1",
        "C2": "bilex.encoders.settings",
        "BilexError": "bilex.core.errors",
        "Lexicon": "bilex.lexicon",
        "ManyLanguages": "bilex.model.many",
        "Translator": "bilex.model",
        "WordVectors": "bilex.vectors",
        "evaluate": "bilex.evaluation",
        "get_method": "bilex.aligners",
        "methods": "bilex.aligners",
    },
)


def __getattr__(name: str) -> Any:
    with fitting_libraries(f"bilex.{name}"):
        return _find(name)
