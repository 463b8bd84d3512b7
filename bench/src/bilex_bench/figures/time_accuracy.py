"""Accuracy against the time it takes, with the front of what no other method beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from bilex_bench.figures.board import Board, Comparison, slug
from bilex_bench.figures.drawing import Described, Drawing, Mark, marks_of, new_figure
from bilex_bench.figures.palette import MUTED, PAPER
from bilex_bench.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

KIND = "time"
_PANEL_WIDTH, _HEIGHT, _LEGEND_LINE, _LEGEND_COLUMNS = 5.2, 4.0, 0.24, 3
_TICKS = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h"}


class Point(NamedTuple):
    """One method on one kind of machine."""

    name: str
    device: str
    seconds: float
    score: float


def draw(board: Board) -> list[Drawing]:
    """One figure per data set, with a panel for each seed size."""
    drawings = []
    for sheet in board.sheets:
        shown = board.comparisons(sheet.dataset)
        panels = [(comparison, _points(comparison)) for comparison in shown]
        if any(points for _, points in panels):
            drawings.append(_drawing(board, sheet.dataset, panels))
    return drawings


def front(points: Iterable[Point]) -> list[Point]:
    """The points that no other is both quicker and better than, quickest first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.seconds, -point.score)):
        if not kept or point.score > kept[-1].score:
            kept.append(point)
    return kept


def seconds_of(result: Result) -> float:
    """What a setup takes from the vectors to a space that translates; scoring does not count."""
    return sum(seconds for step, seconds in result.seconds.items() if step != "evaluate")


def readable(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _points(comparison: Comparison) -> list[Point]:
    """The mean of each method, where all its pairs ran on one kind of device."""
    points = []
    for method in comparison.methods:
        results = comparison.runs(method)
        score = comparison.mean(method)
        devices = {result.device for result in results}
        seconds = sum(map(seconds_of, results)) / len(results)
        if len(devices) == 1 and seconds > 0 and score is not None:
            points.append(Point(method.name, devices.pop(), seconds, score))
    return points


def _drawing(board: Board, dataset: str, panels: list[tuple[Comparison, list[Point]]]) -> Drawing:
    everything = [point for _, points in panels for point in points]
    names = [name for name in board.styles if any(point.name == name for point in everything)]
    devices = list(dict.fromkeys(point.device for point in everything))
    lines = -(-(len(names) + len(devices)) // _LEGEND_COLUMNS)
    figure = new_figure(_PANEL_WIDTH * max(len(panels), 1.4), _HEIGHT + _LEGEND_LINE * lines)
    grid = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)
    for axes, (comparison, points) in zip(grid.flat, panels, strict=True):
        axes.set_title(comparison.heading.text)
        axes.set_xlabel("mean time of a pair")
        _panel(axes, points, board, devices)
    grid[0, 0].set_ylabel("mean P@1, CSLS (%)")
    _time_axis(grid[0, 0], [point.seconds for point in everything])
    figure.legend(handles=_legend(names, devices, board), loc="outside lower center", ncols=_LEGEND_COLUMNS)
    figure.draw_without_rendering()
    marks: list[Mark] = []
    for axes, (_, points) in zip(grid.flat, panels, strict=True):
        marks += marks_of(axes, [_described(point) for point in points])
    return Drawing(
        name=slug(KIND, dataset),
        kind=KIND,
        title=f"Time against accuracy: {dataset}",
        caption="P@1 by CSLS, the mean over all pairs and both directions, against the mean time of a pair "
        "from the vectors to a finished space, on a logarithmic axis; what builds on a stored fit counts "
        "that fit too. The stepped line joins what no other method beats in both, on one kind of machine. "
        "Setups may have run side by side, which slows each of them."
        f"{''.join(comparison.note for comparison, _ in panels)}",
        figure=figure,
        marks=tuple(marks),
    )


def _panel(axes: Axes, points: list[Point], board: Board, devices: list[str]) -> None:
    axes.set_xscale("log")
    for device in devices:
        best = front(point for point in points if point.device == device)
        axes.step(
            [p.seconds for p in best], [p.score for p in best], where="post", color=MUTED, lw=1.1, zorder=1
        )
    for point in points:
        colour, mark, _ = board.styles[point.name]
        face = PAPER if len(devices) > 1 and point.device == "cpu" else colour
        axes.plot(
            point.seconds, point.score, ls="", marker=mark, ms=9, mec=colour, mew=1.6, mfc=face, zorder=3
        )


def _described(point: Point) -> Described:
    text = f"{point.name}, {point.device}: {point.score:.1f} % in {readable(point.seconds)}"
    return point.seconds, point.score, text


def _time_axis(axes: Axes, seconds: list[float]) -> None:
    """Ticks at times that people know."""
    low, high = min(seconds), max(seconds)
    inside = {tick: text for tick, text in _TICKS.items() if low / 2 <= tick <= high * 2}
    if len(inside) < 2:
        inside = {low: readable(low), high: readable(high)}
    axes.set_xticks(list(inside), list(inside.values()))
    axes.minorticks_off()
    axes.set_xlim(math.exp(math.log(low) - 0.6), math.exp(math.log(high) + 0.6))


def _legend(names: list[str], devices: list[str], board: Board) -> list[Line2D]:
    from matplotlib.lines import Line2D

    handles = []
    for name in names:
        colour, mark, _ = board.styles[name]
        handles.append(Line2D([], [], ls="", marker=mark, color=colour, ms=7, label=name))
    if len(devices) > 1:
        for device in devices:
            face = PAPER if device == "cpu" else MUTED
            handles.append(Line2D([], [], ls="", marker="o", mec=MUTED, mfc=face, ms=7, label=device))
    return handles
