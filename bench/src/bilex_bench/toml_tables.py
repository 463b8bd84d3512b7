"""Tables of a TOML file read strictly: every key is known or refused, with its line and the nearest name."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from bilex.errors import BilexError, nearest_name

Place = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]\]?")
_ASSIGNMENT = re.compile(rf"\s*({_KEYS})\s*=")
_NOTHING: Any = object()


class Lines:
    """Where the tables and keys of a TOML text stand. Python's own reader does not tell.

    Args:
        text: The text, valid TOML.
    """

    def __init__(self, text: str) -> None:
        self._found: dict[Place, int] = {}
        here: Place = ()
        counts: dict[Place, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            header, assignment = _HEADER.match(line), _ASSIGNMENT.match(line)
            if header:
                here = self._entered(_parts(header[2]), counts, is_array=header[1] == "[[")
                for depth in range(1, len(here) + 1):
                    self._found.setdefault(here[:depth], number)
            elif assignment:
                place = here
                for part in _parts(assignment[1]):
                    place = (*place, part)
                    self._found.setdefault(place, number)

    def of(self, place: Place) -> int | None:
        """The line of a table or key, or of the nearest table around it."""
        while place:
            if place in self._found:
                return self._found[place]
            place = place[:-1]
        return None

    @staticmethod
    def _entered(parts: list[str], counts: dict[Place, int], *, is_array: bool) -> Place:
        """The place that a header opens; of an array of tables always the latest."""
        place: Place = ()
        for depth, part in enumerate(parts, 1):
            place = (*place, part)
            if depth == len(parts) and is_array:
                counts[place] = counts.get(place, -1) + 1
            if place in counts:
                place = (*place, counts[place])
        return place


def _parts(keys: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_KEY, keys)]


class Table:
    """One table of a TOML file, taken apart key by key.

    Args:
        content: The table.
        file: The name of the file, for messages.
        lines: Where its keys stand.
        place: Where the table itself stands.
    """

    def __init__(self, content: Mapping[str, Any], file: str, lines: Lines, place: Place = ()) -> None:
        self._content = content
        self._file = file
        self._lines = lines
        self._place = place
        self._known: list[str] = []

    def where(self, key: str | None = None) -> str:
        """File and line of the table or of one of its keys."""
        line = self._lines.of(self._place if key is None else (*self._place, key))
        return self._file if line is None else f"{self._file}, line {line}"

    def fault(self, message: str, key: str | None = None) -> BilexError:
        """An error that begins with file and line."""
        return BilexError(f"{self.where(key)}: {message}")

    def take(self, key: str, kind: Any, default: Any = _NOTHING) -> Any:
        """The value of a key.

        Args:
            key: Its name.
            kind: An annotation that the value must fit, see `fitted`.
            default: What is taken where the key is missing; without it the key is needed.

        Raises:
            BilexError: The key is missing, or its value is of another kind.
        """
        self._known.append(key)
        if key not in self._content:
            if default is _NOTHING:
                near = difflib.get_close_matches(key, self._content, n=1)
                advice = f"is '{near[0]}' meant for it?" if near else "add it."
                raise self.fault(f"'{key}' is missing from {self._title()}; {advice}")
            return default
        try:
            return fitted(self._content[key], kind)
        except ValueError as fault:
            raise self.fault(f"'{key}' is {fault}.", key) from None

    def table(self, key: str) -> Table:
        """A table within this one; an empty one where it is missing."""
        content = self.take(key, dict, {})
        return Table(content, self._file, self._lines, (*self._place, key))

    def tables(self, key: str) -> list[Table]:
        """An array of tables within this one; empty where it is missing."""
        self._known.append(key)
        content = self._content.get(key, [])
        if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
            name = ".".join(str(part) for part in (*self._place, key) if isinstance(part, str))
            raise self.fault(f"'{key}' must be an array of tables; head each with [[{name}]].", key)
        return [
            Table(part, self._file, self._lines, (*self._place, key, number))
            for number, part in enumerate(content)
        ]

    def names(self) -> list[str]:
        """The keys that this table has."""
        return list(self._content)

    def finish(self) -> None:
        """See that every key was taken.

        Raises:
            BilexError: One was not; the nearest valid one is told.
        """
        for key in self._content:
            if key not in self._known:
                raise self.fault(
                    f"there is no key '{key}' in {self._title()}; it has {', '.join(self._known)}."
                    f"{nearest_name(key, self._known)}",
                    key,
                )

    def _title(self) -> str:
        names = [str(part) for part in self._place if isinstance(part, str)]
        if not names:
            return "a grid"
        return f"[[{'.'.join(names)}]]" if isinstance(self._place[-1], int) else f"[{'.'.join(names)}]"


def fitted(value: Any, kind: Any) -> Any:
    """A value of TOML as an annotation wants it: a whole number may stand for a float, a list for a tuple.

    Args:
        value: What the file says.
        kind: bool, int, float, str, dict, None, a Literal, a tuple of one kind, or a union of these.

    Raises:
        ValueError: It does not fit; the message completes "it is …".
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _first_fit(value, get_args(kind))
    if origin is Literal:
        if value in get_args(kind) and not isinstance(value, bool):
            return value
        raise ValueError(f"{_shown(value)}, not one of {', '.join(map(str, get_args(kind)))}")
    if origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(fitted(part, get_args(kind)[0]) for part in value)
        raise ValueError(f"{_shown(value)}, not a list")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if (
        isinstance(kind, type)
        and isinstance(value, kind)
        and not (isinstance(value, bool) and kind is not bool)
    ):
        return value
    raise ValueError(f"{_shown(value)}, not {_KIND_NAMES.get(kind, 'a value of its kind')}")


_KIND_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    dict: "a table",
}


def _first_fit(value: Any, kinds: tuple[Any, ...]) -> Any:
    wanted = []
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return fitted(value, kind)
        except ValueError as fault:
            wanted.append(str(fault).rpartition(", not ")[2])
    raise ValueError(f"{_shown(value)}, not {' or '.join(wanted)}")


def _shown(value: Any) -> str:
    return (
        f"'{value}'"
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
