"""Heat map, λ curves, word frequency, and time against accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.lexicon.statistics import BANDS
from bilex_bench.figures.drawing import (
    MUTED,
    PAPER,
    SOURCE,
    TARGET,
    Comparison,
    Described,
    Drawing,
    Line,
    PlotData,
    compared,
    finished,
    new_figure,
)
from bilex_bench.results import DIRECTIONS, Result, grouped
from bilex_bench.tables.sheet import Direction, Sheet, is_ablation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

HEAT_MAP, LAMBDA, FREQUENCY, TIME = "heat-map", "lambda", "frequency", "time"
# Not the colours of ink and paper: the text of a coloured cell stays as it is on a dark page.
_ON_DARK, _ON_LIGHT = "#fdfdfd", "#0b0b0b"
_LEAST_MIXINGS = 3  # for a curve
_COLOURS = {"forward": SOURCE, "backward": TARGET}
_LINES: dict[str, Line] = {"csls": "-", "nn": (0, (4, 2))}
_COLUMNS = 3  # of panels of λ curves, and of legends
_MOST_LINES = 10
_TICKS = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h"}


def heat_maps(data: PlotData) -> Iterator[Drawing]:
    """P@1 of every direction by every method, for each data set and seed size with two methods or more."""
    for sheet, seeds in data.places:
        methods = compared(sheet, seeds)
        if len(methods) < 2:
            continue
        names = [method.name for method in methods]
        directions = sheet.only(methods).directions(seeds)
        labels = [*map(str, directions), "mean"]
        scores = np.array([[m.score(d, seeds, "csls") for m in methods] for d in directions], np.float64)
        scores = np.vstack([scores, scores.mean(axis=0)])  # NaN for methods that were not run everywhere
        figure = new_figure(1.6 + 0.62 * len(names), 1.6 + 0.27 * len(labels))
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
        described = [
            (j + 0.5, i + 0.5, f"{labels[i]}, {names[j]}: {score:.2f} %")
            for (i, j), score in np.ndenumerate(scores)
            if not np.isnan(score)
        ]
        yield finished(
            figure,
            [(axes, described)],
            kind=HEAT_MAP,
            name=(sheet.dataset, seeds),
            title=f"Every direction, every method: {sheet.dataset}, {seeds} seeds",
            caption="P@1 by CSLS in percent, brighter is better; bold is the best of a row. A dash: not run, "
            "or failed. The last row has a mean only for what was run on all pairs.",
        )


def _write_cells(axes: Axes, mesh: QuadMesh, scores: npt.NDArray[np.float64]) -> None:
    """Each score in its cell, dark on light or light on dark."""
    best = np.where(np.isnan(scores), -np.inf, scores).max(axis=1)
    brightness = mesh.to_rgba(scores)[..., :3] @ [0.299, 0.587, 0.114]
    for (i, j), score in np.ndenumerate(scores):
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        if not np.isnan(score):
            look["color"] = _ON_LIGHT if brightness[i, j] > 0.5 else _ON_DARK
            look["weight"] = "bold" if score == best[i] else "normal"
        axes.text(j + 0.5, i + 0.5, "–" if np.isnan(score) else f"{score:.1f}", **look)


def lambda_curves(data: PlotData) -> Iterator[Drawing]:
    """P@1 against λ, for each data set, seed size and stage C2 that was run at three or more λ."""
    for sheet, seeds in data.places:
        levels = {r.setup.family: r for r in sheet.results if r.setup.lm is None}
        curves: dict[str, list[list[Result]]] = {}  # one per pair, by the name of their method without λ
        for stage in _stages(sheet, seeds):
            if len({result.setup.mixing for _, result in stage} - {"auto"}) >= _LEAST_MIXINGS:
                name = stage[-1][0].split(", λ")[0].split(" (λ")[0]
                curves.setdefault(name, []).append([result for _, result in stage])
        for name, found in curves.items():
            yield _lambda_curves(sheet, seeds, name, found, levels)


def _stages(sheet: Sheet, seeds: str) -> list[list[tuple[str, Result]]]:
    """The results of each stage C2 with the names of their methods, ordered by pair."""
    every = ((m.name, r) for m in sheet.methods for r in m.results)
    here = [(name, r) for name, r in every if r.setup.seeds == seeds and r.setup.stage is not None]
    by_stage = grouped(here, lambda named: named[1].setup.stage)
    return sorted(by_stage.values(), key=lambda stage: stage[0][1].setup.pair)


def _lambda_curves(
    sheet: Sheet, seeds: str, name: str, curves: list[list[Result]], levels: dict[str, Result]
) -> Drawing:
    """One panel per pair, with the aligner's own level."""
    from matplotlib.lines import Line2D

    columns = min(_COLUMNS, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure = new_figure(max(2, columns) * 3.4, rows * 2.5 + 0.75)
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
        name=(sheet.dataset, seeds, name),
        title=f"λ curves of {name}: {sheet.dataset}, {seeds} seeds",
        caption="P@1 against λ, the weight of the language model: 0 is the aligner alone, 1 the model alone. "
        "Thin horizontal lines: the aligner alone. Diamonds: the λ chosen on held-out seeds, "
        "without a look at the test words.",
    )


def _curve_panel(axes: Axes, curve: list[Result], level: Result | None) -> list[Described]:
    """Draw the curves of one pair; describe its points."""
    pair = curve[0].setup.pair
    axes.set_title(pair)
    axes.set_xlim(-0.03, 1.03)
    described = []
    for direction, (retrieval, line) in product(DIRECTIONS, _LINES.items()):
        text, colour = f"{Direction(pair, direction)}, {retrieval.upper()}", _COLOURS[direction]
        scores = [(result, result.metric(direction, retrieval)) for result in curve]
        known = [
            (r.setup.mixing == "auto", r.mixing, 100 * score)
            for r, score in scores
            if r.mixing is not None and score is not None
        ]
        points = sorted((x, y) for is_auto, x, y in known if not is_auto)
        chosen = [(x, y) for is_auto, x, y in known if is_auto]
        axes.plot(*zip(*points, strict=True), color=colour, ls=line, marker="o", ms=3, lw=1.5)
        own = level.metric(direction, retrieval) if level else None
        if own is not None:
            axes.axhline(100 * own, color=colour, ls=line, lw=0.7, alpha=0.6)
        for x, y in chosen:
            axes.plot(x, y, marker="D", ms=7, mfc=PAPER, mec=colour, mew=1.6, zorder=5, ls="")
        described += [(x, y, f"{text}, λ = {x:g}: {y:.1f} %") for x, y in points]
        described += [(x, y, f"{text}, λ = auto chose {x:g}: {y:.1f} %") for x, y in chosen]
    return described


def frequency(data: PlotData) -> Iterator[Drawing]:
    """P@1 by the frequency of the query word: one plot per data set, with a panel for each seed size."""
    for sheet in data.sheets:
        shown = [_few_lines(comparison) for comparison in data.comparisons(sheet)]
        if shown:
            names = list(dict.fromkeys(method.name for comparison in shown for method in comparison.methods))
            figure, grid = _side_by_side(len(shown), 3.9, len(names), sharex=False)
            panels = [(axes, _bands(axes, one, data)) for axes, one in zip(grid.flat, shown, strict=True)]
            grid[0, 0].set_ylabel("P@1, CSLS (%)")
            lines = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
            handles = [lines[name] for name in names]
            figure.legend(handles=handles, loc="outside lower center", ncols=_COLUMNS)
            notes = "".join(dict.fromkeys(comparison.note for comparison in shown))
            yield finished(
                figure,
                panels,
                kind=FREQUENCY,
                name=(sheet.dataset,),
                title=f"Frequent and rare words: {sheet.dataset}",
                caption="P@1 by CSLS over all pairs and both directions, in bands of the frequency rank "
                "of the query word; n is the number of words in a band. Bands hold other words of "
                f"other directions: compare methods within a band rather than bands.{notes}",
            )


def _side_by_side(panels: int, height: float, entries: int, *, sharex: bool) -> tuple[Figure, Any]:
    """A row of panels with one vertical axis, and room for a legend of some entries below."""
    figure = new_figure(5.2 * max(panels, 1.4), height + 0.24 * math.ceil(entries / _COLUMNS))
    return figure, figure.subplots(1, panels, sharex=sharex, sharey=True, squeeze=False)


def _few_lines(comparison: Comparison) -> Comparison:
    """Few enough methods to distinguish lines: without ablations and C2 over baselines, if need be."""
    methods = comparison.methods
    for keep in (
        lambda setup: not is_ablation(setup),
        lambda setup: setup.lm is None or setup.method == "c1",
    ):
        if len(methods) > _MOST_LINES:
            methods = [method for method in methods if keep(method.setup)]
    out = [method.name for method in comparison.methods if method not in methods]
    note = f" Not drawn: {', '.join(out)}." if out else ""
    return comparison._replace(methods=methods, note=comparison.note + note)


def _bands(axes: Axes, comparison: Comparison, data: PlotData) -> list[Described]:
    """Draw a line for each method; describe its points."""
    described = []
    counts: dict[str, int] = {}
    for method in comparison.methods:
        by_band = {band: _covered_and_right(comparison.runs(method), band) for band in BANDS}
        counts = counts or {band: covered for band, (covered, _) in by_band.items() if covered}
        style = data.styles[method.name]
        look: dict[str, Any] = {"color": style.colour, "ls": style.line, "marker": style.mark}
        scores = [100 * by_band[band][1] / max(1, by_band[band][0]) for band in counts]
        axes.plot(range(len(scores)), scores, ms=5, lw=1.6, label=method.name, **look)
        described += [
            (float(x), y, f"{method.name}, ranks {band}: {y:.1f} %")
            for x, (band, y) in enumerate(zip(counts, scores, strict=True))
        ]
    labels = [f"{band.replace('-', '–')}\nn = {count:,}" for band, count in counts.items()]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("frequency rank of the query word")
    pairs = len(comparison.pairs)
    axes.set_title(f"{comparison.title} ({pairs} pair{'s' if pairs > 1 else ''})")
    return described


def _covered_and_right(results: Iterable[Result], band: str) -> tuple[int, float]:
    """How many test words of a band are covered, and how many of them translated correctly."""
    groups = [(r.evaluation or {})[direction]["bands"].get(band) for r in results for direction in DIRECTIONS]
    there = [group for group in groups if group and group["csls"]]
    return sum(g["covered"] for g in there), sum(g["csls"]["p@1"] * g["covered"] for g in there)


class Point(NamedTuple):
    """The mean time and score of a method."""

    name: str
    seconds: float
    score: float


def front(points: Iterable[Point]) -> list[Point]:
    """The points that no other is both faster and better than, fastest first."""
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


def time_accuracy(data: PlotData) -> Iterator[Drawing]:
    """Accuracy against time: one plot per data set, with a panel for each seed size and kind of device."""
    for sheet in data.sheets:
        comparisons = data.comparisons(sheet)
        panels = [
            (f"{comparison.title}, {device}", device, points)
            for comparison in comparisons
            for device, points in _points(comparison).items()
        ]
        if panels:
            yield _time(data, sheet.dataset, panels, "".join(comparison.note for comparison in comparisons))


def _points(comparison: Comparison) -> dict[str, list[Point]]:
    """The mean of each method, by the device that all its pairs ran on."""
    points: dict[str, list[Point]] = {}
    for method in comparison.methods:
        results = comparison.runs(method)
        score = comparison.mean(method)
        devices = {result.device for result in results}
        seconds = sum(result.working_seconds for result in results) / len(results)
        if len(devices) == 1 and seconds > 0 and score is not None:
            points.setdefault(devices.pop(), []).append(Point(method.name, seconds, score))
    return points


def _time(data: PlotData, dataset: str, panels: list[tuple[str, str, list[Point]]], notes: str) -> Drawing:
    from matplotlib.lines import Line2D

    everything = [point for _, _, points in panels for point in points]
    shown = {point.name for point in everything}
    figure, grid = _side_by_side(len(panels), 4.0, len(shown), sharex=True)
    described = []
    for axes, (title, device, points) in zip(grid.flat, panels, strict=True):
        axes.set_title(title)
        axes.set_xlabel("mean time of a pair")
        axes.set_xscale("log")
        _, times, scores = zip(*front(points), strict=True)
        axes.step(times, scores, where="post", color=MUTED, lw=1.1, zorder=1)
        for p in points:
            colour, mark, _ = data.styles[p.name]
            axes.plot(p.seconds, p.score, ls="", marker=mark, ms=9, color=colour, mew=1.6, zorder=3)
        texts = [f"{p.name}, {device}: {p.score:.1f} % in {readable(p.seconds)}" for p in points]
        described.append((axes, [(p.seconds, p.score, text) for p, text in zip(points, texts, strict=True)]))
    grid[0, 0].set_ylabel("mean P@1, CSLS (%)")
    _time_axis(grid[0, 0], [point.seconds for point in everything])
    handles = [
        Line2D([], [], ls="", marker=mark, color=colour, ms=7, label=name)
        for name, (colour, mark, _) in data.styles.items()
        if name in shown
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=_COLUMNS)
    return finished(
        figure,
        described,
        kind=TIME,
        name=(dataset,),
        title=f"Time against accuracy: {dataset}",
        caption="P@1 by CSLS, the mean over all pairs and both directions, against the mean time of a pair "
        "from the vectors to a finished space, on a logarithmic axis; what builds on a stored fit counts "
        "that fit too. The stepped line joins what no other method beats in both. Setups may have run side "
        f"by side, which slows each of them.{notes}",
    )


def _time_axis(axes: Axes, seconds: list[float]) -> None:
    """Ticks at times that people know."""
    low, high = min(seconds), max(seconds)
    inside = {tick: text for tick, text in _TICKS.items() if low / 2 <= tick <= high * 2}
    if len(inside) < 2:
        inside = {low: readable(low), high: readable(high)}
    axes.set_xticks(list(inside), list(inside.values()))
    axes.minorticks_off()
    axes.set_xlim(math.exp(math.log(low) - 0.6), math.exp(math.log(high) + 0.6))
