"""Columns as tables of pandas, polars and Arrow, none of which the rest needs, and as HTML for notebooks."""

from __future__ import annotations

import html
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Tabular(ABC):
    """What has columns, and can be had as a table of three libraries."""

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The values of each column; None where there is none."""

    @abstractmethod
    def column_types(self) -> Mapping[str, type]:
        """The type of each column's values: str, int, float or bool."""

    def to_pandas(self) -> pandas.DataFrame:
        """The columns as a pandas DataFrame; missing numbers are NaN, missing whole numbers <NA>.

        Raises:
            BilexError: pandas is not installed.
        """
        library = _library("pandas")
        types = self._schema({float: "float64", int: "int64", bool: "bool", str: "object"})
        columns = {name: list(cells) for name, cells in self.columns().items()}
        for name, cells in columns.items():
            types[name] = "Int64" if types[name] == "int64" and None in cells else types[name]
        series = {name: library.Series(cells, dtype=types[name]) for name, cells in columns.items()}
        frame: pandas.DataFrame = library.DataFrame(series)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The columns as a polars DataFrame; None becomes null.

        Raises:
            BilexError: polars is not installed.
        """
        library = _library("polars")
        kinds = {str: library.String, int: library.Int64, float: library.Float64, bool: library.Boolean}
        frame: polars.DataFrame = library.DataFrame(dict(self.columns()), schema=self._schema(kinds))
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """The columns as an Arrow table; None becomes null.

        Raises:
            BilexError: pyarrow is not installed.
        """
        library = _library("pyarrow")
        kinds = {str: library.string(), int: library.int64(), float: library.float64(), bool: library.bool_()}
        schema = library.schema(list(self._schema(kinds).items()))
        table: pyarrow.Table = library.table(dict(self.columns()), schema=schema)
        return table

    def _schema(self, kinds: Mapping[type, Any]) -> dict[str, Any]:
        types = self.column_types()
        return {name: kinds[types[name]] for name in self.columns()}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BilexError(f"{name} is not installed here; run: pip install {name}") from error


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], most: int, caption: str = ""
) -> str:
    """A plain HTML table; of more than `most` rows the first are shown, and how many there are."""

    def line(tag: str, values: Sequence[object]) -> str:
        texts = (f"{v:.3f}" if isinstance(v, float) else "–" if v is None else str(v) for v in values)
        return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts) + "</tr>"

    body = "".join(line("td", row) for row in rows[:most])
    beyond = f"<p>... {len(rows):,} rows in all</p>" if len(rows) > most else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead>{line('th', headings)}</thead><tbody>{body}</tbody></table>{beyond}"
