"""Pairs of words that sound alike, whatever their scripts: loanwords and names as a first dictionary.

"культура" and "kulttuuri" share no letter, yet written in Latin letters and stripped of what languages
spell differently they are one key. Such pairs are noisy (false friends, inflected forms), and a few hundred
are enough for self-learning, which is judged afterwards like that of every other start.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np
from anyascii import anyascii

from bilex.aligners.base import Pairs
from bilex.vectors import WordVectors

_MOST_FREQUENT = 20_000
_SHORTEST_KEY = 5
_NOT_A_LETTER = re.compile(r"[^a-z]+")
_TWICE = re.compile(r"(.)\1+")
_LAST_VOWELS = re.compile(r"[aeiou]+$")
# What one sound is written as in different languages, longer spellings first.
_SPELLINGS = (
    ("sch", "s"), ("tsh", "s"), ("ph", "f"), ("th", "t"), ("sh", "s"), ("ch", "k"), ("kh", "h"), ("ck", "k"),
    ("zh", "s"), ("ts", "s"), ("qu", "kv"), ("x", "ks"), ("c", "k"), ("q", "k"), ("w", "v"), ("z", "s"),
    ("y", "i"), ("j", "i"),
)  # fmt: skip


def sound_key(word: str) -> str:
    """A word in Latin letters, reduced to what languages spell alike; empty where too little is left.

    Args:
        word: In any script that anyascii knows.
    """
    key = _NOT_A_LETTER.sub("", anyascii(word).lower())
    for spelling, sound in _SPELLINGS:
        key = key.replace(spelling, sound)
    key = _LAST_VOWELS.sub("", _TWICE.sub(r"\1", key))
    return key if len(key) >= _SHORTEST_KEY else ""


def romanised(source: WordVectors, target: WordVectors) -> Pairs:
    """Pair frequent words that have one sound key; of several with one key the most frequent is taken.

    Returns:
        (source row, target row) pairs in the order of the source vocabulary; maybe none.
    """
    keys = [_most_frequent(words) for words in (source, target)]
    shared = [(row, keys[1][key]) for key, row in keys[0].items() if key in keys[1]]
    return np.array(shared, np.int64).reshape(-1, 2)


def _most_frequent(words: WordVectors) -> dict[str, int]:
    """The first row of each key, among words in the script of the language.

    English words in a Russian vocabulary would pair with themselves and say nothing about Russian.
    """
    frequent = words.index_to_key[:_MOST_FREQUENT]
    scripts = [_script(word) for word in frequent]
    usual = Counter(filter(None, scripts)).most_common(1)
    rows: dict[str, int] = {}
    for row, (word, script) in enumerate(zip(frequent, scripts, strict=True)):
        if usual and script == usual[0][0] and (key := sound_key(word)):
            rows.setdefault(key, row)
    return rows


def _script(word: str) -> str:
    """The script of the first letter, as Unicode names it ("LATIN", "CYRILLIC"); empty if it is no letter."""
    return unicodedata.name(word[0], "").partition(" ")[0] if word[:1].isalpha() else ""
