"""A folder of dictionaries and word vectors, whatever its layout.

Files are known by their names. One rule serves XLING, PanLex-BLI and a user's own folder. A pair `xx-yy` is
named by the beginning of a file's name or by the folder that holds the file. What is left of the name is cut
at every dot, dash and underscore: the part `train` or `seeds` makes it a seed dictionary, called by the part
that is a number (`5k`, `1000`; `all` without one), the part `test` the test dictionary. MUSE numbers its
source words instead: `xx-yy.0-5000.txt` are seeds, `xx-yy.5000-6500.txt` the test, `xx-yy.txt` is everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.vectors.folder import CONFIG
from bilex.vectors.reading import PACKED_SUFFIXES

NO_SEEDS = "0"
_VECTORS = "vectors"
_SAMPLE = "sample"
LANGUAGE = r"[a-z]{2,3}(?:_[a-z]+)?"
ALL, FULL = "all", "full"
_PAIR = re.compile(rf"{LANGUAGE}-{LANGUAGE}")
_PAIR_FIRST = re.compile(rf"({LANGUAGE}-{LANGUAGE})(?=\.)")
_PAIR_WITHIN = re.compile(rf"(?<=\.)({LANGUAGE}-{LANGUAGE})(?=\.)")
_SUFFIXES = {".tsv", ".txt", ".csv", ".jsonl", ".ndjson", ".dict", ".trans"}
_MUSE_PART = re.compile(r"(\d+)-(\d+)")
_COUNT = re.compile(r"(\d+)(k?)", re.IGNORECASE)
_DEEPEST = 3
# The first that fits is taken: what opens at once before what has to be parsed, whole files before cut ones.
_NAMES = (
    "{}",
    "{}.npy",
    "{}.vec",
    "wiki.{}.vec",
    "cc.{}.300.vec",
    "wiki.{}.*.vec",
    "cc.{}.300.*.vec",
    "fasttext.wiki.{}.300.vocab_200K.vec",
    "fasttext.cc.{}.300.vocab_200K.vec",
    "{}.bin",
    "wiki.{}.bin",
    "cc.{}.300.bin",
)
_PACKED = f"(?:{'|'.join(re.escape(suffix) for suffix in PACKED_SUFFIXES)})?"


@dataclass(frozen=True)
class DataFolder:
    """What a benchmark reads: dictionaries of language pairs, and vectors of the languages."""

    name: str  # what the data set is called in a grid
    path: Path
    dictionaries: Dictionaries
    vectors: dict[str, Path]  # the vector files found, by language
    vectors_sought: str  # where they were looked for, for messages: a pattern, or places in words

    @property
    def layout(self) -> str:
        """How the dictionaries are named: "xling", "panlex", "muse" or "plain"."""
        return self.dictionaries.layout

    @classmethod
    def open(
        cls, path: str | Path, name: str | None = None, *, vectors: str | Path | None = None
    ) -> DataFolder:
        """Look what there is in a folder; no file is read."""
        path = Path(path)
        if not path.is_dir():
            raise BilexError(f"{path}: there is no such folder; check the name, or see 'bilex data get'.")
        chosen = _chosen(path, find_dictionaries(path), name)
        return cls._of(path, chosen, name, vectors)

    @classmethod
    def open_all(cls, path: str | Path, *, vectors: str | Path | None = None) -> list[DataFolder]:
        """Every set of dictionaries in a folder, each with the vectors; none where there is none."""
        path = Path(path)
        if not path.is_dir():
            raise BilexError(f"{path}: there is no such folder; check the name.")
        return [cls._of(path, part, None, vectors) for part in find_dictionaries(path)]

    @classmethod
    def sample(cls) -> DataFolder:
        """The packaged English–Finnish sample: one pair, seeds "all"."""
        path = sample_path()
        files = PairFiles({ALL: path / "seeds.tsv"}, [path / "test.tsv"])
        return cls(_SAMPLE, path, Dictionaries(path, "plain", {"en-fi": files}), find_vectors(path), "")

    @classmethod
    def _of(
        cls, path: Path, dictionaries: Dictionaries, name: str | None, chosen: str | Path | None
    ) -> DataFolder:
        """A folder with one of its sets of dictionaries and the vectors that go with it."""
        if chosen is None:
            places = [path, path / _VECTORS, dictionaries.path, dictionaries.path / _VECTORS]
        else:
            places = [Path(chosen), Path(chosen) / _VECTORS]
        by_pattern = chosen is not None and not places[0].is_dir()
        vectors = vectors_of_pattern(str(chosen)) if by_pattern else find_vectors(*places)
        sought = str(chosen) if by_pattern else f"in {places[0]} and {places[1]}"
        return cls(name or dictionaries.path.resolve().name, path, dictionaries, vectors, sought)

    def languages(self) -> tuple[str, ...]:
        """The languages with vectors."""
        return tuple(self.vectors)

    def pairs(self) -> tuple[str, ...]:
        """The pairs with dictionaries, in the direction they are stored."""
        return tuple(self.dictionaries.pairs)

    def seed_names(self, pair: str) -> tuple[str, ...]:
        """The names of a pair's seed dictionaries, the smallest first."""
        return tuple(self._files(pair)[0].seeds)

    def vectors_path(self, language: str) -> Path:
        """The vector file, or folder, of a language."""
        found = self.vectors.get(language)
        if found is None:
            sought = self.vectors_sought
            looked = sought.format(language) if "{}" in sought else f"{names_looked_for(language)} {sought}"
            raise BilexError(f"{self.path}: there are no vectors for '{language}'; looked for {looked}.")
        return found

    def seeds(self, pair: str, name: str) -> Lexicon:
        """A seed dictionary, lower-cased; empty for the name "0"."""
        files, swapped = self._files(pair)
        if name == NO_SEEDS:
            return Lexicon([], "no seeds")
        return _lexicon(self._seeds_path(pair, files, name), swapped)

    def test(self, pair: str) -> Lexicon:
        """The test dictionary of a pair, lower-cased; swapped if stored in the other direction."""
        files, swapped = self._files(pair)
        return _lexicon(self._test_path(pair, files), swapped)

    def check(self, pair: str, seeds: str) -> None:
        """See that all that a setup needs is there, without reading it."""
        files, _ = self._files(pair)
        if seeds != NO_SEEDS:
            self._seeds_path(pair, files, seeds)
        self._test_path(pair, files)
        for language in pair.split("-"):
            self.vectors_path(language)

    def _files(self, pair: str) -> tuple[PairFiles, bool]:
        """The files of a pair, and whether they are stored in the other direction."""
        stored = self.dictionaries.pairs
        source, _, target = pair.partition("-")
        if pair in stored:
            return stored[pair], False
        if f"{target}-{source}" in stored:
            return stored[f"{target}-{source}"], True
        raise BilexError(
            f"{self.dictionaries.path}: has no dictionaries for '{pair}'; it has {_listed(tuple(stored))}."
        )

    def _seeds_path(self, pair: str, files: PairFiles, name: str) -> Path:
        if name not in files.seeds:
            raise BilexError(
                f"{self.dictionaries.path}: has no seed dictionary '{name}' for '{pair}'; "
                f"it has {_listed(tuple(files.seeds)) or 'none'}."
            )
        return files.seeds[name]

    def _test_path(self, pair: str, files: PairFiles) -> Path:
        if len(files.tests) != 1:
            what = f"several ({_listed(tuple(map(str, files.tests)))})" if files.tests else "none"
            raise BilexError(
                f"{self.dictionaries.path}: one test dictionary is needed for '{pair}', there is {what}; "
                "docs/reference/data.md says how such a file is named."
            )
        return files.tests[0]


def _lexicon(path: Path, swapped: bool) -> Lexicon:
    lexicon = Lexicon.load(path)
    return lexicon.swapped() if swapped else lexicon


def _chosen(path: Path, found: list[Dictionaries], name: str | None) -> Dictionaries:
    if not found:
        raise BilexError(
            f"{path}: has no dictionaries that bilex knows by their names, such as en-fi.train.5k.tsv and "
            "en-fi.test.tsv; see docs/reference/data.md."
        )
    named = [part for part in found if name in (part.path.name, part.layout)]
    if len(found) > 1 and len(named) != 1:
        listed = _listed(tuple(str(part.path.relative_to(path)) for part in found))
        raise BilexError(
            f"{path}: has several sets of dictionaries ({listed}); call the data set by one of these names, "
            "or give the folder of one."
        )
    return named[0] if named else found[0]


def _listed(names: tuple[str, ...], shown: int = 12) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


@dataclass
class PairFiles:
    """The dictionaries of one pair, as stored."""

    seeds: dict[str, Path] = field(default_factory=dict)  # seed dictionaries by name, the smallest first
    # test dictionaries; more than one is a fault of the folder
    tests: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Dictionaries:
    """The dictionaries found in one folder."""

    path: Path  # the folder
    layout: str  # "xling", "panlex", "muse" or "plain"
    pairs: dict[str, PairFiles]  # what there is by pair, in order of their names


def find_dictionaries(root: Path) -> list[Dictionaries]:
    """The sets of dictionaries in a folder: itself one, or one or more of its subfolders."""
    return list(_search(root, _DEEPEST))


def count_name(count: int) -> str:
    """How a dictionary of so many entries is called: "5k", "500"."""
    return f"{count // 1000}k" if count and count % 1000 == 0 else str(count)


def _search(folder: Path, depth: int) -> Iterator[Dictionaries]:
    found = _read(folder)
    if found is not None:
        yield found
    elif depth:
        for child in _children(folder):
            if child.is_dir():
                yield from _search(child, depth - 1)


def _read(folder: Path) -> Dictionaries | None:
    """The dictionaries that stand in a folder itself or in its subfolders named after pairs."""
    pairs: dict[str, PairFiles] = {}
    layouts: set[str] = set()
    for file, named_by_folder in _candidates(folder):
        recognised = _recognise(file.name, named_by_folder)
        if recognised is None:
            continue
        pair, kind, layout = recognised
        entry = pairs.setdefault(pair, PairFiles())
        if kind == "test":
            entry.tests.append(file)
        else:
            entry.seeds.setdefault(kind, file)
        layouts.add(layout)
    if not pairs:
        return None
    for entry in pairs.values():
        entry.seeds = dict(sorted(entry.seeds.items(), key=lambda item: _size(item[0])))
    layout = layouts.pop() if len(layouts) == 1 else "plain"
    return Dictionaries(folder, layout, dict(sorted(pairs.items())))


def _candidates(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Files that may be dictionaries, each with the pair that its folder is named after."""
    for child in _children(folder):
        if child.is_file():
            yield child, None
        elif _PAIR.fullmatch(child.name):
            yield from ((file, child.name) for file in _children(child) if file.is_file())


def _recognise(name: str, folder_pair: str | None) -> tuple[str, str, str] | None:
    """The pair, the kind ("test" or the name of a seed dictionary) and the layout of a file's name."""
    stem, dot, suffix = name.rpartition(".")
    if f"{dot}{suffix}" not in _SUFFIXES:
        return None
    named = _PAIR_FIRST.match(name) or _PAIR_WITHIN.search(name)
    pair = named[1] if named else folder_pair
    if pair is None or (folder_pair is not None and pair != folder_pair):
        return None
    rest = stem.replace(pair, "", 1).strip(".")
    muse = _muse_kind(rest) if suffix == "txt" else None
    if muse is not None:
        return pair, muse, "muse"
    parts = re.split(r"[._-]", rest)
    layout = "xling" if parts[0] == "yacle" else "panlex" if suffix == "trans" else "plain"
    if "test" in parts:
        return pair, "test", layout
    if not {"train", "seeds"} & set(parts):
        return None
    counts = (_COUNT.fullmatch(part) for part in parts)
    sizes = [int(count[1]) * (1000 if count[2] else 1) for count in counts if count]
    return pair, count_name(sizes[0]) if sizes else ALL, layout


def _muse_kind(rest: str) -> str | None:
    if not rest:
        return FULL
    part = _MUSE_PART.fullmatch(rest)
    if part is None:
        return None
    return count_name(int(part[2])) if part[1] == "0" else "test"


def _size(name: str) -> float:
    count = _COUNT.fullmatch(name)
    return int(count[1]) * (1000 if count[2] else 1) if count else float("inf")


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(child for child in folder.iterdir() if not child.name.startswith("."))
    except OSError:
        return []


def _compiled(name: str) -> re.Pattern[str]:
    pattern = re.escape(name).replace(r"\{\}", f"({LANGUAGE})").replace(r"\*", r"\d+k?")
    return re.compile(pattern + (_PACKED if name.endswith(".vec") else ""))


_PATTERNS = tuple(_compiled(name) for name in _NAMES)


def names_looked_for(language: str) -> str:
    """The names that the vectors of a language may have, for a message."""
    shown = [name.format(language) for name in _NAMES if "*" not in name and "vocab" not in name]
    return f"{shown[0]}/ (a folder of 'bilex convert'), {', '.join(shown[1:])} (text also with .gz)"


def find_vectors(*folders: Path) -> dict[str, Path]:
    """The vector files of some folders by language, in order of the languages."""
    found: dict[str, Path] = {}
    for folder in folders:
        best: dict[str, tuple[int, Path]] = {}
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            for order, pattern in enumerate(_PATTERNS):
                match = pattern.fullmatch(entry.name)
                if match and entry.is_dir() == (order == 0) and _is_whole(entry):
                    best[match[1]] = min(best.get(match[1], (order, entry)), (order, entry))
        found = {language: path for language, (_, path) in best.items()} | found
    return dict(sorted(found.items()))


def vectors_of_pattern(pattern: str) -> dict[str, Path]:
    """The files that a pattern names when a language is put for its "{}"."""
    path = Path(pattern)
    if pattern.count("{}") != 1 or "{}" not in path.name:
        raise BilexError(
            f"{pattern}: is neither a folder nor a pattern; give a folder with vectors, "
            "or a file name with {} in the place of the language."
        )
    regular = re.compile(re.escape(path.name).replace(r"\{\}", f"({LANGUAGE})"))
    entries = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    matches = ((regular.fullmatch(entry.name), entry) for entry in entries)
    return {match[1]: entry for match, entry in matches if match and _is_whole(entry)}


def _is_whole(entry: Path) -> bool:
    """Whether a folder is one of vectors; files are taken as they are."""
    return not entry.is_dir() or (entry / CONFIG).is_file()
