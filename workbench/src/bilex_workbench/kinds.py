"""Kinds of entries, and forms that share a headword.

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
from bilex.vectors import WordVectors

Kind = Literal["content", "function", "name", "number", "abbreviation", "foreign", "inflected", "phrase"]
KINDS: tuple[str, ...] = get_args(Kind)
_CAPITALISED_NOUNS = ("de", "lb")  # languages whose capital letters say nothing about names
_VOWELS = frozenset("aeiouyáàâäãåæéèêëíìîïóòôöõøœúùûüýаеёиоуыэюяіїєαεηιουωάέήίόύώ")
_VOCALIC_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK")  # in which every word has a vowel
_SAMPLE, _LISTED = 20_000, 5_000  # words that names, and function words, are learned from
_RIDGE = 0.05
# How far a vector must lie towards names or function words, where -1 and 1 are the two means.
_NAME, _SURELY_NAME, _FUNCTION = 0.2, 0.6, 0.15
_SHARE_OF_CANDIDATES = 0.3
_SHORTEST_LIST, _FREQUENT, _SHORT = 20, 150, 4
_WORDS_BETWEEN = 200  # lemmatised before requests go first
Test = Callable[[str], bool]
Likeness = Callable[[Floats], Floats]


class _Language:
    """The lists and tables of one language.

    Without tables of simplemma, there are neither `lemmas` nor `capitalised` words, and all are `known`.
    """

    def __init__(self, words: WordVectors, code: str | None, give_way: Callable[[], None]) -> None:
        import simplemma
        import stopwordsiso

        self.words = words
        stop_words = frozenset(stopwordsiso.stopwords(code)) if code else frozenset()
        self.stop = stop_words if len(stop_words) >= _SHORTEST_LIST else frozenset()
        self.lemmas: Lemmas | None = None
        self.known: Test = lambda word: True
        self.capitalised: Test | None = None
        try:
            lemma_of = lemmatiser(code)
        except BilexError:
            return
        count = itertools.count(1)

        def lemmatise(word: str) -> str:
            if next(count) % _WORDS_BETWEEN == 0:
                give_way()  # this takes seconds, and only one thread of Python runs at a time
            return lemma_of(word)

        self.lemmas = Lemmas.of(words, lemmatise)
        self.known = cache(lambda word: bool(simplemma.is_known(word, lang=code)))
        if code not in _CAPITALISED_NOUNS:
            self.capitalised = cache(
                lambda word: str(simplemma.lemmatize(word.lower(), lang=code))[:1].isupper()
            )


class Kinds:
    """The kind of each source word of a model."""

    def __init__(
        self,
        space: Space,
        languages: tuple[str | None, str | None],
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._source, self._target = self._languages = (
            _Language(space.source, languages[0], give_way),
            _Language(space.target, languages[1], give_way),
        )
        self._script = _usual_script(space.source.index_to_key[:2000])
        self._like_names = _learn_likeness([(one, one.capitalised) for one in self._languages], _SAMPLE)
        self._like_functions = _learn_likeness(
            [(one, one.stop.__contains__ if one.stop else None) for one in self._languages], _LISTED
        )

    @property
    def lemmatised(self) -> tuple[bool, bool]:
        """Whether there is a lemmatiser for each of the two languages."""
        return self._source.lemmas is not None, self._target.lemmas is not None

    def head(self, side: int, row: int) -> int:
        """The row of a word's headword; its own where there is no lemmatiser."""
        lemmas = self._languages[side].lemmas
        return row if lemmas is None else int(lemmas.heads[lemmas.number[row]])

    def listed(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Whether each source word is a lemma that the tables know; all are where there are no tables."""
        lemmas, words = self._source.lemmas, self._source.words.index_to_key
        if lemmas is None:
            return np.ones(len(rows), bool)
        numbers = lemmas.number[rows]
        listed = np.array([self._source.known(words[int(row)]) for row in rows], bool)
        listed &= lemmas.cited[numbers] & (lemmas.heads[numbers] == rows)
        return listed

    def of(self, rows: Rows, candidates: npt.NDArray[np.int64]) -> list[str]:
        """The kinds of some source words with the rows of their candidates."""
        vectors = np.asarray(self._source.words.vectors[rows], np.float32)
        likeness = self._like_names(vectors).tolist(), self._like_functions(vectors).tolist()
        return list(map(self._kind, rows.tolist(), candidates, *likeness))

    def _kind(self, row: int, candidates: Rows, like_name: float, like_function: float) -> str:
        word = self._source.words.index_to_key[row]
        if spelling := kind_by_spelling(word):
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
        if not self._source.stop:
            return row < _FREQUENT and len(word) <= _SHORT
        if word.casefold() not in self._source.stop:
            return False
        other = self._target
        if row < _FREQUENT or len(word) <= 2 or not other.stop or like_function > _FUNCTION:
            return True
        found = [other.words.index_to_key[int(at)].casefold() in other.stop for at in candidates if at >= 0]
        return sum(found) >= _SHARE_OF_CANDIDATES * max(1, len(found))

    def _is_name(self, word: str, like_name: float) -> bool:
        own = self._source
        if (own.capitalised is not None and own.capitalised(word)) or like_name > _SURELY_NAME:
            return True
        return like_name > _NAME and (word in self._target.words.key_to_index or not own.known(word))

    def _is_foreign(self, word: str) -> bool:
        """Written in another script, or known in the other language and not in its own."""
        if self._script and _script(word) not in (self._script, ""):
            return True
        if self._source.known(word) or self._target.lemmas is None:
            return False
        return word in self._target.words.key_to_index and self._target.known(word)


def _learn_likeness(labelled: Sequence[tuple[_Language, Test | None]], sample: int) -> Likeness:
    """What finds how far vectors lie towards labelled words, -1 to 1 from mean to mean; -1 if these are few.

    Ridge regression learns the direction of the common space that separates labelled words from others.
    """
    rows: list[Floats] = []
    labels: list[bool] = []
    for language, label in labelled:
        if label is None or language.lemmas is None:
            continue
        words = language.words.index_to_key[:sample]
        used = [row for row, word in enumerate(words) if language.known(word)]
        rows.append(np.asarray(language.words.vectors[used], np.float32))
        labels += [label(words[row]) for row in used]
    yes = np.array(labels, bool)
    if min(yes.sum(), (~yes).sum()) < _SHORTEST_LIST:
        return lambda vectors: np.full(len(vectors), -1, np.float32)
    x = np.concatenate(rows)
    weight = np.where(yes, 0.5 / yes.sum(), 0.5 / (~yes).sum()).astype(np.float32)[:, None]
    centre = (weight * x).sum(axis=0)
    x = x - centre
    gram = (x * weight).T @ x
    ridge = _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    direction = np.linalg.solve(gram + ridge, (x * weight).T @ np.where(yes, 1.0, -1.0))
    towards, middle = direction.astype(np.float32), float(centre @ direction)
    return lambda vectors: np.asarray(vectors @ towards - middle, np.float32)


def kind_by_spelling(word: str) -> str:
    """Number, abbreviation or phrase, if the spelling shows it; else an empty text."""
    digits = sum(character.isnumeric() for character in word)
    letters = [character for character in word if character.isalpha()]
    if not letters or 2 * digits >= len(word):
        return "number"
    if re.search(r"[\s_]", word.strip()):
        return "phrase"
    dotted = "." in word.strip(".") or (word.endswith(".") and len(word) <= 5)
    capitals = 1 < len(letters) <= 5 and all(c.isupper() for c in letters)
    vowels = _VOWELS & set(unicodedata.normalize("NFC", word.casefold()))
    voiceless = 1 < len(letters) <= 4 and not vowels and _script(word) in _VOCALIC_SCRIPTS and word.isalpha()
    return "abbreviation" if digits or dotted or capitals or voiceless else ""


def _script(word: str) -> str:
    first = next((character for character in word if character.isalpha()), None)
    return unicodedata.name(first, "").split(" ")[0] if first else ""


def _usual_script(words: Sequence[str]) -> str:
    """The script of most words; an empty text where no script has most."""
    name, count = Counter(_script(word) for word in words).most_common(1)[0]
    return name if count > 0.8 * len(words) else ""
