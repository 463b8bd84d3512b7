"""The paper's tables from results: as Markdown, LaTeX, CSV and plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, count, product
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
    wanted, found = list(names), sheets(results)
    for name in wanted:
        if name not in _BUILDERS:
            near = nearest_name(name, _BUILDERS)
            raise BilexError(f"there is no table '{name}'; there are {', '.join(_BUILDERS)}.{near}")
    labels = dict.fromkeys(method.name for sheet in found for method in sheet.methods)
    if baseline is not None and baseline not in labels:
        near = nearest_name(baseline, labels)
        raise BilexError(f"no finished setup is called '{baseline}'; there are {', '.join(labels)}.{near}")
    tables: dict[str, Table] = {}  # by names that can be those of files
    for sheet, name in product(found, wanted):
        for table in _BUILDERS[name](replace(sheet, baseline=baseline, predictions=predictions)):
            title, whole = table.title, table.name
            if len(found) > 1:
                title, whole = f"{title} ({sheet.dataset})", f"{whole}-{sheet.dataset}"
            whole = re.sub(r"[^\w.-]+", "-", whole)
            numbered = chain([whole], (f"{whole}-{number}" for number in count(2)))
            unique = next(name for name in numbered if name not in tables)
            if table.rows:
                tables[unique] = replace(table, name=unique, title=title)
    return list(tables.values())
