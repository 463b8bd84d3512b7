"""One figure: how it is made, how it is written to the same bytes every time, what its places stand for."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bilex.core.errors import BilexError
from bilex_bench.figures.board import GRID, INK, MUTED, PAPER, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
Described = tuple[float, float, str]  # a place in the coordinates of its axes, and what is there

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
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8,
}


@dataclass(frozen=True)
class Mark:
    """A place in a figure that stands for something."""

    x: float  # from the left, as a share of the figure's width
    y: float  # from the top, as a share of its height
    text: str  # what is there


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with its words."""

    name: str  # the name of its files, without an ending
    kind: str  # the kind of figure, one of `FIGURES`
    title: str  # what it shows, in a few words
    caption: str  # how to read it, and what it leaves out
    figure: Figure  # the figure itself
    marks: tuple[Mark, ...] = ()  # what can be said about places in it

    def svg(self, *, transparent: bool = False) -> str:
        """The figure as SVG; the same results give the same text."""
        return self._written("svg", transparent, metadata={"Date": None, "Creator": None}).decode()

    def png(self, *, transparent: bool = False) -> bytes:
        """The figure as PNG; the same results give the same bytes."""
        return self._written("png", transparent, dpi=DOTS_PER_INCH, metadata={"Software": None})

    def _written(self, ending: str, transparent: bool, **options: Any) -> bytes:
        buffer = io.BytesIO()
        with house_style():
            self.figure.savefig(buffer, format=ending, transparent=transparent, **options)
        return buffer.getvalue()


@contextmanager
def house_style() -> Iterator[None]:
    """Within the block matplotlib draws as all our figures are drawn."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise missing_extra("matplotlib") from error
    with mpl.rc_context(cast(Any, _STYLE)):
        yield


def missing_extra(library: str) -> BilexError:
    """The error for a library that is not there."""
    return BilexError(f"figures need {library}, which is not installed: pip install 'bilex-bench[report]'.")


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
    """A figure on which everything is drawn, laid out, with the points of each panel as marks."""
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    marks = []
    for axes, points in panels:
        places = axes.transData.transform([(x, y) for x, y, _ in points] or np.empty((0, 2)))
        for (x, y), (_, _, text) in zip(places, points, strict=True):
            marks.append(Mark(round(float(x) / width, 4), round(1 - float(y) / height, 4), text))
    return Drawing(slug(kind, *name), kind, title, caption, figure, tuple(marks))
