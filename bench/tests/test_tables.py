"""Tables: their figures recounted from predictions, the formats read back, and what is left out of them."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from markdown_it import MarkdownIt

from bilex import BilexError
from bilex.cli import run
from bilex_bench.results import Result, Setup
from bilex_bench.store import ResultsStore
from bilex_bench.tables import TABLE_NAMES, Table, build_tables
from bilex_bench.tables.table import Cell, Metrics, Plain, best_marked, number, words
from fabricated import fabricated, fabricated_results

E5 = "e5-small-q4"
HARD = 'a|b_*c* <i>& &amp; 50% of $x$ #1 {y} ~z^2 \\ "q" [n] `code` λ→дом'


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return fabricated_results(words=60)


@pytest.fixture(scope="module")
def tables(results: list[Result]) -> dict[str, Table]:
    return {table.name: table for table in build_tables(results)}


def setup(**more: Any) -> Setup:
    return Setup(
        **{"dataset": "xling", "pair": "en-ru", "seeds": "5k", "method": "c1", "label": "C1", **more}
    )


def made(**more: Any) -> Result:
    return fabricated(setup(**more), words=40)


def cell(table: Table, column: str, *first: str) -> Cell:
    place = list(table.columns).index(column)
    (row,) = [r for r in table.rows if tuple(c.value for c in r[: len(first)]) == first]
    return row[place]


def figures(table: Table, column: str, *first: str) -> Metrics:
    found = cell(table, column, *first)
    assert isinstance(found, Metrics)
    return found


def recounted(results: list[Result], label: str, seeds: str, source: str | None, target: str | None) -> float:
    """P@1 by CSLS in every direction from and to a language, counted answer by answer."""
    found = []
    for result in results:
        if (result.setup.label, result.setup.seeds) != (label, seeds):
            continue
        pair = result.setup.pair.split("-")
        for way, (a, b) in {"forward": pair, "backward": pair[::-1]}.items():
            if source in (None, a) and target in (None, b):
                answers = [p.answers["csls"][0] in p.translations for p in result.predictions[way]]
                found.append(100 * sum(answers) / len(answers))
    return fmean(found)


def test_main_table_counts_what_the_predictions_say(results: list[Result], tables: dict[str, Table]) -> None:
    main = tables["main"]
    for label in ("Procrustes", "C1", "C2 (C1), λ auto"):
        for seeds in ("5k", "1k"):
            for row, source, target in (
                ("en→*", "en", None),
                ("*→fi", None, "fi"),
                ("mean", None, None),
            ):
                expected = recounted(results, label, seeds, source, target)
                assert figures(main, label, seeds, row).ours == {"": pytest.approx(expected)}


def test_reported_means_go_over_the_same_directions(tables: dict[str, Table]) -> None:
    text = (resources.files("bilex.data") / "reported_results.csv").read_text(encoding="utf-8")
    theirs = {
        r["direction"]: float(r["p1_csls"])
        for r in csv.DictReader(text.splitlines())
        if (r["table"], r["seeds"], r["method"]) == ("full", "1k", "C1")
    }
    expected = fmean(theirs[f"EN->{other}"] for other in ("FI", "FR", "RU"))
    assert figures(tables["main"], "C1", "1k", "en→*").reported == {"": pytest.approx(expected)}
    assert figures(tables["full-1k"], "C1", "fr→ru").reported["CSLS"] == theirs["FR->RU"]
    assert figures(tables["main"], "Procrustes", "1k", "en→*").reported == {}
    notes = " ".join(tables["main"].notes)
    assert "6 of XLING's 28 pairs" in notes and "fastText's Wikipedia vectors" in notes
    assert "with mBERT, ours with e5-small-q4" in notes


def test_a_column_with_some_reported_figures_shows_dashes_for_the_others(tables: dict[str, Table]) -> None:
    # The made-up VecMap is always the self-learning one, which the paper reports with 1k seeds only.
    assert figures(tables["main"], "VecMap", "5k", "mean").reported == {"": None}
    assert figures(tables["main"], "VecMap", "1k", "mean").reported[""] is not None


def test_the_best_of_a_row_is_marked(tables: dict[str, Table]) -> None:
    for row in tables["full-5k"].rows:
        for part in ("NN", "CSLS"):
            shown = [round(c.ours[part] or 0, 2) for c in row if isinstance(c, Metrics)]
            marked = [part in c.best for c in row if isinstance(c, Metrics)]
            assert marked == [value == max(shown) for value in shown]


def test_means_over_fewer_directions_say_so_and_are_never_best() -> None:
    results = [made(), made(pair="en-fi"), made(method="rcsls", label="RCSLS")]
    (main,) = build_tables(results, names=["main"])
    part = figures(main, "RCSLS", "5k", "mean")
    assert part.reported == {"": pytest.approx((49.40 + 48.66) / 2)}  # the paper's EN→RU and RU→EN
    assert part.share == (2, 4) and "[2/4]" in "".join(span.text for span in part.spans)
    row = [Metrics({"": 99.0}, share=(1, 2)), Metrics({"": 1.0}), Metrics({"": 2.0})]
    assert [cell.best for cell in best_marked(row)] == [set(), set(), {""}]
    assert any("missing" in note for note in main.notes)


def test_nothing_reported_beside_other_data() -> None:
    tables = build_tables([replace(r, setup=replace(r.setup, dataset="sample")) for r in [made()]])
    assert tables and "(" not in "".join(c["text"] for r in tables[0].as_dict()["rows"] for c in r)
    assert not any("reported" in note.lower() for note in tables[0].notes)


def test_every_table_is_there_for_the_papers_grids() -> None:
    results = []
    for pair in ("en-ru", "en-fi"):
        for seeds, vecmap in (("5k", "vecmap-semi"), ("1k", "vecmap-semi")):
            place = {"pair": pair, "seeds": seeds}
            results += [
                made(**place),
                made(**place, method=vecmap, label="VecMap"),
                made(**place, settings={"contrastive": False}, label="C1 w/o CL"),
                made(**place, lm=E5, mixing=0.2, label="C2 (C1)"),
                made(**place, lm=E5, mixing=1, tune=False, label="E5"),
                made(**place, lm="xlm-mlm-100-1280", mixing=0.2, label="C2 [XLM]"),
                made(**place, method=vecmap, lm=E5, mixing=0.2, label="C2 (VecMap)"),
                *(made(**place, lm=E5, mixing=m, label=f"C2 (C1), λ = {m}") for m in (0, 0.4, "auto")),
            ]
    panlex = {"dataset": "panlex", "pair": "bg-ca", "seeds": "1k"}
    results += [made(**panlex), made(**panlex, method="fipp", label="FIPP")]
    failed = Result(setup=setup(method="lnmap", label="LNMap"), status="failed", error="no memory.")
    names = [table.name for table in build_tables([*results, failed])]
    for name in TABLE_NAMES:
        expected = {"full": "full-1k", "panlex": "panlex"}.get(name, name)
        assert f"{expected}-{'panlex' if name == 'panlex' else 'xling'}" in names
    assert "main-panlex" not in names and "significance-by-direction-xling" in names


def test_c2_over_others_shows_each_aligner_beside_its_stage() -> None:
    results = [
        made(),
        made(lm=E5, mixing=0.2, label="C2 (C1)"),
        made(method="rcsls", label="RCSLS"),
        made(method="rcsls", lm=E5, mixing=0.2, label="C2 (RCSLS)"),
        made(pair="en-fi", lm=E5, mixing=0.2, label="C2 (C1)"),
        made(method="procrustes", label="Procrustes"),
    ]
    (table,) = build_tables(results, names=["c2-over-others"])
    assert list(table.columns)[2:] == ["RCSLS", "C2 (RCSLS)", "C1", "C2 (C1)"]
    assert [row[1].value for row in table.rows] == ["en→ru", "ru→en", "mean"]  # en-fi has one stage only


def test_names_of_tables_are_names_of_files_and_differ() -> None:
    results = []
    for lm in (E5, "xlm-mlm-100-1280"):
        results += [made(method=m, lm=lm, mixing=0.2, label=f"{m} {lm}") for m in ("c1", "rcsls")]
    odd = [replace(r, setup=replace(r.setup, seeds="my/seeds", dataset="../data: mine")) for r in results]
    names = [t.name for t in build_tables([*results, *odd], names=["c2-over-others", "full"])]
    assert names[:2] == ["c2-over-others-xling", "c2-over-others-xling-2"]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[\w.-]+", name) for name in names)


def test_directions_of_two_dictionaries_are_not_mixed_up() -> None:
    """PanLex has bg-ca and ca-bg with words of their own: bg→ca comes twice."""
    place = {"dataset": "panlex", "seeds": "1k"}
    results = [
        made(**place, pair=pair, method=method, label=method)
        for pair in ("bg-ca", "ca-bg")
        for method in ("c1", "fipp")
    ]
    pooled, single = build_tables(results, names=["significance"])
    expected = recounted(results, "fipp", "1k", None, None) - recounted(results, "c1", "1k", None, None)
    assert cell(pooled, "difference", "1k", "fipp").value == pytest.approx(expected, abs=1e-5)
    assert cell(pooled, "directions", "1k", "fipp").value == 4 and len(single.rows) == 4


def test_language_models_the_paper_alone_has_are_columns_too() -> None:
    results = [made(pair="fi-ru"), made(pair="fi-ru", lm=E5, mixing=0.2, label="C2 (C1)")]
    (table,) = build_tables(results, names=["lms"])
    assert list(table.columns)[2:] == ["C1", f"C2 [{E5}]", "C2 [mBERT]", "C2 [XLM]", "C2 [mT5]"]
    assert figures(table, "C2 [XLM]", "5k", "fi→ru") == Metrics({"": None}, {"": 37.94})
    assert not figures(table, "C2 [XLM]", "5k", "ru→fi").has_any


def test_lambda_table_orders_the_weights_and_tells_the_chosen_one() -> None:
    results = [made(lm=E5, mixing=m, label=f"λ {m}") for m in ("auto", 1, 0, 0.2)]
    (table,) = build_tables(results, names=["lambda"])
    assert list(table.columns)[2:] == ["λ = 0", "λ = 0.2", "λ = 1", "λ = auto"]
    assert any("auto chose λ from 0.3" in note for note in table.notes)


def test_one_lambda_under_two_labels_is_no_sweep() -> None:
    results = [
        made(lm=E5, mixing=0.2, pair=pair, label=label) for pair, label in (("en-fi", "A"), ("en-fr", "B"))
    ]
    assert build_tables(results, names=["lambda"]) == []


def test_sweeps_stay_out_of_the_other_tables() -> None:
    results = [made(), *(made(lm=E5, mixing=m, label=f"λ {m}") for m in (0, 0.2, 0.5, 0.8, "auto"))]
    (main,) = build_tables(results, names=["main"])
    assert list(main.columns)[2:] == ["C1", "λ 0.2", "λ auto"]


def test_one_label_for_several_things_is_kept_apart() -> None:
    results = [made(lm=E5, mixing=m, label="C2") for m in (0.2, "auto")] + [made()]
    (main,) = build_tables(results, names=["main"])
    assert list(main.columns)[2:] == ["C1", "C2 (λ = 0.2)", "C2 (λ = auto)"]


def test_one_label_may_name_another_method_for_other_seeds() -> None:
    results = [
        made(method="vecmap-semi", seeds="1k", label="VecMap"),
        made(method="procrustes", seeds="5k", label="VecMap"),
        made(method="vecmap-semi", seeds="5k", label="VecMap, self-learning"),
    ]
    (main,) = build_tables(results, names=["main"])
    assert sorted(main.columns[2:]) == ["VecMap", "VecMap, self-learning"]
    assert all(figures(main, "VecMap", seeds, "mean").ours[""] is not None for seeds in ("5k", "1k"))


def test_one_experiment_under_two_labels_is_one_method() -> None:
    twice = made(lm=E5, mixing=0.2, label="C2 [E5]")
    results = [twice, replace(twice, setup=replace(twice.setup, label="C2 (C1)"))]
    results += [made(pair="en-fi", lm=E5, mixing=0.2, label="C2 (C1)")]
    results += [made(pair="en-fr", lm=E5, mixing=0.2, label="C2 [E5]"), made()]
    results += [made(pair="fi-ru", lm=E5, mixing=0.2, label="C2 (C1)")]
    (main,) = build_tables(results, names=["main"])
    assert list(main.columns[2:]) == ["C1", "C2 (C1)"]
    assert figures(main, "C2 (C1)", "5k", "mean").share is None


def test_runs_that_differ_by_random_seed_are_averaged() -> None:
    runs = [made(seed=seed) for seed in (0, 1)]
    (main,) = build_tables(runs, names=["main"])
    expected = fmean(100 * (run.metric("forward", "csls") or 0) for run in runs)
    assert figures(main, "C1", "5k", "en→*").ours == {"": pytest.approx(expected)}
    assert any("several random seeds" in note for note in main.notes)


def test_leak_free_scores_leave_out_leaked_words() -> None:
    result = made(pair="fi-ru")
    (table,) = build_tables([result], names=["leak-free"])
    expected = []
    for predictions in result.predictions.values():
        kept = [p.ranks["csls"] <= 1 for p in predictions if not p.leaked]
        assert 0 < len(kept) < len(predictions)
        expected.append(100 * sum(kept) / len(kept))
    assert figures(table, "leak-free", "5k", "C1").ours["CSLS"] == pytest.approx(fmean(expected))
    (coverage,) = build_tables([result], names=["coverage"])
    leaked = sum(p.leaked for p in result.predictions["forward"])
    assert cell(coverage, "leaked words", "5k", "fi→ru") == number(leaked)


def test_significance_against_the_chosen_baseline(results: list[Result]) -> None:
    pooled, single = build_tables(results, names=["significance"], baseline="RCSLS")
    expected = recounted(results, "C1", "5k", None, None) - recounted(results, "RCSLS", "5k", None, None)
    found = cell(pooled, "difference", "5k", "C1")
    assert found.value == pytest.approx(expected, abs=1e-5)
    assert "RCSLS" not in [row[1].value for row in pooled.rows] and "RCSLS" in pooled.title
    for row in pooled.rows:
        values = {c: v.value for c, v in zip(pooled.columns, row, strict=True)}
        assert values["from"] <= values["difference"] <= values["to"]
        assert 0 < values["p"] <= values["p (Holm)"] <= 1
        assert (row[2].spans[0].style == "bold") == (values["p (Holm)"] < 0.05)
    assert any(row[2].spans[0].style == "bold" for row in pooled.rows)
    assert len(single.rows) == 24 and "RCSLS" not in single.columns


def test_significance_reads_each_prediction_from_where_it_is_stored(results: list[Result]) -> None:
    bare = [replace(result, predictions={}) for result in results]
    kept = {result.setup.key: result.predictions for result in results}
    assert build_tables(bare, names=["significance", "examples"]) == []
    read = build_tables(bare, names=["significance"], predictions=lambda result: kept[result.setup.key])
    assert read == build_tables(results, names=["significance"])


def test_examples_show_right_and_wrong_answers() -> None:
    results = [made(method="procrustes", label="Procrustes"), made(), made(lm=E5, mixing=0.2, label="C2")]
    (table,) = build_tables(results, names=["examples"])
    assert list(table.columns) == ["direction", "word", "right", "C1", "C2", "effect"]
    for _, _, right, first, last, effect in table.rows:
        best = [answers.value.split(", ")[0] for answers in (first, last)]
        before, after = (word in right.value.split(", ") for word in best)
        assert (before, after) == ((False, True) if "gain" in str(effect.value) else (True, False))
    assert {str(row[-1].value).split()[0] for row in table.rows} == {"gain", "loss"}


def test_cost_takes_medians_and_the_greatest_memory() -> None:
    times = (30.0, 10.0, 2000.0)
    results = [
        replace(made(pair=pair), seconds={"fit": t}, gigabytes=t / 10)
        for pair, t in zip(("en-fi", "en-fr", "en-ru"), times, strict=True)
    ]
    (table,) = build_tables(results, names=["cost"])
    assert cell(table, "fit s", "C1", "5k") == number(30.0, 1)
    assert cell(table, "peak GB", "C1", "5k") == number(200.0, 2)
    assert cell(table, "tune s", "C1", "5k") == Plain()
    assert "2 threads" in str(cell(table, "machine", "C1", "5k").value)


def test_what_failed_and_what_was_not_run_is_said() -> None:
    failed = Result(setup=setup(pair="en-fr"), status="failed", error="a word broke.")
    results = [made(), made(pair="en-fi"), made(pair="en-fi", method="fipp", label="FIPP"), failed]
    (table,) = build_tables(results, names=["missing"])
    assert [[c.value for c in row] for row in table.rows] == [
        ["C1", "5k", "en-fr", "failed: a word broke."],
        ["FIPP", "5k", "en-ru", "not run"],
    ]
    assert [t.name for t in build_tables([failed])] == ["missing"]


@pytest.mark.parametrize("wrong,near", [("mian", "main"), ("ablations", "ablation")])
def test_a_misspelt_table_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(BilexError, match=f"Did you mean '{near}'"):
        build_tables([made()], names=[wrong])


def test_a_misspelt_baseline_is_answered_with_the_nearest(results: list[Result]) -> None:
    with pytest.raises(BilexError, match=r"'Procrutses'; .* Did you mean 'Procrustes'"):
        build_tables(results, baseline="Procrutses")


def odd_table() -> Table:
    rows = (
        (HARD, number(-1234.5, 1), words((HARD, "fine"), (HARD,))),
        ("b", None, words(())),
        ("c", Metrics({"NN": 1.0, "CSLS": None}, {"NN": None, "CSLS": 2.345}, frozenset({"NN"}), (3, 4)), ""),
    )
    return Table("odd", HARD, HARD, (HARD, "n", "words"), rows, (HARD,))


def markdown_cells(text: str) -> list[list[str]]:
    """The cells of the table in a Markdown text, as a Markdown reader understands them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows and token.level == 4:
            rows[-1].append("".join(child.content for child in token.children or []))
    return rows


def test_markdown_reads_back() -> None:
    text = odd_table().markdown()
    rows = markdown_cells(text)
    assert rows[0] == [HARD, "n NN/CSLS", "words"]
    assert rows[1] == [HARD, "-1,234.5", f"{HARD}, fine"]
    assert rows[2] == ["b", "–", "–"]
    assert rows[3] == ["c", "1.00/– [3/4] (–/2.35)", ""]
    assert "**1.00**" in text and "*(–/2.35)*" in text


def test_markdown_of_every_table_reads_back(tables: dict[str, Table]) -> None:
    for table in tables.values():
        rows = markdown_cells(table.markdown())
        expected = [["".join(s.text for s in c.spans) for c in row] for row in table.rows]
        assert [[cell.strip() for cell in row] for row in rows[1:]] == expected, table.name


def test_latex_has_as_many_cells_in_every_row(tables: dict[str, Table]) -> None:
    for table in (*tables.values(), odd_table()):
        body = table.latex().split(r"\toprule")[1].split(r"\bottomrule")[0]
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert len(rows) == 1 + len(table.rows)
        assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(table.columns) - 1}, table.name


def test_latex_of_hard_text() -> None:
    text = odd_table().latex()
    assert r"a\textbar{}b\_$*$c$*$ \textless{}i\textgreater{}\& \&amp; 50\% of \$x\$ \#1 \{y\}" in text
    assert r"\textbf{1.00}/-- {[}3/4{]} \textit{(--/2.35)}" in text
    assert "$-$1,234.5" in text


def test_csv_reads_back() -> None:
    rows = list(csv.reader(io.StringIO(odd_table().csv())))
    assert rows[0] == [HARD, "n NN", "n CSLS", "n NN reported", "n CSLS reported", "n directions", "words"]
    assert rows[1] == [HARD, "-1234.5", "", "", "", "", f"{HARD}, fine"]
    assert rows[2] == ["b", "", "", "", "", "", ""]
    assert rows[3] == ["c", "1", "", "", "2.345", "3/4", ""]


def test_csv_of_every_table_is_rectangular(tables: dict[str, Table]) -> None:
    for table in tables.values():
        rows = list(csv.reader(io.StringIO(table.csv())))
        assert len(rows) == 1 + len(table.rows)
        assert {len(row) for row in rows} == {len(rows[0])} and len(set(rows[0])) == len(rows[0])
    main = list(csv.DictReader(io.StringIO(tables["main"].csv())))
    mean = next(row for row in main if (row["seeds"], row["directions"]) == ("5k", "mean"))
    ours = figures(tables["main"], "C1", "5k", "mean")
    assert (float(mean["C1"]), float(mean["C1 reported"])) == pytest.approx(
        (ours.ours[""], ours.reported[""]), abs=1e-4
    )


def test_plain_values_are_json(tables: dict[str, Table]) -> None:
    for table in tables.values():
        content = json.loads(json.dumps(table.as_dict(), allow_nan=False))
        assert all(len(row) == len(content["columns"]) == len(content["numeric"]) for row in content["rows"])
        for row in content["rows"]:
            assert all(c["text"] == "".join(span["text"] for span in c["spans"]) for c in row)


@pytest.fixture(scope="module")
def stored(results: list[Result], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "results.sqlite"
    with ResultsStore.open(path) as store:
        for result in results:
            if result.setup.pair in ("en-fi", "fi-ru"):
                store.add(result)
    return path


def test_command_prints_markdown(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["benchmark", "tables", str(stored), "--table", "main", "--table", "significance"]) == 0
    caught = capsys.readouterr().out
    assert caught.count("### ") == 3 and "2 of XLING's 28 pairs" in caught


def test_command_writes_a_folder(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    assert run(["benchmark", "tables", str(stored), "-o", str(folder)]) == 0
    written = sorted(path.name for path in folder.iterdir())
    assert {"main.md", "main.tex", "main.csv", "examples.md", "significance-by-direction.csv"} <= set(written)
    assert run(["benchmark", "tables", str(stored), "-o", str(tmp_path / "c"), "--format", "csv"]) == 0
    assert all(path.suffix == ".csv" for path in (tmp_path / "c").iterdir())


@pytest.mark.parametrize(
    "words,said",
    [
        (["--table", "mian"], "Did you mean 'main'"),
        (["--baseline", "C3"], "there are Procrustes, "),
        (["--table", "panlex"], "no finished setups for such a table"),
    ],
)
def test_command_tells_what_is_wrong(
    stored: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["benchmark", "tables", str(stored), *words]) == 2
    assert said in capsys.readouterr().err


def test_command_needs_a_results_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["benchmark", "tables", str(tmp_path / "none.sqlite")]) == 2
    assert "none.sqlite" in capsys.readouterr().err
