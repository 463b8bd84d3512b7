"""Every file format of dictionaries, by name, each with its reader and writer.

`read` and `write` are all that the rest of the package uses. A format of this package is a
`DictionaryFormat` in a module of this folder. Another distribution registers one in its pyproject.toml:

    [project.entry-points."bilex.formats"]
    mine = "my_package.mine:FORMAT"
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import atomic_file, check_output
from bilex.core.text import escape_control_characters
from bilex.lexicon.entries import Dictionary, Entry, with_one_line_texts, word_fault
from bilex.lexicon.reading import GZIP, ZIP, Layout, Reading, json_object, open_dictionary
from bilex.vectors.phrases import words_of

_SHOWN_OF_A_WORD = 60
_BYTE_ORDER_MARK = "\ufeff"
_WITH_COLUMNS = ("tsv", "csv", "xlsx")
_HEAD = 1 << 16
_XML_ROOTS = {
    **dict.fromkeys(("martif", "tbx", "TBX"), "tbx"),
    **dict.fromkeys(("TEI", "TEI.2", "teiCorpus"), "tei"),
    "tmx": "tmx",
    "dictionary": "apertium",
}
_XML_SUFFIXES = {".tmx": "tmx", ".tbx": "tbx", ".tei": "tei", ".dix": "apertium"}
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
_ANKI_DIRECTIVES = (b"#separator:", b"#html:")
_PARTS_OF_DICTIONARIES = (".ifo", ".idx", ".idx.gz", ".dict", ".dict.dz", ".index", ".syn")


@dataclass(frozen=True)
class WriteOptions:
    """How to write.

    Args:
        defuse_formulas: Whether cells that a spreadsheet would compute get an apostrophe before them.
        skip_unfit: Whether pairs that the format cannot hold are left out and counted; else the first of
            them is an error.
    """

    defuse_formulas: bool = False
    skip_unfit: bool = False


@dataclass(frozen=True)
class WriteReport:
    """How many pairs were written, and every reason for which pairs were left out, with its count."""

    written: int
    left_out: tuple[tuple[str, int], ...] = ()

    def sentence(self) -> str:
        """One sentence on what was left out; nothing if nothing was."""
        if not self.left_out:
            return ""
        counted = ", ".join(f"{count:,} with {reason}" for reason, count in self.left_out)
        return f"{sum(count for _, count in self.left_out):,} pairs were left out: {counted}."


@dataclass(frozen=True)
class DictionaryFormat:
    """One file format of dictionaries.

    Attributes:
        name: What `--format`, `--from` and `--to` call it.
        description: What it is, in a few words.
        suffixes: Suffixes of its files, the usual one first.
        noun: What a file of it is called in messages, with its article.
        read: Reads a file; None if the format is only written.
        pieces: The text of a dictionary, piece by piece; None for formats that are no text.
        save: Writes a dictionary to a path, for formats that are no text or several files.
        fault: Why the format cannot hold a pair, as "with ..." would go on; empty if it can.
        one_translation: Whether a word may have one translation only; the first is kept.
        single_words: Whether words may hold no space, so that phrases keep the underscores of a model.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    noun: str
    read: Callable[[Path, Layout], Reading] | None = None
    pieces: Callable[[Dictionary, WriteOptions], Iterator[str]] | None = None
    save: Callable[[Path, Dictionary, WriteOptions], None] | None = None
    fault: Callable[[Entry], str] = lambda entry: ""
    one_translation: bool = False
    single_words: bool = False

    @property
    def writable(self) -> bool:
        """Whether it can be written."""
        return self.pieces is not None or self.save is not None

    def fitting(self, dictionary: Dictionary, options: WriteOptions) -> tuple[Dictionary, WriteReport]:
        """The part of a dictionary that the format can hold; an error if a pair may not be left out."""
        left_out: Counter[str] = Counter()
        kept: list[Entry] = []
        translated: set[str] = set()
        spaced = dictionary.units and not self.single_words
        for entry in map(_with_spaces, dictionary.entries) if spaced else dictionary.entries:
            nowhere = _common_fault(entry.source) or _common_fault(entry.target)
            reason = nowhere or self.fault(entry)
            # Vocabularies hold words that fit into no dictionary: those are left out in any case.
            if reason and not (nowhere and dictionary.units) and not options.skip_unfit:
                raise BilexError(
                    f"the pair {_shown(entry.source)}, {_shown(entry.target)} does not fit into {self.noun} "
                    f"({reason}); write another format, such as .jsonl, or leave such pairs out with "
                    "--skip-unfit."
                )
            if not reason and self.one_translation and entry.source in translated:
                reason = "a further translation of a word, of which there may be one"
            if reason:
                left_out[reason] += 1
                continue
            translated.add(entry.source)
            kept.append(with_one_line_texts(entry))
        if dictionary.entries and not kept:
            raise BilexError(f"none of the {len(dictionary.entries):,} pairs fits into {self.noun}.")
        return dictionary.with_entries(kept), WriteReport(len(kept), tuple(left_out.most_common()))


def _with_spaces(entry: Entry) -> Entry:
    """The entry, phrases with spaces: "new york" for the unit "new_york"."""
    if "_" not in entry.source and "_" not in entry.target:
        return entry
    source, target = (" ".join(words_of(word)) or word for word in (entry.source, entry.target))
    return dataclasses.replace(entry, source=source, target=target)


def _common_fault(word: str) -> str:
    """Why no format could give a word back; empty if some can."""
    if not word.strip():
        return "an empty word"
    return word_fault(word) or ("a blank before or after a word" if word != word.strip() else "")


def _shown(word: str) -> str:
    """A word for a message: quoted, harmless, not too long."""
    cut = word if len(word) <= _SHOWN_OF_A_WORD else f"{word[:_SHOWN_OF_A_WORD]}…"
    return escape_control_characters(repr(cut))


def line_fault(entry: Entry, forbidden: str = "") -> str:
    """Why a pair does not fit into a line of a text file in which some characters have another meaning."""
    for word in (entry.source, entry.target):
        if word.startswith(_BYTE_ORDER_MARK):
            return "a byte order mark before a word"
        for char in forbidden:
            if char in word:
                return f"{ {' ': 'a space', chr(9): 'a tab'}.get(char, repr(char)) } in a word"
    return ""


def grouped(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries by source word, both in the order in which they came."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.source, []).append(entry)
    return found


@functools.cache
def _own_formats() -> dict[str, DictionaryFormat]:
    """The formats of the modules of this folder, by name."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    values = (value for module in modules for value in vars(module).values())
    return {value.name: value for value in values if isinstance(value, DictionaryFormat)}


def _registered() -> dict[str, EntryPoint]:
    """The formats that other distributions register, by name; a name of ours is not theirs."""
    found = entry_points(group="bilex.formats")
    return {entry.name: entry for entry in found if entry.name not in _own_formats()}


def _formats() -> Iterator[DictionaryFormat]:
    """Our formats, then those of others, which take long to find; a broken one is left out with a warning."""
    yield from _own_formats().values()
    registered = []
    for name in _registered():
        try:
            registered.append(format_named(name))
        except BilexError as error:
            warnings.warn(str(error), stacklevel=3)
    yield from registered


def all_formats() -> list[DictionaryFormat]:
    """All formats, those of this package first."""
    return list(_formats())


def format_named(name: str) -> DictionaryFormat:
    """The format of a name; an error if there is none."""
    if name in _own_formats():
        return _own_formats()[name]
    registered = _registered()
    if name not in registered:
        known = [*_own_formats(), *registered]
        raise BilexError(
            f"dictionary format '{name}' is not known; choose one of {', '.join(known)}."
            f"{nearest_name(name, known)}"
        )
    try:
        found: object = registered[name].load()
    except Exception as error:  # whatever the module of another distribution raises
        raise BilexError(
            f"dictionary format '{name}' cannot be loaded ({error}); repair its package."
        ) from error
    if not isinstance(found, DictionaryFormat) or found.name != name:
        raise BilexError(f"dictionary format '{name}' is not a format of that name; repair its package.")
    return found


def format_of(path: str | Path, chosen: str | None = None) -> DictionaryFormat:
    """The format to write: the one chosen, else the one of the file's name."""
    if chosen is not None:
        found = format_named(chosen)
        if not found.writable:
            raise BilexError(f"{path}: {found.noun} can be read but not written; choose another format.")
        return found
    suffix = Path(path).suffix.lower()
    if not suffix:
        return format_named("tsv")
    for form in _formats():
        if suffix in form.suffixes and form.writable:
            return form
    raise BilexError(
        f"{path}: its suffix names no dictionary format; use .tsv, .csv, .jsonl, .tmx, .tbx, .tei, .xlsx or "
        "another of `bilex lexicon --help`, or name the format with --format."
    )


def read(path: str | Path, layout: Layout | None = None, chosen: str | None = None) -> Reading:
    """Read a dictionary, of StarDict or dictd any of its files; None as the `chosen` format to detect it."""
    from bilex.lexicon.tables import read_rows

    path, layout = Path(path), layout or Layout()
    name = chosen or _detected(path)
    if name is None:
        return read_rows(path, layout)
    form = format_named(name)
    if form.read is None:
        raise BilexError(f"{path}: {form.noun} can be written but not read; choose another format.")
    reading = form.read(path, layout)
    if layout.columns in (None, ("1", "2")) or name in _WITH_COLUMNS:
        return reading
    if layout.columns != ("2", "1"):
        raise BilexError(
            f"{path}: {form.noun} has no columns; leave --columns out, or turn the dictionary "
            "round with --columns 2,1."
        )
    entries, rejected = ([entry.swapped() for entry in side] for side in (reading.entries, reading.rejected))
    languages = reading.languages if all(layout.languages) else reading.languages[::-1]
    return Reading(entries, rejected, reading.report, languages)


def stem_of(path: Path) -> Path:
    """The path without what the files of a StarDict or dictd dictionary end in."""
    found = (suffix for suffix in _PARTS_OF_DICTIONARIES if path.name.endswith(suffix))
    return path.with_name(path.name.removesuffix(next(found, "")))


def _detected(path: Path) -> str | None:
    """The name of the format that a file is in; None for rows of cells, whatever divides them."""
    stem, suffix = stem_of(path), path.suffix.lower()
    for name, part in (("stardict", ".ifo"), ("dictd", ".index")):  # dictionaries of several files
        if path.suffix == part or (stem != path and stem.with_name(stem.name + part).exists()):
            return name
    with open_dictionary(path) as file:
        head = file.read(_HEAD)
    found = _by_content(head) or _by_suffix(suffix, head)
    if found is None and suffix:
        registered = next((form.name for form in _formats() if suffix in form.suffixes), None)
        found = None if registered in _own_formats() else registered
    return found


def _by_content(head: bytes) -> str | None:
    """A format whose files say what they are."""
    if head.startswith(_ANKI_DIRECTIVES):
        return "anki"
    if head.lstrip(_BEFORE_XML).startswith(b"<") or head[:4] in (b"\xff\xfe<\0", b"\xfe\xff\0<"):
        from bilex.lexicon.xml import root_of

        return _XML_ROOTS.get(root_of(head))
    if not head.startswith(GZIP):
        return None
    try:
        line, end, _ = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD).partition(b"\n")
    except zlib.error:
        return None
    parts = line.decode("utf-8", "replace").split()
    return "bicleaner" if end and len(parts) == 3 and is_probability(parts[2]) else None


def _by_suffix(suffix: str, head: bytes) -> str | None:
    """A format that the name of the file says, and what it holds does not deny."""
    if head.startswith(ZIP):
        return "xlsx" if suffix in (".xlsx", ".xlsm") else None
    if suffix in (".jsonl", ".ndjson"):
        return "wiktextract" if _is_wiktextract(head) else "jsonl"
    if suffix in _XML_SUFFIXES:
        return _XML_SUFFIXES[suffix] if head.lstrip(_BEFORE_XML)[:1] in (b"", b"<") else None
    if suffix == ".dic":
        return "hunalign" if b" @ " in head else None
    return {".synonyms": "synonyms", ".utf8": "omegat"}.get(suffix)


def _is_wiktextract(head: bytes) -> bool:
    """Whether the first line, if it is whole, is an entry of Wiktextract rather than a pair."""
    line, end, _ = head.partition(b"\n")
    record = json_object(line.decode("utf-8", "replace"))
    if record is None:
        return not end and b'"lang_code"' in line and b'"word"' in line and b'"source"' not in line
    return "source" not in record and isinstance(record.get("word"), str)


def is_probability(text: str) -> bool:
    """Whether a text is a number from 0 to 1."""
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def write(
    path: str | Path, dictionary: Dictionary, chosen: str | None = None, options: WriteOptions | None = None
) -> WriteReport:
    """Write a dictionary, atomically; None as the `chosen` format for the one that the file's name says."""
    path, options = Path(path), options or WriteOptions()
    check_output(path)
    form = format_of(path, chosen)
    fitting, report = form.fitting(dictionary, options)
    if form.save is not None:
        form.save(path, fitting, options)
    elif form.pieces is not None:
        with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines(form.pieces(fitting, options))
    return report


def text_of(
    dictionary: Dictionary, name: str, options: WriteOptions | None = None
) -> tuple[str, WriteReport]:
    """A dictionary as the text of a file, for formats that are text."""
    form, options = format_of("-", name), options or WriteOptions()
    if form.pieces is None:
        raise BilexError(f"{form.noun} is not text; name a file to write with -o.")
    fitting, report = form.fitting(dictionary, options)
    return "".join(form.pieces(fitting, options)), report
