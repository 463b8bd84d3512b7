"""`--no-numbers`, `--no-names`, `--stop-words`, `--tags` and `--pos`: which words may stand in results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bilex.model import Translator
    from bilex.model.filters import WordFilter


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
