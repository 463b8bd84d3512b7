"""The tables of docs/methods.md, from the results of `benchmarks.methods`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bilex.errors import BilexError
from bilex.files import write_text

Row = dict[str, Any]

BEGIN, END = "<!-- tables: written by python -m benchmarks.methods -->", "<!-- end of tables -->"
_FIGURES = ("forward_nn", "forward_csls", "backward_nn", "backward_csls")
_SEEDS = {"5k": "5,000 seeds", "1k": "1,000 seeds", "0": "no seeds"}


def write_tables(page: Path, rows: Sequence[Row]) -> None:
    """Replace what stands between the two marks of `page`.

    Raises:
        BilexError: The page has no marks.
    """
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise BilexError(f"{page}: the lines '{BEGIN}' and '{END}' are missing; put them back.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_text(page, f"{before}{BEGIN}\n\n{tables(rows)}\n\n{END}{after}")


def tables(rows: Iterable[Row]) -> str:
    """All tables: averages, time and memory, then pair by pair."""
    full = [row for row in rows if row["limit"] is None]
    scored = _one_a_fit(full)
    parts = [_averages(scored), _cost([row for row in full if row["device"] == "cpu"])]
    for pair in sorted({row["pair"] for row in scored}):
        for seeds in _SEEDS:
            chosen = [row for row in scored if (row["pair"], row["seeds"]) == (pair, seeds)]
            if chosen:
                parts.append(_pair(pair, seeds, chosen))
    return "\n\n".join(part for part in parts if part)


def _one_a_fit(rows: Iterable[Row]) -> list[Row]:
    """One row for each method, pair and seed size: the last one measured."""
    return list({(row["method"], row["pair"], row["seeds"]): row for row in rows}.values())


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(line) + " |" for line in body])


def _averages(rows: Sequence[Row]) -> str:
    """Mean P@1 over the pairs and both directions; a method counts where it has all pairs."""
    pairs = {row["pair"] for row in rows}
    body = []
    for seeds, words in _SEEDS.items():
        lines = []
        for method in {row["method"] for row in rows if row["seeds"] == seeds}:
            own = [row for row in rows if (row["method"], row["seeds"]) == (method, seeds)]
            if {row["pair"] for row in own} == pairs:
                nn = _mean(own, lambda row: (row["forward_nn"][0] + row["backward_nn"][0]) / 2)
                csls = _mean(own, lambda row: (row["forward_csls"][0] + row["backward_csls"][0]) / 2)
                lines.append((csls, [words, method, f"{nn:.1f}", f"{csls:.1f}"]))
        body += [line for _, line in sorted(lines, key=lambda item: -item[0])]
    if not body:
        return ""
    names = ", ".join(sorted(pairs))
    title = f"### Averages\n\nMean P@1 in % over {names}, both directions.\n\n"
    return title + _table(["seeds", "method", "NN", "CSLS"], body)


def _cost(rows: Sequence[Row]) -> str:
    """Time and memory of the fits that were measured on a CPU."""
    body = [
        [
            row["method"],
            row["pair"],
            _SEEDS[row["seeds"]],
            _duration(row["seconds"]),
            f"{row['gigabytes']:.1f} GB",
        ]
        for row in sorted(_one_a_fit(rows), key=lambda row: (row["pair"], row["method"], row["seeds"]))
    ]
    if not body:
        return ""
    title = "### Time and memory on 2 CPU cores\n\nThe fit alone; memory is the peak of the process.\n\n"
    return title + _table(["method", "pair", "seeds", "time", "memory"], body)


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
    return f"### {pair}, {_SEEDS[seeds]}\n\n" + _table(head, body)


def _mean(rows: Sequence[Row], figure: Callable[[Row], float]) -> float:
    return sum(figure(row) for row in rows) / len(rows)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
