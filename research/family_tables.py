"""The tables of research/methods.md that set the two families of vectors side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from research.method_tables import SEEDS, markdown_table, replace_between

Row = dict[str, Any]

BEGIN, END = "<!-- families: written by python -m research.families -->", "<!-- end of families -->"
FAMILIES = {
    "web text": ("en-fi", "en-fr", "en-ru", "fi-fr", "fi-ru", "ru-fr"),
    "parliament": ("europarl/de-fr", "europarl/de-it", "europarl/it-fr"),
}
_MISSING = "–"


def write_families(page: Path, rows: Sequence[Row]) -> None:
    """Replace what stands between the two marks of `page`."""
    replace_between(page, BEGIN, END, families(rows))


def families(rows: Sequence[Row]) -> str:
    """For each number of seeds the averages of both families, then P@1 pair by pair."""
    parts = []
    for size, words in SEEDS.items():
        found: dict[str, dict[str, Row]] = {}
        for row in rows:
            pair, _, seeds = row["setting"].rpartition(":")
            if seeds == size:
                found.setdefault(row["method"], {})[pair] = row
        if found:
            ranked = sorted(found, key=lambda method: -_rank(found[method]))
            parts.append(f"### {words.capitalize()}, both families")
            parts.append(_averages({method: found[method] for method in ranked}))
            parts.append(_pairs({method: found[method] for method in ranked}))
    return "\n\n".join(parts)


def _averages(found: Mapping[str, Mapping[str, Row]]) -> str:
    """Nearest neighbour and CSLS in the mean of each family's pairs and directions."""
    head = ["method", *(f"{family} {search}" for family in FAMILIES for search in ("NN", "CSLS"))]
    body = []
    for method, by_pair in found.items():
        cells = [method]
        for pairs in FAMILIES.values():
            own = [by_pair[pair]["p@1"] for pair in pairs if pair in by_pair]
            whole = len(own) == len(pairs)
            for search in (0, 1):
                value = mean((cell[search] + cell[search + 2]) / 2 for cell in own) if whole else None
                cells.append(_shown(value))
        body.append(cells)
    return markdown_table(head, body)


def _pairs(found: Mapping[str, Mapping[str, Row]]) -> str:
    """The mean of NN and CSLS, both ways, for every pair."""
    head = ["method"]
    for family, pairs in FAMILIES.items():
        head += [*(pair.rpartition("/")[2] for pair in pairs), f"**{family}**"]
    body = []
    for method, by_pair in found.items():
        cells = [method]
        for pairs in FAMILIES.values():
            own = [mean(by_pair[pair]["p@1"]) if pair in by_pair else None for pair in pairs]
            known = [value for value in own if value is not None]
            cells += [_shown(value) for value in own]
            cells.append(_shown(mean(known) if len(known) == len(pairs) else None, strong=True))
        body.append(cells)
    return markdown_table(head, body)


def _rank(by_pair: Mapping[str, Row]) -> float:
    """What methods are ordered by: the mean over the families of the mean over their pairs."""
    means = []
    for pairs in FAMILIES.values():
        own = [mean(by_pair[pair]["p@1"]) for pair in pairs if pair in by_pair]
        means.append(mean(own) if own else 0.0)
    return mean(means)


def _shown(value: float | None, strong: bool = False) -> str:
    if value is None:
        return _MISSING
    return f"**{value:.1f}**" if strong else f"{value:.1f}"
