"""Test words of two languages in the plane, before and after: t-SNE of what the methods made of them.

Each panel is projected by itself, both languages together, from unit vectors. Nothing about which words
belong together goes into the projection; the links are drawn afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.progress import SILENT, Progress
from bilex_bench.figures.board import MUTED, SOURCE, TARGET, Board
from bilex_bench.figures.drawing import Described, Drawing, finished, missing_extra, new_figure
from bilex_bench.results import Result, WordSample
from bilex_bench.tables.sheet import Sheet, is_ablation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

KIND = "tsne"
Floats = npt.NDArray[np.float64]
# By name of the sample: the heading of its panel, in the order of reading.
_PANELS = {
    "static": "Static vectors as they come",
    "without-cl": "Aligned without contrast",
    "aligned": "Static vectors, aligned",
    "lm": "Language model as it comes",
    "lm-tuned": "Language model, tuned",
    "combined": "Both combined",
}
_COLUMNS, _PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT = 3, 3.6, 3.5, 0.35
_MOST_PAIRS = 200
_PERPLEXITY = 30


class _Shown(NamedTuple):
    """What one figure is about."""

    method: str
    result: Result
    samples: dict[str, WordSample]


def draw(board: Board, progress: Progress = SILENT) -> list[Drawing]:
    """One figure for each pair and seed size for which vectors were kept."""
    chosen = [
        shown
        for sheet in board.sheets
        for pair in sheet.pairs
        for seeds in sheet.seeds
        if (shown := _richest(sheet, pair, seeds)) is not None
    ]
    drawings = []
    with progress.task("t-SNE", sum(len(shown.samples) for shown in chosen)) as task:
        for shown in chosen:
            flat = {}
            for name, whole in shown.samples.items():
                sample = _thinned(whole)
                flat[name] = (sample, projected(sample))
                task.advance()
            drawings.append(_drawing(shown, flat))
    return drawings


def _richest(sheet: Sheet, pair: str, seeds: str) -> _Shown | None:
    """The result with the most samples, C1 and λ = auto before others, ablations last; None without samples.

    As in the paper, what C1 aligns without contrastive learning stands beside what it aligns with it.
    """

    def worth(named: tuple[str, Result]) -> tuple[int, bool, bool, bool]:
        setup, samples = named[1].setup, named[1].samples
        return len(samples), not is_ablation(setup), setup.method == "c1", setup.mixing == "auto"

    here = [(m.name, r) for m in sheet.methods for r in m.runs.get((pair, seeds), ()) if r.samples]
    if not here:
        return None
    method, result = max(here, key=worth)
    samples = dict(result.samples)
    for _, other in here:
        without = other.setup.method == "c1" and other.setup.settings.get("contrastive") is False
        if without and result.setup.method == "c1" and other is not result and "aligned" in other.samples:
            samples["without-cl"] = other.samples["aligned"]
    return _Shown(method, result, {name: samples[name] for name in _PANELS if name in samples})


def joint_rows(sample: WordSample) -> Floats:
    """Unit rows of the source words, then of the target words, in one space.

    Vectors of different length (two languages before alignment) are filled up with zeros. That changes no
    distance within a language; distances between the languages mean nothing there, filled up or not.
    """
    width = max(sample.source.shape[1], sample.target.shape[1])
    rows = np.concatenate(
        [
            np.pad(side.astype(np.float64), ((0, 0), (0, width - side.shape[1])))
            for side in (sample.source, sample.target)
        ]
    )
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0, 1, norms))


def projected(sample: WordSample) -> Floats:
    """Places in the plane for the source words, then the target words; the same on every run."""
    try:
        from sklearn.manifold import TSNE  # type: ignore[import-untyped]
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_extra("scikit-learn") from error
    rows = joint_rows(sample)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    with threadpool_limits(1):  # sums in another order would end in another picture
        return np.asarray(
            TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(rows), np.float64
        )


def pair_figures(sample: WordSample) -> tuple[float, float]:
    """The mean cosine of a pair, and how often the nearest shown target word is the translation."""
    rows = joint_rows(sample)
    half = len(sample.source_words)
    cosines = rows[:half] @ rows[half:].T
    golds: dict[str, set[str]] = {}
    for source, target in zip(sample.source_words, sample.target_words, strict=True):
        golds.setdefault(source, set()).add(target)
    nearest = cosines.argmax(1)
    right = [
        sample.target_words[place] in golds[word]
        for word, place in zip(sample.source_words, nearest, strict=True)
    ]
    return float(np.diag(cosines).mean()), float(np.mean(right))


def _thinned(sample: WordSample) -> WordSample:
    """At most so many pairs as can be seen, taken evenly."""
    count = len(sample.source_words)
    if count <= _MOST_PAIRS:
        return sample
    kept = np.linspace(0, count - 1, _MOST_PAIRS).round().astype(int)
    return WordSample(
        tuple(sample.source_words[i] for i in kept),
        tuple(sample.target_words[i] for i in kept),
        sample.source[kept],
        sample.target[kept],
    )


def _drawing(about: _Shown, flat: dict[str, tuple[WordSample, Floats]]) -> Drawing:
    setup = about.result.setup
    columns = min(_COLUMNS, len(flat))
    rows = -(-len(flat) // columns)
    figure = new_figure(max(columns, 1.7) * _PANEL_WIDTH, rows * _PANEL_HEIGHT + _LEGEND_HEIGHT)
    grid = figure.subplots(rows, columns, squeeze=False)
    panels = list(zip(grid.flat, flat.items(), strict=False))
    for axes, (name, (sample, places)) in panels:
        cosine, right = pair_figures(sample)
        axes.set_title(f"{_PANELS[name]}\n", fontsize=9.5)
        axes.text(
            0, 1.015, f"cosine of a pair {cosine:.2f}, nearest is right {right:.0%}",
            transform=axes.transAxes, fontsize=8, color=MUTED,
        )  # fmt: skip
        _panel(axes, places)
    for empty in grid.flat[len(flat) :]:
        empty.set_visible(False)
    figure.legend(handles=_legend(*setup.languages), loc="outside upper left", ncols=3)
    shown = len(next(iter(flat.values()))[0].source_words)
    return finished(
        figure,
        [(axes, _described(sample, places)) for axes, (_, (sample, places)) in panels],
        kind=KIND,
        name=(setup.dataset, setup.seeds, setup.pair),
        title=f"Words of {setup.pair} before and after: {setup.dataset}, {setup.seeds} seeds",
        caption=f"t-SNE of {shown} pairs of test words as {about.method} has them. "
        "Each panel is projected by itself, and only nearness within it means something. Above it, "
        "measured in the space and not in the picture: the mean cosine of a word and its translation, and "
        "how often the nearest of the shown words is the translation. Before alignment the axes of the two "
        "languages have nothing to do with each other.",
    )


def _panel(axes: Axes, places: Floats) -> None:
    half = len(places) // 2
    gaps = np.full((half, 2), np.nan)
    links = np.stack([places[:half], places[half:], gaps], axis=1).reshape(-1, 2)
    axes.plot(*links.T, color=MUTED, lw=0.5, alpha=0.45, zorder=1)
    common: dict[str, Any] = {"ls": "", "alpha": 0.9, "zorder": 2}
    axes.plot(*places[:half].T, marker="o", ms=3, mfc=SOURCE, mec="none", **common)
    axes.plot(*places[half:].T, marker="s", ms=2.7, mfc="none", mec=TARGET, mew=0.9, **common)
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.set_aspect("equal", adjustable="datalim")


def _described(sample: WordSample, places: Floats) -> list[Described]:
    words = list(zip(sample.source_words, sample.target_words, strict=True))
    return [
        (float(x), float(y), f"{source} – {target}")
        for (source, target), (x, y) in zip([*words, *words], places, strict=True)
    ]


def _legend(source: str, target: str) -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], ls="", marker="o", mfc=SOURCE, mec="none", ms=6, label=source),
        Line2D([], [], ls="", marker="s", mfc="none", mec=TARGET, mew=1.4, ms=5.5, label=target),
        Line2D([], [], color=MUTED, lw=0.8, label="a word and its translation"),
    ]
