"""Draw docs/images/overview.svg: word pairs of the packaged sample before and after alignment.

    python tools/build_picture.py                       90 seconds on 2 cores
    python tools/build_picture.py --method advanced     seconds

Every drawn word is of the test dictionary, so no method has learned from it. Both halves of the picture
are drawn in the same way: the axes are the first two principal components of the points that are shown,
English and Finnish together. Nothing about the pairs or the topics goes into the projection.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from bilex.aligners import get_method
from bilex.core.files import write_text
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

Points = npt.NDArray[np.floating[Any]]
Box = tuple[float, float, float, float]

# English words and the translation of each that is drawn, where the test dictionary has several.
TOPICS = {
    "food": "coffee kahvi, wine viini, sugar sokeri, milk maito, meat liha, butter voi, salt suola",
    "body": "blood veri, hair hiukset, brain aivot, liver maksa, foot jalka, arm käsi",
    "countries": "german saksa, italian italia, spanish espanja, greek kreikka, swedish ruotsi",
    "places": "lake järvi, hill mäki, shore ranta, river virta, castle linna, bridge silta, village kylä",
    "time": "winter talvi, autumn syksy, evening ilta, sunday sunnuntai, monday maanantai, yesterday eilen",
    "politics": "election vaalit, minister ministeri, council neuvosto, policy politiikka, leader johtaja",
}
COLOURS = ("#b45309", "#be123c", "#1d4ed8", "#15803d", "#7e22ce", "#475569")
PANEL_WIDTH, PANEL_HEIGHT, MARGIN, TOP, GAP = 560, 520, 46, 64, 16
TEXT_SIZE = 11
# A label of which more than this share would lie on others is left out.
MOST_COVERED = 0.12


class Dot(NamedTuple):
    """One word in the picture."""

    word: str
    x: float
    y: float
    colour: str
    source: bool


def main(arguments: Sequence[str] | None = None) -> None:
    """Align the sample, and draw it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="c1", help="see bilex methods")
    parser.add_argument("--output", type=Path, default=Path("docs/images/overview.svg"))
    options = parser.parse_args(arguments)
    sample = sample_path()
    english, finnish = WordVectors.load(sample / "en"), WordVectors.load(sample / "fi")
    aligner = get_method(options.method)().fit(english, finnish, Lexicon.load(sample / "seeds.tsv"))
    pairs, colours = drawn_pairs(Lexicon.load(sample / "test.tsv"))
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    before = english.vectors[english.rows(sources)], finnish.vectors[finnish.rows(targets)]
    after = aligner.source_map_(before[0]), aligner.target_map_(before[1])
    panels = [
        panel(number, heading(title, x, y), dots(np.concatenate([x, y]), sources + targets, colours))
        for number, (title, (x, y)) in enumerate(
            (("As they come", before), (f"Aligned by {options.method}", after))
        )
    ]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(options.output, picture(panels))


def drawn_pairs(test: Lexicon) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs to draw, each with the colour of its topic.

    Raises:
        SystemExit: The test dictionary does not list one of them.
    """
    pairs, colours = [], []
    for topic, colour in zip(TOPICS.values(), COLOURS, strict=True):
        for pair in topic.split(", "):
            source, target = pair.split()
            if (source, target) not in test.pairs:
                raise SystemExit(f"the test dictionary does not list {source} as {target}.")
            pairs.append((source, target))
            colours.append(colour)
    return pairs, colours


def heading(title: str, source: Points, target: Points) -> str:
    """What a panel shows, with the mean cosine of a word and its translation."""
    return f"{title}: mean cosine of a pair {float((source * target).sum(1).mean()):.2f}"


def dots(rows: Points, words: list[str], colours: list[str]) -> list[Dot]:
    """The words at their places in a panel: source words first, then their translations."""
    centred = rows.astype(np.float64) - rows.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    flat = centred @ axes.T
    low, high = flat.min(0), flat.max(0)
    room = np.array([PANEL_WIDTH - 2 * MARGIN - 40, PANEL_HEIGHT - 2 * MARGIN])
    places = (flat - low) / (high - low) * room + MARGIN
    half = len(words) // 2
    return [
        Dot(word, float(x), float(y), colours[number % half], number < half)
        for number, (word, (x, y)) in enumerate(zip(words, places, strict=True))
    ]


def panel(number: int, title: str, shown: list[Dot]) -> str:
    """One half of the picture: a line for each pair, a mark and a label for each word."""
    half = len(shown) // 2
    parts = [
        f'<g transform="translate({number * (PANEL_WIDTH + GAP)} {TOP})">',
        f'<rect width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" rx="8" fill="#ffffff" stroke="#cbd5e1"/>',
        f'<text x="16" y="26" font-size="14" font-weight="600" fill="#0f172a">{escape(title)}</text>',
    ]
    parts += [
        f'<line x1="{a.x:.1f}" y1="{a.y:.1f}" x2="{b.x:.1f}" y2="{b.y:.1f}" stroke="{a.colour}" '
        'stroke-width="1" stroke-opacity="0.35"/>'
        for a, b in zip(shown[:half], shown[half:], strict=True)
    ]
    parts += [mark(dot) for dot in shown]
    parts += labels(shown)
    return "\n".join([*parts, "</g>"])


def mark(dot: Dot) -> str:
    """A filled circle for a source word, an open square for a target word."""
    if dot.source:
        return f'<circle cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="3.4" fill="{dot.colour}"/>'
    return (
        f'<rect x="{dot.x - 3:.1f}" y="{dot.y - 3:.1f}" width="6" height="6" fill="#ffffff" '
        f'stroke="{dot.colour}" stroke-width="1.4"/>'
    )


def labels(shown: list[Dot]) -> list[str]:
    """Each word beside its mark, where it covers the least of what is there already; none if too much."""
    taken = [(dot.x - 4, dot.y - 4, dot.x + 4, dot.y + 4) for dot in shown]
    taken.append((0, 0, PANEL_WIDTH, 34))
    texts = []
    for dot in shown:
        width = 0.56 * TEXT_SIZE * len(dot.word)
        places = [
            (dot.x + dx - width * share, dot.y + dy)
            for dx, dy, share in ((6, 4, 0), (-6, 4, 1), (0, -7, 0.5), (0, 14, 0.5))
        ] + [(dot.x + dx - width * share, dot.y + dy) for dx, share in ((6, 0), (-6, 1)) for dy in (-4, 11)]
        boxes = [(x, y - TEXT_SIZE + 2, x + width, y + 2) for x, y in places]
        costs = [covered(box, taken) for box in boxes]
        best = int(np.argmin(costs))
        if costs[best] > MOST_COVERED * width * TEXT_SIZE:
            continue
        taken.append(boxes[best])
        x, y = places[best]
        style = "" if dot.source else ' font-style="italic"'
        texts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{dot.colour}"{style}>{escape(dot.word)}</text>')
    return texts


def covered(box: Box, taken: list[Box]) -> float:
    """The area of `box` that lies on boxes already taken, or outside the panel."""
    area = sum(
        max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
        * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
        for other in taken
    )
    outside = max(0.0, 4 - box[0]) + max(0.0, box[2] - PANEL_WIDTH + 4)
    return area + outside * 100


def picture(panels: list[str]) -> str:
    """The whole file: a legend over the panels."""
    width, height = 2 * PANEL_WIDTH + GAP, TOP + PANEL_HEIGHT
    legend = [
        '<circle cx="20" cy="22" r="4" fill="#334155"/>',
        '<text x="30" y="26" font-size="13" fill="#334155">English</text>',
        '<rect x="96" y="18" width="8" height="8" fill="#ffffff" stroke="#334155" stroke-width="1.6"/>',
        '<text x="110" y="26" font-size="13" fill="#334155" font-style="italic">Finnish</text>',
        '<line x1="176" y1="22" x2="204" y2="22" stroke="#334155" stroke-opacity="0.5"/>',
        '<text x="212" y="26" font-size="13" fill="#334155">a word and its translation in the test '
        "dictionary; none was learned from</text>",
    ]
    x = 20
    for topic, colour in zip(TOPICS, COLOURS, strict=True):
        legend.append(f'<rect x="{x}" y="40" width="10" height="10" rx="2" fill="{colour}"/>')
        legend.append(f'<text x="{x + 15}" y="49" font-size="12" fill="#334155">{topic}</text>')
        x += 36 + 8 * len(topic)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -4 {width + 20} {height + 14}" '
            f'width="{width + 20}" height="{height + 14}" font-family="Helvetica, Arial, sans-serif" '
            f'font-size="{TEXT_SIZE}">',
            f'<rect x="-10" y="-4" width="{width + 20}" height="{height + 14}" fill="#f8fafc"/>',
            *legend,
            *panels,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    main()
