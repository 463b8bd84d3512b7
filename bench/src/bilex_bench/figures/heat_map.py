"""P@1 of every direction by every method, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bilex_bench.figures.board import Board, Heading, slug
from bilex_bench.figures.drawing import Drawing, marks_of, new_figure
from bilex_bench.figures.palette import PAPER
from bilex_bench.results import DIRECTIONS
from bilex_bench.tables.sheet import Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

KIND = "heat-map"
_COLOURS = "viridis"
_CELL_WIDTH, _CELL_HEIGHT = 0.62, 0.27
# Not the colours of ink and paper: what stands in a coloured cell stays as it is on a dark page.
_ON_DARK, _ON_LIGHT = "#fdfdfd", "#0b0b0b"


def draw(board: Board) -> list[Drawing]:
    """One heat map for each data set and seed size with two methods or more."""
    return [_drawing(board, heading) for heading in board.headings if len(board.methods(heading)) > 1]


def _drawing(board: Board, heading: Heading) -> Drawing:
    names, labels, scores = _table(board, heading)
    figure = new_figure(1.6 + _CELL_WIDTH * len(names), 1.6 + _CELL_HEIGHT * len(labels))
    axes = figure.subplots()
    mesh = axes.pcolormesh(scores, cmap=_COLOURS, edgecolor=PAPER, linewidth=0.8)
    axes.axhline(len(labels) - 1, color=PAPER, lw=5)
    axes.invert_yaxis()
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(names)) + 0.5, names, rotation=35, ha="left", rotation_mode="anchor")
    axes.set_yticks(np.arange(len(labels)) + 0.5, labels)
    _write_cells(axes, mesh, scores)
    figure.draw_without_rendering()
    stated = [
        (j + 0.5, i + 0.5, f"{label}, {name}: {scores[i, j]:.2f} %")
        for i, label in enumerate(labels)
        for j, name in enumerate(names)
        if not np.isnan(scores[i, j])
    ]
    return Drawing(
        name=slug(KIND, heading.dataset, heading.seeds),
        kind=KIND,
        title=f"Every direction, every method: {heading.text}",
        caption="P@1 by CSLS in percent, brighter is better; bold is the best of a row. A dash: not run, or "
        "failed. The last row has a mean only for what was run on all pairs.",
        figure=figure,
        marks=marks_of(axes, stated),
    )


def _table(board: Board, heading: Heading) -> tuple[list[str], list[str], npt.NDArray[np.float64]]:
    """Names of columns, names of rows, and percentages; the last row is the mean of each full column."""
    methods = board.methods(heading)
    pairs = sorted({pair for m in methods for pair, seeds in m.runs if seeds == heading.seeds})
    directions = [Direction(pair, way) for pair in pairs for way in DIRECTIONS]
    scores = np.array(
        [[method.score(way, heading.seeds, "csls") for method in methods] for way in directions], np.float64
    )
    labels = [*map(str, directions), "mean"]
    return [method.name for method in methods], labels, np.vstack([scores, scores.mean(axis=0)])


def _write_cells(axes: Axes, mesh: QuadMesh, scores: npt.NDArray[np.float64]) -> None:
    """Each score in its cell, dark on light or light on dark."""
    best = np.where(np.isnan(scores), -np.inf, scores).max(axis=1)
    brightness = mesh.to_rgba(scores)[..., :3] @ [0.299, 0.587, 0.114]
    for (i, j), score in np.ndenumerate(scores):
        if np.isnan(score):
            axes.text(j + 0.5, i + 0.5, "–", ha="center", va="center", fontsize=8)
            continue
        axes.text(
            j + 0.5,
            i + 0.5,
            f"{score:.1f}",
            ha="center",
            va="center",
            fontsize=8,
            color=_ON_LIGHT if brightness[i, j] > 0.5 else _ON_DARK,
            fontweight="bold" if score == best[i] else "normal",
        )
