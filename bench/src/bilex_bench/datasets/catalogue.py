"""The public data sets that `bilex data` knows: what they are, under which licence, and where they lie."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from itertools import permutations, zip_longest
from typing import Any

from bilex.core.errors import BilexError, nearest_name
from bilex_bench.datasets.layouts import LANGUAGE

Languages = tuple[str, ...]
DICTIONARIES, VECTORS = "dictionaries", "vectors"
_LANGUAGE = re.compile(LANGUAGE)


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


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """A public data set.

    Attributes:
        name: What it is called.
        what: What it is, in one sentence.
        licence: As its makers state it.
        size: How much there is to fetch, in words.
        address: The page of its makers.
        kind: "vectors" or "dictionaries".
        files: The files for some languages.
        checksums: What its files are checked against, in words.
        languages: Its languages; empty where there are too many to list.
        needs_languages: Whether it must be given which of them are wanted.
    """

    name: str
    what: str
    licence: str
    size: str
    address: str
    kind: str
    files: Callable[[Languages], list[RemoteFile]]
    checksums: str = "none published; size and packing are checked"
    languages: Languages = ()
    needs_languages: bool = False

    def wanted(self, languages: Collection[str]) -> Languages:
        """The languages to fetch: those named, all for none."""
        if not languages and self.needs_languages:
            raise BilexError(f"{self.name}: name the languages to fetch, such as --languages en,fi.")
        for language in languages:
            if not _LANGUAGE.fullmatch(language) or (self.languages and language not in self.languages):
                has = ", ".join(self.languages) or "codes such as en, fi, zh_yue"
                raise BilexError(f"{self.name}: has no language '{language}'; it has {has}.")
        return tuple(dict.fromkeys(languages)) or self.languages


def known(name: str) -> KnownData:
    """The data set of a name."""
    by_name = {data.name: data for data in KNOWN}
    if name not in by_name:
        near = nearest_name(name, by_name)
        raise BilexError(f"there is no data set '{name}'; choose from {', '.join(by_name)}.{near}")
    return by_name[name]


def _packaged(name: str) -> str:
    return (resources.files("bilex_bench.datasets") / name).read_text(encoding="utf-8")


def _read(name: str, entry: Mapping[str, Any]) -> KnownData:
    """An entry of the packaged file."""
    where = ("base", "names", "checksums_of", "hub", "also_among")
    facts = {key: value for key, value in entry.items() if key not in where}
    facts["languages"] = tuple(entry.get("languages", "").split())
    return KnownData(name=name, files=partial(_files, name, entry), **facts)


def _files(name: str, entry: Mapping[str, Any], languages: Languages) -> list[RemoteFile]:
    """The files of a data set for some languages."""
    folder = VECTORS if entry["kind"] == VECTORS else f"{DICTIONARIES}/{name}"
    if "{language}" in entry["names"][0]:
        enough = entry["kind"] == VECTORS or len(languages) > 1  # one language has no pair
        codes: dict[str, list[str]] = {language: [] for language in languages if enough}
    else:
        codes = _pairs(entry, languages)
    return [
        RemoteFile(f"{entry['base']}/{file}", f"{folder}/{file}", blob)
        for code, blobs in codes.items()
        for template, blob in zip_longest(entry["names"], blobs)
        for file in [template.format(language=code, pair=code)]
    ]


def _pairs(entry: Mapping[str, Any], languages: Languages) -> dict[str, list[str]]:
    """The pairs among some languages that there are, each with the checksums of its files, if any."""
    if "checksums_of" in entry:
        rows = [line.split("\t") for line in _packaged(entry["checksums_of"]).splitlines() if line[0] != "#"]
        return {pair: blobs for pair, *blobs in rows if set(pair.split("-")) <= set(languages)}
    others = set(entry["also_among"].split())
    return {
        f"{a}-{b}": [] for a, b in permutations(languages, 2) if entry["hub"] in (a, b) or {a, b} <= others
    }


KNOWN = tuple(_read(name, entry) for name, entry in tomllib.loads(_packaged("catalogue.toml")).items())
