"""The public data sets that `bilex data` knows: what they are, under which licence, and where they lie."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import resources
from itertools import permutations

from bilex.errors import BilexError
from bilex_bench.datasets.layouts import LANGUAGE

Languages = tuple[str, ...]
DICTIONARIES, VECTORS = "dictionaries", "vectors"
_FACEBOOK = "https://dl.fbaipublicfiles.com"
_NO_CHECKSUM = "none published; size and packing are checked"
_XLING_COMMIT = "88f037f567a1fb0cb75e5a923d512c57fdef3a10"
_XLING_LANGUAGES = ("de", "en", "fi", "fr", "hr", "it", "ru", "tr")

_LANGUAGE = re.compile(LANGUAGE)


def _codes(text: str) -> Languages:
    return tuple(text.split())


_PANLEX_LANGUAGES = _codes("bg ca eo et eu fi he hu id ka ko lt no th tr")
_MUSE_EUROPEAN = _codes("de en es fr it pt")
_MUSE_LANGUAGES = _codes(
    "af ar bg bn bs ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv mk ms nl no pl pt ro ru "
    "sk sl sq sv ta th tl tr uk vi zh"
)


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch.

    Attributes:
        address: Where it lies.
        path: Where it belongs, below the data folder.
        git_blob: Its checksum, as git computes it; None where none is published.
    """

    address: str
    path: str
    git_blob: str | None = None


@dataclass(frozen=True)
class KnownData:
    """A public data set.

    Attributes:
        name: What it is called.
        what: What it is, in one sentence.
        licence: As its makers state it.
        size: How much there is to fetch, in words.
        address: The page of its makers.
        checksums: What its files are checked against, in words.
        kind: "vectors" or "dictionaries".
        languages: Its languages; empty where there are too many to list.
        needs_languages: Whether it must be given which of them are wanted.
        files: The files for some languages.
    """

    name: str
    what: str
    licence: str
    size: str
    address: str
    checksums: str
    kind: str
    languages: Languages
    needs_languages: bool
    files: Callable[[Languages], list[RemoteFile]]

    def wanted(self, languages: Collection[str]) -> Languages:
        """The languages to fetch: those named, all for none.

        Raises:
            BilexError: Languages have to be named, or one named is not in the data set.
        """
        if not languages and self.needs_languages:
            raise BilexError(f"{self.name}: name the languages to fetch, such as --languages en,fi.")
        for language in languages:
            if not _LANGUAGE.fullmatch(language) or (self.languages and language not in self.languages):
                has = ", ".join(self.languages) or "codes such as en, fi, zh_yue"
                raise BilexError(f"{self.name}: has no language '{language}'; it has {has}.")
        return tuple(dict.fromkeys(languages)) or self.languages


def known(name: str) -> KnownData:
    """The data set of a name.

    Raises:
        BilexError: There is none; the nearest name is given.
    """
    for data in KNOWN:
        if data.name == name:
            return data
    names = [data.name for data in KNOWN]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(names)}."
    raise BilexError(f"there is no data set '{name}'; {hint}")


def _wiki_vectors(languages: Languages) -> list[RemoteFile]:
    return [
        RemoteFile(f"{_FACEBOOK}/fasttext/vectors-wiki/wiki.{language}.vec", f"{VECTORS}/wiki.{language}.vec")
        for language in languages
    ]


def _crawl_vectors(languages: Languages) -> list[RemoteFile]:
    names = (f"cc.{language}.300.vec.gz" for language in languages)
    return [RemoteFile(f"{_FACEBOOK}/fasttext/vectors-crawl/{name}", f"{VECTORS}/{name}") for name in names]


def _xling(languages: Languages) -> list[RemoteFile]:
    base = f"https://raw.githubusercontent.com/codogogo/xling-eval/{_XLING_COMMIT}/bli_datasets"
    kinds = ("test.freq.2k", "train.freq.1k", "train.freq.5k")
    return [
        RemoteFile(f"{base}/{pair}/{name}", f"{DICTIONARIES}/xling/{pair}/{name}", blob)
        for pair, *blobs in _xling_blobs()
        if set(pair.split("-")) <= set(languages)
        for kind, blob in zip(kinds, blobs, strict=True)
        for name in [f"yacle.{kind}.{pair}.tsv"]
    ]


def _xling_blobs() -> list[list[str]]:
    """Each pair with the git ids of its three files."""
    text = (resources.files("bilex_bench.datasets") / "xling_blobs.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def _panlex(languages: Languages) -> list[RemoteFile]:
    base = "https://github.com/cambridgeltl/panlex-bli/raw/master/lexicons"
    names = [f"{language}-l2.zip" for language in languages] if len(languages) > 1 else []
    return [RemoteFile(f"{base}/{name}", f"{DICTIONARIES}/panlex/{name}") for name in names]


def _muse(languages: Languages) -> list[RemoteFile]:
    pairs = [pair for pair in permutations(languages, 2) if _in_muse(*pair)]
    names = [f"{a}-{b}.{part}.txt" for a, b in pairs for part in ("0-5000", "5000-6500")]
    base = f"{_FACEBOOK}/arrival/dictionaries"
    return [RemoteFile(f"{base}/{name}", f"{DICTIONARIES}/muse/{name}") for name in names]


def _in_muse(source: str, target: str) -> bool:
    return "en" in (source, target) or {source, target} <= set(_MUSE_EUROPEAN)


KNOWN = (
    KnownData(
        "fasttext-wiki",
        "fastText word vectors trained on Wikipedia, 294 languages; the paper's for XLING",
        "CC BY-SA 3.0",
        "up to 6.6 GB a language (en); about 0.5 GB of it for the first 200,000 words",
        "https://fasttext.cc/docs/en/pretrained-vectors.html",
        _NO_CHECKSUM,
        VECTORS,
        (),
        True,
        _wiki_vectors,
    ),
    KnownData(
        "fasttext-cc",
        "fastText word vectors of Common Crawl and Wikipedia, 157 languages; the paper's for PanLex-BLI",
        "CC BY-SA 3.0",
        "up to 1.3 GB a language, packed; about 0.15 GB of it for the first 200,000 words",
        "https://fasttext.cc/docs/en/crawl-vectors.html",
        _NO_CHECKSUM,
        VECTORS,
        (),
        True,
        _crawl_vectors,
    ),
    KnownData(
        "xling",
        "XLING dictionaries, 28 pairs of 8 languages: seeds 1k and 5k, test 2k; the paper's main benchmark",
        "none stated",
        "4.2 MB",
        "https://github.com/codogogo/xling-eval",
        "git's ids of the files at one fixed commit",
        DICTIONARIES,
        _XLING_LANGUAGES,
        False,
        _xling,
    ),
    KnownData(
        "panlex",
        "PanLex-BLI dictionaries, 210 directed pairs of 15 languages: seeds 500 to 5k, test 2k",
        "Apache-2.0",
        "one zip archive a language",
        "https://github.com/cambridgeltl/panlex-bli",
        _NO_CHECKSUM,
        DICTIONARIES,
        _PANLEX_LANGUAGES,
        False,
        _panlex,
    ),
    KnownData(
        "muse",
        "MUSE dictionaries, 110 directed pairs, most of them with English: seeds 5k, test of 1,500 words",
        "CC BY-NC 4.0",
        "about 0.2 MB a pair",
        "https://github.com/facebookresearch/MUSE",
        _NO_CHECKSUM,
        DICTIONARIES,
        _MUSE_LANGUAGES,
        True,
        _muse,
    ),
)
