"""A folder of dictionaries and word vectors, whatever its layout.

Files are recognised by their names, by one rule for XLING, PanLex-BLI and a user's own folder. A pair `xx-yy`
is the beginning of a file's name or the name of its folder. The rest of the name is split at dots, dashes and
underscores: the part `train` or `seeds` makes it a seed dictionary, named by the part that is a number (`5k`,
`1000`; `all` without one), the part `test` the test dictionary. MUSE numbers its source words instead:
`xx-yy.0-5000.txt` are seeds, `xx-yy.5000-6500.txt` the test, `xx-yy.txt` is everything.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import write_errors
from bilex.core.locks import one_at_a_time
from bilex.core.progress import SILENT, Progress
from bilex.core.reading import PACKED_SUFFIXES
from bilex.core.text import listed
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex.vectors.folder import CONFIG
from bilex.vectors.formats import WORD_LIST_SUFFIXES
from bilex.vectors.stored import Matrix, StoredRows

NO_SEEDS, ALL = "0", "all"
LANGUAGE = r"[a-z]{2,3}(?:_[a-z]+)?"
_PAIR = rf"{LANGUAGE}-{LANGUAGE}"
_PAIR_IN_NAME = re.compile(rf"(?:^|.*?(?<=\.))({_PAIR})(?=\.)")
_SUFFIXES = {".tsv", ".txt", ".csv", ".jsonl", ".ndjson", ".dict", ".trans"}
_COUNT = re.compile(r"(\d+)(k?)", re.IGNORECASE)
_DEEPEST, _SHOWN = 3, 12
# The first that fits is taken: memory-mapped formats before text, complete files before shortened ones.
_VECTOR_NAMES = (
    *("{}", "{}.npy", "{}.vec", "wiki.{}.vec", "cc.{}.300.vec", "wiki.{}.*.vec", "cc.{}.300.*.vec"),
    *("fasttext.wiki.{}.300.vocab_200K.vec", "fasttext.cc.{}.300.vocab_200K.vec"),
    *("{}.bin", "wiki.{}.bin", "cc.{}.300.bin"),
)
_CACHE_VERSION = 1  # to be raised when the same file would be read into something else


@dataclass
class PairFiles:
    """The dictionaries of one pair, as stored."""

    seeds: dict[str, Path] = field(default_factory=dict)  # seed dictionaries by name, the smallest first
    tests: list[Path] = field(default_factory=list)  # more than one is an error of the folder


@dataclass(frozen=True)
class Dictionaries:
    """The dictionaries found in one folder."""

    path: Path  # the folder
    layout: str  # how they are named: "xling", "panlex", "muse" or "plain"
    pairs: dict[str, PairFiles]  # by pair, in alphabetical order


@dataclass(frozen=True)
class DataFolder:
    """The data of a benchmark: dictionaries of language pairs, and vectors of the languages."""

    name: str  # the name of the data set in a grid
    path: Path
    dictionaries: Dictionaries
    vectors: dict[str, Path]  # the vector files found, by language
    vectors_sought: str  # where they were looked for, for messages: a pattern, or folders

    @classmethod
    def open(
        cls, path: str | Path, name: str | None = None, *, vectors: str | Path | None = None
    ) -> DataFolder:
        """List the files of a folder, without reading them.

        Args:
            path: The folder.
            name: The name of the data set; it chooses among several sets of dictionaries.
            vectors: Another folder of vectors, or a file name with "{}" in place of the language.
        """
        found = cls.open_all(path, name, vectors=vectors)
        if not found:
            raise BilexError(
                f"{path}: has no dictionaries that bilex knows by their names, such as en-fi.train.5k.tsv "
                "and en-fi.test.tsv; see docs/reference/data.md."
            )
        named = [part for part in found if name in (part.dictionaries.path.name, part.dictionaries.layout)]
        if len(found) > 1 and len(named) != 1:
            shown = listed((part.dictionaries.path.relative_to(path) for part in found), _SHOWN)
            raise BilexError(
                f"{path}: has several sets of dictionaries ({shown}); call the data set by one of these "
                "names, or give the folder of one."
            )
        return (named or found)[0]

    @classmethod
    def open_all(
        cls, path: str | Path, name: str | None = None, *, vectors: str | Path | None = None
    ) -> list[DataFolder]:
        """Every set of dictionaries in a folder, each with the vectors."""
        path = Path(path)
        if not path.is_dir():
            raise BilexError(f"{path}: there is no such folder; check the name, or see 'bilex data get'.")
        opened = []
        for part in find_dictionaries(path):
            where = Path(vectors or path)
            if where.is_dir():
                roots = [where] if vectors else [path, part.path]
                places = [place for root in roots for place in (root, root / "vectors")]
                found, sought = find_vectors(*places), f"in {where} and {where / 'vectors'}"
            elif where.name.count("{}") == 1:
                found, sought = find_vectors(where.parent, names=(where.name,)), str(vectors)
            else:
                raise BilexError(
                    f"{vectors}: is neither a folder nor a pattern; give a folder with vectors, "
                    "or a file name with {} in place of the language."
                )
            opened.append(cls(name or part.path.resolve().name, path, part, found, sought))
        return opened

    @classmethod
    def sample(cls) -> DataFolder:
        """The packaged English–Finnish sample: one pair, seeds "all"."""
        path = sample_path()
        files = PairFiles({ALL: path / "seeds.tsv"}, [path / "test.tsv"])
        return cls("sample", path, Dictionaries(path, "plain", {"en-fi": files}), find_vectors(path), "")

    def vectors_path(self, language: str) -> Path:
        """The vector file, or folder, of a language."""
        if language not in self.vectors:
            looked = self.vectors_sought
            if "{}" not in looked:
                first, *names = (n for n in _VECTOR_NAMES if "*" not in n and "vocab" not in n)
                folder = f"{first}/ (a folder of 'bilex convert')"
                looked = f"{', '.join([folder, *names])} (text also with .gz) {looked}"
            looked = looked.replace("{}", language)
            raise BilexError(f"{self.path}: there are no vectors for '{language}'; looked for {looked}.")
        return self.vectors[language]

    def seeds(self, pair: str, name: str) -> Lexicon:
        """A seed dictionary, lower-cased; empty for the name "0"."""
        return Lexicon([], "no seeds") if name == NO_SEEDS else self._lexicon(pair, name)

    def test(self, pair: str) -> Lexicon:
        """The test dictionary of a pair, lower-cased; swapped if stored in the other direction."""
        return self._lexicon(pair)

    def check(self, pair: str, seeds: str) -> None:
        """Check that all files of a setup exist, without reading them."""
        if seeds != NO_SEEDS:
            self._file(pair, seeds)
        self._file(pair)
        for language in pair.split("-"):
            self.vectors_path(language)

    def _lexicon(self, pair: str, seeds: str | None = None) -> Lexicon:
        path, is_swapped = self._file(pair, seeds)
        lexicon = Lexicon.load(path)
        return lexicon.swapped() if is_swapped else lexicon

    def _file(self, pair: str, seeds: str | None = None) -> tuple[Path, bool]:
        """A seed dictionary or, without a name, the test dictionary; whether it must be swapped."""
        where, stored = self.dictionaries.path, self.dictionaries.pairs
        found = next((name for name in (pair, swapped(pair)) if name in stored), None)
        if found is None:
            raise BilexError(f"{where}: has no dictionaries for '{pair}'; it has {listed(stored, _SHOWN)}.")
        files = stored[found]
        if seeds is not None:
            if seeds not in files.seeds:
                has = listed(files.seeds, _SHOWN) or "none"
                raise BilexError(f"{where}: has no seed dictionary '{seeds}' for '{pair}'; it has {has}.")
            return files.seeds[seeds], found != pair
        if len(files.tests) != 1:
            what = f"several ({listed(files.tests, _SHOWN)})" if files.tests else "none"
            raise BilexError(
                f"{where}: one test dictionary is needed for '{pair}', there is {what}; "
                "docs/reference/data.md says how such a file is named."
            )
        return files.tests[0], found != pair


def find_dictionaries(folder: Path, depth: int = _DEEPEST) -> Iterator[Dictionaries]:
    """The sets of dictionaries in a folder: the folder itself, or one or more of its subfolders."""
    pairs: dict[str, PairFiles] = {}
    layouts: set[str] = set()
    for file, named_by_folder in _candidates(folder):
        recognised = _recognise(file.name, named_by_folder)
        if recognised is not None:
            pair, kind, layout = recognised
            layouts.add(layout)
            entry = pairs.setdefault(pair, PairFiles())
            if kind == "test":
                entry.tests.append(file)
            else:
                entry.seeds.setdefault(kind, file)
    if pairs:
        for entry in pairs.values():
            entry.seeds = dict(sorted(entry.seeds.items(), key=lambda item: size_of(item[0]) or float("inf")))
        yield Dictionaries(
            folder, layouts.pop() if len(layouts) == 1 else "plain", dict(sorted(pairs.items()))
        )
    elif depth:
        for child in _children(folder):
            if child.is_dir():
                yield from find_dictionaries(child, depth - 1)


def _candidates(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Files that may be dictionaries, each with the pair that its folder is named after."""
    for child in _children(folder):
        if child.is_file():
            yield child, None
        elif re.fullmatch(_PAIR, child.name):
            yield from ((file, child.name) for file in _children(child) if file.is_file())


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(child for child in folder.iterdir() if not child.name.startswith("."))
    except OSError:  # no permission
        return []


def _recognise(name: str, folder_pair: str | None) -> tuple[str, str, str] | None:
    """The pair, the kind ("test" or the name of a seed dictionary) and the layout of a file's name."""
    stem, dot, suffix = name.rpartition(".")
    named = _PAIR_IN_NAME.match(name)
    pair = named[1] if named else folder_pair
    if f"{dot}{suffix}" not in _SUFFIXES or pair is None or folder_pair not in (None, pair):
        return None
    rest = stem.replace(pair, "", 1).strip(".")
    if suffix == "txt" and not rest:
        return pair, "full", "muse"
    if suffix == "txt" and (part := re.fullmatch(r"(\d+)-(\d+)", rest)):
        return pair, count_name(int(part[2])) if part[1] == "0" else "test", "muse"
    parts = re.split(r"[._-]", rest)
    layout = "xling" if parts[0] == "yacle" else "panlex" if suffix == "trans" else "plain"
    if "test" in parts:
        return pair, "test", layout
    if not {"train", "seeds"} & set(parts):
        return None
    sizes = [size for part in parts if (size := size_of(part)) is not None]
    return pair, count_name(sizes[0]) if sizes else ALL, layout


def swapped(pair: str) -> str:
    """The same pair in the other direction."""
    return "-".join(reversed(pair.split("-")))


def size_of(name: str) -> int | None:
    """The number that a name such as "5k" or "500" stands for."""
    count = _COUNT.fullmatch(name)
    return int(count[1]) * (1000 if count[2] else 1) if count else None


def count_name(count: int) -> str:
    """The name of a dictionary of a size: "5k", "500"."""
    return f"{count // 1000}k" if count and count % 1000 == 0 else str(count)


def find_vectors(*folders: Path, names: Sequence[str] = _VECTOR_NAMES) -> dict[str, Path]:
    """The vector files of some folders by language; earlier folders, and then earlier names, win."""
    found: dict[str, Path] = {}
    packed = f"(?:{'|'.join(map(re.escape, PACKED_SUFFIXES))})?"
    for folder in folders:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        for name in names:
            pattern = re.escape(name).replace(r"\{\}", f"({LANGUAGE})").replace(r"\*", r"\d+k?")
            for entry in entries:
                match = re.fullmatch(pattern + (packed if name.endswith(".vec") else ""), entry.name)
                is_vectors = (entry / CONFIG).is_file() or (entry.is_file() and name != "{}")
                if match and is_vectors:
                    found.setdefault(match[1], entry)
    return dict(sorted(found.items()))


def load_vectors(
    folder: DataFolder,
    language: str,
    limit: int | None = None,
    cache: Path | None = None,
    progress: Progress = SILENT,
    *,
    keep_markers: bool = True,
) -> WordVectors:
    """Load the vectors of a language, lower-cased, without subwords.

    With a cache, the first process that needs a text file parses it and stores it in our folder format; all
    others, at the same time or later, open that as a memory map and share its pages.
    """
    path = folder.vectors_path(language)

    def read() -> WordVectors:
        vectors = WordVectors.load(
            path, limit=limit, lowercase=True, keep_markers=keep_markers, progress=progress
        )
        return replace(vectors, subwords=None)

    if cache is None:
        return read()
    cached = cache / f"{language}-{_fingerprint(path, limit, keep_markers)}"
    if cached.is_dir():
        return _load_cached(cached, path)
    with write_errors(cache):
        cache.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache / f"{cached.name}.parsing"):
        if cached.is_dir():  # another process was faster
            return _load_cached(cached, path)
        vectors = read()
        if _is_mapped(vectors.vectors):
            return vectors
        vectors.save(cached, "safetensors")
    return replace(_load_cached(cached, path), report=vectors.report)


def _load_cached(cached: Path, path: Path) -> WordVectors:
    try:
        return WordVectors.load(cached, lowercase=False)
    except BilexError as error:
        raise BilexError(
            f"{cached}: the cached vectors of {path} are damaged; remove that folder and run again."
        ) from error


def _fingerprint(path: Path, limit: int | None, keep_markers: bool) -> str:
    """A hash of what the cached vectors of a file depend on; the file itself is not read."""
    files = [path / CONFIG] if path.is_dir() else [path]
    if path.suffix == ".npy":
        files += [other for suffix in WORD_LIST_SUFFIXES if (other := path.with_suffix(suffix)).is_file()]
    try:
        seen = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
    content = [_CACHE_VERSION, limit, seen, *([] if keep_markers else ["no markers"])]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _is_mapped(matrix: Matrix) -> bool:
    """Whether a matrix is mapped from a file, so that processes share it anyway."""
    base: object = matrix.stored if isinstance(matrix, StoredRows) else matrix
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap)
