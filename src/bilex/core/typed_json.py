"""Dataclasses as JSON and back, every value with its type.

What is read may come from another version: names that a class does not have are ignored, and missing fields
get their defaults.
"""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_OTHERS = "others"
OTHERS = {_OTHERS: True}  # the metadata of a field for those entries of a JSON object that no other field has


def other_entries() -> Any:
    """Such a field, empty by default."""
    return field(default_factory=dict, metadata=OTHERS)


def as_json(record: Any) -> dict[str, Any]:
    """A dataclass as a JSON object, with the dataclasses inside it."""
    found: dict[str, Any] = {}
    for part in fields(record):
        value = plain(getattr(record, part.name))
        found |= value if _OTHERS in part.metadata else {part.name: value}
    return found


def plain(value: Any) -> Any:
    """A value for JSON: tuples and arrays become lists, numbers that are not finite None, others text."""
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return as_json(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int)) or value is None else str(value)


def from_json(kind: type[T], stored: object) -> T:
    """The dataclass that `as_json` wrote; TypeError if a value is missing or of another type."""
    if not isinstance(stored, Mapping):
        raise TypeError(f"{kind.__name__} is no object but {stored!r}")
    hints = get_type_hints(kind)
    known: dict[str, Field[Any]] = {part.name: part for part in fields(kind)}  # type: ignore[arg-type]
    values = {name: _typed(hints[name], stored[name], name) for name in known if name in stored}
    for name, part in known.items():
        if _OTHERS in part.metadata:
            values[name] = {other: value for other, value in stored.items() if other not in known}
        elif name not in values and part.default is MISSING and part.default_factory is MISSING:
            raise TypeError(f"{kind.__name__} has no {name}")
    return kind(**values)


def _typed(kind: Any, stored: Any, name: str) -> Any:
    """A JSON value as a type annotation requires it."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):  # None comes first: a float would take it for NaN
        for one in sorted(inside, key=lambda one: one is not types.NoneType):
            with contextlib.suppress(TypeError):
                return _typed(one, stored, name)
    if is_dataclass(kind) and isinstance(kind, type):
        return from_json(kind, stored)
    if origin in (list, tuple) and isinstance(stored, list):
        whole = origin is list or inside[-1] is Ellipsis
        kinds = inside[:1] * len(stored) if whole else inside
        return origin(_typed(one, part, name) for one, part in zip(kinds, stored, strict=True))
    if origin in (dict, Mapping) and isinstance(stored, Mapping):
        return {str(key): _typed(inside[1], part, f"{name}.{key}") for key, part in stored.items()}
    if kind is float and (stored is None or type(stored) is int):
        return math.nan if stored is None else float(stored)
    if not (kind is Any or type(stored) is kind or (origin is Literal and stored in inside)):
        raise TypeError(f"{name} is {stored!r}")
    return stored
