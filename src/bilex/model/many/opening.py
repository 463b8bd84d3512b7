"""Opening a model of two languages or of many, whichever a folder holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex.core.languages import code_of
from bilex.model import Translator
from bilex.model.model_folder import is_many
from bilex.model.space import Direction

if TYPE_CHECKING:
    from bilex.model.many.core import ManyLanguages


def open_model(model: str, device: str = "auto") -> Translator | ManyLanguages:
    """A model of two languages or of many, whichever a folder holds."""
    if is_many(model):
        from bilex.model.many.core import ManyLanguages

        return ManyLanguages.load(model, device=device)
    return Translator.load(model, device=device)


def open_pair(
    model: str,
    source: str | None = None,
    target: str | None = None,
    device: str = "auto",
    direction: Direction = "forward",
) -> tuple[Translator, Direction]:
    """The translator of two languages, and the direction in which they go.

    Args:
        model: A model folder.
        source: The language of the words, by code or name; None for the model's own.
        target: The language to translate to.
        device: Where searches run.
        direction: The direction where neither language was given.

    Raises:
        BilexError: The model does not hold one of them, or holds many and it is not clear which are meant.
    """
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
    known = list(translator.provenance.languages)
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
