"""P@1 by the frequency of the word that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bilex.lexicon.statistics import BANDS
from bilex_bench.figures.board import Board, Comparison, slug
from bilex_bench.figures.drawing import Described, Drawing, Mark, marks_of, new_figure
from bilex_bench.results import DIRECTIONS, Result
from bilex_bench.tables.sheet import is_ablation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KIND = "frequency"
_PANEL_WIDTH, _HEIGHT, _LEGEND_LINE, _LEGEND_COLUMNS = 5.2, 3.9, 0.24, 3
_MOST_LINES = 10


def draw(board: Board) -> list[Drawing]:
    """One figure per data set, with a panel for each seed size."""
    shown = {
        sheet.dataset: [_few_lines(comparison) for comparison in board.comparisons(sheet.dataset)]
        for sheet in board.sheets
    }
    return [_drawing(board, dataset, comparisons) for dataset, comparisons in shown.items() if comparisons]


def _drawing(board: Board, dataset: str, shown: list[Comparison]) -> Drawing:
    names = list(dict.fromkeys(method.name for comparison in shown for method in comparison.methods))
    legend_lines = -(-len(names) // _LEGEND_COLUMNS)
    figure = new_figure(_PANEL_WIDTH * max(len(shown), 1.4), _HEIGHT + _LEGEND_LINE * legend_lines)
    grid = figure.subplots(1, len(shown), sharey=True, squeeze=False)
    stated = [_panel(axes, comparison, board) for axes, comparison in zip(grid.flat, shown, strict=True)]
    grid[0, 0].set_ylabel("P@1, CSLS (%)")
    handles = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
    figure.legend(
        handles=[handles[name] for name in names], loc="outside lower center", ncols=_LEGEND_COLUMNS
    )
    figure.draw_without_rendering()
    marks: list[Mark] = []
    for axes, points in zip(grid.flat, stated, strict=True):
        marks += marks_of(axes, points)
    notes = "".join(dict.fromkeys(comparison.note for comparison in shown))
    return Drawing(
        name=slug(KIND, dataset),
        kind=KIND,
        title=f"Frequent and rare words: {dataset}",
        caption="P@1 by CSLS over all pairs and both directions, in bands of the frequency rank of the word "
        "asked for; n is the number of words in a band. Bands hold other words of other directions: compare "
        f"methods within a band rather than bands.{notes}",
        figure=figure,
        marks=tuple(marks),
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


def _panel(axes: Axes, comparison: Comparison, board: Board) -> list[Described]:
    """Draw a line for each method; what its points stand for."""
    stated = []
    counts = dict.fromkeys(BANDS, 0)
    for number, method in enumerate(comparison.methods):
        by_band = {band: _asked_and_right(comparison.runs(method), band) for band in BANDS}
        if not number:
            counts = {band: asked for band, (asked, _) in by_band.items() if asked}
        style = board.styles[method.name]
        scores = [100 * by_band[band][1] / max(1, by_band[band][0]) for band in counts]
        axes.plot(
            range(len(scores)),
            scores,
            color=style.colour,
            ls=style.line,
            marker=style.mark,
            ms=5,
            lw=1.6,
            label=method.name,
        )
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
    asked, right = 0, 0.0
    for result in results:
        for direction in DIRECTIONS:
            group = (result.evaluation or {})[direction]["bands"].get(band)
            if group and group["csls"]:
                asked += group["covered"]
                right += group["csls"]["p@1"] * group["covered"]
    return asked, right
