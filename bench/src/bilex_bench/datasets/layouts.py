"""Finding the dictionaries of a data set by the names of their files.

One rule serves XLING, PanLex-BLI and a user's own folder. A pair `xx-yy` is named by the beginning of a
file's name or by the folder that holds the file. What is left of the name is cut at every dot, dash and
underscore: the part `train` or `seeds` makes it a seed dictionary, called by the part that is a number
(`5k`, `1000`; `all` without one), the part `test` the test dictionary. MUSE numbers its source words
instead: `xx-yy.0-5000.txt` are seeds, `xx-yy.5000-6500.txt` is the test, `xx-yy.txt` is everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LANGUAGE = r"[a-z]{2,3}(?:_[a-z]+)?"
ALL, FULL = "all", "full"
_PAIR = re.compile(rf"{LANGUAGE}-{LANGUAGE}")
_PAIR_FIRST = re.compile(rf"({LANGUAGE}-{LANGUAGE})(?=\.)")
_PAIR_WITHIN = re.compile(rf"(?<=\.)({LANGUAGE}-{LANGUAGE})(?=\.)")
_SUFFIXES = {".tsv", ".txt", ".csv", ".jsonl", ".ndjson", ".dict", ".trans"}
_MUSE_PART = re.compile(r"(\d+)-(\d+)")
_COUNT = re.compile(r"(\d+)(k?)", re.IGNORECASE)
_DEEPEST = 3


@dataclass
class PairFiles:
    """The dictionaries of one pair, as stored.

    Attributes:
        seeds: Seed dictionaries by name, the smallest first.
        tests: Test dictionaries; more than one is a fault of the folder.
    """

    seeds: dict[str, Path] = field(default_factory=dict)
    tests: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Dictionaries:
    """The dictionaries found in one folder.

    Attributes:
        path: The folder.
        layout: "xling", "panlex", "muse" or "plain".
        pairs: What there is by pair, in order of their names.
    """

    path: Path
    layout: str
    pairs: dict[str, PairFiles]


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
