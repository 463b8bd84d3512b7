"""Tables: on a terminal, as HTML for notebooks, and of pandas, polars and Arrow, which nothing else needs."""

from __future__ import annotations

import html
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bilex.core.errors import optional_library

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from rich.table import Table

_ARROW = {str: "string", int: "int64", float: "float64", bool: "bool_"}
_PANDAS = {str: "object", int: "int64", float: "float64", bool: "bool"}


class Tabular(ABC):
    """An object with columns, convertible to tables of three libraries."""

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The values of each column; None where one is missing."""

    def column_types(self) -> Mapping[str, type]:
        """The type of each column's values: str, int, float or bool; by default all are text."""
        return dict.fromkeys(self.columns(), str)

    def to_pandas(self) -> pandas.DataFrame:
        """The columns as a pandas DataFrame; missing numbers are NaN, missing whole numbers <NA>.

        Raises:
            BilexError: pandas is not installed.
        """
        library, types = _library("pandas"), self.column_types()
        series = {}
        for name, cells in self.columns().items():
            nullable = types[name] is int and None in cells
            series[name] = library.Series(cells, dtype="Int64" if nullable else _PANDAS[types[name]])
        return cast("pandas.DataFrame", library.DataFrame(series))

    def to_polars(self) -> polars.DataFrame:
        """The columns as a polars DataFrame; None becomes null.

        Raises:
            BilexError: polars is not installed.
        """
        types, columns = self.column_types(), self.columns()
        schema = {name: types[name] for name in columns}
        return cast("polars.DataFrame", _library("polars").DataFrame(columns, schema=schema))

    def to_arrow(self) -> pyarrow.Table:
        """The columns as an Arrow table; None becomes null.

        Raises:
            BilexError: pyarrow is not installed.
        """
        library, types, columns = _library("pyarrow"), self.column_types(), self.columns()
        schema = library.schema([(name, getattr(library, _ARROW[types[name]])()) for name in columns])
        return cast("pyarrow.Table", library.table(columns, schema=schema))


def _library(name: str) -> Any:
    with optional_library("this table", name):
        return importlib.import_module(name)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str] | None],
    title: str | None = None,
    *,
    left: int = 0,
    caption: str | None = None,
) -> Table:
    """A table for a terminal; None ends a section of rows.

    Columns after the first `left` ones are aligned to the right, none if it is 0.
    """
    from rich.table import Table

    made = Table(title=title, caption=caption, show_header=bool(headings))
    made.title_justify = made.caption_justify = "left"
    for place, heading in enumerate(headings):
        made.add_column(heading, justify="right" if left and place >= left else "left")
    for row in rows:
        if row is None:
            made.add_section()
        else:
            made.add_row(*row)
    return made


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
