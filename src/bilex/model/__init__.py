"""Models: languages in one space, answers with confidences, dictionaries, saving and loading.

Importing this package is light: its modules are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.model.answers import Answer, Translation
    from bilex.model.lexicon import InducedLexicon
    from bilex.model.translator import Translator

__all__ = ["Answer", "InducedLexicon", "Translation", "Translator"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Answer": "bilex.model.answers",
        "InducedLexicon": "bilex.model.lexicon",
        "Translation": "bilex.model.answers",
        "Translator": "bilex.model.translator",
    },
)
