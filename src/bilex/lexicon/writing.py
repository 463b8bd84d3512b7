"""Writing word pairs as TSV, CSV or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from bilex.errors import BilexError
from bilex.files import atomic_file
from bilex.lexicon.parsing import Pair, is_comment

OutputFormat = Literal["tsv", "csv", "jsonl"]
_BY_SUFFIX: dict[str, OutputFormat] = {
    "": "tsv",
    ".tsv": "tsv",
    ".txt": "tsv",
    ".dict": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def format_of(path: str | Path, chosen: str | None = None) -> OutputFormat:
    """The format to write: the one chosen, else the one of the file's name.

    Raises:
        BilexError: The chosen format is not known, or the file's suffix means none.
    """
    if chosen is None:
        suffix = Path(path).suffix.lower()
        if suffix not in _BY_SUFFIX:
            raise BilexError(
                f"{path}: its suffix names no dictionary format; use .tsv, .txt, .csv or .jsonl, or --format."
            )
        return _BY_SUFFIX[suffix]
    if chosen not in get_args(OutputFormat):
        raise BilexError(f"{path}: format '{chosen}' is not known; choose tsv, csv or jsonl.")
    return chosen  # type: ignore[return-value]


def write_pairs(path: str | Path, pairs: Sequence[Pair], chosen: str | None = None) -> None:
    """Write pairs, atomically.

    Args:
        path: The file to write.
        pairs: What to write, in order.
        chosen: "tsv" (two columns, no header, as XLING and PanLex have it), "csv" (with a header),
            "jsonl", or None for the one that the file's name says.

    Raises:
        BilexError: The file cannot be written, or TSV cannot hold a word (a tab or line end in it).
    """
    writers: dict[OutputFormat, Callable[[Sequence[Pair]], str]] = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}
    text = writers[format_of(path, chosen)](pairs)
    with atomic_file(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def _tsv(pairs: Sequence[Pair]) -> str:
    lines = []
    for source, target in pairs:
        line = f"{source}\t{target}"
        if any(char in word for word in (source, target) for char in "\t\n\r") or is_comment(line):
            raise BilexError(
                f"the pair {source!r}, {target!r} does not fit into a TSV file; write .jsonl instead."
            )
        lines.append(line + "\n")
    return "".join(lines)


def _csv(pairs: Sequence[Pair]) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("source", "target"))
    writer.writerows(pairs)
    return buffer.getvalue()


def _jsonl(pairs: Sequence[Pair]) -> str:
    return "".join(
        json.dumps({"source": source, "target": target}, ensure_ascii=False) + "\n"
        for source, target in pairs
    )
