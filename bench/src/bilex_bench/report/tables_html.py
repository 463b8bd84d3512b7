"""Tables on the page: sorted by a click on a heading, searched where they are long."""

from __future__ import annotations

from typing import Any

from bilex_bench.figures.board import slug
from bilex_bench.report.markup import Html, element, joined
from bilex_bench.tables.table import Table

_LONG = 12  # rows from which a table can be searched
_SHORT = 24  # letters that stay on one line
_STYLES = {"bold": "b", "italic": "i"}


def table_id(table: Table) -> str:
    """The name of a table's place in the page."""
    return f"table-{slug(table.name)}"


def table_block(table: Table) -> Html:
    """A table with its heading, caption, notes and tools."""
    content = table.as_dict()
    tools = [element("button", "Copy", type="button", class_="copy", title="Copy the table, tab-separated")]
    if len(content["rows"]) >= _LONG:
        label = f"Search in: {table.title}"
        tools.insert(
            0, element("input", type="search", class_="search", placeholder="search", aria_label=label)
        )
    name = table_id(table)
    return element(
        "section",
        element(
            "div",
            element("h3", element("a", table.title, href=f"#{name}")),
            element("div", *tools, class_="tools"),
            class_="head",
        ),
        element("p", table.caption, class_="caption", id=f"{name}-caption") if table.caption else Html(""),
        element(
            "div",
            element(
                "table",
                _head(content),
                _body(content),
                class_="grouped" if table.grouped else None,
                aria_describedby=f"{name}-caption" if table.caption else None,
            ),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=table.title,
        ),
        element("ul", *(element("li", note) for note in table.notes), class_="notes")
        if table.notes
        else Html(""),
        id=name,
        class_="table",
    )


def _head(content: dict[str, Any]) -> Html:
    cells = [
        element(
            "th",
            element("button", column, type="button"),
            scope="col",
            class_="number" if numeric else None,
        )
        for column, numeric in zip(content["columns"], content["numeric"], strict=True)
    ]
    return element("thead", element("tr", *cells))


def _body(content: dict[str, Any]) -> Html:
    rows, before = [], None
    for row in content["rows"]:
        first = row[0]["text"] if row else None
        starts = content["grouped"] and before is not None and first != before
        again = content["grouped"] and first == before
        cells = [
            _cell(cell, numeric, "th" if place == 0 else "td")
            for place, (cell, numeric) in enumerate(zip(row, content["numeric"], strict=True))
        ]
        rows.append(element("tr", *cells, class_="starts" if starts else "again" if again else None))
        before = first
    return element("tbody", *rows)


def _cell(cell: dict[str, Any], numeric: bool, tag: str) -> Html:
    shown = joined(
        *(
            element(_STYLES[span["style"]], span["text"]) if span["style"] in _STYLES else span["text"]
            for span in cell["spans"]
        )
    )
    value = cell["value"]
    return element(
        tag,
        shown,
        scope="row" if tag == "th" else None,
        class_="number" if numeric else "short" if len(cell["text"]) <= _SHORT else None,
        data_value="" if value is None else value if value != cell["text"] else None,
    )
