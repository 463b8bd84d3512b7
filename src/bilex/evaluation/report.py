"""An evaluation as tables for people."""

from __future__ import annotations

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table

from bilex.evaluation.metrics import Metrics
from bilex.evaluation.result import DirectionResult, Evaluation

_METHOD_NAMES = {"nn": "NN", "csls": "CSLS"}


def render(evaluation: Evaluation, languages: tuple[str, str] = ("source", "target")) -> RenderableType:
    """Two tables: the figures by convention, and P@1 by kind of word.

    Args:
        evaluation: What to show.
        languages: The names of the two languages.
    """
    return Renderables(_conventions(evaluation, languages), _breakdown(evaluation, languages))


def _conventions(evaluation: Evaluation, languages: tuple[str, str]) -> Table:
    measured = [evaluation.forward.metrics, *(group.metrics for group in evaluation.forward.phrases.values())]
    first = next(figures for methods in measured for figures in methods.values() if figures)
    table = Table(title=evaluation.dictionary, title_justify="left")
    table.add_column("direction")
    table.add_column("search")
    for name in first:
        table.add_column(name.upper(), justify="right")
    table.add_column(f"95 % of {next(iter(first)).upper()}", justify="right")
    table.add_column("words", justify="right")
    table.add_column("counted over")
    for direction, result in _directions(evaluation, languages):
        for method, label in _METHOD_NAMES.items():
            intervals = result.intervals.get(method)
            low, high = next(iter(intervals.values())) if intervals else (None, None)
            table.add_row(
                direction,
                label,
                *_percentages(result.metrics[method], len(first)),
                f"{100 * low:.1f}–{100 * high:.1f}" if low is not None and high is not None else "",
                str(result.covered),
                "covered words (standard)",
            )
        others = [("all words, uncovered wrong", result.total, result.oov_as_error)]
        if result.leak_free is not None:
            others.append(("covered, not in the seeds", result.leak_free.covered, result.leak_free.metrics))
        for name, words, figures in others:
            table.add_row(direction, "CSLS", *_percentages(figures["csls"], len(first)), "", str(words), name)
        table.add_section()
    return table


def _breakdown(evaluation: Evaluation, languages: tuple[str, str]) -> Table:
    table = Table(title="P@1 with CSLS by kind of word", title_justify="left")
    for name, justify in (("direction", "left"), ("words", "left"), ("number", "right"), ("P@1", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for direction, result in _directions(evaluation, languages):
        groups = {f"rank {band}": group for band, group in result.bands.items()}
        groups["spelt alike"] = result.identical
        groups["spelt differently"] = result.different
        groups |= {f"{name} (composed)": group for name, group in result.phrases.items()}
        for name, group in groups.items():
            table.add_row(direction, name, str(group.covered), _percentages(group.metrics["csls"])[0])
        table.add_section()
    return table


def _directions(evaluation: Evaluation, languages: tuple[str, str]) -> list[tuple[str, DirectionResult]]:
    one, other = languages
    return [(f"{one} to {other}", evaluation.forward), (f"{other} to {one}", evaluation.backward)]


def _percentages(figures: Metrics | None, count: int = 1) -> list[str]:
    """Metrics in per cent; dashes where there was nothing to count."""
    return [f"{100 * value:.1f}" for value in figures.values()] if figures else ["–"] * count
