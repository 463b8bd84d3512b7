"""What a user keeps: a space with both directions, confidences, saving and loading."""

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
