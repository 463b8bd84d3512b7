"""`bilex demo`: everything once, on the sample that the package carries, and a page of results."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import bilex
from bilex.cli import options as opt
from bilex.cli.console import answers_table, progress, show, show_confidences, table
from bilex.core.errors import BilexError
from bilex.core.files import write_text
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bilex.evaluation import Evaluation
    from bilex.lexicon import Entry, Lexicon
    from bilex.vectors import WordVectors

_SHOWN_WORDS, _LISTED_ENTRIES = 12, 200
_SHORTEST = 4
_HEADINGS = ("model", "direction", "search", "P@1", "95 %", "P@5", "words")

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
_MOST_COVERED = 0.12  # a label of which a larger share would lie on others is left out
_ANY_PAIRS, _TEXT_SIZE = 30, 15


@opt.as_command(
    "bilex demo",
    "bilex demo --output /tmp/demo --method procrustes",
    "bilex demo --lm e5-small-q4        (both stages, as 'make demo' does)",
)
def command(
    *,
    output: str = "demo-output",
    method: opt.Method = DEFAULT_METHOD,
    lm: str | None = None,
    device: str = "auto",
) -> None:
    """Align the packaged English–Finnish sample, and show the results.

    FOLDER receives the model (en-fi), a dictionary (en-fi.tsv), the scores (scores.json) and a page of
    results to look at (index.html). With --lm the scores of both stages are shown.

    Options:
        -o, --output FOLDER: Where the results go.
        --method
        --lm NAME: Add a language model (stage C2), lightly tuned.
        --device
    """
    opt.check_device(device)
    started = time.monotonic()
    from bilex.data import sample_path
    from bilex.model.space import Space
    from bilex.model.storage import check_destination, holds_model

    model = Path(output) / "en-fi"
    check_destination(model)
    written = [Path(output) / name for name in ("en-fi.tsv", "scores.json", "index.html")]
    if not holds_model(model):  # else they are an earlier demo's
        for path in written:
            if path.exists():
                raise BilexError(f"{path}: is there already; choose another folder with --output.")
    listener = progress(2 + (lm is not None))
    sample = sample_path()
    english, finnish = bilex.WordVectors.load(sample / "en"), bilex.WordVectors.load(sample / "fi")
    seeds, test = bilex.Lexicon.load(sample / "seeds.tsv"), bilex.Lexicon.load(sample / "test.tsv")
    listener.say(
        f"English {len(english):,} words, Finnish {len(finnish):,} words, {len(seeds):,} seed pairs, "
        f"{len(test.translations()):,} test words, method {method}{f' and {lm}' if lm else ''}."
    )
    encoder = bilex.C2(lm, preset="demo", mixing="prior") if lm else None
    aligner = bilex.get_method(method)(**{"device": device, **_quick_settings(method)})
    translator = bilex.Translator(aligner, encoder=encoder).fit(
        english, finnish, seeds, languages=("en", "fi"), progress=listener
    )
    results = {}
    if lm is not None:
        alone = Space.from_aligner(translator.aligner_, english, finnish)
        results[method] = bilex.evaluate(alone, test, train=seeds, progress=listener)
    name = f"{method} + {lm}" if lm else method
    result = results[name] = bilex.evaluate(translator.space, test, train=seeds, progress=listener)
    with listener.task("Writing the model"):
        translator.save(model)
    dictionary = translator.lexicon(mutual=True, progress=listener)
    dictionary.save(written[0])
    write_text(written[1], result.to_json() + "\n")
    scores = [row for name, result in results.items() for row in _scores(name, result)]
    new = [e for e in dictionary if not e.known and e.source != e.target and len(e.source) >= _SHORTEST]
    spaces = (english, finnish), (translator.space.source, translator.space.target)
    write_text(written[2], _page(name, scores, new[:_LISTED_ENTRIES], test, *spaces))
    show(table(_HEADINGS, scores, "Share of test words with a right translation", left=3))
    unlike = [found.source for found in result.forward.predictions if not found.identical]
    words = unlike[:: max(1, len(unlike) // _SHOWN_WORDS)][:_SHOWN_WORDS]
    title = "Words of the test dictionary, none of them a seed"
    show(answers_table(translator.translate(words, 3), translator.languages, title))
    show_confidences(translator)
    show(f"Wrote {model}, {written[0]} and {written[1]} in {time.monotonic() - started:.0f} s.")
    show(f"Look at the results in a browser: {written[2]}")
    translate = f"bilex translate {shlex.quote(str(model))} friend river"
    show("\n  ".join(["Next:", *_activation(), translate, "bilex init    (asks for your own files)"]))


def _quick_settings(method: str) -> dict[str, Any]:
    """Settings with which a method shows itself in a minute."""
    if method != "c1":
        return {}
    from bilex.aligners.c1_settings import SUPERVISED, long_steps

    # After 40 updates the loss on the sample has settled; 20 in longer steps go as far.
    return {"preset": "paper", **long_steps(40, SUPERVISED.learning_rate, SUPERVISED.decay)}


def _activation() -> list[str]:
    """The command that activates the virtual environment of this Python, where the shell does not find it."""
    here = Path(sys.prefix)
    found = shutil.which("bilex")
    if sys.prefix == sys.base_prefix or (found and Path(found).resolve().is_relative_to(here.resolve())):
        return []
    short = Path(os.path.relpath(here)) if here.is_relative_to(Path.cwd()) else here
    return [f"{short}\\Scripts\\activate" if os.name == "nt" else f". {shlex.quote(str(short))}/bin/activate"]


def _scores(name: str, result: Evaluation) -> list[tuple[str, ...]]:
    """P@1 and P@5 of a model in both directions."""
    rows: list[tuple[str, ...]] = []
    for direction, found in (("English to Finnish", result.forward), ("Finnish to English", result.backward)):
        for search, metrics in (("nn", found.nn), ("csls", found.csls)):
            low, high = found.intervals[search]["p@1"]
            shares = f"{metrics.p_at_1:.1%}", f"{low:.1%}–{high:.1%}", f"{metrics.p_at_5:.1%}"
            rows.append((name, direction, search.upper(), *shares, str(found.covered)))
    return rows


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
    title: str, pairs: Sequence[tuple[str, str]], colours: list[str], source: Any, target: Any, size: int
) -> str:
    """A map of words: a line for each pair, a mark and a label of a text size for each word.

    The axes are the first two principal components of the points, both languages together. Nothing about
    the pairs or the topics goes into the projection.
    """
    import numpy as np

    rows = np.concatenate([source, target]).astype(np.float64)
    centred = rows - rows.mean(0)
    flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    low, high = flat.min(0), flat.max(0)
    room = np.array([PANEL_WIDTH - 2 * MARGIN - 40, PANEL_HEIGHT - 2 * MARGIN])
    places = (flat - low) / np.maximum(high - low, 1e-9) * room + MARGIN
    words = [source for source, _ in pairs] + [target for _, target in pairs]
    dots = [
        Dot(word, float(x), float(y), colours[number % len(pairs)], number < len(pairs))
        for number, (word, (x, y)) in enumerate(zip(words, places, strict=True))
    ]
    cosine = float((source * target).sum(1).mean())
    parts = [
        f'<rect width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" rx="8" fill="#ffffff" stroke="#cbd5e1"/>',
        f'<text x="16" y="26" font-size="{size + 3}" font-weight="600" fill="#0f172a">'
        f"{escape(title)}: mean cosine of a pair {cosine:.2f}</text>",
    ]
    for a, b in zip(dots[: len(pairs)], dots[len(pairs) :], strict=True):
        ends = f'x1="{a.x:.1f}" y1="{a.y:.1f}" x2="{b.x:.1f}" y2="{b.y:.1f}"'
        parts.append(f'<line {ends} stroke="{a.colour}" stroke-width="1" stroke-opacity="0.35"/>')
        parts.append(f'<circle cx="{a.x:.1f}" cy="{a.y:.1f}" r="3.4" fill="{a.colour}"/>')
        square = f'x="{b.x - 3:.1f}" y="{b.y - 3:.1f}" width="6" height="6"'
        parts.append(f'<rect {square} fill="#ffffff" stroke="{b.colour}" stroke-width="1.4"/>')
    return "\n".join(parts + _labels(dots, size))


def _labels(dots: list[Dot], size: int) -> list[str]:
    """Each word beside its mark, where it covers the least of what is there already; none if too much."""
    import numpy as np

    taken = [(0, 0, PANEL_WIDTH, 34), *((dot.x - 4, dot.y - 4, dot.x + 4, dot.y + 4) for dot in dots)]
    offsets = [(6, 4, 0), (-6, 4, 1), (0, -7, 0.5), (0, size + 3, 0.5)]
    offsets += [(dx, dy, share) for dx, share in ((6, 0), (-6, 1)) for dy in (-4, size)]
    texts = []
    for dot in dots:
        width = 0.56 * size * len(dot.word)
        places = [(dot.x + dx - width * share, dot.y + dy) for dx, dy, share in offsets]
        boxes = np.array([(x, y - size + 2, x + width, y + 2) for x, y in places])
        costs = _covered(boxes, np.array(taken, float))
        best = int(costs.argmin())
        if costs[best] <= _MOST_COVERED * width * size:
            taken.append(tuple(boxes[best]))
            x, y = places[best]
            style = "" if dot.source else ' font-style="italic"'
            texts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" fill="{dot.colour}"{style}>{escape(dot.word)}</text>'
            )
    return texts


def _covered(boxes: Any, taken: Any) -> Any:
    """The area of each box (left, top, right, bottom) on taken ones, and a price for what is outside."""
    import numpy as np

    low = np.maximum(boxes[:, None, :2], taken[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], taken[None, :, 2:])
    outside = np.maximum(0, 4 - boxes[:, 0]) + np.maximum(0, boxes[:, 2] - PANEL_WIDTH + 4)
    area = np.maximum(0, high - low).prod(2).sum(1)
    return area + 100 * outside


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


def _page(
    name: str,
    scores: Sequence[Sequence[str]],
    entries: Sequence[Entry],
    test: Lexicon,
    before: tuple[WordVectors, WordVectors],
    after: tuple[WordVectors, WordVectors],
) -> str:
    """The page of results: one file, nothing from outside."""
    pairs, colours = drawn_pairs(test)
    maps = []
    for title, sides in (("Before alignment", before), ("After alignment", after)):
        points = [
            side.vectors[side.rows(list(words))]
            for side, words in zip(sides, zip(*pairs, strict=True), strict=True)
        ]
        drawn = panel(title, pairs, colours, points[0], points[1], _TEXT_SIZE)
        box = f'viewBox="0 0 {PANEL_WIDTH} {PANEL_HEIGHT}" font-size="{_TEXT_SIZE}"'
        maps.append(f'<svg {box} role="img" aria-label="{title}">{drawn}</svg>')
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
<p>● English, □ <i>Finnish</i>. A line joins a word and its translation in the test dictionary; bilex learned
from none of these pairs.</p>
<div class="maps">{"".join(maps)}</div>
<h2>Share of test words with a right translation</h2>
<p>P@1: the first answer is right. P@5: one of the first five is. CSLS is the default search.</p>
<div class="wide"><table><tr>{"".join(f"<th>{escape(cell)}" for cell in _HEADINGS)}
{"".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in scores)}</table></div>
<h2>{len(entries)} entries</h2>
<p>Frequent words of four letters and more that are not seeds, in pairs in which each word is the
other's first answer. The confidence is the probability that the pair is right, learned on held-out seeds.</p>
<div class="entries"><table><tr><th>English<th>Finnish<th>confidence{listed}</table></div>
</html>
"""
