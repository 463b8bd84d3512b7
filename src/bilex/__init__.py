"""bilex: word translation for every language pair.

The public names are few: `WordVectors`, `Lexicon`, `Translator`, `ManyLanguages`, `evaluate`,
`get_method` and `BilexError`. They are loaded when first used, so that `import bilex` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.named_later import names_from

if TYPE_CHECKING:
    from bilex.aligners import get_method, methods
    from bilex.errors import BilexError
    from bilex.evaluation import evaluate
    from bilex.lexicon import Lexicon
    from bilex.many import ManyLanguages
    from bilex.translator import Translator
    from bilex.vectors import WordVectors

__version__ = "0.1.0"
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

__getattr__ = names_from(
    __name__,
    {
        "BilexError": "bilex.errors",
        "Lexicon": "bilex.lexicon",
        "ManyLanguages": "bilex.many",
        "Translator": "bilex.translator",
        "WordVectors": "bilex.vectors",
        "evaluate": "bilex.evaluation",
        "get_method": "bilex.aligners",
        "methods": "bilex.aligners",
    },
)
