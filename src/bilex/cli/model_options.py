"""Options of commands that open a model: languages, ranks, filters, and how a dictionary is written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bilex.core.errors import BilexError
from bilex.core.languages import code_of

if TYPE_CHECKING:
    from bilex.lexicon.entries import Languages
    from bilex.lexicon.formats import WriteOptions
    from bilex.model import Translator
    from bilex.model.filters import WordFilter


_FROM = "The language of the words, by code or name, such as en."
_TO = "The language to translate to."

from_option = click.option("--from", "source", metavar="LANGUAGE", help=_FROM)
to_option = click.option("--to", "target", metavar="LANGUAGE", help=_TO)
to_languages_option = click.option(
    "--to", "targets", multiple=True, metavar="LANGUAGE…", help="The language to translate to, or several."
)


class SeveralValues(click.Command):
    """A command one of whose options may be followed by several values: `--to fi ru fr`.

    click knows such options only as `--to fi --to ru --to fr`; languages that follow the first are taken for
    values of the option, and everything else is left to click.
    """

    several = "--to"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further value."""
        return super().parse_args(ctx, spread(args, self.several))


def spread(arguments: Sequence[str], option: str) -> list[str]:
    """Arguments with an option repeated before each of its values that follow the first."""
    result: list[str] = []
    expecting, taking = False, False
    for argument in arguments:
        if expecting:
            values = [value for value in argument.split(",") if value]
            result += [
                part for place, value in enumerate(values) for part in ([option] if place else []) + [value]
            ]
            expecting, taking = False, True
        elif taking and code_of(argument) is not None:
            result += [option, argument]
        else:
            taking, expecting = False, argument == option
            result.append(argument)
    return result


def pair_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--from` and `--to` to a command, which gets them as `source` and `target`."""
    return from_option(to_option(function))


def ranks_of_text(text: str, option: str) -> tuple[int, int | None]:
    """'1-20000', '500-' or '2000' (the first 2000) as a first and a last rank."""
    first, dash, last = text.replace("_", "").replace(",", "").partition("-")
    try:
        if not dash:
            return 1, int(first)
        return int(first or 1), int(last) if last else None
    except ValueError:
        raise BilexError(f"{option} {text}: write it as FIRST-LAST, for example 1-20000.") from None


@dataclass(frozen=True)
class Filters:
    """What a command line asked to leave out."""

    no_numbers: bool
    no_names: bool
    stop_words: tuple[str, ...]
    tags: tuple[str, ...]
    pos: str | None

    def of(self, translator: Translator) -> WordFilter | None:
        """The filter for a model; None where nothing is left out."""
        from bilex.model.filters import read_tags, read_words, word_filter

        return word_filter(
            translator,
            numbers=not self.no_numbers,
            names=not self.no_names,
            stop_words=frozenset().union(*(read_words(path) for path in self.stop_words)),
            tagger=read_tags(*self.tags) if self.tags else None,
            parts_of_speech=[tag.strip() for tag in self.pos.split(",") if tag.strip()] if self.pos else (),
        )


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as `filters`."""

    @click.option("--no-numbers", is_flag=True, help="Leave out words with a digit.")
    @click.option("--no-names", is_flag=True, help="Leave out names; for models made with --keep-case.")
    @click.option("--stop-words", multiple=True, metavar="FILE", help="Leave out these words, one per line.")
    @click.option(
        "--tags", multiple=True, metavar="FILE", help="Parts of speech: one word, a tab and its tag per line."
    )
    @click.option("--pos", metavar="TAGS", help="With --tags: only words of these, such as NOUN,VERB.")
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        no_numbers: bool,
        no_names: bool,
        stop_words: tuple[str, ...],
        tags: tuple[str, ...],
        pos: str | None,
        **rest: Any,
    ) -> Any:
        return function(*args, filters=Filters(no_numbers, no_names, stop_words, tags, pos), **rest)

    return wrapped


@dataclass(frozen=True)
class DictionaryOutput:
    """What a command line says about the dictionary to write."""

    languages: Languages = (None, None)
    defuse_formulas: bool = False
    skip_unfit: bool = False

    @property
    def options(self) -> WriteOptions:
        """The same for a writer."""
        from bilex.lexicon.formats import WriteOptions

        return WriteOptions(defuse_formulas=self.defuse_formulas, skip_unfit=self.skip_unfit)


def dictionary_output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as `writing`."""

    @click.option(
        "--languages",
        metavar="A,B",
        help="Codes of the two languages, such as en,fi, for files that mark words with them.",
    )
    @click.option(
        "--defuse-formulas",
        is_flag=True,
        help="In tsv, csv and xlsx: keep spreadsheets from computing words such as =1+1.",
    )
    @click.option(
        "--skip-unfit",
        is_flag=True,
        help="Leave out pairs that the format cannot hold, and count them; else the first is an error.",
    )
    @functools.wraps(function)
    def wrapped(
        *args: Any, languages: str | None, defuse_formulas: bool, skip_unfit: bool, **rest: Any
    ) -> Any:
        writing = DictionaryOutput(_languages(languages), defuse_formulas, skip_unfit)
        return function(*args, writing=writing, **rest)

    return wrapped


def _languages(text: str | None) -> Languages:
    if text is None:
        return None, None
    from bilex.core.languages import code_of

    codes = [code_of(code) or code.strip().lower() for code in text.split(",")]
    if len(codes) != 2 or not all(codes) or codes[0] == codes[1]:
        raise BilexError(f"--languages {text}: name two languages, the source first, for example en,fi.")
    return codes[0], codes[1]
