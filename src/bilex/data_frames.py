"""Columns as tables of pandas, polars and Arrow; none of the three needs to be installed for the rest."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bilex.errors import BilexError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Columns = Mapping[str, Sequence[Any]]
Types = Mapping[str, type]


def pandas_frame(columns: Columns) -> pandas.DataFrame:
    """Columns as a pandas DataFrame.

    Args:
        columns: The values of each column.

    Raises:
        BilexError: pandas is not installed.
    """
    frame: pandas.DataFrame = _library("pandas").DataFrame(
        {name: list(cells) for name, cells in columns.items()}
    )
    return frame


def polars_frame(columns: Columns, types: Types) -> polars.DataFrame:
    """Columns as a polars DataFrame.

    Args:
        columns: The values of each column; None becomes null.
        types: The Python type of each column's values: str, int, float or bool.

    Raises:
        BilexError: polars is not installed.
    """
    library = _library("polars")
    kinds = {str: library.String, int: library.Int64, float: library.Float64, bool: library.Boolean}
    schema = {name: kinds[types[name]] for name in columns}
    frame: polars.DataFrame = library.DataFrame(
        {name: list(cells) for name, cells in columns.items()}, schema=schema
    )
    return frame


def arrow_table(columns: Columns, types: Types) -> pyarrow.Table:
    """Columns as an Arrow table.

    Args:
        columns: The values of each column; None becomes null.
        types: The Python type of each column's values: str, int, float or bool.

    Raises:
        BilexError: pyarrow is not installed.
    """
    library = _library("pyarrow")
    kinds = {str: library.string(), int: library.int64(), float: library.float64(), bool: library.bool_()}
    schema = library.schema([(name, kinds[types[name]]) for name in columns])
    table: pyarrow.Table = library.table(
        {name: list(cells) for name, cells in columns.items()}, schema=schema
    )
    return table


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BilexError(f"{name} is not installed here; run: pip install {name}") from error
