"""What all plots share: colours, the results in comparable form, and writing the same bytes every time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bilex.core.errors import optional_library
from bilex_bench.reported import PAPER_MIXING, about
from bilex_bench.results import DIRECTIONS, Result
from bilex_bench.tables.sheet import Direction, Method, Sheet, sheets, without_sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
Described = tuple[float, float, str]  # a place in the coordinates of its axes, and what is there
Line = str | tuple[int, tuple[float, ...]]

PAPER, INK, MUTED, GRID = "#ffffff", "#1b2430", "#5d6b7a", "#dfe4ea"
SOURCE, TARGET = "#0072b2", "#d55e00"
# The colours of a dark page.
DARK = {
    **{PAPER: "#151a21", INK: "#e6eaf0", MUTED: "#9aa7b5", GRID: "#2b343f"},
    **{"#0072b2": "#4fa9e0", "#d55e00": "#ff8a3d", "#009e73": "#2fc79b", "#cc79a7": "#e39cc3"},
    **{"#e69f00": "#f2b632", "#56b4e9": "#8fd0f5", "#999933": "#c4c455", "#7a7a7a": "#a9b0b8"},
    "#882255": "#d0689b",
}
_OF_C2, _OF_OTHERS = "#d55e00", "#882255"
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_LINES: tuple[Line, ...] = (
    *("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1))),
)
# Text stays text in SVG: it can be searched and copied, and words in any script find a font in the reader's
# program. Widths are those of DejaVu Sans, which comes with matplotlib and is wider than most.
_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "savefig.facecolor": "auto",
    "svg.fonttype": "none",
    "svg.hashsalt": "bilex",
    "text.color": INK,
    "text.parse_math": False,  # a $ in a name is a dollar
    **{
        f"{axis}tick.{part}": value
        for axis in "xy"
        for part, value in (("color", MUTED), ("labelcolor", INK))
    },
    **{"xtick.labelsize": 8, "ytick.labelsize": 8},
}


class Style(NamedTuple):
    """How a method is drawn."""

    colour: str
    mark: str
    line: Line


def colour_of(method: str, with_model: bool) -> str:
    """The colour of an aligner, alone or with a language model."""
    return _OF_C2 if with_model and method == "c1" else about(method).colour or _OF_OTHERS


class Comparison(NamedTuple):
    """Methods of one data set and seed dictionary whose means may be compared."""

    dataset: str
    seeds: str
    methods: list[Method]  # those that were run on all `pairs`
    pairs: list[str]  # all pairs of the method that was run on most
    note: str  # a sentence on the methods that are left out

    @property
    def title(self) -> str:
        """The data set and the seeds."""
        return f"{self.dataset}, {self.seeds} seeds"

    def runs(self, method: Method) -> list[Result]:
        """The results of a method that its means go over."""
        return [result for pair in self.pairs for result in method.runs[pair, self.seeds]]

    def mean(self, method: Method) -> float | None:
        """P@1 by CSLS in percent, the mean over pairs and directions."""
        directions = [Direction(pair, direction) for pair in self.pairs for direction in DIRECTIONS]
        scores = [method.score(direction, self.seeds, "csls") for direction in directions]
        known = [score for score in scores if score is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, eq=False)
class PlotData:
    """Finished results, sorted for comparison."""

    sheets: list[Sheet]  # one per data set, every experiment under one name
    styles: dict[str, Style]  # how each method is drawn, by name, in the order of legends

    @classmethod
    def of(cls, results: Iterable[Result]) -> PlotData:
        """Sort results."""
        found = [sheet for sheet in sheets(results) if sheet.methods]
        styles: dict[str, Style] = {}
        for method in (method for sheet in found for method in _without_sweep(sheet)):
            if method.name not in styles:
                colour = colour_of(method.setup.method, method.setup.lm is not None)
                nth = sum(style.colour == colour for style in styles.values())
                mark = _MARKS[len(styles) % len(_MARKS)]
                styles[method.name] = Style(colour, mark, _LINES[nth % len(_LINES)])
        return cls(found, styles)

    @property
    def places(self) -> list[tuple[Sheet, str]]:
        """Every data set with each of its seed dictionaries."""
        return [(sheet, seeds) for sheet in self.sheets for seeds in sheet.seeds]

    def comparisons(self, sheet: Sheet) -> list[Comparison]:
        """What may be averaged, for each seed dictionary of a data set."""
        return [_comparison(sheet, seeds) for seeds in sheet.seeds if compared(sheet, seeds)]


def compared(sheet: Sheet, seeds: str) -> list[Method]:
    """The methods that are shown side by side; of a sweep over λ only the paper's 0.2 and "auto"."""
    return [m for m in _without_sweep(sheet) if any(name == seeds for _, name in m.runs)]


def _without_sweep(sheet: Sheet) -> list[Method]:
    return without_sweep(sheet.methods, most=3, kept=(PAPER_MIXING, "auto"))


def _comparison(sheet: Sheet, seeds: str) -> Comparison:
    run_on = {m: {pair for pair, name in m.runs if name == seeds} for m in compared(sheet, seeds)}
    pairs = max(run_on.values(), key=len)
    whole = [method for method, own in run_on.items() if own >= pairs]
    out = [
        f"{m.name} ({len(own & pairs)} of {len(pairs)} pairs)" for m, own in run_on.items() if m not in whole
    ]
    note = f" With {seeds} seeds not everywhere run: {', '.join(out)}." if out else ""
    return Comparison(sheet.dataset, seeds, whole, sorted(pairs), note)


def slug(*parts: str) -> str:
    """A name for a file or an element of a page, of letters, digits and hyphens."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in "-".join(parts).lower())
    return "-".join(part for part in kept.split("-") if part)


@dataclass(frozen=True)
class Mark:
    """A place in a plot that stands for something."""

    x: float  # from the left, as a share of the width
    y: float  # from the top, as a share of the height
    text: str  # what is there


@dataclass(frozen=True, eq=False)
class Drawing:
    """A plot with its title and caption."""

    name: str  # of its files, without an ending
    kind: str  # one of `FIGURES`
    title: str
    caption: str  # how to read it, and what it leaves out
    figure: Figure
    marks: tuple[Mark, ...] = ()

    def svg(self, *, transparent: bool = False) -> str:
        """The plot as SVG; the same results give the same text."""
        nothing = {"Date": None, "Creator": None}
        return self._written(format="svg", transparent=transparent, metadata=nothing).decode()

    def png(self) -> bytes:
        """The plot as PNG; the same results give the same bytes."""
        return self._written(format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})

    def _written(self, **options: Any) -> bytes:
        buffer = io.BytesIO()
        with plot_style():
            self.figure.savefig(buffer, **options)
        return buffer.getvalue()


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw in our style within the block."""
    with optional_library("a plot", "bilex-bench[report]"):
        import matplotlib as mpl
    with mpl.rc_context(cast(Any, _STYLE)):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of some inches, outside pyplot's list of figures."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def finished(
    figure: Figure,
    panels: Iterable[tuple[Axes, Sequence[Described]]],
    *,
    kind: str,
    name: Sequence[str],
    title: str,
    caption: str,
) -> Drawing:
    """A finished plot, with the points of each panel as marks."""
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    marks = []
    for axes, points in panels:
        places = axes.transData.transform([(x, y) for x, y, _ in points] or np.empty((0, 2)))
        for (x, y), (_, _, text) in zip(places, points, strict=True):
            marks.append(Mark(round(float(x) / width, 4), round(1 - float(y) / height, 4), text))
    return Drawing(slug(kind, *name), kind, title, caption, figure, tuple(marks))
