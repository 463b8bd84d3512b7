"""Word pairs that the spelling of two vocabularies suggests."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np
from anyascii import anyascii

from bilex.aligners.base import Pairs
from bilex.vectors import WordVectors

# Words of each language that are compared; rare words of one spelling are often no translations.
_FREQUENT = 20_000
# Words of identical spelling count as translations if their ranks, counted from 50, differ by a factor of at
# most e, a difference of 1 between logarithms: 58 to 80 % of these pairs are in a dictionary, but 2 to 66 %
# of those with a rarer target word, which is mostly a quotation (research/never_worse.md).
_RANK_OFFSET, _LARGEST_LOG_RATIO = 50, 1.0
_NUMERAL = re.compile(r"[0-9]+")
_SHORTEST_KEY = 5
_NOT_A_LETTER = re.compile(r"[^a-z]+")
_TWICE = re.compile(r"(.)\1+")
_LAST_VOWELS = re.compile(r"[aeiou]+$")
# Spellings of one sound in different languages, longer ones first.
_SPELLINGS = (
    ("sch", "s"), ("tsh", "s"), ("ph", "f"), ("th", "t"), ("sh", "s"), ("ch", "k"), ("kh", "h"), ("ck", "k"),
    ("zh", "s"), ("ts", "s"), ("qu", "kv"), ("x", "ks"), ("c", "k"), ("q", "k"), ("w", "v"), ("z", "s"),
    ("y", "i"), ("j", "i"),
)  # fmt: skip


def identical_strings(source: WordVectors, target: WordVectors) -> Pairs:
    """Pair each source word with the target word of the same spelling, if there is one."""
    shared = [
        (row, target.key_to_index[word]) for row, word in enumerate(source.index_to_key) if word in target
    ]
    return np.array(shared, np.int64).reshape(-1, 2)


def spelled_alike(source: WordVectors, target: WordVectors) -> Pairs:
    """Frequent words of identical spelling and like frequency, in the script of both languages, or numerals.

    In Russian text an English word is a quotation and no translation of itself.
    """
    sides = source.head(_FREQUENT), target.head(_FREQUENT)
    scripts = {_usual_script(words.index_to_key) for words in sides}
    pairs = of_like_frequency(identical_strings(*sides))
    words = [source.index_to_key[row] for row in pairs[:, 0]]
    own = [bool(_NUMERAL.fullmatch(word)) or scripts == {_script(word)} for word in words]
    return np.asarray(pairs[np.array(own, bool)])


def of_like_frequency(pairs: Pairs) -> Pairs:
    """The pairs whose words have like ranks."""
    ranks = np.log(_RANK_OFFSET + pairs)
    return np.asarray(pairs[np.abs(ranks[:, 0] - ranks[:, 1]) <= _LARGEST_LOG_RATIO])


def numerals(source: WordVectors, target: WordVectors) -> Pairs:
    """Pair the words that consist of the digits 0 to 9 alone and occur in both vocabularies.

    Languages in different scripts share few words, but most share their numbers.
    """
    pairs = identical_strings(source, target)
    keep = [bool(_NUMERAL.fullmatch(source.index_to_key[row])) for row in pairs[:, 0]]
    return np.asarray(pairs[np.array(keep, bool)])


def romanised(source: WordVectors, target: WordVectors) -> Pairs:
    """Pair frequent words that sound alike; of several with one key the most frequent is taken.

    "культура" and "kulttuuri" share no letter, yet written in Latin letters and without what languages spell
    differently they have one key. Such pairs are noisy (false friends, inflected forms), and a few hundred
    are enough for self-learning.
    """
    keys = [_most_frequent(words) for words in (source, target)]
    shared = [(row, keys[1][key]) for key, row in keys[0].items() if key in keys[1]]
    return np.array(shared, np.int64).reshape(-1, 2)


def sound_key(word: str) -> str:
    """A word in Latin letters, reduced to what languages spell alike; empty where too little is left."""
    key = _NOT_A_LETTER.sub("", anyascii(word).lower())
    for spelling, sound in _SPELLINGS:
        key = key.replace(spelling, sound)
    key = _LAST_VOWELS.sub("", _TWICE.sub(r"\1", key))
    return key if len(key) >= _SHORTEST_KEY else ""


def _most_frequent(words: WordVectors) -> dict[str, int]:
    """The first row of each key, among words in the script of the language."""
    frequent = words.index_to_key[:_FREQUENT]
    usual = _usual_script(frequent)
    rows: dict[str, int] = {}
    for row, word in enumerate(frequent):
        if usual and _script(word) == usual and (key := sound_key(word)):
            rows.setdefault(key, row)
    return rows


def _usual_script(words: list[str]) -> str:
    """The script of most words; empty if none has a letter."""
    counts = Counter(filter(None, map(_script, words)))
    return counts.most_common(1)[0][0] if counts else ""


def _script(word: str) -> str:
    """The script of the first letter, as Unicode names it ("LATIN", "CYRILLIC"); empty if it is no letter."""
    return unicodedata.name(word[0], "").partition(" ")[0] if word[:1].isalpha() else ""
