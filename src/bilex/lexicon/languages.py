"""Which two languages of a file are meant, in formats that mark the language of each word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.lexicon.entries import UNKNOWN_LANGUAGE, Dictionary, Languages
from bilex.lexicon.reading import Layout
from bilex.lexicon.xml import Node, elements

_SHOWN = 8
# The codes of three letters (ISO 639-2 and 639-3) that FreeDict, Apertium and others use.
_THREE_LETTERS = """
afr-af ara-ar arg-an bel-be ben-bn bre-br bul-bg cat-ca ces-cs cze-cs cym-cy wel-cy dan-da deu-de ger-de
ell-el gre-el eng-en epo-eo est-et eus-eu baq-eu fao-fo fas-fa per-fa fin-fi fra-fr fre-fr gla-gd gle-ga
glg-gl heb-he hin-hi hrv-hr hun-hu hye-hy arm-hy ind-id isl-is ice-is ita-it jpn-ja kat-ka geo-ka kaz-kk
kor-ko kur-ku lat-la lav-lv lit-lt ltz-lb mkd-mk mac-mk mlt-mt msa-ms may-ms nld-nl dut-nl nno-nn nob-nb
nor-no oci-oc pol-pl por-pt ron-ro rum-ro rus-ru san-sa slk-sk slo-sk slv-sl sme-se spa-es sqi-sq alb-sq
srd-sc srp-sr swa-sw swe-sv swh-sw tam-ta tat-tt tel-te tha-th tur-tr uig-ug ukr-uk urd-ur uzb-uz vie-vi
yid-yi zho-zh chi-zh
"""
_TWO_LETTERS = dict(code.split("-") for code in _THREE_LETTERS.split())


def matches(marked: str, wanted: str) -> bool:
    """Whether a word marked "en-GB" is of the language "en"."""
    marked, wanted = marked.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return marked == wanted or marked.split("-")[0] == wanted or short(marked) == short(wanted)


def short(code: str) -> str:
    """A language's code in two letters where it has one: "en" for "eng" and "en-GB"."""
    main = code.lower().replace("_", "-").split("-")[0]
    return _TWO_LETTERS.get(main, main)


def _chosen(path: Path, found: Iterable[str], wanted: Languages, first: str = "") -> tuple[str, str]:
    """The two languages to read of those found in a file, whose source language is `first` if it says so."""
    languages = list(dict.fromkeys(short(language) for language in found if language))
    listed = ", ".join([*languages[:_SHOWN], "..."] if len(languages) > _SHOWN else languages)
    for side in wanted:
        if side and languages and short(side) not in languages:
            raise BilexError(
                f"{path}: holds no words in '{side}'; it has {listed}; name two of them with --languages."
            )
    source, target = (short(side) if side else None for side in wanted)
    if source is None:
        rest = [language for language in languages if language != target]
        source = short(first) if first and short(first) in rest else rest[0] if rest else None
    if target is None:
        rest = [language for language in languages if language != source]
        if len(rest) > 1:
            raise BilexError(
                f"{path}: holds {len(languages)} languages ({listed}); name the two that you "
                "mean with --languages, for example --languages en,fi."
            )
        target = rest[0] if rest else None
    if source is None or target is None:
        raise BilexError(f"{path}: does not mark words of two languages; give a file that does.")
    return source, target


def marked_languages(
    path: Path,
    layout: Layout,
    roots: tuple[str, ...],
    heads: tuple[str, ...],
    words: tuple[str, ...],
    first: Callable[[Node], str],
) -> tuple[str, str]:
    """The two languages to read of an XML file: those of the layout, else those that it marks.

    Args:
        path: The file.
        layout: What the user says.
        roots: The elements that such a file may begin with.
        heads: The elements that say the source language.
        words: The elements that are marked with a language.
        first: From one of `heads` to the source language; "" where it says none.
    """
    source, target = layout.languages
    if source and target:
        return source, target
    found: dict[str, None] = {}
    stated = ""
    for node in elements(path, roots, (), heads + words):
        if node.name in heads:
            stated = first(node)
        else:
            found[node.language()] = None
    return _chosen(path, found, layout.languages, stated)


def require_languages(dictionary: Dictionary, noun: str) -> tuple[str, str]:
    """The languages of a dictionary for a format that marks each word with one: known, and two."""
    source, target = dictionary.codes()
    if short(source) == short(target):
        what = "are not known" if source == UNKNOWN_LANGUAGE else f"are both '{source}'"
        raise BilexError(
            f"the languages of the words {what}, and {noun} marks each word with its language; name them "
            "with --languages, for example --languages en,fi."
        )
    return source, target
