"""`--from` and `--to`: which two languages of a model, in which direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bilex.errors import BilexError
from bilex.languages import code_of

if TYPE_CHECKING:
    from bilex.many import ManyLanguages
    from bilex.space import Direction
    from bilex.translator import Translator

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


def open_model(model: str, device: str) -> Translator | ManyLanguages:
    """A model of two languages or of many, whichever a folder holds."""
    from bilex.many.storage import is_many
    from bilex.translator import Translator

    if is_many(model):
        from bilex.many import ManyLanguages

        return ManyLanguages.load(model, device=device)
    return Translator.load(model, device=device)


def open_pair(
    model: str, source: str | None, target: str | None, device: str, direction: Direction = "forward"
) -> tuple[Translator, Direction]:
    """The translator of two languages, and the direction that `--from` and `--to` mean.

    Args:
        model: A model folder.
        source: What `--from` says, if anything.
        target: What `--to` says.
        device: Where searches run.
        direction: The direction where neither was given.

    Raises:
        BilexError: The model does not hold one of them, or holds many and it is not clear which are meant.
    """
    from bilex.translator import Translator

    opened = open_model(model, device)
    if isinstance(opened, Translator):
        return opened, _direction(model, opened, source, target, direction)
    if source is None or target is None:
        languages = ", ".join(opened.languages)
        raise BilexError(f"{model}: holds {languages}; name two of them with --from and --to.")
    return opened.pair(source, target), direction


def _direction(
    model: str, translator: Translator, source: str | None, target: str | None, otherwise: Direction
) -> Direction:
    """Which way two languages of a model of two go.

    Raises:
        BilexError: It does not know its languages, or holds others.
    """
    if source is None and target is None:
        return otherwise
    known = [translator.provenance.get(f"{side}_language") for side in ("source", "target")]
    if None in known:
        raise BilexError(
            f"{model}: does not say which languages it holds; leave out --from and --to, and use --reverse "
            "for the other direction."
        )
    wanted = [None if name is None else code_of(name) or name for name in (source, target)]
    ways: dict[Direction, list[Any]] = {"forward": known, "backward": known[::-1]}
    for way, languages in ways.items():
        if all(w in (None, language) for w, language in zip(wanted, languages, strict=True)):
            return way
    named = " to ".join(name or "any" for name in (source, target))
    raise BilexError(f"{model}: translates between {known[0]} and {known[1]}, not {named}.")


def pair_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--from` and `--to` to a command, which gets them as `source` and `target`."""
    return from_option(to_option(function))
