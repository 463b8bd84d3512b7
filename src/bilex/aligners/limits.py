"""Settings that make no sense, refused before the work starts."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from bilex.core.errors import BilexError

# The least and the greatest value of a setting; None for no bound.
Limits = Mapping[str, tuple[float | None, float | None]]

SMALLEST = 1e-12  # stands for "more than 0"
_LARGEST_NUMBER = 2**53  # what every part of the arithmetic can count to


def check_settings(
    method: str, settings: Mapping[str, Any], kinds: Mapping[str, Any], limits: Limits
) -> None:
    """Make sure that each setting of a method is of its kind, finite, and within its limits.

    Args:
        method: The method's name.
        settings: All settings and their values.
        kinds: The annotation of each setting.
        limits: The limits of those that have any; a whole number without is not negative.

    Raises:
        BilexError: A setting makes no sense.
    """
    for name, value in settings.items():
        if not _fits(value, kinds[name]):
            raise BilexError(
                f"setting '{name}' of {method} is {value!r}; it must be {_in_words(kinds[name])}."
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        least, most = limits.get(name, (0 if isinstance(value, int) else None, None))
        if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _LARGEST_NUMBER):
            raise BilexError(f"setting '{name}' of {method} is {value}; it must be a finite number.")
        if least is not None and value < least:
            wanted = "more than 0" if least == SMALLEST else f"at least {least:g}"
            raise BilexError(f"setting '{name}' of {method} is {value}; it must be {wanted}.")
        if most is not None and value > most:
            raise BilexError(f"setting '{name}' of {method} is {value}; it must be at most {most:g}.")


def _fits(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if origin is Literal:
        return any(
            value is choice or (type(value) is type(choice) and value == choice) for choice in get_args(kind)
        )
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)


def _in_words(kind: Any) -> str:
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word",
        type(None): "None",
    }
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_in_words(one) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return words.get(kind, str(kind))
