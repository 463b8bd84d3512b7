"""A matrix of languages as a picture: an SVG file, for which no library is needed."""

from __future__ import annotations

import html

from bilex.core.languages import language_name
from bilex.evaluation.matrix import LanguageMatrix

_CELL, _MARGIN, _TOP = 72, 110, 70
_PALE, _FULL = (247, 251, 255), (8, 69, 148)
_DARK = 0.55


def heat_map(matrix: LanguageMatrix) -> str:
    """P@1 with CSLS from the row's language to the column's, the darker the higher.

    Args:
        matrix: What to show.

    Returns:
        The text of an SVG picture.
    """
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
