"""Languages by code and name, so that tables can say "English" instead of "source".

`languages.tsv` has the codes of ISO 639-1 and those under which fastText's 157 languages are published.
"""

from __future__ import annotations

import re
from pathlib import Path

LanguagePair = tuple[str, str]  # two codes

_PUBLISHED = re.compile(r"(?:wiki|cc|wiki\.multi|crawl)\.([a-z]{2,3})(?:\.\d+)?(?:\.|$)")
_SUFFIXES = re.compile(r"(\.(vec|txt|bin|npy|gz|bz2|xz))+$")
_TOKENS = re.compile(r"[^\W\d_]+")

_NAMES: dict[str, str] = {}  # English names by code
_CODES: dict[str, str] = {}  # codes by name
_ALSO_WORDS: set[str] = set()  # codes that count in a file's name only where nothing else can be meant
_SHORT_CODES: dict[str, str] = {}  # by codes of three letters, as FreeDict, Apertium and others use
for _line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()[1:]:
    _code, _long_codes, _names, _word = _line.split("\t")
    _SHORT_CODES.update(dict.fromkeys(_long_codes.split(), _code))
    if _word:
        _ALSO_WORDS.add(_code)
    if _names:
        _NAMES[_code] = _names.split(",")[0]
        _CODES.update(dict.fromkeys(_names.casefold().split(","), _code))


def language_name(code: str) -> str:
    """The English name of a language, or the code itself if it is not known."""
    return _NAMES.get(code.lower(), code)


def short_code(code: str) -> str:
    """A language's code in two letters where it has one: "en" for "eng" and "en-GB"."""
    main = code.lower().replace("_", "-").split("-")[0]
    return _SHORT_CODES.get(main, main)


def matching_codes(marked: str, wanted: str) -> bool:
    """Whether a word marked "en-GB" is of the language "en"."""
    marked, wanted = marked.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return marked == wanted or marked.split("-")[0] == wanted or short_code(marked) == short_code(wanted)


def is_code(text: str) -> bool:
    """Whether a text is the code of a known language, such as "fi"."""
    return text.strip().casefold() in _NAMES


def is_language_name(text: str) -> bool:
    """Whether a text is a name, not only a code, of a known language."""
    return text.strip().casefold() in _CODES


def code_of(text: str) -> str | None:
    """The code of a language that is given by its code or by a name, such as "Finnish" or "suomi"."""
    wanted = text.strip().casefold()
    return wanted if wanted in _NAMES else _CODES.get(wanted)


def language_of_file(path: str | Path) -> str | None:
    """The code of the language that a file's name says, as `wiki.fi.vec` or `finnish-vectors.txt` do.

    None where the name says nothing or is ambiguous, as `my-vectors.vec` is.
    """
    name = Path(path).name.casefold()
    published = _PUBLISHED.match(name)
    if published and is_code(published[1]):
        return published[1]
    stem = name.split(".")[0]
    if is_code(stem):
        return stem
    tokens = _TOKENS.findall(_SUFFIXES.sub("", name))
    named = [_CODES[token] for token in tokens if token in _CODES]
    coded = [token for token in tokens if token in _NAMES and token not in _ALSO_WORDS]
    found = set(named or coded)
    return found.pop() if len(found) == 1 else None


def two_languages(*sides: tuple[str | None, str | Path | None]) -> tuple[str | None, str | None]:
    """The codes of two languages: those stated, as codes or names, else what the names of their files say.

    None for one that is not known, and for both if they would be the same.
    """
    source, target = (
        (stated and (code_of(stated) or stated))
        if file is None or stated is not None
        else language_of_file(file)
        for stated, file in sides
    )
    return (None, None) if source == target else (source, target)
