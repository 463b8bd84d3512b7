"""The paper's ablations: C1 without contrast or self-learning, the language model alone, untuned, tuned."""

from __future__ import annotations

from collections.abc import Sequence

from bilex_bench.reported import PAPER_MIXING, counterpart, reported_average
from bilex_bench.tables.means import NN_AND_CSLS, PARTS, figures_table, mean_metrics, present
from bilex_bench.tables.paper import language_groups
from bilex_bench.tables.sheet import Method, Sheet, is_ablation
from bilex_bench.tables.table import Cell, Column, Figures, Table, Text


def ablation_tables(sheet: Sheet) -> list[Table]:
    """C1, its parts and stage C2's, means by language; none where no part was ever left out."""
    chosen = sheet.only(_concerned(sheet.methods))
    if not any(is_ablation(method.setup) for method in chosen.methods):
        return []
    rows: list[list[Cell]] = []
    for seeds in chosen.seeds:
        for name, those in language_groups(present(chosen, seeds)):
            figures = (
                _beside(mean_metrics(m, those, seeds, NN_AND_CSLS, compared=False), sheet, m, seeds, name)
                for m in chosen.methods
            )
            rows.append([Text(seeds), Text(name), *figures])
    return figures_table(
        chosen,
        "ablation",
        "What each part is worth",
        "P@1 × 100 by cosine (NN) and by CSLS, means over directions. CL is contrastive learning, SL "
        "self-learning.",
        [Column("seeds"), Column("directions"), *(Column(m.name, PARTS) for m in chosen.methods)],
        rows,
        means="their means go over all 28 pairs, as the paper gives no others",
    )


def _concerned(methods: Sequence[Method]) -> list[Method]:
    """C1 with and without its parts, the models alone, and mixtures with C1 at the paper's λ."""
    return [
        m
        for m in methods
        if m.setup.method == "c1" and (m.setup.lm is None or m.setup.mixing in (PAPER_MIXING, 1))
    ]


def _beside(figures: Figures, sheet: Sheet, method: Method, seeds: str, row: str) -> Figures:
    """Our means with the paper's over all its pairs."""
    found = counterpart(method.setup)
    if found is None or sheet.benchmark != "xling" or not figures.has_any:
        return figures
    name = "Avg." if row == "mean" else row.upper().replace("→", "->")
    reported = tuple(reported_average(found.names, seeds, name, retrieval) for retrieval in NN_AND_CSLS)
    if all(value is None for value in reported):
        return figures
    return Figures(figures.ours, reported, share=figures.share)
