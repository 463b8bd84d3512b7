"""What a new user does on the first evening, item by item."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilex.cli import run
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from cli_files import Files
from planted import planted

Captured = pytest.CaptureFixture[str]


def bilex(*words: object) -> int:
    return run([str(word) for word in words])


def align(files: Files, output: Path, *more: object, seeds: Any = ()) -> list[object]:
    given = [word for path in (seeds or [files.seeds]) for word in ("--seeds", path)]
    method = [] if "--method" in more else ["--method", "procrustes"]
    return ["align", files.source, files.target, *given, "-o", output, *method, "--device", "cpu", *more]


def test_several_seed_files_are_joined(files: Files, tmp_path: Path) -> None:
    lines = files.seeds.read_text().splitlines(keepends=True)
    one, other = tmp_path / "one.tsv", tmp_path / "other.tsv"
    one.write_text("".join(lines[:250]))
    other.write_text("".join(lines[200:]))
    assert bilex(*align(files, tmp_path / "m", "--no-calibrate", seeds=[one, other])) == 0
    made = Translator.load(tmp_path / "m")
    assert list(made.seeds.pairs) == list(Lexicon.load(files.seeds).pairs)
    assert str(one) in made.seeds.name and str(other) in made.seeds.name


def test_corrections_and_rejections(files: Files, tmp_path: Path, capsys: Captured) -> None:
    seeds = Lexicon.load(files.seeds).pairs
    (word, _), (_, right), (asked, _) = seeds[0], seeds[1], Lexicon.load(files.test).pairs[0]
    own = Translator.load(files.model).translate(asked, 1, model_only=True)[0].word
    corrections, rejected = tmp_path / "mine.tsv", tmp_path / "wrong.csv"
    corrections.write_text(f"{word}\t{right}\n{seeds[2][0]}\t{seeds[2][1]}\tno\n")
    rejected.write_text(f"word;translation\n{asked};{own}\n")
    command = align(files, tmp_path / "m", "--corrections", corrections, "--rejected", rejected)
    assert bilex(*command, "--no-calibrate") == 0
    made = Translator.load(tmp_path / "m")
    golds = made.seeds.translations()
    assert golds[word] == (right,) and seeds[2][0] not in golds
    assert set(made.seeds.rejected) == {tuple(seeds[2]), (asked, own)}
    capsys.readouterr()
    assert bilex("translate", tmp_path / "m", word, asked, "-k", 3) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[1] for row in rows if row[4] == "known"] == [right]
    assert own not in [row[1] for row in rows if row[0] == asked]
    assert bilex("translate", tmp_path / "m", asked, "-k", 1, "--model-only") == 0
    assert capsys.readouterr().out.split("\t")[1] == own


def test_corrections_refine_the_model_of_the_seeds(files: Files, tmp_path: Path, capsys: Captured) -> None:
    """The fit learns from the seeds alone; a few corrections become known pairs and move no vector."""
    test = Lexicon.load(files.test).pairs[:5]
    mine = tmp_path / "mine.tsv"
    mine.write_text("".join(f"{a}\t{b}\n" for a, b in test))
    command = align(files, tmp_path / "m", "--corrections", mine, "--no-calibrate")
    assert bilex(*command, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["refinement"]["accepted"] == 5 and report["retrained"]["accepted"] == 5
    assert report["seed_pairs"] == len(Lexicon.load(files.seeds).pairs) + 5
    assert bilex(*align(files, tmp_path / "plain", "--no-calibrate")) == 0
    plain, made = Translator.load(tmp_path / "plain"), Translator.load(tmp_path / "m")
    again = plain.refine(test)
    assert again.refitted == report["refinement"]["refitted"] is False
    assert np.allclose(plain.space.source.vectors, made.space.source.vectors, atol=1e-6)


def test_corrections_that_outnumber_the_seeds_are_seeds(
    files: Files, tmp_path: Path, capsys: Captured
) -> None:
    few, mine = tmp_path / "few.tsv", tmp_path / "mine.tsv"
    lines = files.seeds.read_text().splitlines(keepends=True)
    few.write_text("".join(lines[:20]))
    mine.write_text("".join(lines[20:]))
    assert (
        bilex(*align(files, tmp_path / "m", "--corrections", mine, "--no-calibrate", "--json", seeds=[few]))
        == 0
    )
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert report["refinement"] is None and report["seed_pairs"] == len(lines)
    steps = re.findall(r"Step (\d+) of (\d+)", shown.err)
    assert steps[-1][0] == steps[-1][1], "no step is announced that is not made"


def test_wrong_seeds_are_among_the_doubtful(tmp_path: Path, capsys: Captured) -> None:
    world = planted(900, 20, 0.5)
    world.source.save(tmp_path / "src.vec")
    world.target.save(tmp_path / "tgt.vec")
    pairs = list(world.pairs(0, 400).pairs)
    wrong = [(pairs[i][0], pairs[i + 20][1]) for i in range(10)]
    Lexicon([*wrong, *pairs[10:]]).save(tmp_path / "seeds.tsv")
    command = ["align", tmp_path / "src.vec", tmp_path / "tgt.vec", "--seeds", tmp_path / "seeds.tsv"]
    assert bilex(*command, "-o", tmp_path / "m", "--method", "procrustes", "--no-calibrate") == 0
    capsys.readouterr()
    assert bilex("info", tmp_path / "m", "--doubtful", "-k", 12, "--json") == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {(seed["source"], seed["target"]) for seed in listed} & set(wrong)
    assert len(found) >= 9
    truth = dict(pairs)
    assert sum(seed["own_target"] == truth[seed["source"]] for seed in listed[:9]) >= 7
    assert bilex("info", tmp_path / "m", "--doubtful") == 0
    assert wrong[0][0] in capsys.readouterr().out
    assert bilex("info", tmp_path / "seeds.tsv", "--doubtful") == 2


def test_the_words_shown_after_a_fit_are_neither_seeds_nor_function_words(
    tmp_path: Path, capsys: Captured
) -> None:
    world = planted(900, 20, 0.5)
    world.source.save(tmp_path / "src.vec")
    world.target.save(tmp_path / "tgt.vec")
    world.pairs(85, 200).save(tmp_path / "seeds.tsv")
    command = ["align", tmp_path / "src.vec", tmp_path / "tgt.vec", "--seeds", tmp_path / "seeds.tsv"]
    arguments = [*command, "-o", tmp_path / "m", "--method", "procrustes", "--no-calibrate", "--json"]
    assert bilex(*arguments) == 0
    shown = [sample["word"] for sample in json.loads(capsys.readouterr().out)["samples"]]
    expected = [word for word in world.source.index_to_key[200:] if len(word) >= 5]
    assert shown == expected[:8], "the tenth of the words that is most frequent and the seeds are left out"
    card = (tmp_path / "m" / "README.md").read_text()
    long = next(word for word in world.source.index_to_key[90:] if len(word) >= 5)
    assert f"bilex translate THIS_FOLDER {long}" in card


def test_the_figures_of_an_evaluation_ignore_what_is_known(files: Files, capsys: Captured) -> None:
    assert bilex("evaluate", files.model, files.seeds, "--json", "--bootstrap", 0) == 0
    caught = json.loads(capsys.readouterr().out)
    assert caught["forward"]["csls"]["p@1"] < 1, (
        "the seeds are known, but the model does not find all of them"
    )
    assert caught["forward"]["leak_free"]["covered"] == 0


@pytest.mark.parametrize(("count", "warning"), [(6, "6 seed pairs are few"), (60, "60 seed pairs are few")])
def test_few_seeds_are_warned_of(
    files: Files, tmp_path: Path, capsys: Captured, count: int, warning: str
) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(files.seeds.read_text().splitlines(keepends=True)[:count]))
    assert bilex(*align(files, tmp_path / "m", seeds=[few])) == 0
    shown = capsys.readouterr()
    assert (
        "Expect the first answer to be right" in shown.out and "each predicted from the others" in shown.out
    )
    assert (warning in shown.err) == (count == 6), "sixty pairs are enough for twenty dimensions"
    expected = Translator.load(tmp_path / "m").provenance.expectation
    assert expected.words["forward"] == count


@pytest.mark.parametrize("count", [2, 3])
def test_seeds_too_few_to_measure_are_warned_of(
    files: Files, tmp_path: Path, capsys: Captured, count: int
) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(files.seeds.read_text().splitlines(keepends=True)[:count]))
    assert bilex(*align(files, tmp_path / "m", seeds=[few])) == 0
    caught = " ".join(capsys.readouterr().err.split())
    assert (
        f"warning: Expect little of it. {count} seed pairs are few" in caught or "too little to use" in caught
    )


def test_unsuitable_vectors_are_warned_of(files: Files, tmp_path: Path, capsys: Captured) -> None:
    target = WordVectors.load(files.target)
    noise = np.random.default_rng(99).normal(size=target.vectors.shape).astype(np.float32)
    WordVectors(target.index_to_key, noise).save(tmp_path / "noise.vec")
    command = ["align", files.source, tmp_path / "noise.vec", "--seeds", files.seeds, "-o", tmp_path / "m"]
    assert bilex(*command, "--method", "procrustes") == 0
    shown = capsys.readouterr()
    assert "too little to use this model" in shown.err and "the vectors are the likely reason" in shown.err
    assert bilex("info", tmp_path / "m") == 0
    assert "too little to use" in capsys.readouterr().out


def test_a_good_model_is_not_warned_of(files: Files, tmp_path: Path, capsys: Captured) -> None:
    assert bilex(*align(files, tmp_path / "m")) == 0
    shown = capsys.readouterr()
    assert "warning" not in shown.err and "nine of ten lie in the range" in shown.out


def test_a_dry_run_reads_and_makes_nothing(files: Files, tmp_path: Path, capsys: Captured) -> None:
    assert bilex(*align(files, tmp_path / "m", "--dry-run", "--json")) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["source_words"], plan["seed_pairs_covered"], plan["method"]) == (900, 400, "procrustes")
    command = [str(word) for word in align(files, tmp_path / "m", "--dry-run")]
    place = command.index("-o")
    assert run([*command[:place], *command[place + 2 :]]) == 0
    assert "400 of 400 pairs" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_spreadsheets_as_seeds(files: Files, tmp_path: Path, capsys: Captured) -> None:
    pairs = Lexicon.load(files.seeds).pairs
    rows = [
        "Finnish;Nr;English",
        *(f"{target};{number};{source}" for number, (source, target) in enumerate(pairs)),
    ]
    sheet = tmp_path / "sheet.csv"
    sheet.write_bytes("\r\n".join(rows).encode("utf-16"))
    caught = ["--source-language", "en", "--target-language", "fi", "--no-calibrate"]
    assert bilex(*align(files, tmp_path / "m", *caught, seeds=[sheet])) == 0
    assert list(Translator.load(tmp_path / "m").seeds.pairs) == list(pairs)
    assert bilex(*align(files, tmp_path / "n", "--columns", "3,1", "--no-calibrate", seeds=[sheet])) == 0
    assert bilex("convert", sheet, "-o", tmp_path / "out.tsv", "--columns", "english,finnish") == 0
    assert list(Lexicon.load(tmp_path / "out.tsv").pairs) == list(pairs)
    capsys.readouterr()
    assert bilex("convert", sheet, "-o", tmp_path / "out.ods") == 2
    assert "suffix names no dictionary format" in capsys.readouterr().err
    assert bilex("lexicon", files.model, "-o", tmp_path / "lex.ods") == 2


def test_info_of_a_model_fits_a_screen(files: Files, capsys: Captured) -> None:
    assert bilex("info", files.model) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 20
    for part in ("procrustes", "900 × 900", "400 pairs", "src.vec", "Expect the first answer", "MB"):
        assert part in shown
    assert "brier" not in shown
    assert bilex("info", files.model, "--verbose") == 0
    assert "brier" in capsys.readouterr().out


def test_methods_explains_every_setting_and_lists_presets(capsys: Captured) -> None:
    from bilex.aligners import methods
    from bilex.cli.info import explanations

    for name, method in methods().items():
        missing = set(method.settings_fields()) - set(explanations(method))
        assert not missing, f"{name}: {missing}"
    assert bilex("methods", "c1") == 0
    shown = capsys.readouterr().out
    assert "Contrastive updates" in shown and "quick" in shown


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--method", "c1", "--preset", "bset"), "Did you mean 'best'"),
        (
            ("--lm", "https://huggingface.co/intfloat/multilingual-e5-small"),
            "--lm intfloat/multilingual-e5-small",
        ),
        (("--lm", "./no/such/folder"), "neither a folder here nor a name"),
        (("--lm", "a name with blanks"), "neither a folder here nor a name"),
        (("--random-seed", "seeds.tsv"), "Did you mean --seeds seeds.tsv?"),
    ],
)
def test_wrong_names_are_refused_before_any_file_is_read(
    files: Files,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    part: str,
) -> None:
    def read(*args: object, **more: object) -> None:
        pytest.fail("a file was read")

    monkeypatch.setattr(WordVectors, "load", read)
    monkeypatch.setattr(Lexicon, "load", read)
    assert bilex(*align(files, tmp_path / "m", *options)) == 2
    assert part in " ".join(capsys.readouterr().err.split())


def test_a_misspelt_encoder_is_answered_with_the_nearest_name(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")

    def refuse(*args: object, **more: object) -> None:
        raise OSError("no such model")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", refuse)
    from bilex import BilexError
    from bilex.cli.align import check_lm

    def offline(*args: object) -> None:
        raise OSError("no route")

    with monkeypatch.context() as patch:
        patch.setattr("socket.create_connection", offline)
        with pytest.raises(BilexError, match="Did you mean 'e5-small-q4'"):
            check_lm("e5-smal-q4")
        with pytest.raises(BilexError, match=r"cannot be reached.*needs no hub\.$"):
            check_lm("bert-base-multilingual-cased")
    monkeypatch.setattr("socket.create_connection", lambda *_: io.BytesIO())
    with pytest.raises(BilexError, match="Did you mean 'e5-small-q4'"):
        check_lm("e5-smal-q4")
    check_lm("e5-small-q4")


@pytest.mark.parametrize("form", ["table", "tsv", "jsonl"])
def test_formats_of_translate(files: Files, capsys: Captured, form: str) -> None:
    words = WordVectors.load(files.source).index_to_key[450:452]
    answers = Translator.load(files.model).translate(words, 2)
    assert bilex("translate", files.model, *words, "-k", 2, "--format", form) == 0
    shown = capsys.readouterr().out
    assert "│" not in shown and "┃" not in shown, "no boxes in a pipe"
    if form == "jsonl":
        assert [json.loads(line) for line in shown.splitlines()] == [answer.as_dict() for answer in answers]
    elif form == "tsv":
        assert [line.split("\t")[:2] for line in shown.splitlines()] == [
            [answer.word, found.word] for answer in answers for found in answer
        ]
        assert bilex("translate", files.model, *words, "-k", 2) == 0
        assert capsys.readouterr().out == shown, "a pipe gets TSV"
    else:
        assert all(found.word in shown for answer in answers for found in answer)


def test_a_pipe_is_answered_line_by_line(files: Files) -> None:
    """The second word is asked only after the first answer has come: a filter, not a batch."""
    import subprocess

    words = WordVectors.load(files.source).index_to_key[450:452]
    command = [
        sys.executable,
        "-c",
        "from bilex.cli import main; main()",
        "translate",
        str(files.model),
        "-k",
        "1",
    ]
    with subprocess.Popen(
        [*command, "--device", "cpu"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for word in words:
            process.stdin.write(word + "\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith(word + "\t")
        process.stdin.close()
        assert process.wait() == 0


def test_the_prompt(files: Files, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    source, target = WordVectors.load(files.source).index_to_key, WordVectors.load(files.target).index_to_key
    lines = [source[450], ":k 2", source[451], ":reverse", target[450], ":nonsense", ":k " + "9" * 5000]
    typed = iter([*lines, ":help", "", ":q"])
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(typed)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert bilex("translate", files.model, "--format", "tsv") == 0
    caught = capsys.readouterr()
    rows = [line.split("\t") for line in caught.out.splitlines() if "\t" in line]
    assert [sum(row[0] == word for row in rows) for word in (source[450], source[451], target[450])] == [
        5,
        2,
        2,
    ]
    assert asked[0] == "source → target> " and asked[4] == "target → source> "
    assert "':nonsense' is not a command here" in caught.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
def test_the_prompt_in_a_real_terminal(files: Files) -> None:
    word = WordVectors.load(files.source).index_to_key[450]
    best = Translator.load(files.model).translate(word, 1)[0].word
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        os.execv(
            sys.executable,
            [
                sys.executable,
                "-c",
                "from bilex.cli import main; main()",
                "translate",
                str(files.model),
                "--device",
                "cpu",
            ],
        )
    seen = b""

    def read_until(text: str) -> None:
        nonlocal seen
        while text.encode() not in seen:
            seen += os.read(terminal, 4096)

    read_until("source → target> ")
    os.write(terminal, f"{word}\n".encode())
    read_until(best)
    read_until("│")
    os.write(terminal, b":q\n")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


def test_the_same_words_for_directions(files: Files, capsys: Captured) -> None:
    word = WordVectors.load(files.target).index_to_key[450]
    shown = []
    for options in (["--reverse"], ["--direction", "backward"]):
        for command in (["translate", files.model, word], ["lexicon", files.model, "--ranks", "451-460"]):
            assert bilex(*command, *options) == 0
            shown.append(capsys.readouterr().out)
    assert shown[:2] == shown[2:]
    assert shown[0].split("\t")[0] == shown[1].split("\t")[0] == word, "the query language comes first"
    assert bilex("translate", files.model, word, "--reverse", "--direction", "forward") == 2


def test_languages_are_shown_instead_of_source_and_target(
    files: Files, tmp_path: Path, capsys: Captured
) -> None:
    for side, name in ((files.source, "wiki.en.vec"), (files.target, "wiki.fi.vec")):
        (tmp_path / name).write_bytes(side.read_bytes())
    command = ["align", tmp_path / "wiki.en.vec", tmp_path / "wiki.fi.vec", "--seeds", files.seeds]
    assert bilex(*command, "-o", tmp_path / "m", "--method", "procrustes") == 0
    shown = capsys.readouterr().out
    assert "English to Finnish" in shown and " English  Finnish " in shown
    assert bilex("evaluate", tmp_path / "m", files.test) == 0
    assert "Finnish to English" in (caught := capsys.readouterr().out) and "forward" not in caught
    assert bilex("info", tmp_path / "m") == 0
    assert "English – Finnish" in capsys.readouterr().out
    assert "English" in (tmp_path / "m" / "README.md").read_text()
    assert repr(Translator.load(tmp_path / "m")).startswith("Translator(English–Finnish, 900 × 900 words")
    given = ["--source-language", "Klingon", "--target-language", "suomi", "--force", "--no-calibrate"]
    assert bilex(*command, "-o", tmp_path / "m", "--method", "procrustes", *given) == 0
    assert Translator.load(tmp_path / "m").languages == ("Klingon", "Finnish")


def test_filters(files: Files, tmp_path: Path, capsys: Captured) -> None:
    made = Translator.load(files.model)
    source, target = made.space.source.index_to_key, made.space.target.index_to_key
    stop, tags = tmp_path / "stop.txt", tmp_path / "tags.tsv"
    stop.write_text(f"{source[500]}\n{target[501]}\n")
    tags.write_text("".join(f"{word}\tNOUN\n" for word in (*source[510:520], *target)))
    assert bilex("lexicon", files.model, "--stop-words", stop, "-k", 3, "--format", "jsonl") == 0
    pairs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert source[500] not in {pair["source"] for pair in pairs}
    assert target[501] not in {pair["target"] for pair in pairs}
    assert bilex("lexicon", files.model, "--tags", tags, "--pos", "noun,verb", "--format", "jsonl") == 0
    listed = [json.loads(line)["source"] for line in capsys.readouterr().out.splitlines()]
    assert listed == source[510:520]
    assert (
        bilex("translate", files.model, source[501], "-k", 5, "--stop-words", stop, "--answer-ranks", "1-600")
        == 0
    )
    rows = [line.split("\t")[1] for line in capsys.readouterr().out.splitlines()]
    own = [
        found.word
        for found in made.translate(source[501], 55)
        if found.rank <= 600 and found.word != target[501]
    ]
    assert rows == own[:5]
    assert bilex("translate", files.model, source[501], "-k", 5, "--min-confidence", "0.9") == 0
    sure = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert all(float(row[3]) >= 0.9 for row in sure)
    assert bilex("lexicon", files.model, "--no-names") == 2
    assert "--keep-case" in capsys.readouterr().err
    assert bilex("lexicon", files.model, "--pos", "NOUN") == 2
    assert "--tags" in capsys.readouterr().err
