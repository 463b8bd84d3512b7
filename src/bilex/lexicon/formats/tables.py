"""The columns of a dictionary in a table, for the formats that are tables: CSV and XLSX."""

from __future__ import annotations

from collections.abc import Iterator

from bilex.lexicon.entries import TEXTS, Dictionary, Entry, number_text

_OTHERS = ("sense", *TEXTS)


def column_names(dictionary: Dictionary) -> list[str]:
    """The header: both words, what scored pairs have, and whatever else any entry has."""
    entries = dictionary.entries
    names = list(dictionary.columns)
    if dictionary.scored() or any(entry.known for entry in entries):
        names += ["score", "confidence", "known"]
    if any(entry.source_rank is not None or entry.target_rank is not None for entry in entries):
        names += [f"{column}_rank" for column in dictionary.columns]
    return names + [name for name in _OTHERS if any(getattr(entry, name) for entry in entries)]


def table_rows(dictionary: Dictionary) -> Iterator[list[str | int]]:
    """The header and a row for each entry."""
    names = column_names(dictionary)
    yield [*names]
    own = dict(zip(dictionary.columns, ("source", "target"), strict=True))
    fields = [
        own.get(name.removesuffix("_rank"), "") + "_rank" if name.endswith("_rank") else name
        for name in names
    ]
    for entry in dictionary.entries:
        yield [entry.source, entry.target, *(_cell(entry, field) for field in fields[2:])]


def _cell(entry: Entry, field: str) -> str | int:
    if field == "known":
        return entry.origin() or "found"
    value = getattr(entry, field)
    if field in ("score", "confidence"):
        return number_text(value)
    return "" if value is None else value
