"""From a line of text to tokens, spelt as the rest of bilex spells words.

ICU knows where words end in Chinese, Japanese, Thai, Lao, Khmer and Burmese, which are written without
spaces, by its own dictionaries. It comes with the package `icu4py` (extra `segment`).
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import groupby

# Articles and pronouns that lose their vowel before another word: l'eau, dell'acqua.
_ELIDING = frozenset(["fr", "it", "ca", "oc", "wa", "co", "scn", "vec", "lmo", "pms", "fur", "rm"])
_ELIDED = re.compile(
    r"(?:[cdjlmnstv]|qu|jusqu|lorsqu|puisqu|quoiqu|un|gl|ch|dov|com|(?:de|a|da|ne|su|que|be|co)ll)'(?=\w)"
)
_JOINERS = "\u200c\u200d"  # inside words of Persian and of Indian languages
_LAST_MARK = 0x20000
_POSSESSIVE = re.compile(r"'s$")
# The name that a message uses, the language whose rules ICU applies, and ranges of code points.
_SCRIPTS = (
    ("Han", "zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af々"),
    ("Kana", "ja", "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"),
    ("Thai", "th", "\u0e00-\u0e7f"),
    ("Lao", "lo", "\u0e80-\u0eff"),
    ("Khmer", "km", "\u1780-\u17ff"),
    ("Myanmar", "my", "\u1000-\u109f\uaa60-\uaa7f"),
)
_UNSPACED = re.compile(f"[{''.join(ranges for _, _, ranges in _SCRIPTS)}]+")


@dataclass(frozen=True)
class Tokeniser:
    """Cuts text into words, numbers and nothing else.

    A word is a run of letters, digits and marks; apostrophes and hyphens inside it belong to it. Text is
    brought into Unicode form NFC first. Scripts without spaces are cut by ICU where it is installed and
    left as they are where it is not.

    Args:
        language: The code of the language, which decides on apostrophes ("l'eau" are two words in French,
            "dog's" two in English) and on ICU's rules; None where it is not known.
        lowercase: Whether to lower-case words.
        tokenised: Whether the text is tokenised already, with spaces between the words.
    """

    language: str | None = None
    lowercase: bool = True
    tokenised: bool = False

    def tokens(self, text: str) -> list[str]:
        """The words of a text."""
        text = unicodedata.normalize("NFC", text)
        if self.lowercase:
            text = text.lower()
        if self.tokenised:
            return text.split()
        found = _words().findall(text.replace("’", "'").replace("_", " "))
        if "'" in text or "’" in text:
            found = [part for token in found for part in self._without_clitics(token)]
        if _UNSPACED.search(text) and can_segment():
            found = [part for token in found for part in self._segmented(token)]
        return found

    def _without_clitics(self, token: str) -> list[str]:
        if "'" not in token:
            return [token]
        if self.language in _ELIDING:
            elided = _ELIDED.match(token)
            return [elided[0], token[elided.end() :]] if elided else [token]
        if self.language == "en" and _POSSESSIVE.search(token):
            return [token[:-2], "'s"]
        return [token]

    def _segmented(self, token: str) -> list[str]:
        """A token with each run of a script without spaces cut into words, by the rules of its language."""
        from icu4py.breakers import WordBreaker

        parts: list[str] = []
        end = 0
        for found in _UNSPACED.finditer(token):
            parts.append(token[end : found.start()].strip("'-"))
            rules = self.language or _script_of(found[0])[1]
            parts += [found[0][first:last] for first, last in WordBreaker(found[0], rules).segments()]
            end = found.end()
        parts.append(token[end:].strip("'-"))
        return [part for part in parts if part]


@cache
def _words() -> re.Pattern[str]:
    """Words by Unicode's classes; Python's own lacks the marks that some scripts write vowels with.

    Runs of marks are written as ranges, which are matched faster.
    """
    marks = (code for code in range(_LAST_MARK) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    runs = groupby(enumerate(marks), lambda numbered: numbered[1] - numbered[0])
    codes = ([code for _, code in run] for _, run in runs)
    ranges = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in codes)
    inside = f"[\\w{ranges}{_JOINERS}]*"
    return re.compile(f"\\w{inside}(?:['\\-·]\\w{inside})*")


@cache
def can_segment() -> bool:
    """Whether ICU is installed."""
    return importlib.util.find_spec("icu4py") is not None


def _script_of(text: str) -> tuple[str, str]:
    """The name and the language of the script without spaces that a text begins with."""
    return next((name, language) for name, language, ranges in _SCRIPTS if re.match(f"[{ranges}]", text))


@dataclass
class ScriptCount:
    """How much of a text is written without spaces, and in which script."""

    unspaced: int = 0
    letters: int = 0
    script: str | None = None

    def add(self, text: str) -> None:
        """Count a line."""
        self.letters += sum(map(len, text.split()))
        for found in _UNSPACED.finditer(text):
            self.unspaced += len(found[0])
            self.script = self.script or _script_of(found[0])[0]

    @property
    def share(self) -> float:
        """The share of characters that belong to such scripts."""
        return self.unspaced / self.letters if self.letters else 0.0
