"""Draw docs/images/overview.svg: word pairs of the packaged sample before and after alignment.

    python tools/build_picture.py                       90 seconds on 2 cores
    python tools/build_picture.py --method advanced     seconds

Every word is from the test dictionary, so no method has learned from it. In both halves the axes are the
first two principal components of the points shown, English and Finnish together; the projection does not
know the pairs or the topics.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bilex.aligners import get_method
from bilex.cli.demo import COLOURS, MAP_HEIGHT, MAP_WIDTH, TOPICS, drawn_pairs, word_map
from bilex.core.files import write_text
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

TOP, GAP = 64, 16
TEXT_SIZE = 11


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
    pairs = drawn_pairs(Lexicon.load(sample / "test.tsv"))
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    before = english.vectors[english.rows(sources)], finnish.vectors[finnish.rows(targets)]
    after = aligner.source_map_(before[0]), aligner.target_map_(before[1])
    panels = [
        f'<g transform="translate({number * (MAP_WIDTH + GAP)} {TOP})">\n'
        f"{word_map(title, pairs, *points, TEXT_SIZE)}\n</g>"
        for number, (title, points) in enumerate(
            (("As they come", before), (f"Aligned by {options.method}", after))
        )
    ]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(options.output, picture(panels))


def picture(panels: list[str]) -> str:
    """The whole file: a legend over the panels."""
    width, height = 2 * MAP_WIDTH + GAP, TOP + MAP_HEIGHT
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
