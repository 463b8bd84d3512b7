"""Colours and marks: the same for a method in every figure, and distinct for people who see few colours.

The colours are those of Okabe and Ito, with olive for their yellow (unreadable on white) and grey for black.
No figure relies on colour alone: each method has its own mark or line too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bilex_bench.about import about

PAPER, INK, MUTED, GRID = "#ffffff", "#1b2430", "#5d6b7a", "#dfe4ea"
SOURCE, TARGET = "#0072b2", "#d55e00"

# What stands for a colour on a dark page.
DARK = {
    PAPER: "#151a21",
    INK: "#e6eaf0",
    MUTED: "#9aa7b5",
    GRID: "#2b343f",
    "#0072b2": "#4fa9e0",
    "#d55e00": "#ff8a3d",
    "#009e73": "#2fc79b",
    "#cc79a7": "#e39cc3",
    "#e69f00": "#f2b632",
    "#56b4e9": "#8fd0f5",
    "#999933": "#c4c455",
    "#7a7a7a": "#a9b0b8",
    "#882255": "#d0689b",
}

_OF_C2 = "#d55e00"
_OF_OTHERS = "#882255"
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
Line = str | tuple[int, tuple[float, ...]]


class Style(NamedTuple):
    """How a method is drawn."""

    colour: str
    mark: str
    line: Line


def colour_of(method: str, with_model: bool) -> str:
    """The colour of an aligner, or of what a language model makes of it."""
    if with_model and method == "c1":
        return _OF_C2
    return about(method).colour or _OF_OTHERS


def styles_for(colours: Iterable[str]) -> list[Style]:
    """A style for each colour in a row; where a colour comes again, its mark and its line are others."""
    seen: dict[str, int] = {}
    starts: dict[str, int] = {}
    styles = []
    for colour in colours:
        start = starts.setdefault(colour, len(starts))
        nth = seen[colour] = seen.get(colour, -1) + 1
        mark = _MARKS[(start + 5 * nth) % len(_MARKS)]  # 5 and 12 have no factor in common: 12 marks a colour
        styles.append(Style(colour, mark, _LINES[nth % len(_LINES)]))
    return styles
