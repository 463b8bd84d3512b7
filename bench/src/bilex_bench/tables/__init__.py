"""The paper's tables from results: as Markdown, LaTeX, CSV and plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from operator import attrgetter

from bilex.core.errors import BilexError, nearest_name
from bilex_bench.results import Result
from bilex_bench.tables.metrics import (
    ablation_tables,
    full_tables,
    language_model_tables,
    leak_free_tables,
    main_tables,
    mixing_tables,
    over_others_tables,
    panlex_tables,
)
from bilex_bench.tables.record import cost_tables, coverage_tables, example_tables, missing_tables
from bilex_bench.tables.sheet import ReadPredictions, Sheet, sheets
from bilex_bench.tables.significance import significance_tables
from bilex_bench.tables.table import Table

__all__ = ["TABLE_NAMES", "Table", "build_tables"]

_BUILDERS: dict[str, Callable[[Sheet], Iterable[Table]]] = {
    "main": main_tables,
    "full": full_tables,
    "panlex": panlex_tables,
    "c2-over-others": over_others_tables,
    "lms": language_model_tables,
    "ablation": ablation_tables,
    "lambda": mixing_tables,
    "significance": significance_tables,
    "leak-free": leak_free_tables,
    "coverage": coverage_tables,
    "examples": example_tables,
    "cost": cost_tables,
    "missing": missing_tables,
}
TABLE_NAMES = tuple(_BUILDERS)


def build_tables(
    results: Iterable[Result],
    *,
    predictions: ReadPredictions = attrgetter("predictions"),
    names: Iterable[str] = TABLE_NAMES,
    baseline: str | None = None,
) -> list[Table]:
    """Build the tables that some results allow, in the paper's order.

    Args:
        results: Results of one or more data sets.
        predictions: Reads the answers of a result, where the results do not hold them.
        names: The tables, some of `TABLE_NAMES`.
        baseline: The label of the method that others are tested against; C1 by default.

    Raises:
        BilexError: There is no such table or label.
    """
    wanted = list(names)
    for name in wanted:
        if name not in _BUILDERS:
            near = nearest_name(name, _BUILDERS)
            raise BilexError(f"there is no table '{name}'; there are {', '.join(_BUILDERS)}.{near}")
    found = sheets(results)
    labels = [method.name for sheet in found for method in sheet.methods]
    if baseline is not None and baseline not in labels:
        listed = ", ".join(dict.fromkeys(labels))
        near = nearest_name(baseline, labels)
        raise BilexError(f"no finished setup is called '{baseline}'; there are {listed}.{near}")
    tables: list[Table] = []
    for sheet in found:
        whole = replace(sheet, baseline=baseline, predictions=predictions)
        for name in wanted:
            for table in (one for one in _BUILDERS[name](whole) if one.rows):
                tables.append(_named(table, sheet.dataset if len(found) > 1 else "", tables))
    return tables


def _named(table: Table, dataset: str, before: list[Table]) -> Table:
    """The table with a unique name that can be a file's."""
    name = re.sub(r"[^\w.-]+", "-", f"{table.name}-{dataset}" if dataset else table.name)
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    taken = {other.name for other in before}
    title = f"{table.title} ({dataset})" if dataset else table.title
    return replace(table, name=next(one for one in names if one not in taken), title=title)
