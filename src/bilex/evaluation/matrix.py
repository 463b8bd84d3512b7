"""Every pair of languages of one model in one table, and as an SVG picture."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bilex.core.languages import language_name
from bilex.core.progress import SILENT, Progress
from bilex.evaluation.result import DirectionResult
from bilex.evaluation.scoring import evaluate
from bilex.lexicon import Lexicon

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bilex.model.many import ManyLanguages

Two = tuple[str, str]

_CELL, _MARGIN, _TOP = 72, 110, 70
_PALE, _FULL = (247, 251, 255), (8, 69, 148)
_DARK = 0.55


@dataclass(frozen=True)
class LanguageMatrix:
    """How well a model translates from each language to each other.

    `results`, and the names of the test `dictionaries`, are by the language of the words and that of the
    answers.
    """

    languages: tuple[str, ...]
    results: dict[Two, DirectionResult]
    dictionaries: dict[Two, str]

    def share(self, source: str, target: str, method: str = "csls") -> float | None:
        """P@1 from one language to another; None where there was no test dictionary."""
        found = self.results.get((source, target))
        metrics = found.metrics[method] if found else None
        return metrics.p_at_1 if metrics else None

    def mean(self, method: str = "csls") -> float:
        """The mean P@1 over all directions that were measured."""
        shares = [share for two in self.results if (share := self.share(*two, method)) is not None]
        return sum(shares) / max(1, len(shares))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, fractions between 0 and 1."""
        return {
            "languages": list(self.languages),
            "mean": {method: self.mean(method) for method in ("nn", "csls")},
            "directions": {
                f"{a}-{b}": {"dictionary": self.dictionaries[a, b], **result.as_dict()}
                for (a, b), result in self.results.items()
            },
        }

    def table(self) -> RenderableType:
        """P@1 with CSLS in per cent, a row for each language of words, a column for each of answers."""
        from rich.table import Table

        table = Table(title="P@1 with CSLS, from the row's language to the column's", title_justify="left")
        table.add_column("from \\ to")
        for code in self.languages:
            table.add_column(language_name(code), justify="right")
        for source in self.languages:
            shares = [None if source == target else self.share(source, target) for target in self.languages]
            cells = ("" if share is None else f"{100 * share:.1f}" for share in shares)
            table.add_row(language_name(source), *cells)
        means = f"{100 * self.mean():.1f} (CSLS), {100 * self.mean('nn'):.1f} (NN)"
        table.caption = f"Mean of {len(self.results)} directions: {means}"
        table.caption_justify = "left"
        return table


def evaluate_pairs(
    many: ManyLanguages,
    tests: Mapping[Two, Lexicon],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Progress = SILENT,
) -> LanguageMatrix:
    """Score every two languages that there is a test dictionary of, both ways, as `evaluate` does."""
    results: dict[Two, DirectionResult] = {}
    dictionaries: dict[Two, str] = {}
    for (a, b), lexicon in tests.items():
        translator = many.pair(a, b)
        train = translator.seeds if len(translator.seeds) else None
        found = evaluate(
            translator.space, lexicon, train=train, bootstrap=bootstrap, seed=seed, progress=progress
        )
        results[a, b], results[b, a] = found.forward, found.backward
        dictionaries[a, b] = dictionaries[b, a] = lexicon.name
    order = [code for code in many.languages if any(code in two for two in results)]
    return LanguageMatrix(tuple(order), results, dictionaries)


def heat_map(matrix: LanguageMatrix) -> str:
    """An SVG picture: P@1 with CSLS from the row's language to the column's, the darker the higher."""
    count = len(matrix.languages)
    width, height = _MARGIN + count * _CELL + 20, _TOP + count * _CELL + 50
    highest = max((share for two in matrix.results if (share := matrix.share(*two))), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<text x="12" y="24" font-size="16">P@1 (CSLS, %) from row to column</text>',
    ]
    for row, source in enumerate(matrix.languages):
        middle = _TOP + (row + 0.5) * _CELL + 5
        parts.append(_text(_MARGIN - 10, middle, language_name(source), "end"))
        parts.append(_text(_MARGIN + (row + 0.5) * _CELL, _TOP - 10, language_name(source)))
        for column, target in enumerate(matrix.languages):
            share = None if source == target else matrix.share(source, target)
            parts += _cell(_MARGIN + column * _CELL, _TOP + row * _CELL, share, highest)
    mean = f"Mean of {len(matrix.results)} directions: {100 * matrix.mean():.1f}"
    parts += [_text(12, height - 18, mean, "start"), "</svg>"]
    return "\n".join(parts) + "\n"


def _cell(x: float, y: float, share: float | None, highest: float) -> list[str]:
    if share is None:
        return [f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="#eee" stroke="white"/>']
    strength = share / highest if highest else 0.0
    color = tuple(round(p + strength * (f - p)) for p, f in zip(_PALE, _FULL, strict=True))
    ink = "white" if strength > _DARK else "black"
    return [
        f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="rgb{color}" stroke="white"/>',
        _text(x + _CELL / 2, y + _CELL / 2 + 5, f"{100 * share:.1f}", "middle", ink),
    ]


def _text(x: float, y: float, text: str, anchor: str = "middle", color: str = "black") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{color}">{html.escape(text)}</text>'
