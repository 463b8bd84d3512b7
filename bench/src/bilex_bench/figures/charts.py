"""Heat map, λ curves, word frequency, and time against accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.lexicon.statistics import BANDS
from bilex_bench.figures.board import MUTED, PAPER, SOURCE, TARGET, Board, Comparison, Heading, Line
from bilex_bench.figures.drawing import Described, Drawing, finished, new_figure
from bilex_bench.results import DIRECTIONS, DirectionName, Result
from bilex_bench.tables.sheet import Direction, Sheet, is_ablation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.lines import Line2D

HEAT_MAP, LAMBDA, FREQUENCY, TIME = "heat-map", "lambda", "frequency", "time"
_CELL_WIDTH, _CELL_HEIGHT = 0.62, 0.27
# Not the colours of ink and paper: what stands in a coloured cell stays as it is on a dark page.
_ON_DARK, _ON_LIGHT = "#fdfdfd", "#0b0b0b"
_FEWEST = 3  # λ values that make a curve
_COLOURS = {"forward": SOURCE, "backward": TARGET}
_LINES: dict[str, Line] = {"csls": "-", "nn": (0, (4, 2))}
_CURVES_PER_ROW, _CURVE_WIDTH, _CURVE_HEIGHT, _CURVE_LEGEND = 3, 3.4, 2.5, 0.75
_PANEL_WIDTH, _LEGEND_LINE, _LEGEND_COLUMNS = 5.2, 0.24, 3
_MOST_LINES = 10
_TICKS = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h"}


def heat_maps(board: Board) -> list[Drawing]:
    """P@1 of every direction by every method, for each data set and seed size with two methods or more."""
    return [_heat_map(board, heading) for heading in board.headings if len(board.methods(heading)) > 1]


def _heat_map(board: Board, heading: Heading) -> Drawing:
    methods = board.methods(heading)
    names = [method.name for method in methods]
    pairs = sorted({pair for m in methods for pair, seeds in m.runs if seeds == heading.seeds})
    directions = [Direction(pair, way) for pair in pairs for way in DIRECTIONS]
    labels = [*map(str, directions), "mean"]
    by_direction = [[method.score(way, heading.seeds, "csls") for method in methods] for way in directions]
    scores = np.array(by_direction, np.float64)
    scores = np.vstack([scores, scores.mean(axis=0)])  # a mean only of what was run everywhere
    figure = new_figure(1.6 + _CELL_WIDTH * len(names), 1.6 + _CELL_HEIGHT * len(labels))
    axes = figure.subplots()
    mesh = axes.pcolormesh(scores, cmap="viridis", edgecolor=PAPER, linewidth=0.8)
    axes.axhline(len(labels) - 1, color=PAPER, lw=5)
    axes.invert_yaxis()
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(names)) + 0.5, names, rotation=35, ha="left", rotation_mode="anchor")
    axes.set_yticks(np.arange(len(labels)) + 0.5, labels)
    _write_cells(axes, mesh, scores)
    stated = [
        (j + 0.5, i + 0.5, f"{labels[i]}, {names[j]}: {score:.2f} %")
        for (i, j), score in np.ndenumerate(scores)
        if not np.isnan(score)
    ]
    return finished(
        figure,
        [(axes, stated)],
        kind=HEAT_MAP,
        name=(heading.dataset, heading.seeds),
        title=f"Every direction, every method: {heading.text}",
        caption="P@1 by CSLS in percent, brighter is better; bold is the best of a row. A dash: not run, or "
        "failed. The last row has a mean only for what was run on all pairs.",
    )


def _write_cells(axes: Axes, mesh: QuadMesh, scores: npt.NDArray[np.float64]) -> None:
    """Each score in its cell, dark on light or light on dark."""
    best = np.where(np.isnan(scores), -np.inf, scores).max(axis=1)
    brightness = mesh.to_rgba(scores)[..., :3] @ [0.299, 0.587, 0.114]
    for (i, j), score in np.ndenumerate(scores):
        if np.isnan(score):
            axes.text(j + 0.5, i + 0.5, "–", ha="center", va="center", fontsize=8)
            continue
        colour = _ON_LIGHT if brightness[i, j] > 0.5 else _ON_DARK
        weight = "bold" if score == best[i] else "normal"
        axes.text(
            j + 0.5,
            i + 0.5,
            f"{score:.1f}",
            ha="center",
            va="center",
            fontsize=8,
            color=colour,
            weight=weight,
        )


def lambda_curves(board: Board) -> list[Drawing]:
    """P@1 against λ, for each data set, seed size and stage C2 that was run at three or more λ."""
    drawings = []
    for sheet in board.sheets:
        levels = {r.setup.family: r for r in sheet.results if r.setup.lm is None}
        for seeds in sheet.seeds:
            for name, curves in _stages(sheet, seeds).items():
                drawings.append(_curves(Heading(sheet.dataset, seeds), name, curves, levels))
    return drawings


def _stages(sheet: Sheet, seeds: str) -> dict[str, list[list[Result]]]:
    """The results of each curve, one curve per pair, by the name of their method without λ."""
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


def _curves(heading: Heading, name: str, curves: list[list[Result]], levels: dict[str, Result]) -> Drawing:
    """One panel per pair, with the aligner's own level."""
    from matplotlib.lines import Line2D

    columns = min(_CURVES_PER_ROW, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure = new_figure(max(2, columns) * _CURVE_WIDTH, rows * _CURVE_HEIGHT + _CURVE_LEGEND)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    panels = [
        (axes, _curve_panel(axes, curve, levels.get(curve[0].setup.family)))
        for axes, curve in zip(grid.flat, curves, strict=False)
    ]
    for empty in grid.flat[len(curves) :]:
        empty.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("P@1 (%)")
    for axes, _ in panels[-columns:]:
        axes.set_xlabel("λ")
        axes.tick_params(labelbottom=True)
    handles = [
        Line2D([], [], color=SOURCE, lw=2, label="source → target"),
        Line2D([], [], color=TARGET, lw=2, label="target → source"),
        Line2D([], [], color=MUTED, ls=_LINES["csls"], lw=1.5, label="CSLS"),
        Line2D([], [], color=MUTED, ls=_LINES["nn"], lw=1.5, label="NN"),
        Line2D([], [], color=MUTED, lw=0.7, label="aligner alone"),
        Line2D([], [], color=MUTED, marker="D", ms=6, mfc=PAPER, mew=1.6, ls="", label="λ = auto"),
    ]
    figure.legend(
        handles=handles, loc="outside upper left", ncols=3 * columns, handlelength=2.4, columnspacing=1.4
    )
    return finished(
        figure,
        panels,
        kind=LAMBDA,
        name=(heading.dataset, heading.seeds, name),
        title=f"λ curves of {name}: {heading.text}",
        caption="P@1 against λ, the weight of the language model: 0 is the aligner alone, 1 the model alone. "
        "Thin horizontal lines: the aligner by itself. Diamonds: the λ chosen on held-out seeds, "
        "without a look at the test words.",
    )


def _curve_panel(axes: Axes, curve: list[Result], level: Result | None) -> list[Described]:
    """Draw the curves of one pair; what its points stand for."""
    pair = curve[0].setup.pair
    axes.set_title(pair)
    axes.set_xlim(-0.03, 1.03)
    stated = []
    for way in DIRECTIONS:
        for retrieval, line in _LINES.items():
            text = f"{Direction(pair, way)}, {retrieval.upper()}"
            points = sorted(_curve_points((r for r in curve if r.setup.mixing != "auto"), way, retrieval))
            axes.plot(*zip(*points, strict=True), color=_COLOURS[way], ls=line, marker="o", ms=3, lw=1.5)
            own = level.metric(way, retrieval) if level else None
            if own is not None:
                axes.axhline(100 * own, color=_COLOURS[way], ls=line, lw=0.7, alpha=0.6)
            chosen = _curve_points((r for r in curve if r.setup.mixing == "auto"), way, retrieval)
            for x, y in chosen:
                axes.plot(x, y, marker="D", ms=7, mfc=PAPER, mec=_COLOURS[way], mew=1.6, zorder=5, ls="")
            stated += [(x, y, f"{text}, λ = {x:g}: {y:.1f} %") for x, y in points]
            stated += [(x, y, f"{text}, λ = auto chose {x:g}: {y:.1f} %") for x, y in chosen]
    return stated


def _curve_points(results: Iterable[Result], way: DirectionName, retrieval: str) -> list[tuple[float, float]]:
    """λ, chosen or given, and percentage of each result."""
    return [
        (float(result.mixing), 100 * score)
        for result in results
        if result.mixing is not None and (score := result.metric(way, retrieval)) is not None
    ]


def frequency(board: Board) -> list[Drawing]:
    """P@1 by the frequency of the query word: one figure per data set, with a panel for each seed size."""
    shown = {
        sheet.dataset: [_few_lines(comparison) for comparison in board.comparisons(sheet.dataset)]
        for sheet in board.sheets
    }
    return [_frequency(board, dataset, comparisons) for dataset, comparisons in shown.items() if comparisons]


def _frequency(board: Board, dataset: str, shown: list[Comparison]) -> Drawing:
    names = list(dict.fromkeys(method.name for comparison in shown for method in comparison.methods))
    legend_lines = -(-len(names) // _LEGEND_COLUMNS)
    figure = new_figure(_PANEL_WIDTH * max(len(shown), 1.4), 3.9 + _LEGEND_LINE * legend_lines)
    grid = figure.subplots(1, len(shown), sharey=True, squeeze=False)
    panels = [(axes, _bands(axes, one, board)) for axes, one in zip(grid.flat, shown, strict=True)]
    grid[0, 0].set_ylabel("P@1, CSLS (%)")
    lines = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
    figure.legend(handles=[lines[name] for name in names], loc="outside lower center", ncols=_LEGEND_COLUMNS)
    notes = "".join(dict.fromkeys(comparison.note for comparison in shown))
    return finished(
        figure,
        panels,
        kind=FREQUENCY,
        name=(dataset,),
        title=f"Frequent and rare words: {dataset}",
        caption="P@1 by CSLS over all pairs and both directions, in bands of the frequency rank of the word "
        "asked for; n is the number of words in a band. Bands hold other words of other directions: compare "
        f"methods within a band rather than bands.{notes}",
    )


def _few_lines(comparison: Comparison) -> Comparison:
    """So few methods that lines can be distinguished: without ablations and C2 over rivals, if need be."""
    methods = comparison.methods
    for spared in (
        lambda setup: not is_ablation(setup),
        lambda setup: setup.lm is None or setup.method == "c1",
    ):
        if len(methods) > _MOST_LINES:
            methods = [method for method in methods if spared(method.setup)]
    out = [method.name for method in comparison.methods if method not in methods]
    note = f" Not drawn: {', '.join(out)}." if out else ""
    return comparison._replace(methods=methods, note=comparison.note + note)


def _bands(axes: Axes, comparison: Comparison, board: Board) -> list[Described]:
    """Draw a line for each method; what its points stand for."""
    stated = []
    counts = dict.fromkeys(BANDS, 0)
    for number, method in enumerate(comparison.methods):
        by_band = {band: _asked_and_right(comparison.runs(method), band) for band in BANDS}
        if not number:
            counts = {band: asked for band, (asked, _) in by_band.items() if asked}
        style = board.styles[method.name]
        look = {"color": style.colour, "ls": style.line, "marker": style.mark, "label": method.name}
        scores = [100 * by_band[band][1] / max(1, by_band[band][0]) for band in counts]
        axes.plot(range(len(scores)), scores, ms=5, lw=1.6, **look)  # type: ignore[arg-type]
        stated += [
            (float(x), y, f"{method.name}, ranks {band}: {y:.1f} %")
            for x, (band, y) in enumerate(zip(counts, scores, strict=True))
        ]
    labels = [f"{band.replace('-', '–')}\nn = {count:,}" for band, count in counts.items()]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("frequency rank of the word asked for")
    pairs = len(comparison.pairs)
    axes.set_title(f"{comparison.heading.text} ({pairs} pair{'s' if pairs > 1 else ''})")
    return stated


def _asked_and_right(results: Iterable[Result], band: str) -> tuple[int, float]:
    """How many words of a band are asked for, and how many of them translated rightly."""
    groups = [(r.evaluation or {})[way]["bands"].get(band) for r in results for way in DIRECTIONS]
    there = [group for group in groups if group and group["csls"]]
    return sum(g["covered"] for g in there), sum(g["csls"]["p@1"] * g["covered"] for g in there)


class Point(NamedTuple):
    """One method on one kind of machine."""

    name: str
    device: str
    seconds: float
    score: float


def front(points: Iterable[Point]) -> list[Point]:
    """The points that no other is both quicker and better than, quickest first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.seconds, -point.score)):
        if not kept or point.score > kept[-1].score:
            kept.append(point)
    return kept


def readable(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def time_accuracy(board: Board) -> list[Drawing]:
    """Accuracy against time: one figure per data set, with a panel for each seed size."""
    drawings = []
    for sheet in board.sheets:
        panels = [(comparison, _points(comparison)) for comparison in board.comparisons(sheet.dataset)]
        if any(points for _, points in panels):
            drawings.append(_time(board, sheet.dataset, panels))
    return drawings


def _points(comparison: Comparison) -> list[Point]:
    """The mean of each method, where all its pairs ran on one kind of device."""
    points = []
    for method in comparison.methods:
        results = comparison.runs(method)
        score = comparison.mean(method)
        devices = {result.device for result in results}
        seconds = sum(result.working_seconds for result in results) / len(results)
        if len(devices) == 1 and seconds > 0 and score is not None:
            points.append(Point(method.name, devices.pop(), seconds, score))
    return points


def _time(board: Board, dataset: str, panels: list[tuple[Comparison, list[Point]]]) -> Drawing:
    everything = [point for _, points in panels for point in points]
    names = [name for name in board.styles if any(point.name == name for point in everything)]
    devices = list(dict.fromkeys(point.device for point in everything))
    lines = -(-(len(names) + len(devices)) // _LEGEND_COLUMNS)
    figure = new_figure(_PANEL_WIDTH * max(len(panels), 1.4), 4.0 + _LEGEND_LINE * lines)
    grid = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)
    stated = []
    for axes, (comparison, points) in zip(grid.flat, panels, strict=True):
        axes.set_title(comparison.heading.text)
        axes.set_xlabel("mean time of a pair")
        _time_panel(axes, points, board, devices)
        texts = (f"{p.name}, {p.device}: {p.score:.1f} % in {readable(p.seconds)}" for p in points)
        stated.append((axes, [(p.seconds, p.score, text) for p, text in zip(points, texts, strict=True)]))
    grid[0, 0].set_ylabel("mean P@1, CSLS (%)")
    _time_axis(grid[0, 0], [point.seconds for point in everything])
    handles = _time_legend(names, devices, board)
    figure.legend(handles=handles, loc="outside lower center", ncols=_LEGEND_COLUMNS)
    return finished(
        figure,
        stated,
        kind=TIME,
        name=(dataset,),
        title=f"Time against accuracy: {dataset}",
        caption="P@1 by CSLS, the mean over all pairs and both directions, against the mean time of a pair "
        "from the vectors to a finished space, on a logarithmic axis; what builds on a stored fit counts "
        "that fit too. The stepped line joins what no other method beats in both, on one kind of machine. "
        "Setups may have run side by side, which slows each of them."
        f"{''.join(comparison.note for comparison, _ in panels)}",
    )


def _time_panel(axes: Axes, points: list[Point], board: Board, devices: list[str]) -> None:
    axes.set_xscale("log")
    for device in devices:
        best = front(point for point in points if point.device == device)
        times, scores = [p.seconds for p in best], [p.score for p in best]
        axes.step(times, scores, where="post", color=MUTED, lw=1.1, zorder=1)
    for p in points:
        colour, mark, _ = board.styles[p.name]
        face = PAPER if len(devices) > 1 and p.device == "cpu" else colour
        axes.plot(p.seconds, p.score, ls="", marker=mark, ms=9, mec=colour, mew=1.6, mfc=face, zorder=3)


def _time_axis(axes: Axes, seconds: list[float]) -> None:
    """Ticks at times that people know."""
    low, high = min(seconds), max(seconds)
    inside = {tick: text for tick, text in _TICKS.items() if low / 2 <= tick <= high * 2}
    if len(inside) < 2:
        inside = {low: readable(low), high: readable(high)}
    axes.set_xticks(list(inside), list(inside.values()))
    axes.minorticks_off()
    axes.set_xlim(math.exp(math.log(low) - 0.6), math.exp(math.log(high) + 0.6))


def _time_legend(names: list[str], devices: list[str], board: Board) -> list[Line2D]:
    from matplotlib.lines import Line2D

    handles = []
    for name in names:
        colour, mark, _ = board.styles[name]
        handles.append(Line2D([], [], ls="", marker=mark, color=colour, ms=7, label=name))
    for device in devices if len(devices) > 1 else ():
        face = PAPER if device == "cpu" else MUTED
        handles.append(Line2D([], [], ls="", marker="o", mec=MUTED, mfc=face, ms=7, label=device))
    return handles
