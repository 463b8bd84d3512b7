"""`--from` and `--to`: which two languages of a model, in which direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from bilex.core.languages import code_of

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
    """Arguments with an option repeated before each of its values that follow the first.

    Args:
        arguments: What was typed.
        option: The option that may have several values; values are languages, also divided by commas.
    """
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
