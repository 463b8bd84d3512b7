"""Where the tables and keys of a TOML text stand, which no reader of TOML reports."""

from __future__ import annotations

import re

Place = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]\]?")
_ASSIGNMENT = re.compile(rf"\s*({_KEYS})\s*=")


class Lines:
    """Line numbers by place.

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
