"""Plots of a benchmark: heat map, λ curves, word frequency, time against accuracy, t-SNE of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bilex.core.progress import SILENT, Progress
from bilex_bench.figures import charts, tsne
from bilex_bench.figures.drawing import Drawing, Mark, PlotData, plot_style
from bilex_bench.results import Result

__all__ = ["FIGURES", "Drawing", "Mark", "draw_figures"]

_CHARTS = {
    charts.HEAT_MAP: charts.heat_maps,
    charts.LAMBDA: charts.lambda_curves,
    charts.FREQUENCY: charts.frequency,
    charts.TIME: charts.time_accuracy,
}
FIGURES = (*_CHARTS, tsne.KIND)


def draw_figures(
    results: Iterable[Result], kinds: Sequence[str] = FIGURES, *, progress: Progress = SILENT
) -> list[Drawing]:
    """Draw all plots of some kinds that the results allow, under unique names."""
    data = PlotData.of(results)
    with plot_style():
        drawings = [drawing for kind, draw in _CHARTS.items() if kind in kinds for drawing in draw(data)]
        drawings += tsne.draw(data, progress) if tsne.KIND in kinds else []
    seen: Counter[str] = Counter()
    found = []
    for drawing in drawings:  # the names of two data sets may differ in punctuation only
        seen[drawing.name] += 1
        number = seen[drawing.name]
        found.append(drawing if number == 1 else replace(drawing, name=f"{drawing.name}-{number}"))
    return found
