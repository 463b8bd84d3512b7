"""Lemmas: the headword that a form is listed under, by simplemma's tables of about 50 languages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from bilex.core.errors import BilexError, optional_library

Lemmatiser = Callable[[str], str]


def lemmatiser(language: str | None) -> Lemmatiser:
    """A function from a form to its lemma, lower-cased; a word that is not known is its own lemma."""
    with optional_library("a dictionary by lemmas", "bilex[lemmas]"):
        import simplemma
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
    if language is None:
        raise BilexError(
            "lemmas depend on the two languages, and the model does not name them; name them, for example "
            "with --languages en,fi."
        )
    if language not in SUPPORTED_LANGUAGES:
        raise BilexError(
            f"there are no lemmas for '{language}'; simplemma has {', '.join(sorted(SUPPORTED_LANGUAGES))}."
        )

    @cache
    def lemma(word: str) -> str:
        found: str = simplemma.lemmatize(word, lang=language)
        return found.lower()

    return lemma
