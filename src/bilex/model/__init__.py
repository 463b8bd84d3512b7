"""What a user keeps: a space with both directions, confidences, saving and loading.

Importing this package is light: its modules are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.fit.calibration import Calibration, calibrate
    from bilex.lexicon import Entry
    from bilex.model.answers import Answer, Translation
    from bilex.model.lexicon import InducedLexicon
    from bilex.model.translator import Translator
    from bilex.model.unknown import OutOfVocabulary

__all__ = [
    "Answer",
    "Calibration",
    "Entry",
    "InducedLexicon",
    "OutOfVocabulary",
    "Translation",
    "Translator",
    "calibrate",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Answer": "bilex.model.answers",
        "Calibration": "bilex.fit.calibration",
        "Entry": "bilex.lexicon",
        "InducedLexicon": "bilex.model.lexicon",
        "OutOfVocabulary": "bilex.model.unknown",
        "Translation": "bilex.model.answers",
        "Translator": "bilex.model.translator",
        "calibrate": "bilex.fit.calibration",
    },
)
