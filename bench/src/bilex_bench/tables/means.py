"""Figures and means of them as cells, and the sentences that every table of figures needs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bilex_bench.reported import CITATION, PANLEX_LANGUAGES, XLING_PAIRS, Retrieval, counterpart
from bilex_bench.tables.sheet import Direction, Method, Sheet
from bilex_bench.tables.table import Cell, Column, Figures, Table, Text, best_marked

CSLS: tuple[Retrieval, ...] = ("csls",)
NN_AND_CSLS: tuple[Retrieval, ...] = ("nn", "csls")
PARTS = ("NN", "CSLS")
SAME_DIRECTIONS = "a mean goes over the same directions as ours"


def mean_metrics(
    method: Method,
    directions: Sequence[Direction],
    seeds: str,
    retrievals: Sequence[Retrieval],
    *,
    leak_free: bool = False,
    compared: bool = True,
) -> Figures:
    """The mean P@1 × 100 of a method over directions, with the reported mean over the same ones."""
    scores = [
        (direction, found)
        for direction in directions
        if None not in (found := [method.score(direction, seeds, r, leak_free=leak_free) for r in retrievals])
    ]
    if not scores:
        return Figures((None,) * len(retrievals))
    ours = tuple(mean_or_none(part) for part in zip(*(found for _, found in scores), strict=True))
    share = (len(scores), len(directions)) if len(scores) < len(directions) else None
    beside = (
        [mean_or_none([method.reported(d, seeds, r) for d, _ in scores]) for r in retrievals]
        if compared
        else []
    )
    return Figures(ours, tuple(beside) if any(v is not None for v in beside) else (), share=share)


def finished_rows(rows: Sequence[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    """Rows with the best of our figures marked, and dashes where a column lacks some reported figures."""
    lengths = [
        max((len(cell.reported) for cell in column if isinstance(cell, Figures)), default=0)
        for column in zip(*rows, strict=True)
    ]
    return tuple(
        best_marked([_with_dashes(cell, length) for cell, length in zip(row, lengths, strict=True)])
        for row in rows
    )


def present(sheet: Sheet, seeds: str) -> list[Direction]:
    """The directions that any method has with these seeds."""
    return [
        direction
        for direction in sheet.directions
        if any((direction.pair, seeds) in method.runs for method in sheet.methods)
    ]


def figure_notes(
    sheet: Sheet, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], means: str = SAME_DIRECTIONS
) -> tuple[str, ...]:
    """On which pairs and vectors the figures of a table are, what the reported ones are and their `means`."""
    notes = [_pairs_sentence(sheet), _vectors_sentence(sheet)]
    figures = [cell for row in rows for cell in row if isinstance(cell, Figures)]
    if any(cell.reported for cell in figures):
        notes.append(
            f"In italics and parentheses: reported by {CITATION}, on fastText's Wikipedia vectors with "
            f"200,000 words per language; {means}. The vectors differ, so compare differences between "
            "methods rather than single figures."
        )
        notes += _differences(sheet, columns, rows)
    if any(cell.share for cell in figures):
        notes.append(
            "In brackets: over how many of the row's directions the mean goes, where some are missing."
        )
    several = {len(runs) for method in sheet.methods for runs in method.runs.values()} - {1}
    if several:
        notes.append("Where a method was run with several random seeds, its figure is the mean over runs.")
    return tuple(notes)


def figures_table(
    sheet: Sheet,
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
    *,
    means: str = SAME_DIRECTIONS,
) -> list[Table]:
    """A table of figures with its best ones marked and its notes, or none without figures."""
    if not any(isinstance(cell, Figures) and cell.has_any for row in rows for cell in row):
        return []
    finished = finished_rows(rows)
    grouped = len(rows[0]) > 1 and isinstance(rows[0][1], Text)
    every = (*figure_notes(sheet, columns, finished, means), *notes)
    return [Table(name, title, caption, tuple(columns), finished, every, grouped)]


def with_mean(directions: Sequence[Direction]) -> list[tuple[str, list[Direction]]]:
    """Each direction by itself with its name, and all of them."""
    return [*((str(direction), [direction]) for direction in directions), ("mean", list(directions))]


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """The mean; None where a value is missing."""
    there = [value for value in values if value is not None]
    return statistics.fmean(there) if there and len(there) == len(values) else None


def _differences(sheet: Sheet, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """What the paper did otherwise, one sentence a method that stands beside something else than itself."""
    compared = {
        column.name
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
        if any(isinstance(cell, Figures) and cell.reported for cell in cells)
    }
    return [
        f"Reported beside {method.name}: {found.names[0]}, {found.difference}."
        for method in sheet.methods
        if method.name in compared and (found := counterpart(method.setup)) and found.difference
    ]


def _pairs_sentence(sheet: Sheet) -> str:
    listed = ", ".join(sheet.pairs)
    if sheet.benchmark == "xling":
        return f"{len(sheet.pairs)} of XLING's {XLING_PAIRS} pairs: {listed}."
    if sheet.benchmark == "panlex":
        count = len(PANLEX_LANGUAGES) * (len(PANLEX_LANGUAGES) - 1)
        return (
            f"{len(sheet.pairs)} of PanLex-BLI's {count} dictionaries among the paper's languages: {listed}."
        )
    return f"{len(sheet.pairs)} {'pair' if len(sheet.pairs) == 1 else 'pairs'}: {listed}."


def _vectors_sentence(sheet: Sheet) -> str:
    limits: set[Any] = {method.setup.limit for method in sheet.methods}
    words = {f"at most the {limit:,} most frequent words" if limit else "all words" for limit in limits}
    return f"Ours: the vectors of data set '{sheet.dataset}', {' or '.join(sorted(words))} of each language."


def _with_dashes(cell: Cell, length: int) -> Cell:
    if isinstance(cell, Figures) and not cell.reported and length and cell.has_any:
        return replace(cell, reported=(None,) * length)
    return cell
