"""Figures of a benchmark: heat map, λ curves, word frequency, time against accuracy, words in the plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bilex.core.progress import SILENT, Progress
from bilex_bench.figures import frequency, heat_map, lambda_curves, time_accuracy, tsne
from bilex_bench.figures.board import Board
from bilex_bench.figures.drawing import Drawing, Mark, house_style
from bilex_bench.results import Result

__all__ = ["FIGURES", "Drawing", "Mark", "draw_figures"]

FIGURES = (heat_map.KIND, lambda_curves.KIND, frequency.KIND, time_accuracy.KIND, tsne.KIND)


def draw_figures(
    results: Iterable[Result], kinds: Sequence[str] = FIGURES, *, progress: Progress = SILENT
) -> list[Drawing]:
    """Draw all figures of some kinds that the results allow."""
    board = Board.of(results)
    with house_style():
        drawings = {
            heat_map.KIND: lambda: heat_map.draw(board),
            lambda_curves.KIND: lambda: lambda_curves.draw(board),
            frequency.KIND: lambda: frequency.draw(board),
            time_accuracy.KIND: lambda: time_accuracy.draw(board),
            tsne.KIND: lambda: tsne.draw(board, progress),
        }
        return _with_distinct_names(
            drawing for kind in FIGURES if kind in kinds for drawing in drawings[kind]()
        )


def _with_distinct_names(drawings: Iterable[Drawing]) -> list[Drawing]:
    """Drawings whose names differ, also where those of two data sets differ in punctuation only."""
    seen: Counter[str] = Counter()
    found = []
    for drawing in drawings:
        seen[drawing.name] += 1
        number = seen[drawing.name]
        found.append(drawing if number == 1 else replace(drawing, name=f"{drawing.name}-{number}"))
    return found
