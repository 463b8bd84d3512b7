"""Tables for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], most: int, caption: str = ""
) -> str:
    """A plain HTML table; of more than `most` rows the first are shown, and how many there are.

    Args:
        headings: The names of the columns.
        rows: What to show; None is shown as a dash.
        most: How many rows at most.
        caption: A line above the table.
    """

    def cells(tag: str, values: Sequence[object]) -> str:
        texts = ("–" if value is None else html.escape(_shown(value)) for value in values)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    body = "".join(cells("td", row) for row in rows[:most])
    beyond = f"<p>... {len(rows):,} rows in all</p>" if len(rows) > most else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead>{cells('th', headings)}</thead><tbody>{body}</tbody></table>{beyond}"


def _shown(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
