"""Every pair of languages of one model in one table, and as an SVG picture."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bilex.core.languages import LanguagePair, language_name
from bilex.core.progress import SILENT, Progress
from bilex.core.tables import table
from bilex.evaluation.result import DirectionResult
from bilex.evaluation.scoring import evaluate
from bilex.lexicon import Lexicon

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bilex.model.many import ManyLanguages

_CELL, _MARGIN, _TOP = 72, 110, 70
_PALE, _FULL = (247, 251, 255), (8, 69, 148)
_DARK = 0.55


@dataclass(frozen=True)
class LanguageMatrix:
    """How well a model translates from each language to each other.

    `results`, and the names of the test `dictionaries`, are by source and target language.
    """

    languages: tuple[str, ...]
    results: dict[LanguagePair, DirectionResult]
    dictionaries: dict[LanguagePair, str]

    def p_at_1(self, source: str, target: str, retrieval: str = "csls") -> float | None:
        """P@1 from one language to another; None if there was no test dictionary."""
        found = self.results.get((source, target))
        metrics = found.metrics[retrieval] if found else None
        return metrics.p_at_1 if metrics else None

    def mean(self, retrieval: str = "csls") -> float:
        """The mean P@1 over all directions that were measured."""
        found = [value for pair in self.results if (value := self.p_at_1(*pair, retrieval)) is not None]
        return sum(found) / max(1, len(found))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, fractions between 0 and 1."""
        return {
            "languages": list(self.languages),
            "mean": {retrieval: self.mean(retrieval) for retrieval in ("nn", "csls")},
            "directions": {
                f"{a}-{b}": {"dictionary": self.dictionaries[a, b], **result.as_dict()}
                for (a, b), result in self.results.items()
            },
        }

    def table(self) -> RenderableType:
        """P@1 with CSLS in per cent, one row per source language, one column per target language."""
        rows = []
        for source in self.languages:
            values = (self.p_at_1(source, target) for target in self.languages)
            cells = ("" if value is None else f"{100 * value:.1f}" for value in values)
            rows.append([language_name(source), *cells])
        means = f"{100 * self.mean():.1f} (CSLS), {100 * self.mean('nn'):.1f} (NN)"
        caption = f"Mean of {len(self.results)} directions: {means}"
        title = "P@1 with CSLS, from the row's language to the column's"
        return table(
            ["from \\ to", *map(language_name, self.languages)], rows, title, left=1, caption=caption
        )

    def svg(self) -> str:
        """A picture: P@1 with CSLS from the row's language to the column's, the darker the higher."""
        count = len(self.languages)
        width, height = _MARGIN + count * _CELL + 20, _TOP + count * _CELL + 50
        highest = max((value for pair in self.results if (value := self.p_at_1(*pair))), default=1.0)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            '<text x="12" y="24" font-size="16">P@1 (CSLS, %) from row to column</text>',
        ]
        for row, source in enumerate(self.languages):
            y, name = _TOP + row * _CELL, language_name(source)
            parts.append(_svg_text(_MARGIN - 10, y + _CELL / 2 + 5, name, "end"))
            parts.append(_svg_text(_MARGIN + (row + 0.5) * _CELL, _TOP - 10, name))
            for column, target in enumerate(self.languages):
                x, value = _MARGIN + column * _CELL, self.p_at_1(source, target)
                strength = (value or 0.0) / highest
                mixed = (round(p + strength * (f - p)) for p, f in zip(_PALE, _FULL, strict=True))
                fill = "#eee" if value is None else f"rgb{tuple(mixed)}"
                parts.append(
                    f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="{fill}" stroke="white"/>'
                )
                if value is not None:
                    color = "white" if strength > _DARK else "black"
                    text = f"{100 * value:.1f}"
                    parts.append(_svg_text(x + _CELL / 2, y + _CELL / 2 + 5, text, color=color))
        mean = f"Mean of {len(self.results)} directions: {100 * self.mean():.1f}"
        parts += [_svg_text(12, height - 18, mean, "start"), "</svg>"]
        return "\n".join(parts) + "\n"


def _svg_text(x: float, y: float, text: str, anchor: str = "middle", color: str = "black") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{color}">{html.escape(text)}</text>'


def evaluate_pairs(
    many: ManyLanguages,
    tests: Mapping[LanguagePair, Lexicon],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Progress = SILENT,
) -> LanguageMatrix:
    """Evaluate every language pair that has a test dictionary, in both directions."""
    results: dict[LanguagePair, DirectionResult] = {}
    dictionaries: dict[LanguagePair, str] = {}
    for (a, b), lexicon in tests.items():
        translator = many.pair(a, b)
        train = translator.seeds or None
        found = evaluate(
            translator.space, lexicon, train=train, bootstrap=bootstrap, seed=seed, progress=progress
        )
        results[a, b], results[b, a] = found.forward, found.backward
        dictionaries[a, b] = dictionaries[b, a] = lexicon.name
    order = tuple(code for code in many.languages if any(code in pair for pair in results))
    return LanguageMatrix(order, results, dictionaries)
