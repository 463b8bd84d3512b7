"""Kinds of entries: which words are worth a lexicographer's question, and which forms share a headword.

Function words come from the lists of stopwords-iso, checked against the candidates' own list; names from the
capital letters of simplemma's tables, extended to words with similar vectors; the rest from spelling.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.lexicon.lemmas import lemmatiser
from bilex.model.lexicon import Lemmas
from bilex.model.space import Floats, Rows, Space

Kind = Literal["content", "function", "name", "number", "abbreviation", "foreign", "inflected", "phrase"]
KINDS: tuple[str, ...] = get_args(Kind)
_NOUNS_HAVE_CAPITALS = ("de", "lb")
_VOWELS = frozenset("aeiouyáàâäãåæéèêëíìîïóòôöõøœúùûüýаеёиоуыэюяіїєαεηιουωάέήίόύώ")
_SPELT = {"LATIN": True, "CYRILLIC": True, "GREEK": True}  # scripts in which a word has a vowel
_SAMPLE = 20_000
_RIDGE = 0.05
# How far a vector must lie on the side of names or function words, where -1 and 1 are the two means.
_NAME, _SURELY_NAME, _FUNCTION = 0.2, 0.6, 0.15
_LISTED = 5_000  # the lists of function words are short
_SHARE_OF_CANDIDATES = 0.3
_SHORTEST_LIST, _FREQUENT, _SHORT = 20, 150, 4
_WORDS_BETWEEN = 200  # that are lemmatised before people who ask go first
Lookup = Callable[[str], bool]


class Kinds:
    """What kind each source word of a model is."""

    def __init__(
        self,
        space: Space,
        languages: tuple[str | None, str | None],
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._space = space
        self._codes = languages
        sides = (space.source, space.target)
        self.lemmas = [_lemmas(words, code, give_way) for words, code in zip(sides, languages, strict=True)]
        self._stop = [stop_words(code) for code in languages]
        self._known = [_known_words(code) for code in languages]
        self._script = _usual_script(space.source.index_to_key[:2000])
        self._cased = [_capitalised(code) for code in languages]
        self._names = self._direction(
            [
                None if cased is None or known is None else _both(known, cased)
                for known, cased in zip(self._known, self._cased, strict=True)
            ],
        )
        self._functions = self._direction(
            [
                None if known is None or len(stop) < _SHORTEST_LIST else _both(known, stop.__contains__)
                for known, stop in zip(self._known, self._stop, strict=True)
            ],
            _LISTED,
        )

    @property
    def lemmatised(self) -> tuple[bool, bool]:
        """Whether there is a lemmatiser for each of the two languages."""
        return self.lemmas[0] is not None, self.lemmas[1] is not None

    def head(self, side: int, row: int) -> int:
        """The row of a word's headword; its own where there is no lemmatiser."""
        lemmas = self.lemmas[side]
        return row if lemmas is None else int(lemmas.heads[lemmas.number[row]])

    def listed(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Whether each source word is a lemma that the tables know; all are where there are no tables."""
        lemmas, known = self.lemmas[0], self._known[0]
        if lemmas is None or known is None:
            return np.ones(len(rows), bool)
        numbers = lemmas.number[rows]
        words = self._space.source.index_to_key
        listed = np.array([known(words[int(row)]) for row in rows], bool)
        listed &= lemmas.cited[numbers] & (lemmas.heads[numbers] == rows)
        return listed

    def of(self, rows: Rows, candidates: npt.NDArray[np.int64]) -> list[str]:
        """The kinds of some source words."""
        words = [self._space.source.index_to_key[int(row)] for row in rows]
        vectors = np.asarray(self._space.source.vectors[rows], np.float32)
        like_names, like_functions = (_along(found, vectors) for found in (self._names, self._functions))
        return [
            self._kind(word, int(row), found, float(name), float(function))
            for word, row, found, name, function in zip(
                words, rows, candidates, like_names, like_functions, strict=True
            )
        ]

    def _kind(self, word: str, row: int, candidates: Rows, like_name: float, like_function: float) -> str:
        spelling = kind_by_spelling(word)
        if spelling:
            return spelling
        if self._is_function_word(word, row, candidates, like_function):
            return "function"
        if self._is_name(word, like_name):
            return "name"
        if self._is_foreign(word):
            return "foreign"
        return "content" if self.head(0, row) == row else "inflected"

    def _is_function_word(self, word: str, row: int, candidates: Rows, like_function: float) -> bool:
        """Whether the word is on its language's list, and its vector or its candidates agree.

        The lists hold some content words; those rarely translate into words of the other list.
        """
        stop, other = self._stop
        if len(stop) < _SHORTEST_LIST:
            return row < _FREQUENT and len(word) <= _SHORT
        if word.casefold() not in stop:
            return False
        if row < _FREQUENT or len(word) <= 2 or len(other) < _SHORTEST_LIST or like_function > _FUNCTION:
            return True
        there = [self._space.target.index_to_key[int(at)] for at in candidates if at >= 0]
        also = sum(found.casefold() in other for found in there)
        return also >= _SHARE_OF_CANDIDATES * max(1, len(there))

    def _is_name(self, word: str, like_name: float) -> bool:
        cased = self._cased[0]
        if (cased is not None and cased(word)) or like_name > _SURELY_NAME:
            return True
        known = self._known[0]
        other = word in self._space.target.key_to_index or (known is not None and not known(word))
        return other and like_name > _NAME

    def _is_foreign(self, word: str) -> bool:
        """Written in another script, or known in the other language and not in its own."""
        if self._script and _script(word) not in (self._script, ""):
            return True
        own, other = self._known
        if own is None or other is None or own(word):
            return False
        return word in self._space.target.key_to_index and other(word)

    def _direction(
        self, labelled: Sequence[Callable[[str], bool | None] | None], sample: int = _SAMPLE
    ) -> tuple[npt.NDArray[np.float32], float] | None:
        """A direction of the common space that tells labelled words from others, by ridge regression."""
        rows: list[npt.NDArray[np.float32]] = []
        labels: list[bool] = []
        for words, label in zip((self._space.source, self._space.target), labelled, strict=True):
            if label is None:
                continue
            said = [label(word) for word in words.index_to_key[:sample]]
            used = [row for row, one in enumerate(said) if one is not None]
            rows.append(np.asarray(words.vectors[used], np.float32))
            labels += [bool(said[row]) for row in used]
        yes = np.array(labels, bool)
        if min(yes.sum(), (~yes).sum()) < _SHORTEST_LIST:
            return None
        x = np.concatenate(rows)
        weight = np.where(yes, 0.5 / yes.sum(), 0.5 / (~yes).sum()).astype(np.float32)[:, None]
        centre = (weight * x).sum(axis=0)
        x = x - centre
        gram = (x * weight).T @ x
        ridge = _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        direction = np.linalg.solve(gram + ridge, (x * weight).T @ np.where(yes, 1.0, -1.0))
        return direction.astype(np.float32), float(centre @ direction)


def _along(found: tuple[npt.NDArray[np.float32], float] | None, vectors: npt.NDArray[np.float32]) -> Floats:
    """How far vectors lie on the labelled side, -1 to 1 from mean to mean; -1 where nothing was learned."""
    if found is None:
        return np.full(len(vectors), -1, np.float32)
    direction, middle = found
    return np.asarray(vectors @ direction - middle, np.float32)


def _both(known: Lookup, label: Lookup) -> Callable[[str], bool | None]:
    """A label of known words; None for others."""
    return lambda word: label(word) if known(word) else None


def kind_by_spelling(word: str) -> str:
    """Number, abbreviation or phrase, as far as the spelling says it; else nothing."""
    digits = sum(character.isnumeric() for character in word)
    letters = [character for character in word if character.isalpha()]
    if not letters or 2 * digits >= len(word):
        return "number"
    if re.search(r"[\s_]", word.strip()):
        return "phrase"
    dotted = "." in word.strip(".") or (word.endswith(".") and len(word) <= 5)
    capitals = len(letters) > 1 and all(c.isupper() for c in letters) and len(letters) <= 5
    folded = unicodedata.normalize("NFC", word.casefold())
    voiceless = (
        1 < len(letters) <= 4 and not _VOWELS & set(folded) and _script(word) in _SPELT and word.isalpha()
    )
    return "abbreviation" if digits or dotted or capitals or voiceless else ""


def stop_words(code: str | None) -> frozenset[str]:
    """The function words of a language, of stopwords-iso; empty where it has no list."""
    import stopwordsiso

    return frozenset(stopwordsiso.stopwords(code)) if code else frozenset()


def _lemmas(words: object, code: str | None, give_way: Callable[[], None]) -> Lemmas | None:
    try:
        lemma_of = lemmatiser(code)
    except BilexError:  # no lemmatiser for this language
        return None
    count = itertools.count(1)

    def lemmatise(word: str) -> str:
        if next(count) % _WORDS_BETWEEN == 0:
            give_way()  # this takes seconds, and only one thread of Python runs at a time
        return lemma_of(word)

    return Lemmas.of(words, lemmatise)  # type: ignore[arg-type]


def _known_words(code: str | None) -> Lookup | None:
    """Whether simplemma's tables have a word; None where it has no tables."""
    try:
        lemmatiser(code)
    except BilexError:
        return None
    import simplemma

    return cache(lambda word: bool(simplemma.is_known(word, lang=code)))


def _capitalised(code: str | None) -> Lookup | None:
    """Whether a language writes a word with a capital letter; None where nouns are, or without tables."""
    if code in _NOUNS_HAVE_CAPITALS or _known_words(code) is None:
        return None
    import simplemma

    def found(word: str) -> bool:
        lemma = str(simplemma.lemmatize(word.lower(), lang=code))
        return lemma[:1].isupper()

    return cache(found)


def _script(word: str) -> str:
    for character in word:
        if character.isalpha():
            return unicodedata.name(character, "").split(" ")[0]
    return ""


def _usual_script(words: Sequence[str]) -> str:
    """The script of most words; nothing where no script has most."""
    counts = Counter(_script(word) for word in words)
    name, count = counts.most_common(1)[0]
    return name if count > 0.8 * len(words) else ""
