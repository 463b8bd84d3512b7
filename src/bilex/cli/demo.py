"""`bilex demo`: everything once, on the sample that the package carries, and a page of results."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import bilex
from bilex.cli import options as opt
from bilex.cli.console import answers_table, progress, show, show_confidences
from bilex.core.errors import BilexError
from bilex.core.files import write_text
from bilex.core.tables import table
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from bilex.evaluation import Evaluation
    from bilex.lexicon import Entry

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
MAP_WIDTH, MAP_HEIGHT, _MARGIN = 560, 520, 46
_ANY_PAIRS, _TEXT_SIZE, _TOP = 30, 15, 34


@opt.as_command(
    "bilex demo",
    "bilex demo --output /tmp/demo --method procrustes",
    "bilex demo --lm e5-small-q4        (both stages, as 'make demo' does)",
)
def command(
    *,
    output: str = "demo-output",
    method: opt.Completed = DEFAULT_METHOD,
    lm: str | None = None,
    device: opt.Device = "auto",
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
    listener.log(
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
    aligned = translator.space.source, translator.space.target
    spaces = {"Before alignment": (english, finnish), "After alignment": aligned}
    write_text(written[2], _page(name, scores, new[:_LISTED_ENTRIES], test, spaces))
    show(table(_HEADINGS, scores, "Share of test words with a right translation", left=3))
    unlike = [found.source for found in result.forward.predictions if not found.identical]
    words = unlike[:: max(1, len(unlike) // _SHOWN_WORDS)][:_SHOWN_WORDS]
    title = "Words of the test dictionary, none of them a seed"
    show(answers_table(translator.translate(words, 3), translator.languages, title))
    show_confidences(translator)
    show(f"Wrote {model}, {written[0]} and {written[1]} in {time.monotonic() - started:.0f} s.")
    show(f"Look at the results in a browser: {written[2]}")
    translate = f"bilex translate {shlex.quote(str(model))} friend river"
    show("\n  ".join(["Next:", *_activation(), translate, "bilex init    (prompts for your own files)"]))


def _quick_settings(method: str) -> dict[str, Any]:
    """Settings with which a method shows itself in a minute."""
    if method != "c1":
        return {}
    # After 40 of the paper's updates the loss on the sample has settled; 20 that are twice as long go as far.
    return {"preset": "paper", "updates": 20, "learning_rate": 3.0, "decay": 0.99**2}


def _activation() -> list[str]:
    """The command that activates the virtual environment of this Python, where the shell does not find it."""
    here = Path(sys.prefix)
    found = shutil.which("bilex")
    if sys.prefix == sys.base_prefix or (found and Path(found).resolve().is_relative_to(here.resolve())):
        return []
    short = Path(os.path.relpath(here)) if here.is_relative_to(Path.cwd()) else here
    return [f"{short}\\Scripts\\activate" if os.name == "nt" else f". {shlex.quote(str(short))}/bin/activate"]


def _scores(name: str, result: Evaluation) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for direction, found in (("English to Finnish", result.forward), ("Finnish to English", result.backward)):
        for search, metrics in (("nn", found.nn), ("csls", found.csls)):
            low, high = found.intervals[search]["p@1"]
            shares = f"{metrics.p_at_1:.1%}", f"{low:.1%}–{high:.1%}", f"{metrics.p_at_5:.1%}"
            rows.append((name, direction, search.upper(), *shares, str(found.covered)))
    return rows


def drawn_pairs(test: bilex.Lexicon) -> dict[tuple[str, str], str]:
    """The pairs to draw, each with the colour of its topic; other pairs where there are none."""
    known = set(test.pairs)
    topics = {
        (source, target): colour
        for pairs, colour in zip(TOPICS.values(), COLOURS, strict=True)
        for source, target in (pair.split() for pair in pairs.split(", "))
        if (source, target) in known
    }
    return topics or dict.fromkeys(test.pairs[:_ANY_PAIRS], COLOURS[0])


def word_map(title: str, pairs: Mapping[tuple[str, str], str], source: Any, target: Any, size: int) -> str:
    """The rows of pairs as SVG: a line per pair, a mark and a label in letters of some size per word.

    The axes are the first two principal components of the points, both languages together. Nothing about
    the pairs or the topics goes into the projection.
    """
    import numpy as np

    rows = np.concatenate([source, target]).astype(np.float64)
    centred = rows - rows.mean(0)
    flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    low, high = flat.min(0), flat.max(0)
    extent = np.array([MAP_WIDTH - 2 * _MARGIN - 40, MAP_HEIGHT - 2 * _MARGIN])
    places = ((flat - low) / np.maximum(high - low, 1e-9) * extent + _MARGIN).tolist()
    cosine = float((source * target).sum(1).mean())
    parts = [
        f'<rect width="{MAP_WIDTH}" height="{MAP_HEIGHT}" rx="8" fill="#ffffff" stroke="#cbd5e1"/>',
        f'<text x="16" y="26" font-size="{size + 3}" font-weight="600" fill="#0f172a">'
        f"{escape(title)}: mean cosine of a pair {cosine:.2f}</text>",
    ]
    ends = zip(places[: len(pairs)], places[len(pairs) :], pairs.values(), strict=True)
    for (x, y), (other_x, other_y), colour in ends:
        line = f'x1="{x:.1f}" y1="{y:.1f}" x2="{other_x:.1f}" y2="{other_y:.1f}"'
        square = f'x="{other_x - 3:.1f}" y="{other_y - 3:.1f}" width="6" height="6"'
        parts += [
            f'<line {line} stroke="{colour}" stroke-width="1" stroke-opacity="0.35"/>',
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{colour}"/>',
            f'<rect {square} fill="#ffffff" stroke="{colour}" stroke-width="1.4"/>',
        ]
    taken = [(0, 0, MAP_WIDTH, _TOP), *((x - 4, y - 4, x + 4, y + 4) for x, y in places)]
    words = [*((pair[0], "") for pair in pairs), *((pair[1], ' font-style="italic"') for pair in pairs)]
    for (word, style), (x, y), colour in zip(words, places, [*pairs.values()] * 2, strict=True):
        place = _free_place(x, y, 0.56 * size * len(word), size, taken)
        if place is not None:
            where = f'x="{place[0]:.1f}" y="{place[1]:.1f}"'
            parts.append(f'<text {where} fill="{colour}"{style}>{escape(word)}</text>')
    return "\n".join(parts)


def _free_place(
    x: float, y: float, width: float, size: int, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float] | None:
    """Where a label beside a mark covers none of the boxes that are taken; its own is added to them."""
    for left, base in (
        (x + 6, y + 4),
        (x - 6 - width, y + 4),
        (x - width / 2, y - 7),
        (x - width / 2, y + size),
    ):
        box = left, base - 0.7 * size, left + width, base
        covers = any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken)
        if not covers and left > 4 and left + width < MAP_WIDTH - 4:
            taken.append(box)
            return left, base
    return None


def _page(
    name: str,
    scores: Sequence[Sequence[str]],
    entries: Sequence[Entry],
    test: bilex.Lexicon,
    spaces: Mapping[str, tuple[bilex.WordVectors, bilex.WordVectors]],
) -> str:
    """The page of results: one file, nothing from outside."""
    pairs = drawn_pairs(test)
    maps = []
    for title, sides in spaces.items():
        words = zip(sides, zip(*pairs, strict=True), strict=True)
        source, target = (side.vectors[side.rows(list(drawn))] for side, drawn in words)
        box = f'viewBox="0 0 {MAP_WIDTH} {MAP_HEIGHT}" font-size="{_TEXT_SIZE}"'
        drawing = word_map(title, pairs, source, target, _TEXT_SIZE)
        maps.append(f'<svg {box} role="img" aria-label="{title}">{drawing}</svg>')
    heads = "".join(f"<th>{escape(cell)}" for cell in _HEADINGS)
    rows = ["".join(f"<td>{escape(cell)}" for cell in row) for row in scores]
    listed = (
        f"<tr><td>{escape(entry.source)}<td>{escape(entry.target)}"
        f'<td style="--c:{entry.confidence or 0:.0%}">{entry.confidence or 0:.0%}'
        for entry in entries
    )
    template = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    return Template(template).substitute(
        name=escape(name),
        maps="".join(maps),
        scores="<tr>".join(["", heads, *rows]),
        count=len(entries),
        entries="".join(listed),
    )
