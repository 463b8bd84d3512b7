"""`--languages`, `--defuse-formulas` and `--skip-unfit`: how a dictionary is written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex.lexicon.entries import Languages
    from bilex.lexicon.formats import WriteOptions


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
