"""The tables of research/methods.md, from what `research.methods` measured and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import write_text

Row = dict[str, Any]

BEGIN, END = "<!-- tables: written by python -m research.methods -->", "<!-- end of tables -->"
_FIGURES = ("forward_nn", "forward_csls", "backward_nn", "backward_csls")
SEEDS = {"5k": "5,000 seeds", "1k": "1,000 seeds", "0": "no seeds"}
_CORES = 2


def write_tables(page: Path, rows: Sequence[Row], costs: Sequence[Row]) -> None:
    """Replace what stands between the two marks of `page`.

    Raises:
        BilexError: The page has no marks.
    """
    replace_between(page, BEGIN, END, tables(rows, costs))


def replace_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put `text` between two marks of a page.

    Raises:
        BilexError: The page has no such marks.
    """
    whole = page.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise BilexError(f"{page}: the lines '{begin}' and '{end}' are missing; put them back.")
    before, after = whole.split(begin)[0], whole.split(end)[1]
    write_text(page, f"{before}{begin}\n\n{text}\n\n{end}{after}")


def tables(rows: Sequence[Row], costs: Iterable[Row]) -> str:
    """All tables: averages, time and memory on two cores, then P@1 pair by pair.

    Args:
        rows: Scores, one row a method, pair and seed size.
        costs: Time and memory of fits; those with other than two threads or fewer words are left out.
    """
    parts = [
        _averages(rows),
        _cost([row for row in costs if row["threads"] == _CORES and row["limit"] is None]),
    ]
    for pair in sorted({row["pair"] for row in rows}):
        for seeds in SEEDS:
            chosen = [row for row in rows if (row["pair"], row["seeds"]) == (pair, seeds)]
            if chosen:
                parts.append(_pair(pair, seeds, chosen))
    return "\n\n".join(part for part in parts if part)


def markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table of Markdown from its head and its lines."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(line) + " |" for line in body])


def _averages(rows: Sequence[Row]) -> str:
    """Mean P@1 over the pairs and both directions; a method counts where it has all pairs."""
    pairs = {row["pair"] for row in rows}
    body, missing = [], []
    for seeds, words in SEEDS.items():
        lines = []
        for method in sorted({row["method"] for row in rows if row["seeds"] == seeds}):
            own = [row for row in rows if (row["method"], row["seeds"]) == (method, seeds)]
            if {row["pair"] for row in own} != pairs:
                missing.append(f"{method} with {words}")
                continue
            nn = _mean(own, lambda row: (row["forward_nn"][0] + row["backward_nn"][0]) / 2)
            csls = _mean(own, lambda row: (row["forward_csls"][0] + row["backward_csls"][0]) / 2)
            lines.append((csls, [words, method, f"{nn:.1f}", f"{csls:.1f}"]))
        body += [line for _, line in sorted(lines, key=lambda item: -item[0])]
    if not body:
        return ""
    on_gpu = sum(row["device"] != "cpu" for row in rows)
    parts = [
        "### Averages",
        f"Mean P@1 in % over {', '.join(sorted(pairs))}, both directions. "
        f"{len(rows) - on_gpu} of the fits were made on a CPU, {on_gpu} on a GPU.",
        markdown_table(["seeds", "method", "NN", "CSLS"], body),
    ]
    if missing:
        parts.append(f"Left out, since some pairs have no result: {', '.join(missing)}.")
    return "\n\n".join(parts)


def _cost(rows: Sequence[Row]) -> str:
    """Time and memory, a line for each method, a column for each pair and seed size."""
    if not rows:
        return ""
    measured = {(row["method"], row["pair"], row["seeds"]): row for row in rows}
    columns = [
        (pair, seeds)
        for pair in sorted({row["pair"] for row in rows})
        for seeds in SEEDS
        if any((row["pair"], row["seeds"]) == (pair, seeds) for row in rows)
    ]
    body = [
        [method, *(_cost_cell(measured.get((method, *column))) for column in columns)]
        for method in sorted({row["method"] for row in rows})
    ]
    head = ["method", *(f"{pair}, {SEEDS[seeds]}" for pair, seeds in columns)]
    note = "The fit alone; memory is the peak of the process, both vocabularies included."
    return f"### Time and peak memory on {_CORES} CPU cores\n\n{note}\n\n" + markdown_table(head, body)


def _cost_cell(row: Row | None) -> str:
    return f"{_duration(row['seconds'])}, {row['gigabytes']:.1f} GB" if row else ""


def _pair(pair: str, seeds: str, rows: Sequence[Row]) -> str:
    """P@1 with its interval, all methods of one pair and seed size."""
    source, target = pair.split("-")
    head = [
        "method",
        *(f"{a}→{b} {r}" for a, b in ((source, target), (target, source)) for r in ("NN", "CSLS")),
    ]
    ranked = sorted(rows, key=lambda row: -row["forward_csls"][0] - row["backward_csls"][0])
    body = [
        [row["method"], *("{:.1f} ({:.1f}–{:.1f})".format(*row[name]) for name in _FIGURES)] for row in ranked
    ]
    parts = [f"### {pair}, {SEEDS[seeds]}", markdown_table(head, body)]
    parts += [f"`{row['method']}` said: {warning}" for row in ranked for warning in row["warnings"]]
    return "\n\n".join(parts)


def _mean(rows: Sequence[Row], figure: Callable[[Row], float]) -> float:
    return sum(figure(row) for row in rows) / len(rows)


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
