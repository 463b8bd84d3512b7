"""The page of results that `bilex demo` writes, and its map of words; one file, nothing from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from bilex.lexicon import Entry, Lexicon
    from bilex.vectors import WordVectors

Points = npt.NDArray[np.floating[Any]]
Box = tuple[float, float, float, float]

# English words of the test dictionary and the translation of each that is drawn.
TOPICS = {
    "food": "coffee kahvi, wine viini, sugar sokeri, milk maito, meat liha, butter voi, salt suola",
    "body": "blood veri, hair hiukset, brain aivot, liver maksa, foot jalka, arm käsi",
    "countries": "german saksa, italian italia, spanish espanja, greek kreikka, swedish ruotsi",
    "places": "lake järvi, hill mäki, shore ranta, river virta, castle linna, bridge silta, village kylä",
    "time": "winter talvi, autumn syksy, evening ilta, sunday sunnuntai, monday maanantai, yesterday eilen",
    "politics": "election vaalit, minister ministeri, council neuvosto, policy politiikka, leader johtaja",
}
COLOURS = ("#b45309", "#be123c", "#1d4ed8", "#15803d", "#7e22ce", "#475569")
PANEL_WIDTH, PANEL_HEIGHT, MARGIN = 560, 520, 46
# A label of which more than this share would lie on others is left out.
_MOST_COVERED = 0.12
_ANY_PAIRS, _TEXT_SIZE = 30, 15


class Dot(NamedTuple):
    """One word in the map."""

    word: str
    x: float
    y: float
    colour: str
    source: bool


def drawn_pairs(test: Lexicon) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs to draw, each with the colour of its topic; other pairs where there are none."""
    known = set(test.pairs)
    found = [
        ((source, target), colour)
        for topic, colour in zip(TOPICS.values(), COLOURS, strict=True)
        for source, target in (pair.split() for pair in topic.split(", "))
        if (source, target) in known
    ] or [(pair, COLOURS[0]) for pair in test.pairs[:_ANY_PAIRS]]
    return [pair for pair, _ in found], [colour for _, colour in found]


def panel(
    title: str,
    pairs: Sequence[tuple[str, str]],
    colours: list[str],
    source: Points,
    target: Points,
    size: int,
) -> str:
    """A map of words: a line for each pair, a mark and a label of a text size for each word.

    The axes are the first two principal components of the points, both languages together. Nothing about
    the pairs or the topics goes into the projection.
    """
    rows = np.concatenate([source, target]).astype(np.float64)
    centred = rows - rows.mean(0)
    flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    low, high = flat.min(0), flat.max(0)
    room = np.array([PANEL_WIDTH - 2 * MARGIN - 40, PANEL_HEIGHT - 2 * MARGIN])
    places = (flat - low) / np.maximum(high - low, 1e-9) * room + MARGIN
    words = [a for a, _ in pairs] + [b for _, b in pairs]
    shown = [
        Dot(word, float(x), float(y), colours[number % len(pairs)], number < len(pairs))
        for number, (word, (x, y)) in enumerate(zip(words, places, strict=True))
    ]
    cosine = float((source * target).sum(1).mean())
    parts = [
        f'<rect width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" rx="8" fill="#ffffff" stroke="#cbd5e1"/>',
        f'<text x="16" y="26" font-size="{size + 3}" font-weight="600" fill="#0f172a">'
        f"{escape(title)}: mean cosine of a pair {cosine:.2f}</text>",
    ]
    parts += [
        f'<line x1="{a.x:.1f}" y1="{a.y:.1f}" x2="{b.x:.1f}" y2="{b.y:.1f}" stroke="{a.colour}" '
        'stroke-width="1" stroke-opacity="0.35"/>'
        for a, b in zip(shown[: len(pairs)], shown[len(pairs) :], strict=True)
    ]
    return "\n".join([*parts, *(_mark(dot) for dot in shown), *_labels(shown, size)])


def _mark(dot: Dot) -> str:
    """A filled circle for a source word, an open square for a target word."""
    if dot.source:
        return f'<circle cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="3.4" fill="{dot.colour}"/>'
    return (
        f'<rect x="{dot.x - 3:.1f}" y="{dot.y - 3:.1f}" width="6" height="6" fill="#ffffff" '
        f'stroke="{dot.colour}" stroke-width="1.4"/>'
    )


def _labels(shown: list[Dot], size: int) -> list[str]:
    """Each word beside its mark, where it covers the least of what is there already; none if too much."""
    taken = [(dot.x - 4, dot.y - 4, dot.x + 4, dot.y + 4) for dot in shown]
    taken.append((0, 0, PANEL_WIDTH, 34))
    texts = []
    for dot in shown:
        width = 0.56 * size * len(dot.word)
        places = [
            (dot.x + dx - width * share, dot.y + dy)
            for dx, dy, share in ((6, 4, 0), (-6, 4, 1), (0, -7, 0.5), (0, size + 3, 0.5))
        ] + [(dot.x + dx - width * share, dot.y + dy) for dx, share in ((6, 0), (-6, 1)) for dy in (-4, size)]
        boxes = [(x, y - size + 2, x + width, y + 2) for x, y in places]
        costs = [_covered(box, taken) for box in boxes]
        best = int(np.argmin(costs))
        if costs[best] > _MOST_COVERED * width * size:
            continue
        taken.append(boxes[best])
        x, y = places[best]
        style = "" if dot.source else ' font-style="italic"'
        texts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{dot.colour}"{style}>{escape(dot.word)}</text>')
    return texts


def _covered(box: Box, taken: list[Box]) -> float:
    """The area of `box` that lies on boxes already taken, or outside the panel."""
    area = sum(
        max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
        * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
        for other in taken
    )
    outside = max(0.0, 4 - box[0]) + max(0.0, box[2] - PANEL_WIDTH + 4)
    return area + outside * 100


_STYLE = """
:root { color-scheme: light dark; --ink: #1e293b; --paper: #ffffff; --line: #cbd5e1; --bar: #bfdbfe }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e2e8f0; --paper: #0f172a; --line: #475569; --bar: #1e3a8a }
  svg { filter: invert(.93) hue-rotate(180deg) } }
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; max-width: 72rem;
  margin: 0 auto; padding: 1rem }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem }
svg { width: 100%; height: auto; font-family: inherit }
table { border-collapse: collapse }
td, th { padding: .2rem .7rem; text-align: left; border-bottom: 1px solid var(--line) }
td:nth-child(n+4), th:nth-child(n+4) { text-align: right; white-space: nowrap }
.wide { overflow-x: auto } .entries { columns: 2 22rem }
.entries table { width: 100%; table-layout: fixed; overflow-wrap: anywhere }
.entries tr { break-inside: avoid } .entries :is(td, th):last-child { width: 7rem; text-align: right }
.entries td:last-child {
  background: linear-gradient(to right, var(--bar) var(--c), transparent var(--c)) }
"""


def page(
    name: str,
    scores: Iterable[Sequence[str]],
    entries: Sequence[Entry],
    test: Lexicon,
    before: tuple[WordVectors, WordVectors],
    after: tuple[WordVectors, WordVectors],
) -> str:
    """The whole page."""
    pairs, colours = drawn_pairs(test)
    words = [a for a, _ in pairs], [b for _, b in pairs]
    maps = []
    for title, sides in (("Before alignment", before), ("After alignment", after)):
        source, target = (side.vectors[side.rows(of)] for side, of in zip(sides, words, strict=True))
        drawn = panel(title, pairs, colours, source, target, _TEXT_SIZE)
        box = f'viewBox="0 0 {PANEL_WIDTH} {PANEL_HEIGHT}" font-size="{_TEXT_SIZE}"'
        maps.append(f'<svg {box} role="img" aria-label="{title}">{drawn}</svg>')
    heading, *rows = scores
    listed = "".join(
        f"<tr><td>{escape(entry.source)}<td>{escape(entry.target)}"
        f'<td style="--c:{entry.confidence or 0:.0%}">{entry.confidence or 0:.0%}'
        for entry in entries
    )
    return f"""<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>English–Finnish by bilex</title><style>{_STYLE}</style>
<h1>English–Finnish by bilex</h1>
<p>A dictionary made by {escape(name)} from the packaged sample.</p>
<h2>The words in one space</h2>
<p>● English, □ <i>Finnish</i>. A line joins a word and its translation in the test dictionary; none of them
was learned from.</p>
<div class="maps">{"".join(maps)}</div>
<h2>Share of test words with a right translation</h2>
<p>P@1: the first answer is right. P@5: one of the first five is. CSLS is the default search.</p>
<div class="wide"><table><tr>{"".join(f"<th>{escape(cell)}" for cell in heading)}
{"".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows)}</table></div>
<h2>{len(entries)} entries</h2>
<p>Frequent words of four letters and more that are no seeds, in pairs in which each word is the
other's first answer. The confidence is the probability that the pair is right, learned on held-out seeds.</p>
<div class="entries"><table><tr><th>English<th>Finnish<th>confidence{listed}</table></div>
</html>
"""
