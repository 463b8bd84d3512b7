"""The paper's tables of figures by language and by pair: main, full, PanLex-BLI; and ours without leaks."""

from __future__ import annotations

from collections.abc import Sequence

from bilex_bench.setups import Setup
from bilex_bench.tables.means import (
    CSLS,
    NN_AND_CSLS,
    PARTS,
    figure_notes,
    figures_table,
    mean_metrics,
    present,
    with_mean,
)
from bilex_bench.tables.sheet import Direction, Method, Sheet, is_ablation, without_sweep
from bilex_bench.tables.table import Cell, Column, Figures, Table, Text


def main_tables(sheet: Sheet) -> list[Table]:
    """P@1 by CSLS, means by language: L→*, *→L, and over all directions."""
    if sheet.benchmark == "panlex":
        return []
    chosen = sheet.only(headline_methods(sheet.methods))
    rows: list[list[Cell]] = [
        [Text(seeds), Text(name), *(mean_metrics(m, directions, seeds, CSLS) for m in chosen.methods)]
        for seeds in chosen.seeds
        for name, directions in language_groups(present(chosen, seeds))
    ]
    return figures_table(
        chosen,
        "main",
        "P@1 by language",
        "P@1 × 100 by CSLS. L→* and *→L are means over the directions from and to a language; the last row "
        "of each number of seeds is the mean over all directions.",
        [Column("seeds"), Column("directions"), *(Column(method.name) for method in chosen.methods)],
        rows,
    )


def full_tables(sheet: Sheet) -> list[Table]:
    """P@1 by NN and CSLS in every direction, one table for each number of seeds, all methods."""
    if sheet.benchmark == "panlex":
        return []
    tables = []
    for seeds in sheet.seeds:
        methods = without_sweep(sheet.methods)
        chosen = sheet.only(m for m in methods if any(name == seeds for _, name in m.runs))
        directions = present(chosen, seeds)
        rows: list[list[Cell]] = [
            [Text(name), *(mean_metrics(m, those, seeds, NN_AND_CSLS) for m in chosen.methods)]
            for name, those in with_mean(directions)
        ]
        tables += figures_table(
            chosen,
            f"full-{seeds}",
            f"P@1 in every direction, {seeds} seeds",
            f"P@1 × 100 by cosine (NN) and by CSLS, {seeds} seeds.",
            [Column("direction"), *(Column(method.name, PARTS) for method in chosen.methods)],
            rows,
        )
    return tables


def panlex_tables(sheet: Sheet) -> list[Table]:
    """P@1 by CSLS on PanLex-BLI, where each direction has its own dictionaries."""
    if sheet.benchmark != "panlex":
        return []
    rows: list[list[Cell]] = []
    for seeds in sheet.seeds:
        directions = [d for d in present(sheet, seeds) if d.way == "forward"]
        rows += [
            [Text(seeds), Text(name), *(mean_metrics(m, those, seeds, CSLS) for m in sheet.methods)]
            for name, those in with_mean(directions)
        ]
    return figures_table(
        sheet,
        "panlex",
        "PanLex-BLI",
        "P@1 × 100 by CSLS, from source to target of each dictionary.",
        [Column("seeds"), Column("direction"), *(Column(method.name) for method in sheet.methods)],
        rows,
    )


def leak_free_tables(sheet: Sheet) -> list[Table]:
    """Means of the standard score, and of that without words whose pairs were seeds."""
    rows: list[list[Cell]] = []
    for seeds in sheet.seeds:
        directions = present(sheet, seeds)
        for method in without_sweep(sheet.methods):
            standard = mean_metrics(method, directions, seeds, NN_AND_CSLS, compared=False)
            without = mean_metrics(method, directions, seeds, NN_AND_CSLS, leak_free=True, compared=False)
            if standard.has_any:
                lost = [
                    None if a is None or b is None else b - a
                    for a, b in zip(standard.ours, without.ours, strict=True)
                ]
                rows.append([Text(seeds), Text(method.name), standard, without, Figures(tuple(lost))])
    if not rows:
        return []
    columns = (
        Column("seeds"),
        Column("method"),
        *(Column(name, PARTS) for name in ("standard", "leak-free", "difference")),
    )
    return [
        Table(
            "leak-free",
            "Standard and leak-free P@1",
            "Means of P@1 × 100 over directions: over all covered test words (standard), and without the "
            "words that have a test pair in the training dictionary (leak-free).",
            columns,
            tuple(tuple(row) for row in rows),
            figure_notes(sheet, columns, rows),
        )
    ]


def headline_methods(methods: Sequence[Method]) -> list[Method]:
    """What the paper's main table compares: aligners, and stage C2 over C1; no ablations, no sweep of λ."""
    return [method for method in without_sweep(methods) if _is_headline(method.setup)]


def language_groups(directions: Sequence[Direction]) -> list[tuple[str, list[Direction]]]:
    """Directions from each language, to each language, and all."""
    groups: list[tuple[str, list[Direction]]] = []
    for language in sorted({language for direction in directions for language in direction.languages}):
        groups.append((f"{language}→*", [d for d in directions if d.languages[0] == language]))
        groups.append((f"*→{language}", [d for d in directions if d.languages[1] == language]))
    return [*groups, ("mean", list(directions))]


def _is_headline(setup: Setup) -> bool:
    return not is_ablation(setup) and (setup.lm is None or setup.method == "c1")
