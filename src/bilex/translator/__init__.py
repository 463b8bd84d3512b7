"""What a user keeps: a space with both directions, confidences, saving and loading.

Importing this package is light: its modules are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.named_later import names_from

if TYPE_CHECKING:
    from bilex.lexicon import Entry
    from bilex.recipe.calibration import Calibration, calibrate
    from bilex.translator.answers import Answer, Translation
    from bilex.translator.core import Translator
    from bilex.translator.induction import InducedLexicon
    from bilex.translator.unknown import OutOfVocabulary

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

__getattr__ = names_from(
    __name__,
    {
        "Answer": "bilex.translator.answers",
        "Calibration": "bilex.recipe.calibration",
        "Entry": "bilex.lexicon",
        "InducedLexicon": "bilex.translator.induction",
        "OutOfVocabulary": "bilex.translator.unknown",
        "Translation": "bilex.translator.answers",
        "Translator": "bilex.translator.core",
        "calibrate": "bilex.recipe.calibration",
    },
)
