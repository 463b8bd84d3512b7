"""Words that methods translate differently, as the paper's table of examples shows them."""

from __future__ import annotations

from collections.abc import Sequence

from bilex.evaluation import Prediction
from bilex_bench.reported import counterpart
from bilex_bench.results import DIRECTIONS
from bilex_bench.tables.comparison import ReadPredictions
from bilex_bench.tables.sheet import Direction, Method, Sheet
from bilex_bench.tables.table import Cell, Column, Table, Text, Words

_PAPERS_CHOICE = ("C1 w/o CL", "C1", "C2 (C1)")
_SHOWN = 5


def example_tables(sheet: Sheet, read: ReadPredictions, each: int = 2) -> list[Table]:
    """In each direction some words that the last of up to three methods gets right and the first does not.

    As many words that it is the other way round with stand beside them. They are taken evenly from all
    such words, in the order of the test dictionary, so that nobody chooses them.
    """
    methods = _shown_methods(sheet.methods)
    if len(methods) < 2:
        return []
    rows: list[tuple[Cell, ...]] = []
    shown_seeds = _common_seeds(sheet, methods)
    for pair in sheet.pairs:
        if shown_seeds is None or not all((pair, shown_seeds) in m.runs for m in methods):
            continue
        answers = [read(method.runs[pair, shown_seeds][0]) for method in methods]
        for way in DIRECTIONS:
            if all(those.get(way) for those in answers):
                rows += _rows(Direction(pair, way), [those[way] for those in answers], each)
    if not rows:
        return []
    first, last = methods[0].name, methods[-1].name
    return [
        Table(
            "examples",
            "Translation examples",
            f"The {_SHOWN} best answers by CSLS, {shown_seeds} seeds; right ones are bold. Gain: {last} is "
            f"right where {first} is not; loss: the other way round.",
            tuple(map(Column, ("direction", "word", "right", *(m.name for m in methods), "effect"))),
            tuple(rows),
            (
                f"Words are taken evenly from all those on which {first} and {last} differ, in the order of "
                "the test dictionary; how many there are stands beside the effect.",
            ),
        )
    ]


def _shown_methods(methods: Sequence[Method]) -> list[Method]:
    """The paper's three, where they are there; else the first, the middle and the last of all."""
    named: dict[str, Method] = {}
    for method in methods:
        found = counterpart(method.setup)
        if found:
            named.setdefault(found.names[0], method)
    chosen = [named[name] for name in _PAPERS_CHOICE if name in named]
    if len(chosen) >= 2:
        return chosen
    places = sorted({0, len(methods) // 2, len(methods) - 1}) if methods else []
    return [methods[place] for place in places]


def _common_seeds(sheet: Sheet, methods: Sequence[Method]) -> str | None:
    """The greatest seeds with which all the methods have a pair in common."""
    for seeds in sheet.seeds:
        if any(all((pair, seeds) in m.runs for m in methods) for pair in sheet.pairs):
            return seeds
    return None


def _rows(direction: Direction, answers: Sequence[Sequence[Prediction]], each: int) -> list[tuple[Cell, ...]]:
    by_word = [{p.source: p for p in those} for those in answers]
    words = [p.source for p in answers[0] if all(p.source in those for those in by_word)]
    right = [{word for word in words if those[word].ranks["csls"] <= 1} for those in by_word]
    rows: list[tuple[Cell, ...]] = []
    kinds = (("gain", right[-1] - right[0]), ("loss", right[0] - right[-1]))
    for effect, found in kinds:
        listed = [word for word in words if word in found]
        for word in _evenly(listed, each):
            golds = by_word[0][word].golds
            shown = (Words(those[word].answers["csls"][:_SHOWN], frozenset(golds)) for those in by_word)
            rows.append(
                (Text(str(direction)), Text(word), Words(golds), *shown, Text(f"{effect} (of {len(listed)})"))
            )
    return rows


def _evenly(words: Sequence[str], count: int) -> list[str]:
    """So many words at equal distances."""
    if len(words) <= count:
        return list(words)
    return [words[(2 * place + 1) * len(words) // (2 * count)] for place in range(count)]
