"""Options for dictionaries that a spreadsheet wrote, and reading seeds, corrections and rejected pairs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex.lexicon import Lexicon
    from bilex.lexicon.entries import Dictionary
    from bilex.vectors import WordVectors

Languages = tuple[str | None, str | None]


class FormatName(click.Choice):  # type: ignore[type-arg]
    """The name of a dictionary format, also one that an installed plugin registers.

    Args:
        writable: Whether formats that can only be read are left out.
    """

    def __init__(self, *, writable: bool = False) -> None:
        super().__init__(())
        self.writable = writable

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names; the formats are imported when the option is used or shown."""
        from bilex.lexicon.formats import all_formats

        return tuple(form.name for form in all_formats() if form.writable or not self.writable)

    @choices.setter
    def choices(self, choices: Sequence[str]) -> None:
        """What the base class sets has no use."""


@dataclass(frozen=True)
class DictionaryLayout:
    """How the dictionaries of a command line are laid out, where they do not say so themselves."""

    columns: tuple[str, str] | None = None
    delimiter: str | None = None
    split: str | None = None
    format: str | None = None

    def read(
        self, path: str, lowercase: bool, languages: Languages = (None, None), *, verdicts: bool = False
    ) -> Lexicon:
        """Read a dictionary and warn of what was odd about it."""
        from bilex.cli.console import warn
        from bilex.lexicon import Lexicon

        lexicon = Lexicon.load(
            path,
            self.format,
            lowercase=lowercase,
            columns=self.columns,
            delimiter=self.delimiter,
            split=self.split,
            languages=languages,
            verdicts=verdicts,
        )
        report = lexicon.report
        extra = report is not None and report.extra_columns and not verdicts
        if report and (report.broken or extra or report.several[0]):
            warn(report.sentence())
        return lexicon

    def read_entries(self, path: str, lowercase: bool, languages: Languages) -> Dictionary:
        """Read a dictionary with all that it says about its pairs, to write it in another format."""
        from bilex.cli.console import warn
        from bilex.lexicon.entries import Dictionary
        from bilex.lexicon.formats import read
        from bilex.lexicon.reading import Layout, respelt

        reading = read(path, Layout(self.columns, self.delimiter, self.split, languages), self.format)
        sentence = reading.report.sentence()
        if sentence:
            warn(sentence)
        pairs = [(entry.source, entry.target) for entry in reading.entries]
        words = zip(reading.entries, respelt(pairs, lowercase=lowercase, normal_form="NFC"), strict=True)
        entries = [replace(entry, source=source, target=target) for entry, (source, target) in words]
        return Dictionary(entries, reading.languages)


def dictionary_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add options on how dictionaries are laid out to a command, which gets them as `layout`."""
    return _options("--dictionary-format")(function)


def conversion_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `dictionary_options`, with `--from` for the format."""
    return _options("--from")(function)


def _options(format_option: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        return _with_options(function, format_option)

    return add


def _with_options(function: Callable[..., Any], format_option: str) -> Callable[..., Any]:
    @click.option(
        format_option,
        "dictionary_format",
        type=FormatName(),
        metavar="NAME",
        help="The format of a dictionary.  [default: detected automatically]",
    )
    @click.option(
        "--columns",
        metavar="A,B",
        help="Columns of a dictionary's source and target words: numbers from 1, or names of its first line.",
    )
    @click.option(
        "--delimiter", metavar="CHAR", help="What divides the columns.  [default: detected automatically]"
    )
    @click.option(
        "--split", metavar="CHARS", help="Characters between several translations in one cell, such as ';/'."
    )
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        columns: str | None,
        delimiter: str | None,
        split: str | None,
        dictionary_format: str | None,
        **rest: Any,
    ) -> Any:
        layout = DictionaryLayout(_columns(columns), delimiter, split, dictionary_format)
        return function(*args, layout=layout, **rest)

    return wrapped


def _columns(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise BilexError(
            f"--columns {text}: name two columns, source word's first, for example 1,3 or en,fi."
        )
    return names[0], names[1]


def read_decisions(
    layout: DictionaryLayout,
    lowercase: bool,
    languages: Languages,
    corrections: Sequence[str],
    rejected: Sequence[str],
) -> list[tuple[str, Lexicon]]:
    """The files of corrections and of rejected pairs, each read once."""
    from bilex.lexicon import Lexicon

    found = [(path, layout.read(path, lowercase, languages, verdicts=True)) for path in corrections]
    for path in rejected:
        wrong = layout.read(path, lowercase, languages)
        found.append((path, Lexicon([], wrong.name, rejected=tuple(wrong.pairs))))
    return found


def read_seeds(
    layout: DictionaryLayout,
    lowercase: bool,
    languages: Languages,
    seeds: Sequence[str],
    decisions: Sequence[tuple[str, Lexicon]],
) -> Lexicon | None:
    """The seeds of several files as one list, corrected by decisions."""
    if not (seeds or decisions):
        return None
    from bilex.lexicon import Lexicon

    lists = [layout.read(path, lowercase, languages) for path in seeds]
    joined = functools.reduce(lambda one, other: one + other, lists) if lists else Lexicon([], "no seeds")
    for _, decided in decisions:
        joined = joined.corrected(decided)
    return joined


def warn_of_missing(
    decisions: Sequence[tuple[str, Lexicon]], source: WordVectors, target: WordVectors
) -> None:
    """Name every pair of the corrections and rejections that does nothing, because a word has no vector."""
    from bilex.cli.console import warn

    for path, decided in decisions:
        given = decided.as_units(source.key_to_index, target.key_to_index)
        missing = [
            f"{a}–{b}" for a, b in (*given.pairs, *given.rejected) if a not in source or b not in target
        ]
        if missing:
            warn(f"{path}: {len(missing)} pairs have no effect, a word has no vector: {', '.join(missing)}.")
