"""The results as figures look at them: by data set and seed size, and within these by method and pair.

A method is what has one name in the tables. Two kinds of results would only clutter a comparison, and are
held back here: one experiment under a second name, and the points of a λ curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bilex_bench.reported import about
from bilex_bench.results import Result
from bilex_bench.tables.sheet import Direction, Method, Sheet, same_but, sheets

_PAPER_MIXING = 0.2
_A_SWEEP = 4  # so many λ of one stage are a curve, not methods to compare


class Heading(NamedTuple):
    """What is shown side by side: results on the same data with as many seeds."""

    dataset: str
    seeds: str

    @property
    def text(self) -> str:
        """For titles."""
        return f"{self.dataset}, {self.seeds} seeds"


class Comparison(NamedTuple):
    """Methods whose means may be compared."""

    heading: Heading  # on which data and with which seeds
    methods: list[Method]  # those that were run on all `pairs`
    pairs: list[str]  # all pairs that any method was run on, or those of the method that was run on most
    note: str  # a sentence on who is left out; empty for nobody

    @property
    def directions(self) -> list[Direction]:
        """Both directions of each pair."""
        return [Direction(pair, way) for pair in self.pairs for way in ("forward", "backward")]

    def runs(self, method: Method) -> list[Result]:
        """All results of a method that its means are over."""
        return [result for pair in self.pairs for result in method.runs[pair, self.heading.seeds]]

    def mean(self, method: Method) -> float | None:
        """P@1 by CSLS in percent, the mean over pairs and directions."""
        scores = [method.score(direction, self.heading.seeds, "csls") for direction in self.directions]
        known = [score for score in scores if score is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class Board:
    """The results that were reached, sorted for comparison."""

    sheets: tuple[Sheet, ...]  # one a data set, every experiment under one name
    styles: dict[str, Style]  # how each method is drawn, by name, in the order of legends

    @classmethod
    def of(cls, results: Iterable[Result]) -> Board:
        """Sort results; those that failed are left out."""
        found = sheets(r for r in results if r.status == "done" and r.evaluation is not None)
        colours: dict[str, str] = {}
        for sheet in found:
            for method in _without_sweeps(sheet.methods):
                colours.setdefault(method.name, colour_of(method.setup.method, method.setup.lm is not None))
        return cls(tuple(found), dict(zip(colours, styles_for(colours.values()), strict=True)))

    def results(self) -> list[tuple[str, Result]]:
        """All results, each with the name of its method."""
        return [
            (method.name, result)
            for sheet in self.sheets
            for method in sheet.methods
            for runs in method.runs.values()
            for result in runs
        ]

    @property
    def headings(self) -> list[Heading]:
        """Data sets and seed sizes, in order."""
        return [Heading(sheet.dataset, seeds) for sheet in self.sheets for seeds in sheet.seeds]

    def methods(self, heading: Heading) -> list[Method]:
        """What is compared: of a sweep over λ only the paper's 0.2 and "auto"."""
        (sheet,) = (sheet for sheet in self.sheets if sheet.dataset == heading.dataset)
        return [
            method
            for method in _without_sweeps(sheet.methods)
            if any(seeds == heading.seeds for _, seeds in method.runs)
        ]

    def comparisons(self, dataset: str) -> list[Comparison]:
        """What may be averaged, for each seed size of a data set."""
        return [
            self._comparison(heading)
            for heading in self.headings
            if heading.dataset == dataset and self.methods(heading)
        ]

    def _comparison(self, heading: Heading) -> Comparison:
        methods = self.methods(heading)
        run_on = {m.name: [pair for pair, seeds in m.runs if seeds == heading.seeds] for m in methods}
        most = max(len(those) for those in run_on.values())
        pairs = sorted(next(those for those in run_on.values() if len(those) == most))
        whole = [method for method in methods if set(run_on[method.name]) >= set(pairs)]
        out = [
            f"{m.name} ({len(set(run_on[m.name]) & set(pairs))} of {len(pairs)} pairs)"
            for m in methods
            if m not in whole
        ]
        note = f" With {heading.seeds} seeds not everywhere run: {', '.join(out)}." if out else ""
        return Comparison(heading, whole, pairs, note)


def slug(*parts: str) -> str:
    """A name for a file or a place in a page, of letters, digits and hyphens."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in "-".join(parts).lower())
    return "-".join(part for part in kept.split("-") if part)


def _without_sweeps(methods: Iterable[Method]) -> list[Method]:
    """All methods but those that are points of a λ curve, of which 0.2 and "auto" stay."""
    methods = list(methods)
    mixings: dict[str, set[object]] = {}
    for method in methods:
        mixings.setdefault(same_but(method.setup, "mixing"), set()).add(method.setup.mixing)
    return [
        method
        for method in methods
        if len(mixings[same_but(method.setup, "mixing")]) < _A_SWEEP
        or method.setup.mixing in (_PAPER_MIXING, "auto")
    ]


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
