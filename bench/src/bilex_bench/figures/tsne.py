"""t-SNE of test words of two languages, before and after alignment.

Each panel is projected separately, both languages together, from unit vectors. The projection does not know
which words belong together; the links are drawn afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import optional_library
from bilex.core.progress import SILENT, Progress
from bilex_bench.figures.drawing import MUTED, SOURCE, TARGET, Drawing, PlotData, finished, new_figure
from bilex_bench.results import Result, WordSample
from bilex_bench.tables.sheet import Sheet, is_ablation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KIND = "tsne"
Floats = npt.NDArray[np.float64]
# By name of the sample: the title of its panel, in the order of reading.
_PANELS = {
    "static": "Static vectors as they come",
    "without-cl": "Aligned without contrast",
    "aligned": "Static vectors, aligned",
    "lm": "Language model as it comes",
    "lm-tuned": "Language model, tuned",
    "combined": "Both combined",
}
_COLUMNS, _MOST_PAIRS, _PERPLEXITY = 3, 200, 30


def draw(data: PlotData, progress: Progress = SILENT) -> Iterator[Drawing]:
    """One plot for each pair and seed size for which vectors were kept."""
    places = [(sheet, pair, seeds) for sheet in data.sheets for pair in sheet.pairs for seeds in sheet.seeds]
    chosen = [shown for place in places if (shown := _richest(*place)) is not None]
    with progress.task("t-SNE", sum(len(samples) for _, _, samples in chosen)) as task:
        for name, result, samples in chosen:
            projections = {}
            for panel, sample in samples.items():
                projections[panel] = projected(sample)
                task.advance()
            yield _drawing(name, result, samples, projections)


def _richest(sheet: Sheet, pair: str, seeds: str) -> tuple[str, Result, dict[str, WordSample]] | None:
    """The method with the most samples, C1 and λ = auto before others, ablations last; its result, samples.

    As in the paper, what C1 aligns without contrastive learning is beside what it aligns with it.
    """

    def rank(named: tuple[str, Result]) -> tuple[int, bool, bool, bool]:
        setup, samples = named[1].setup, named[1].samples
        return len(samples), not is_ablation(setup), setup.method == "c1", setup.mixing == "auto"

    here = [(m.name, r) for m in sheet.methods for r in m.runs.get((pair, seeds), ()) if r.samples]
    if not here:
        return None
    name, result = max(here, key=rank)
    samples = dict(result.samples)
    for _, other in here:
        without = other.setup.method == "c1" and other.setup.settings.get("contrastive") is False
        if without and result.setup.method == "c1" and other is not result and "aligned" in other.samples:
            samples["without-cl"] = other.samples["aligned"]
    return name, result, {panel: _thinned(samples[panel]) for panel in _PANELS if panel in samples}


def _thinned(sample: WordSample) -> WordSample:
    """At most 200 pairs, taken evenly."""
    count = len(sample.source_words)
    kept = np.linspace(0, count - 1, min(count, _MOST_PAIRS)).round().astype(int)
    return WordSample(
        tuple(sample.source_words[i] for i in kept),
        tuple(sample.target_words[i] for i in kept),
        sample.source[kept],
        sample.target[kept],
    )


def joint_rows(sample: WordSample) -> Floats:
    """Unit rows of the source words, then of the target words, in one space.

    Vectors of different length (two languages before alignment) are padded with zeros. That changes no
    distance within a language; distances between the languages mean nothing there anyway.
    """
    width = max(sample.source.shape[1], sample.target.shape[1])
    sides = (sample.source.astype(np.float64), sample.target.astype(np.float64))
    rows = np.concatenate([np.pad(side, ((0, 0), (0, width - side.shape[1]))) for side in sides])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0, 1, norms))


def projected(sample: WordSample) -> Floats:
    """Places in the plane for the source words, then the target words; the same on every run."""
    with optional_library("a t-SNE plot", "bilex-bench[report]"):
        from sklearn.manifold import TSNE  # type: ignore[import-untyped]
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    rows = joint_rows(sample)
    tsne = TSNE(perplexity=min(_PERPLEXITY, (len(rows) - 1) / 3), init="pca", random_state=0)
    with threadpool_limits(1):  # sums in another order would end in another picture
        return np.asarray(tsne.fit_transform(rows), np.float64)


def pair_metrics(sample: WordSample) -> tuple[float, float]:
    """The mean cosine of a pair, and how often the nearest shown target word is the translation."""
    rows = joint_rows(sample)
    half = len(sample.source_words)
    cosines = rows[:half] @ rows[half:].T
    pairs = set(zip(sample.source_words, sample.target_words, strict=True))
    nearest = [sample.target_words[place] for place in cosines.argmax(1)]
    right = [pair in pairs for pair in zip(sample.source_words, nearest, strict=True)]
    return float(np.diag(cosines).mean()), float(np.mean(right))


def _drawing(
    method: str, result: Result, samples: dict[str, WordSample], projections: dict[str, Floats]
) -> Drawing:
    from matplotlib.lines import Line2D

    setup = result.setup
    columns = min(_COLUMNS, len(samples))
    rows = -(-len(samples) // columns)
    figure = new_figure(max(columns, 1.7) * 3.6, rows * 3.5 + 0.35)
    grid = figure.subplots(rows, columns, squeeze=False)
    panels = []
    for axes, (name, sample) in zip(grid.flat, samples.items(), strict=False):
        cosine, right = pair_metrics(sample)
        text = f"cosine of a pair {cosine:.2f}, nearest is right {right:.0%}"
        axes.set_title(f"{_PANELS[name]}\n", fontsize=9.5)
        axes.text(0, 1.015, text, transform=axes.transAxes, fontsize=8, color=MUTED)
        _panel(axes, projections[name])
        words = 2 * [f"{s} – {t}" for s, t in zip(sample.source_words, sample.target_words, strict=True)]
        places = projections[name].tolist()
        panels.append((axes, [(x, y, word) for (x, y), word in zip(places, words, strict=True)]))
    for empty in grid.flat[len(samples) :]:
        empty.set_visible(False)
    source, target = setup.languages
    handles = [
        Line2D([], [], ls="", marker="o", mfc=SOURCE, mec="none", ms=6, label=source),
        Line2D([], [], ls="", marker="s", mfc="none", mec=TARGET, mew=1.4, ms=5.5, label=target),
        Line2D([], [], color=MUTED, lw=0.8, label="a word and its translation"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    shown = len(next(iter(samples.values())).source_words)
    return finished(
        figure,
        panels,
        kind=KIND,
        name=(setup.dataset, setup.seeds, setup.pair),
        title=f"Words of {setup.pair} before and after: {setup.dataset}, {setup.seeds} seeds",
        caption=f"t-SNE of {shown} pairs of test words as {method} has them. "
        "Each panel is projected separately, and only distances within it mean something. Above it, "
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
