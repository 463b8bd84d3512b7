"""Models: languages in one space, answers with confidences, dictionaries, saving and loading.

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

_MODULES = {
    "bilex.fit.calibration": ("Calibration", "calibrate"),
    "bilex.lexicon": ("Entry",),
    "bilex.model.answers": ("Answer", "Translation"),
    "bilex.model.lexicon": ("InducedLexicon",),
    "bilex.model.translator": ("Translator",),
    "bilex.model.unknown": ("OutOfVocabulary",),
}
__getattr__, __dir__ = lazy_exports(
    __name__, {name: module for module, names in _MODULES.items() for name in names}
)
