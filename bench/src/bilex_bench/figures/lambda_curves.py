"""P@1 against λ, the weight of the language model: one panel per pair, with the aligner's own level."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bilex_bench.figures.board import Board, Heading, slug
from bilex_bench.figures.drawing import Described, Drawing, Mark, marks_of, new_figure
from bilex_bench.figures.palette import MUTED, PAPER, SOURCE, TARGET, Line
from bilex_bench.results import DIRECTIONS, DirectionName, Result
from bilex_bench.tables.sheet import Direction, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

KIND = "lambda"
_FEWEST = 3  # λ values that make a curve
_COLOURS = {"forward": SOURCE, "backward": TARGET}
_LINES: dict[str, Line] = {"csls": "-", "nn": (0, (4, 2))}
_PANELS_A_ROW, _PANEL_WIDTH, _ROW_HEIGHT, _LEGEND_HEIGHT = 3, 3.4, 2.5, 0.75


def draw(board: Board) -> list[Drawing]:
    """One figure for each data set, seed size and stage C2 that was run at three or more λ."""
    drawings = []
    for sheet in board.sheets:
        levels = {r.setup.family: r for r in sheet.results if r.setup.lm is None}
        for seeds in sheet.seeds:
            for name, curves in _stages(sheet, seeds).items():
                drawings.append(_drawing(Heading(sheet.dataset, seeds), name, curves, levels))
    return drawings


def _stages(sheet: Sheet, seeds: str) -> dict[str, list[list[Result]]]:
    """The results of each curve, one curve a pair, by the name of their method without λ."""
    by_stage: dict[str, list[Result]] = {}
    names: dict[str, str] = {}
    for method in sheet.methods:
        for (_, those), results in method.runs.items():
            for result in results:
                if those == seeds and result.setup.stage is not None:
                    by_stage.setdefault(result.setup.stage, []).append(result)
                    names[result.setup.stage] = method.name.split(", λ")[0].split(" (λ")[0]
    named: dict[str, list[list[Result]]] = {}
    for stage, curve in sorted(by_stage.items(), key=lambda item: item[1][0].setup.pair):
        if len({r.setup.mixing for r in curve} - {"auto"}) >= _FEWEST:
            named.setdefault(names[stage], []).append(curve)
    return named


def _drawing(heading: Heading, name: str, curves: list[list[Result]], levels: dict[str, Result]) -> Drawing:
    columns = min(_PANELS_A_ROW, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure = new_figure(max(2, columns) * _PANEL_WIDTH, rows * _ROW_HEIGHT + _LEGEND_HEIGHT)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    panels = list(zip(grid.flat, curves, strict=False))
    stated = [_panel(axes, curve, levels.get(curve[0].setup.family)) for axes, curve in panels]
    for empty in grid.flat[len(curves) :]:
        empty.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("P@1 (%)")
    for axes, _ in panels[-columns:]:
        axes.set_xlabel("λ")
        axes.tick_params(labelbottom=True)
    figure.legend(
        handles=_legend(), loc="outside upper left", ncols=3 * columns, handlelength=2.4, columnspacing=1.4
    )
    figure.draw_without_rendering()
    marks: list[Mark] = []
    for (axes, _), points in zip(panels, stated, strict=True):
        marks += marks_of(axes, points)
    return Drawing(
        name=slug(KIND, heading.dataset, heading.seeds, name),
        kind=KIND,
        title=f"λ curves of {name}: {heading.text}",
        caption="P@1 against λ, the weight of the language model: 0 is the aligner alone, 1 the model alone. "
        "Thin horizontal lines: the aligner by itself. Diamonds: the λ chosen on held-out seeds, "
        "without a look at the test words.",
        figure=figure,
        marks=tuple(marks),
    )


def _panel(axes: Axes, curve: list[Result], level: Result | None) -> list[Described]:
    """Draw the curves of one pair; what its points stand for."""
    pair = curve[0].setup.pair
    axes.set_title(pair)
    axes.set_xlim(-0.03, 1.03)
    stated = []
    for way in DIRECTIONS:
        for retrieval, line in _LINES.items():
            text = f"{Direction(pair, way)}, {retrieval.upper()}"
            points = sorted(_points((r for r in curve if r.setup.mixing != "auto"), way, retrieval))
            axes.plot(*zip(*points, strict=True), color=_COLOURS[way], ls=line, marker="o", ms=3, lw=1.5)
            own = level.figure(way, retrieval) if level else None
            if own is not None:
                axes.axhline(100 * own, color=_COLOURS[way], ls=line, lw=0.7, alpha=0.6)
            chosen = _points((r for r in curve if r.setup.mixing == "auto"), way, retrieval)
            for x, y in chosen:
                axes.plot(x, y, marker="D", ms=7, mfc=PAPER, mec=_COLOURS[way], mew=1.6, zorder=5, ls="")
            stated += [(x, y, f"{text}, λ = {x:g}: {y:.1f} %") for x, y in points]
            stated += [(x, y, f"{text}, λ = auto chose {x:g}: {y:.1f} %") for x, y in chosen]
    return stated


def _points(results: Iterable[Result], way: DirectionName, retrieval: str) -> list[tuple[float, float]]:
    """λ and percentage of each result; λ is what was asked for or, with "auto", what was chosen."""
    found = []
    for result in results:
        mixing = result.report.get("mixing") if result.setup.mixing == "auto" else result.setup.mixing
        score = result.figure(way, retrieval)
        if mixing is not None and score is not None:
            found.append((float(mixing), 100 * score))
    return found


def _legend() -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=SOURCE, lw=2, label="source → target"),
        Line2D([], [], color=TARGET, lw=2, label="target → source"),
        Line2D([], [], color=MUTED, ls=_LINES["csls"], lw=1.5, label="CSLS"),
        Line2D([], [], color=MUTED, ls=_LINES["nn"], lw=1.5, label="NN"),
        Line2D([], [], color=MUTED, lw=0.7, label="aligner alone"),
        Line2D([], [], color=MUTED, marker="D", ms=6, mfc=PAPER, mew=1.6, ls="", label="λ = auto"),
    ]
