"""`--set NAME=VALUE`: any setting of a method, typed as its dataclass says."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from bilex.aligners import Aligner
from bilex.core.errors import BilexError, nearest_name

_TRUE, _FALSE, _NONE = ("true", "yes", "on", "1"), ("false", "no", "off", "0"), ("none", "null")


def parse_settings(method: type[Aligner], given: Sequence[str]) -> dict[str, Any]:
    """Turn NAME=VALUE texts into keyword arguments of a method.

    Args:
        method: The method whose settings they are.
        given: The texts, as typed.

    Raises:
        BilexError: A text is no NAME=VALUE, the name is not known, or the value does not fit.
    """
    known = method.settings_fields()
    kinds = get_type_hints(method)
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise BilexError(f"--set {text}: write it as NAME=VALUE.")
        if name not in known:
            raise BilexError(
                f"--set {text}: method '{method.name}' has no setting '{name}'; "
                f"it has {', '.join(known)}.{nearest_name(name, known)}"
            )
        try:
            settings[name] = typed(value.strip(), kinds[name])
        except ValueError as error:
            raise BilexError(f"--set {text}: {error}.") from error
    return settings


def typed(text: str, kind: Any) -> Any:
    """The value that a text stands for.

    Args:
        text: What was typed.
        kind: An annotation: bool, int, float, str, a Literal, a tuple of one kind, or a union.

    Raises:
        ValueError: The text is no such value; the message is a clause for the user.
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(text, get_args(kind))
    if origin is Literal:
        return _choice(text, get_args(kind))
    if origin is tuple:
        return tuple(typed(part.strip(), get_args(kind)[0]) for part in text.split(",") if part.strip())
    if kind is bool:
        return _truth(text)
    if kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise ValueError(f"'{text}' is not {wanted}") from None
    return text


def _one_of(text: str, kinds: tuple[Any, ...]) -> Any:
    if type(None) in kinds and text.lower() in _NONE:
        return None
    kinds_given = [kind for kind in kinds if kind is not type(None)]
    faults = []
    for kind in sorted(kinds_given, key=lambda kind: kind is str):
        try:
            return typed(text, kind)
        except ValueError as fault:
            faults.append(str(fault))
    raise ValueError(" and ".join(faults))


def _choice(text: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if text == str(choice):
            return choice
    raise ValueError(f"'{text}' is not one of {', '.join(map(str, choices))}")


def _truth(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"'{text}' is neither true nor false")
