"""Models of several languages on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bilex import ManyLanguages
from bilex.cli import run
from bilex.cli.lexicon import spread
from bilex.evaluation import evaluate
from many_planted import PlantedMany, planted_many

WORLD = planted_many("en fi ru", noise=0.5)
SHORT = ["--set", "updates=3", "--set", "iterations=1", "--set", "passes=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many")
    (path / "seeds").mkdir()
    (path / "tests").mkdir()
    for code, words in WORLD.vocabularies.items():
        words.save(path / f"{code}.vec")
    for a, b in (("en", "fi"), ("en", "ru"), ("fi", "ru")):
        WORLD.pairs(a, b, 400, 800).save(path / "tests" / f"{a}-{b}.tsv")
    WORLD.pairs("en", "fi", 0, 400).save(path / "seeds" / "en-fi.tsv")
    WORLD.pairs("ru", "en", 0, 400).save(path / "seeds" / "train.ru-en.tsv")
    files = [str(path / f"{code}.vec") for code in WORLD.vocabularies]
    command = ["align-many", *files, "--seeds-dir", str(path / "seeds"), "-o", str(path / "many")]
    assert run([*command, "--device", "cpu", "--preset", "best", *SHORT]) == 0
    for code in ("fi", "ru"):
        seeds = path / f"en-{code}.tsv"
        WORLD.pairs("en", code, 0, 400).save(seeds)
        pair = [
            str(path / "en.vec"),
            str(path / f"{code}.vec"),
            "--seeds",
            str(seeds),
            "-o",
            str(path / f"en-{code}"),
        ]
        assert run(["align", *pair, "--method", "procrustes", "--device", "cpu", "--no-calibrate"]) == 0
    return path


def _word(code: str, rank: int, world: PlantedMany = WORLD) -> str:
    return world.vocabularies[code].index_to_key[rank]


def test_any_language_is_translated_to_any_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [_word("fi", rank) for rank in range(400, 440)]
    assert run(["translate", str(folder / "many"), *asked, "--from", "fi", "--to", "ru", "-k", "1"]) == 0
    answers = [line.split("\t")[1] for line in capsys.readouterr().out.splitlines()]
    assert sum(a == _word("ru", 400 + i) for i, a in enumerate(answers)) > 25


def test_without_languages_the_model_says_what_it_holds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["translate", str(folder / "many"), "word"]) == 2
    assert "holds en, fi, ru; name two of them with --from and --to" in capsys.readouterr().err


def test_models_of_two_languages_are_joined(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(folder / "en-fi"), str(folder / "en-ru")]
    assert run(["join", *models, "-o", str(folder / "joined")]) == 0
    assert run(["join", *models, "-o", str(folder / "joined")]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["join", *models, "-o", str(folder / "joined"), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["languages"] == {"en": 800, "fi": 800, "ru": 800}
    assert run(["join", *models, "-o", models[0], "--force"]) == 2
    shutil.copytree(models[0], folder / "en-fi-again")
    assert run(["join", *models, str(folder / "en-fi-again"), "-o", str(folder / "thrice")]) == 0
    assert "models of the same two languages" in capsys.readouterr().err
    assert run(["info", str(folder / "joined"), "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["kind"] == "many"
    assert not described["checksums_compared"]
    assert run(["info", str(folder / "joined"), "--json", "--verify"]) == 0
    assert json.loads(capsys.readouterr().out) == {**described, "checksums_compared": True}


def test_from_and_to_choose_the_direction_of_a_model_of_two(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word = _word("fi", 3)
    assert run(["translate", str(folder / "en-fi"), word, "--from", "Finnish", "-k", "1"]) == 0
    assert capsys.readouterr().out.split("\t")[1] == _word("en", 3)
    assert run(["translate", str(folder / "en-fi"), word, "--from", "fi", "--to", "ru"]) == 2
    assert "translates between en and fi, not fi to ru" in capsys.readouterr().err


def test_a_polyglot_dictionary_has_a_column_a_language(folder: Path) -> None:
    output = folder / "words.csv"
    assert run(["lexicon", str(folder / "many"), "--from", "en", "--to", "fi", "ru", "-o", str(output)]) == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "en,fi,ru"
    assert lines[6] == ",".join(_word(code, 5) for code in ("en", "fi", "ru"))


def test_one_pair_of_many_is_exported_as_a_model_of_two_would_be(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["lexicon", str(folder / "many"), "--from", "ru", "--to", "fi", "--ranks", "1-20"]
    assert run(command) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 20
    assert all(len(row) == 5 for row in rows)


def test_a_model_of_two_refuses_more_languages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lexicon", str(folder / "en-fi"), "--from", "en", "--to", "fi", "ru"]) == 2
    assert "is not a model of several languages" in capsys.readouterr().err


def test_every_pair_is_scored_in_one_matrix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = folder / "matrix.svg"
    command = ["evaluate", str(folder / "many"), "--tests", str(folder / "tests"), "--bootstrap", "0"]
    assert run([*command, "--json", "--plot", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["directions"]) == 6
    direct = evaluate(
        ManyLanguages.load(folder / "many").pair("ru", "fi").space,
        WORLD.pairs("ru", "fi", 400, 800),
        bootstrap=0,
    )
    share = direct.forward.metrics["csls"]["p@1"]
    assert found["directions"]["ru-fi"]["csls"]["p@1"] == share
    shown = "".join(ElementTree.parse(picture).getroot().itertext())
    assert f"{100 * share:.1f}" in shown
    assert "Finnish" in shown
    assert run(command) == 0
    assert "Mean of 6 directions" in capsys.readouterr().out


def test_a_folder_without_dictionaries_of_these_languages_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "de-it.tsv").write_text("a\tb\n")
    assert run(["evaluate", str(folder / "many"), "--tests", str(tmp_path)]) == 2
    assert "holds no dictionary of two of en, fi, ru" in capsys.readouterr().err


def test_one_pair_of_many_on_one_dictionary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = str(folder / "tests" / "fi-ru.tsv")
    command = ["evaluate", str(folder / "many"), test, "--from", "fi", "--to", "ru", "--json"]
    assert run([*command, "--bootstrap", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["forward"]["csls"]["p@1"] > 0.7


@pytest.mark.parametrize(
    ("names", "codes", "sentence"),
    [
        (["en.vec", "words.vec"], None, "does not say which language"),
        (["en.vec", "en2.vec"], "en,en", "two files are of the language 'en'"),
        (["en.vec", "fi.vec"], "en", "names 1 languages for 2 files"),
        (["en.vec"], None, "at least two languages"),
    ],
)
def test_files_of_unclear_languages_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], names: list[str], codes: str | None, sentence: str
) -> None:
    for name in names:
        if not (folder / name).exists():
            WORLD.vocabularies["en"].head(50).save(folder / name)
    command = [
        "align-many",
        *(str(folder / name) for name in names),
        "--seeds-dir",
        str(folder / "seeds"),
    ]
    command += ["-o", str(folder / "never"), *(["--codes", codes] if codes else [])]
    assert run(command) == 2
    assert sentence in capsys.readouterr().err
    assert not (folder / "never").exists()


def test_an_option_may_have_several_languages() -> None:
    assert spread(["many", "--to", "fi", "ru", "-o", "x"], "--to") == [
        "many",
        "--to",
        "fi",
        "--to",
        "ru",
        "-o",
        "x",
    ]
    assert spread(["--to", "fi,ru", "many"], "--to") == ["--to", "fi", "--to", "ru", "many"]
    assert spread(["--to", "xyz", "model", "-k", "2"], "--to") == ["--to", "xyz", "model", "-k", "2"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["translate", "many", "word", "--from", "en", "--to", "de"], "has no language 'de'"),
        (["translate", "many", "word", "--from", "en", "--to", "en"], "are one language; name two"),
        (["lexicon", "many", "--from", "en", "--to", "fi", "fi"], "'fi' is named twice after --to"),
        (["lexicon", "many", "--from", "en", "--to", "fi", "en"], "words are of the language 'en'"),
        (["lexicon", "many", "--to", "fi", "ru"], "whose words are translated with --from"),
        (["evaluate", "many", "--tests", "tests", "--from", "en", "--to", "fi"], "leave out --from and --to"),
        (["evaluate", "en-fi", "--tests", "tests"], "en-fi: is not a model of several languages"),
    ],
)
def test_languages_that_cannot_be_meant_are_refused_in_one_sentence(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(folder)
    assert run(arguments) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("dictionaries", "sentence"),
    [
        ({"en-fi.tsv": "x\ty\n" * 60}, "no pairs connect 'ru' with 'en'"),
        (
            {"en-fi.tsv": "x\ty\nz\tw\n", "en-ru.tsv": "x\ty\nz\tw\n"},
            "only 0 of 2 pairs have both words in the vectors",
        ),
        ({"de-it.tsv": "x\ty\n"}, "holds no dictionary of two of en, fi, ru"),
    ],
)
def test_seeds_that_cannot_serve_are_refused_in_one_sentence(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    dictionaries: dict[str, str],
    sentence: str,
) -> None:
    for name, text in dictionaries.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(folder / f"{code}.vec") for code in WORLD.vocabularies]
    command = ["align-many", *files, "--seeds-dir", str(tmp_path), "-o", str(tmp_path / "never")]
    assert run([*command, "--device", "cpu"]) == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "never").exists()
