"""Every file format of dictionaries, by name, each with its reader and writer.

`read` and `write` are all that the rest of the package uses. A format of this package is one module with a
`FORMAT` here and one line in `bilex.core.format_names`. Another distribution registers one in its
pyproject.toml:

    [project.entry-points."bilex.formats"]
    mine = "my_package.mine:FORMAT"
"""

from __future__ import annotations

import functools
import importlib
import warnings
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import atomic_file, check_output
from bilex.core.format_names import DICTIONARY_MODULES, WRITTEN_FORMATS, registered_formats
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, WriteReport
from bilex.lexicon.reading import Layout, Reading

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

_WITH_COLUMNS = ("tsv", "csv", "xlsx")


@functools.cache
def format_named(name: str) -> DictionaryFormat:
    """The format of a name.

    Raises:
        BilexError: There is none.
    """
    if name in DICTIONARY_MODULES:
        found: object = importlib.import_module(f"{__name__}.{DICTIONARY_MODULES[name]}").FORMAT
    elif name in (registered := registered_formats()):
        try:
            found = registered[name].load()
        except Exception as error:  # whatever the module of another distribution raises
            raise BilexError(
                f"dictionary format '{name}' cannot be loaded ({error}); repair its package."
            ) from error
    else:
        known = [*DICTIONARY_MODULES, *registered]
        raise BilexError(
            f"dictionary format '{name}' is not known; choose one of {', '.join(known)}."
            f"{nearest_name(name, known)}"
        )
    if not isinstance(found, DictionaryFormat) or found.name != name:
        raise BilexError(f"dictionary format '{name}' is none of that name; repair its package.")
    return found


def all_formats() -> list[DictionaryFormat]:
    """All formats, those that are written first."""
    return [*map(format_named, DICTIONARY_MODULES), *_registered()]


def format_of(path: str | Path, chosen: str | None = None) -> DictionaryFormat:
    """The format to write: the one chosen, else the one of the file's name.

    Raises:
        BilexError: The chosen format is not known or cannot be written, or the file's suffix means none.
    """
    if chosen is not None:
        found = format_named(chosen)
        if not found.writable:
            raise BilexError(f"{path}: {found.noun} can be read but not written; choose another format.")
        return found
    suffix = Path(path).suffix.lower()
    if not suffix:
        return format_named("tsv")
    for form in (*map(format_named, WRITTEN_FORMATS), *_registered()):
        if suffix in form.suffixes and form.writable:
            return form
    raise BilexError(
        f"{path}: its suffix names no dictionary format; use .tsv, .csv, .jsonl, .tmx, .tbx, .tei, .xlsx or "
        "another of `bilex lexicon --help`, or name the format with --format."
    )


def read(path: str | Path, layout: Layout | None = None, chosen: str | None = None) -> Reading:
    """Read a dictionary.

    Args:
        path: The file; of a StarDict or dictd dictionary any of its files.
        layout: How it is laid out, where it does not say so itself.
        chosen: The name of its format; None to find out from what it holds.

    Raises:
        BilexError: It cannot be read; one sentence with the file and, where there is one, the line.
    """
    from bilex.lexicon.formats.rows import read_rows
    from bilex.lexicon.formats.sniffing import format_in

    path, layout = Path(path), layout or Layout()
    name = chosen or format_in(path) or _registered_for(path)
    if name is None:
        return read_rows(path, layout)
    reader = format_named(name).read
    assert reader is not None  # every format can be read
    reading = reader(path, layout)
    if layout.columns is None or name in _WITH_COLUMNS:
        return reading
    return _turned(reading, path, layout, name)


def _registered_for(path: Path) -> str | None:
    """The format of another distribution that a file's suffix belongs to."""
    return next((form.name for form in _registered() if path.suffix.lower() in form.suffixes), None)


def _registered() -> list[DictionaryFormat]:
    """The formats of other distributions; a broken one is left out with a warning."""
    found = []
    for name in registered_formats():
        try:
            found.append(format_named(name))
        except BilexError as error:
            warnings.warn(str(error), stacklevel=3)
    return found


def _turned(reading: Reading, path: Path, layout: Layout, name: str) -> Reading:
    """What was read of a format without columns, turned round if the second column was asked for first."""
    if layout.columns == ("1", "2"):
        return reading
    if layout.columns != ("2", "1"):
        raise BilexError(
            f"{path}: {format_named(name).noun} has no columns; leave --columns out, or turn the dictionary "
            "round with --columns 2,1."
        )
    entries, rejected = ([entry.swapped() for entry in side] for side in (reading.entries, reading.rejected))
    languages = reading.languages if all(layout.languages) else reading.languages[::-1]
    return Reading(entries, rejected, reading.report, languages)


def write(
    path: str | Path,
    dictionary: Dictionary,
    chosen: str | None = None,
    options: WriteOptions | None = None,
) -> WriteReport:
    """Write a dictionary, atomically.

    Args:
        path: The file to write.
        dictionary: What to write.
        chosen: The name of the format; None for the one that the file's name says.
        options: How to write.

    Returns:
        How many pairs were written and what was left out.

    Raises:
        BilexError: The file cannot be written, or the format cannot hold a pair.
    """
    path, options = Path(path), options or WriteOptions()
    check_output(path)
    form = format_of(path, chosen)
    fitting, report = form.fitting(dictionary, options)
    if form.save is not None:
        form.save(path, fitting, options)
        return report
    assert form.pieces is not None
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for piece in form.pieces(fitting, options):
            file.write(piece)
    return report


def text_of(
    dictionary: Dictionary, name: str, options: WriteOptions | None = None
) -> tuple[str, WriteReport]:
    """A dictionary as the text of a file, for formats that are text.

    Raises:
        BilexError: The format is no text, or cannot hold a pair.
    """
    form, options = format_of("-", name), options or WriteOptions()
    if form.pieces is None:
        raise BilexError(f"{form.noun} is no text; name a file to write with -o.")
    fitting, report = form.fitting(dictionary, options)
    return "".join(form.pieces(fitting, options)), report
