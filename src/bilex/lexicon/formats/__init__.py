"""Every file format of dictionaries, by name; `read` and `write` are all that the rest of bilex uses.

A format of this package is a subclass of `DictionaryFormat` in the list below. Another distribution registers
one in its pyproject.toml:

    [project.entry-points."bilex.formats"]
    mine = "my_package.mine:Mine"
"""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import check_output, opened
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.files import DictionaryFormat, Layout, Reading, WriteOptions, WriteReport
from bilex.lexicon.formats import lines
from bilex.lexicon.formats.exchange import TBX, TEI, TMX, Apertium
from bilex.lexicon.formats.stardict import Dictd, StarDict
from bilex.lexicon.formats.tables import CSV, TSV, DeepL, Table
from bilex.lexicon.formats.xlsx import XLSX

__all__ = [
    "DictionaryFormat",
    "WriteOptions",
    "WriteReport",
    "all_formats",
    "format_named",
    "format_of",
    "read",
    "text_of",
    "write",
]

_HEAD = 1 << 16
# The first that recognises a file reads it: those that look at the content come before those that do not.
_CLASSES = (
    *(TSV, CSV, DeepL, lines.Muse, StarDict, Dictd, lines.Anki, TMX, TBX, TEI, Apertium, lines.Bicleaner),
    *(XLSX, lines.Wiktextract, lines.JsonLines, lines.Hunalign, lines.Synonyms, lines.OmegaT),
)
_OWN: dict[str, DictionaryFormat] = {cls.name: cls() for cls in _CLASSES}


def _registered() -> dict[str, EntryPoint]:
    """The formats that other distributions register, by name; they cannot replace one of bilex."""
    return {point.name: point for point in entry_points(group="bilex.formats") if point.name not in _OWN}


def _plugins() -> list[DictionaryFormat]:
    """The formats of other distributions; a broken one is left out with a warning."""
    found = []
    for name in _registered():
        try:
            found.append(format_named(name))
        except BilexError as error:
            warnings.warn(str(error), stacklevel=3)
    return found


def all_formats() -> list[DictionaryFormat]:
    """All formats, those of this package first."""
    return [*_OWN.values(), *_plugins()]


def format_named(name: str) -> DictionaryFormat:
    """The format with a name; an error if there is none."""
    if name in _OWN:
        return _OWN[name]
    registered = _registered()
    if name not in registered:
        known = [*_OWN, *registered]
        raise BilexError(
            f"dictionary format '{name}' is not known; choose one of {', '.join(known)}."
            f"{nearest_name(name, known)}"
        )
    try:
        found: DictionaryFormat = registered[name].load()()
        if found.name != name:
            raise ValueError(f"its name is '{found.name}'")
    except Exception as error:  # whatever the module of another distribution raises
        raise BilexError(
            f"dictionary format '{name}' cannot be loaded ({error}); repair its package."
        ) from error
    return found


def format_of(path: str | Path, chosen: str | None = None) -> DictionaryFormat:
    """The format to write: the one chosen, else the one that the suffix of the file names."""
    if chosen is not None:
        found = format_named(chosen)
        if not found.writable:
            raise BilexError(f"{path}: {found.noun} can be read but not written; choose another format.")
        return found
    suffix = Path(path).suffix.lower() or ".tsv"
    for formats in (_OWN.values, _plugins):  # plugins take long to find
        for found in formats():
            if suffix in found.suffixes and found.writable:
                return found
    raise BilexError(
        f"{path}: its suffix names no dictionary format; use .tsv, .csv, .jsonl, .tmx, .tbx, .tei, .xlsx or "
        "another of `bilex lexicon --help`, or name the format with --format."
    )


def read(path: str | Path, layout: Layout | None = None, chosen: str | None = None) -> Reading:
    """Read a dictionary, of StarDict or dictd any of its files; None as the `chosen` format to detect it."""
    path, layout = Path(path), layout or Layout()
    found = format_named(chosen) if chosen else _detected(path)
    reading = found.read(path, layout)
    if layout.columns in (None, ("1", "2")) or found.has_columns:
        return reading
    if layout.columns != ("2", "1"):
        raise BilexError(
            f"{path}: {found.noun} has no columns; leave --columns out, or turn the dictionary round with "
            "--columns 2,1."
        )
    for entries in (reading.entries, reading.rejected):
        entries[:] = [entry.swapped() for entry in entries]
    if not all(layout.languages):
        reading.languages = reading.languages[1], reading.languages[0]
    return reading


def _detected(path: Path) -> DictionaryFormat:
    """The format that a file is in; what no format recognises is a table."""
    with opened(path) as file:
        head = file.read(_HEAD)
    for found in _OWN.values():
        if found.recognizes(path, head):
            return found
    suffix = path.suffix.lower()
    if suffix and not any(suffix in found.suffixes for found in _OWN.values()):
        for found in _plugins():
            if found.recognizes(path, head):
                return found
    return Table()


def write(
    path: str | Path, dictionary: Dictionary, chosen: str | None = None, options: WriteOptions | None = None
) -> WriteReport:
    """Write a dictionary, atomically; None as the `chosen` format for the one that the suffix names."""
    check_output(path)
    return format_of(path, chosen).write(Path(path), dictionary, options or WriteOptions())


def text_of(
    dictionary: Dictionary, name: str, options: WriteOptions | None = None
) -> tuple[str, WriteReport]:
    """A dictionary as the text of a file, for formats that are text."""
    return format_of("-", name).text(dictionary, options or WriteOptions())
