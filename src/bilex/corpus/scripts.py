"""Scripts that are written without spaces, and cutting them into words with ICU.

ICU knows where words end in Chinese, Japanese, Thai, Lao, Khmer and Burmese by its own dictionaries. It
comes with the package `icu4py` (extra `segment`).
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass

from bilex.core.errors import BilexError

# Ranges of code points, the name that a message uses, and the language whose rules ICU is asked for.
_SCRIPTS = (
    ("Han", "zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af々"),
    ("Kana", "ja", "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"),
    ("Thai", "th", "\u0e00-\u0e7f"),
    ("Lao", "lo", "\u0e80-\u0eff"),
    ("Khmer", "km", "\u1780-\u17ff"),
    ("Myanmar", "my", "\u1000-\u109f\uaa60-\uaa7f"),
)
_ALL = "".join(ranges for _, _, ranges in _SCRIPTS)
UNSPACED = re.compile(f"[{_ALL}]+")
_BY_NAME = {name: re.compile(f"[{ranges}]") for name, _, ranges in _SCRIPTS}
_LANGUAGE_OF = {name: language for name, language, _ in _SCRIPTS}

Cutter = Callable[[str], list[str]]


def can_segment() -> bool:
    """Whether ICU is installed."""
    return importlib.util.find_spec("icu4py") is not None


def script_of(text: str) -> str | None:
    """The name of the first script without spaces in a text."""
    found = UNSPACED.search(text)
    if found is None:
        return None
    return next(name for name, pattern in _BY_NAME.items() if pattern.match(found[0]))


def icu_cutter(language: str | None) -> Cutter:
    """A function from a run of such a script to its words.

    Args:
        language: The code of the language; None to go by the script of each run.

    Raises:
        BilexError: ICU is not installed.
    """
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise BilexError("cutting text into words needs ICU; run: pip install 'bilex[segment]'") from error

    def cut(run: str) -> list[str]:
        rules = language or _LANGUAGE_OF[script_of(run) or "Han"]
        return [run[start:end] for start, end in WordBreaker(run, rules).segments()]

    return cut


@dataclass
class ScriptCount:
    """How much of a text is written without spaces, and in which script."""

    unspaced: int = 0
    letters: int = 0
    script: str | None = None

    def add(self, text: str) -> None:
        """Count a line."""
        self.letters += sum(map(len, text.split()))
        for found in UNSPACED.finditer(text):
            self.unspaced += len(found[0])
            self.script = self.script or script_of(found[0])

    @property
    def share(self) -> float:
        """The share of characters that belong to such scripts."""
        return self.unspaced / self.letters if self.letters else 0.0
