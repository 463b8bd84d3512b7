"""Figures: what they show is what the results say, and the same results give the same bytes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from bilex import BilexError
from bilex.cli import BAD_INPUT, OK, run
from bilex_bench.figures import FIGURES, Drawing, draw_figures
from bilex_bench.figures.charts import Point, front
from bilex_bench.figures.drawing import PlotData
from bilex_bench.figures.tsne import pair_metrics, projected
from bilex_bench.results import DIRECTIONS, Result, Setup, WordSample
from bilex_bench.store import ResultsStore
from fabricated import LAMBDAS, fabricated, fabricated_results

pytestmark = pytest.mark.usefixtures("quick_projection")
PAIRS = ("en-fi", "fi-ru")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return fabricated_results(PAIRS, words=60, lambdas=LAMBDAS, samples=("en-fi",), failed=True)


@pytest.fixture(scope="module")
def few_results() -> list[Result]:
    return fabricated_results(("en-fi",), ("5k",), words=40, lambdas=(0.0, 0.2, 1.0), samples=("en-fi",))


@pytest.fixture(scope="module")
def drawings(results: list[Result], quick_projection: None) -> list[Drawing]:
    return draw_figures(results)


def of_kind(drawings: Sequence[Drawing], kind: str) -> list[Drawing]:
    return [drawing for drawing in drawings if drawing.kind == kind]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_every_kind_is_drawn_once_for_what_there_is(drawings: list[Drawing]) -> None:
    assert {drawing.kind for drawing in drawings} == set(FIGURES)
    names = [drawing.name for drawing in drawings]
    assert len(set(names)) == len(names)
    assert len(of_kind(drawings, "heat-map")) == 2, "one a seed size"
    assert len(of_kind(drawings, "lambda")) == 2
    assert len(of_kind(drawings, "frequency")) == len(of_kind(drawings, "time")) == 1
    assert [drawing.name for drawing in of_kind(drawings, "tsne")] == [
        "tsne-xling-5k-en-fi",
        "tsne-xling-1k-en-fi",
    ]


def test_the_same_results_give_the_same_bytes_without_date_or_program(few_results: list[Result]) -> None:
    drawn = draw_figures(few_results)
    assert {drawing.kind for drawing in drawn} == set(FIGURES)
    for first, second in zip(drawn, draw_figures(few_results), strict=True):
        assert first.marks == second.marks
        svg = first.svg()
        assert svg == second.svg()
        ElementTree.fromstring(svg)
        assert "<dc:date>" not in svg
        if first.kind in ("time", "tsne"):
            png = first.png()
            assert png == second.png()
            assert png.startswith(b"\x89PNG")
            assert b"tEXt" not in png


def test_lambda_curves_are_the_scores_of_the_results(results: list[Result], drawings: list[Drawing]) -> None:
    (drawing,) = (d for d in of_kind(drawings, "lambda") if "5k" in d.name)
    panels = [axes for axes in drawing.figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == list(PAIRS)
    for axes, pair in zip(panels, PAIRS, strict=True):
        here = [r for r in results if (r.setup.pair, r.setup.seeds) == (pair, "5k") and r.status == "done"]
        curves, levels, chosen = [], [], []
        for line in axes.get_lines():
            points = np.array(line.get_xydata(), dtype=np.float64)
            if len(points) == len(LAMBDAS):
                curves.append(points)
            elif line.get_marker() == "D":
                chosen.append(points[0])
            else:
                levels.append(points[0, 1])
        expected = [(way, retrieval) for way in DIRECTIONS for retrieval in ("csls", "nn")]
        (aligner,) = (r for r in here if r.setup.method == "c1" and r.setup.lm is None)
        (auto,) = (r for r in here if r.setup.mixing == "auto")
        swept = {r.setup.mixing: r for r in here if isinstance(r.setup.mixing, float)}
        for number, (way, retrieval) in enumerate(expected):
            scores = [100 * swept[mixing].metric(way, retrieval) for mixing in LAMBDAS]
            np.testing.assert_allclose(curves[number], np.column_stack([LAMBDAS, scores]))
            assert levels[number] == pytest.approx(100 * aligner.metric(way, retrieval))
            np.testing.assert_allclose(chosen[number], [0.3, 100 * auto.metric(way, retrieval)])


def test_a_sweep_alone_has_curves_and_nothing_to_compare() -> None:
    place = {"dataset": "xling", "pair": "en-fi", "seeds": "5k", "method": "c1", "lm": "e5-small-q4"}
    sweep = [fabricated(Setup(**place, mixing=mixing), 30) for mixing in (0.0, 0.3, 0.5, 0.8, 1.0)]
    assert [drawing.kind for drawing in draw_figures(sweep)] == ["lambda"]


def test_data_sets_of_nearly_the_same_name_have_figures_of_their_own() -> None:
    setups = [
        Setup(dataset=name, pair="en-fi", seeds="5k", method=method)
        for name in ("my data", "my-data", "данные")
        for method in ("c1", "rcsls")
    ]
    names = [drawing.name for drawing in draw_figures([fabricated(s, 20) for s in setups], ["heat-map"])]
    assert names == ["heat-map-my-data-5k", "heat-map-my-data-5k-2", "heat-map-данные-5k"]


def test_too_few_lambdas_make_no_curve() -> None:
    assert not draw_figures(fabricated_results(("en-fi",), ("5k",), words=20), ["lambda"])


def test_heat_map_shows_every_score_and_its_mean(results: list[Result], drawings: list[Drawing]) -> None:
    (drawing,) = (d for d in of_kind(drawings, "heat-map") if d.name.endswith("1k"))
    (axes,) = drawing.figure.axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert "LNMap" not in names, "it failed"
    assert names[-2:] == ["C2 (C1), λ = 0.2", "C2 (C1), λ auto"], "other λ are points of a curve"
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["en→fi", "fi→en", "fi→ru", "ru→fi", "mean"]
    by_place = {(r.setup.label, r.setup.pair): r for r in results if r.setup.seeds == "1k"}
    expected = []
    for pair in PAIRS:
        for way in DIRECTIONS:
            expected.append([100 * by_place[name, pair].metric(way, "csls") for name in names])
    expected.append(list(np.mean(expected, axis=0)))
    assert texts(drawing.figure) == [f"{score:.1f}" for row in expected for score in row]
    bold = [text.get_fontweight() == "bold" for text in axes.texts]
    assert bold == [score == max(row) for row in expected for score in row]


def test_frequency_counts_words_not_pairs(results: list[Result], drawings: list[Drawing]) -> None:
    (drawing,) = of_kind(drawings, "frequency")
    axes = drawing.figure.axes[0]
    (line,) = (line for line in axes.get_lines() if line.get_label() == "RCSLS")
    hits: dict[str, list[bool]] = {}
    for result in results:
        if result.setup.seeds == "5k" and result.setup.method == "rcsls":
            for predictions in result.predictions.values():
                for prediction in predictions:
                    hits.setdefault(prediction.band, []).append(prediction.ranks["csls"] == 1)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    for label, score in zip(labels, line.get_ydata(), strict=True):
        band, count = label.replace("–", "-").split("\nn = ")
        assert int(count) == len(hits[band])
        assert score == pytest.approx(100 * np.mean(hits[band]))


def test_methods_run_on_fewer_pairs_are_left_out_of_means(results: list[Result]) -> None:
    fewer = [r for r in results if not (r.setup.method == "fipp" and r.setup.pair == "fi-ru")]
    for drawing in draw_figures(fewer, ["frequency", "time"]):
        assert "FIPP (1 of 2 pairs)" in drawing.caption
        legend = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
        assert "RCSLS" in legend
        assert "FIPP" not in legend
    (heat, _) = draw_figures(fewer, ["heat-map"])
    assert texts(heat.figure).count("–") == 3, "both directions of the pair, and no mean"


def test_time_is_all_but_scoring(drawings: list[Drawing]) -> None:
    (drawing,) = of_kind(drawings, "time")
    caught = {mark.text.rsplit(" in ", 1)[0].split(",")[0]: mark.text for mark in drawing.marks}
    assert caught["RCSLS"].endswith("in 90.0 s"), "1k is drawn last: 1.5 times 60 s, without 3.5 s of scoring"
    assert caught["C1"].endswith("in 10.5 min")


def test_the_front_is_what_nobody_beats_in_both() -> None:
    rng = np.random.default_rng(5)
    points = [Point(str(i), *rng.integers(1, 12, 2).astype(float)) for i in range(60)]
    beaten = {
        a
        for a in points
        for b in points
        if (b.seconds <= a.seconds and b.score >= a.score and (b.seconds, b.score) != (a.seconds, a.score))
    }
    best = {(p.seconds, p.score) for p in points if p not in beaten}
    found = front(points)
    assert {(p.seconds, p.score) for p in found} == best
    assert found == sorted(found, key=lambda p: p.seconds)


def test_a_projection_is_the_same_on_every_run_and_brings_pairs_together(few_results: list[Result]) -> None:
    (samples,) = (r.samples for r in few_results if r.samples)
    apart = {}
    for name in ("static", "aligned"):
        places = projected(samples[name])
        half = len(places) // 2
        apart[name] = np.median(np.linalg.norm(places[:half] - places[half:], axis=1)) / places.std()
    assert apart["aligned"] < apart["static"] / 5
    np.testing.assert_array_equal(places, projected(samples["aligned"]))


def test_pair_metrics_of_spaces_that_are_known() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(40, 12)).astype(np.float32)
    words = tuple(f"w{i}" for i in range(40))
    assert pair_metrics(WordSample(words, words, rows, rows)) == (pytest.approx(1), 1)
    shifted = pair_metrics(WordSample(words, words, rows, np.roll(rows, 1, axis=0)))
    assert shifted[1] == 0
    assert abs(shifted[0]) < 0.3


def test_tsne_shows_alignment_with_and_without_contrast(few_results: list[Result]) -> None:
    (rich,) = (r for r in few_results if r.samples)
    aligned = {name: rich.samples[name] for name in ("static", "aligned")}
    plain = Setup(dataset="xling", pair="en-fi", seeds="5k", method="c1", settings={"contrastive": False})
    ablation = fabricated(replace(plain, label="C1 w/o CL"), 20, aligned)
    (drawing,) = draw_figures([ablation, *few_results], ["tsne"])
    titles = [axes.get_title(loc="left").strip() for axes in drawing.figure.axes]
    assert len(titles) == 6
    assert titles[:3] == [
        "Static vectors as they come",
        "Aligned without contrast",
        "Static vectors, aligned",
    ]
    c1 = fabricated(replace(plain, settings={}, label="C1"), 20, aligned)
    (drawing,) = draw_figures([ablation, c1], ["tsne"])
    assert "as C1 has them" in drawing.caption, "not as its ablation has them"


def test_one_experiment_under_two_names_is_drawn_once(results: list[Result]) -> None:
    again = [
        replace(r, setup=replace(r.setup, label="C1 once more")) for r in results if r.setup.label == "C1"
    ]
    fewer = PlotData.of([*again[:1], *results]).styles
    assert "C1" in fewer, "the commoner name stays"
    assert "C1 once more" not in fewer
    as_many = PlotData.of([*again[:1], *results, *again[1:]]).styles
    assert len({"C1", "C1 once more"} & set(as_many)) == 1, "and never a bit of both"


def test_names_with_signs_of_mathematics_and_markup_are_drawn_as_they_are() -> None:
    name = "a$x^2$ <b>&"
    two = [
        fabricated(Setup(dataset="d$", pair="en-fi", seeds="5k", method=method, label=label), 30)
        for method, label in (("c1", name), ("rcsls", "R$"))
    ]
    for drawing in draw_figures(two, ["heat-map", "frequency", "time"]):
        found = "".join(ElementTree.fromstring(drawing.svg()).itertext())
        assert name in found


@pytest.mark.parametrize(("library", "kind"), [("matplotlib", "time"), ("sklearn.manifold", "tsne")])
def test_a_missing_library_is_one_sentence(
    results: list[Result], monkeypatch: pytest.MonkeyPatch, library: str, kind: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr("bilex_bench.figures.tsne.projected", projected)
    with pytest.raises(BilexError, match=r"pip install 'bilex-bench\[report\]'"):
        draw_figures(results, [kind])


@pytest.fixture
def results_file(tmp_path: Path) -> Path:
    path = tmp_path / "results.sqlite"
    with ResultsStore.open(path) as store:
        for result in fabricated_results(("en-fi",), ("5k",), words=30):
            store.add(result)
    return path


def test_the_command_writes_files(
    results_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "figures"
    arguments = ["benchmark", "figures", str(results_file), "-o", str(folder)]
    assert run([*arguments, "--figure", "time", "--figure", "heat-map"]) == OK
    assert sorted(path.name for path in folder.iterdir()) == [
        "heat-map-xling-5k.png",
        "heat-map-xling-5k.svg",
        "time-xling.png",
        "time-xling.svg",
    ]
    assert "time-xling.svg: Time against accuracy: xling" in capsys.readouterr().out
    written = (folder / "time-xling.svg").read_bytes()
    assert run([*arguments, "--figure", "time", "--format", "svg"]) == OK
    assert (folder / "time-xling.svg").read_bytes() == written


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--figure", "tsne"], "holds nothing that tsne could show"),
        (["--figure", "heatmap"], "heatmap"),
    ],
)
def test_the_command_says_what_is_wrong(
    results_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], sentence: str
) -> None:
    assert run(["benchmark", "figures", str(results_file), "-o", str(tmp_path / "f"), *more]) == BAD_INPUT
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


def test_the_commands_kinds_are_all_kinds() -> None:
    from bilex_bench.cli.benchmark import _FIGURES

    assert set(_FIGURES) == set(FIGURES)
