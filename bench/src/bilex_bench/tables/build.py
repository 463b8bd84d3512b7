"""All tables of a results file, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count

from bilex.core.errors import BilexError, nearest_name
from bilex.evaluation import Prediction
from bilex_bench.results import DirectionName, Result
from bilex_bench.tables.ablation import ablation_tables
from bilex_bench.tables.comparison import ReadPredictions, significance_tables
from bilex_bench.tables.examples import example_tables
from bilex_bench.tables.paper import full_tables, leak_free_tables, main_tables, panlex_tables
from bilex_bench.tables.record import cost_tables, coverage_tables, missing_tables
from bilex_bench.tables.sheet import Sheet, sheets
from bilex_bench.tables.stage_c2 import language_model_tables, mixing_tables, over_others_tables
from bilex_bench.tables.table import Table

Builder = Callable[[Sheet, ReadPredictions, str | None], list[Table]]


def _of_figures(build: Callable[[Sheet], list[Table]]) -> Builder:
    return lambda sheet, read, baseline: build(sheet)


_BUILDERS: dict[str, Builder] = {
    "main": _of_figures(main_tables),
    "full": _of_figures(full_tables),
    "panlex": _of_figures(panlex_tables),
    "c2-over-others": _of_figures(over_others_tables),
    "lms": _of_figures(language_model_tables),
    "ablation": _of_figures(ablation_tables),
    "lambda": _of_figures(mixing_tables),
    "significance": significance_tables,
    "leak-free": _of_figures(leak_free_tables),
    "coverage": _of_figures(coverage_tables),
    "examples": lambda sheet, read, baseline: example_tables(sheet, read),
    "cost": _of_figures(cost_tables),
    "missing": _of_figures(missing_tables),
}
TABLE_NAMES = tuple(_BUILDERS)


def build_tables(
    results: Iterable[Result],
    *,
    predictions: ReadPredictions | None = None,
    names: Iterable[str] = TABLE_NAMES,
    baseline: str | None = None,
) -> list[Table]:
    """The tables that can be made of some results, in the paper's order."""
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
        for name in wanted:
            for table in _BUILDERS[name](sheet, predictions or _own_predictions, baseline):
                tables.append(_named(table, sheet.dataset if len(found) > 1 else "", tables))
    return tables


def _own_predictions(result: Result) -> Mapping[DirectionName, tuple[Prediction, ...]]:
    return result.predictions


def _named(table: Table, dataset: str, before: list[Table]) -> Table:
    """The table with a name that no other has and that can be a file's."""
    name = re.sub(r"[^\w.-]+", "-", f"{table.name}-{dataset}" if dataset else table.name)
    taken = {other.name for other in before}
    free = next(
        one for number in count(1) if (one := f"{name}-{number}" if number > 1 else name) not in taken
    )
    return replace(table, name=free, title=f"{table.title} ({dataset})" if dataset else table.title)
