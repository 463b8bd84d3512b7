"""Finding word vectors by the usual names of their files."""

from __future__ import annotations

import re
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.vectors.folder import CONFIG
from bilex.vectors.reading import PACKED_SUFFIXES
from bilex_bench.datasets.layouts import LANGUAGE

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
