"""Grids: what a TOML file becomes, and what is said of a wrong one."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import pytest

from bilex import BilexError
from bilex_bench.datasets import DataFolder
from bilex_bench.grid import Grid, ready_grids, ready_text
from bilex_bench.results import families
from bilex_bench.toml_file import TomlFile

XLING = [f"{a}-{b}" for a, b in combinations(("de", "en", "fi", "fr", "hr", "it", "ru", "tr"), 2)]
PANLEX = [f"{a}-{b}" for a, b in permutations(("bg", "ca", "et", "eu", "he", "hu"), 2)]

HEAD = """about = "A grid."
[data.own]
path = "data"

[grid]
seeds = ["5k", "1k"]

"""


def folder_with(path: Path, pairs: list[str], seeds: tuple[str, ...] = ("5k", "1k")) -> Path:
    path.mkdir(parents=True)
    for pair in pairs:
        for name in (*(f"train.{size}" for size in seeds), "test"):
            (path / f"{pair}.{name}.tsv").write_text("a\tb\n", encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder_with(tmp_path / "data", ["en-fi", "en-fr", "fi-fr"])
    return tmp_path / "own.toml"


def read(file: Path, text: str) -> Grid:
    file.write_text(text, encoding="utf-8")
    return Grid.read(file)


def labels(grid: Grid) -> list[tuple[str, str, str]]:
    return [(setup.pair, setup.seeds, setup.label) for setup in grid.setups(grid.open_data())]


def test_pairs_seeds_methods_models_and_mixings_multiply(file: Path) -> None:
    grid = read(
        file,
        HEAD
        + """
        [[method]]
        name = "procrustes"
        [[method]]
        name = "c1"
        label = "C1"
        settings = { updates = 7 }
        [[method.lm]]
        name = "e5-small-q4"
        mixing = [0, 0.25, "auto"]
        [[method.lm]]
        name = "e5-small-q4"
        tune = false
        mixing = 1
        """,
    )
    setups = grid.setups(grid.open_data())
    assert len(setups) == 3 * 2 * (1 + 1 + 3 + 1)
    assert len(families(setups)) == 3 * 2 * 2
    first = [setup for setup in setups if (setup.pair, setup.seeds) == ("en-fi", "5k")]
    assert [(s.label, s.method, s.lm, s.tune, s.mixing) for s in first] == [
        ("procrustes", "procrustes", None, True, None),
        ("C1", "c1", None, True, None),
        ("C2 (C1), λ = 0", "c1", "e5-small-q4", True, 0.0),
        ("C2 (C1), λ = 0.25", "c1", "e5-small-q4", True, 0.25),
        ("C2 (C1), λ auto", "c1", "e5-small-q4", True, "auto"),
        ("C1+E5", "c1", "e5-small-q4", False, 1.0),
    ]
    assert first[1].settings == {"updates": 7}
    assert {s.dataset for s in setups} == {"own"} and {s.limit for s in setups} == {200_000}
    assert len({s.stage for s in first[2:5]}) == 1


def test_restrictions(file: Path) -> None:
    grid = read(
        file,
        HEAD
        + """
        [[method]]
        name = "vecmap-supervised"
        label = "VecMap"
        seeds = "5k"
        [[method]]
        name = "vecmap-semi"
        label = "VecMap"
        seeds = ["1k"]
        pairs = ["en-fi", "fi-fr"]
        [[method.lm]]
        name = "e5-small-q4"
        pairs = "fi-fr"
        """,
    )
    assert labels(grid) == [
        ("en-fi", "5k", "VecMap"),
        ("en-fi", "1k", "VecMap"),
        ("en-fr", "5k", "VecMap"),
        ("fi-fr", "5k", "VecMap"),
        ("fi-fr", "1k", "VecMap"),
        ("fi-fr", "1k", "C2 (VecMap)"),
    ]


def test_equal_settings_are_equal_experiments(file: Path) -> None:
    grid = read(
        file,
        HEAD
        + """
        [[method]]
        name = "rcsls"
        label = "as it comes"
        [[method]]
        name = "rcsls"
        label = "the same, spelt out"
        settings = { learning_rate = 25, iterations = 10 }
        [[method]]
        name = "rcsls"
        label = "other"
        settings = { learning_rate = 24 }
        """,
    )
    same, spelt_out, other = grid.setups(grid.open_data())[:3]
    assert same.key == spelt_out.key != other.key
    assert spelt_out.settings == {} and other.settings == {"learning_rate": 24.0}


def test_model_defaults_and_presets(file: Path) -> None:
    grid = read(
        file,
        HEAD
        + """
        [[method]]
        name = "procrustes"
        [[method.lm]]
        label = "{lm} tuned"
        name = "e5-small-q4"
        tuning = { preset = "demo", epochs = 2 }
        """,
    )
    setup = grid.setups(grid.open_data())[1]
    assert (setup.mixing, setup.label, setup.tuning) == ("auto", "E5 tuned", {"preset": "demo", "epochs": 2})
    other = grid.choosing(lm="bert-base-multilingual-uncased")
    setup = other.setups(other.open_data())[1]
    assert (setup.lm, setup.mixing, setup.label) == ("bert-base-multilingual-uncased", "auto", "mBERT tuned")
    without = grid.choosing(lm="none")
    assert {setup.lm for setup in without.setups(without.open_data())} == {None}


def test_choices_of_the_command_line(file: Path, tmp_path: Path) -> None:
    grid = read(file, HEAD + '[[method]]\nname = "procrustes"\n')
    chosen = grid.choosing(pairs=["fi-fr"], seeds=["1k"], limit=500, device="cpu")
    assert labels(chosen) == [("fi-fr", "1k", "procrustes")]
    assert chosen.setups(chosen.open_data())[0].limit == 500 and chosen.common.device == "cpu"
    elsewhere = folder_with(tmp_path / "a=b", ["en-tr"])
    for text in (f"own={elsewhere}", str(elsewhere)):
        assert [pair for pair, *_ in labels(grid.choosing(data=[text]))] == ["en-tr", "en-tr"]
    plain = folder_with(tmp_path / "plain", ["de-tr"])
    assert labels(grid.choosing(data=[str(plain)], seeds=["5k"])) == [("de-tr", "5k", "procrustes")]
    with pytest.raises(BilexError, match=r"--data onw=x: .*has the data own\. Did you mean 'own'\?"):
        grid.choosing(data=["onw=x"])
    with pytest.raises(BilexError, match=r"pair 'en-fy' has no dictionaries in own\. Did you mean 'en-f"):
        labels(grid.choosing(pairs=["en-fy"]))
    with pytest.raises(BilexError, match="no such folder"):
        grid.choosing(data=["own=nowhere"]).open_data()


def test_a_pair_may_be_named_in_the_other_direction(file: Path) -> None:
    grid = read(file, HEAD + 'pairs = "fi-en"\n[[method]]\nname = "procrustes"\n')
    assert labels(grid) == [("fi-en", "5k", "procrustes"), ("fi-en", "1k", "procrustes")]


def test_samples_are_kept_of_the_first_pair_unless_others_are_named(file: Path) -> None:
    text = HEAD + '{}[[method]]\nname = "procrustes"\n[[method]]\nname = "c1"\nsamples = true\n'
    for line, pair in (("", "en-fi"), ('sample_pairs = "fi-fr"\n', "fi-fr")):
        grid = read(file, text.format(line))
        folders = grid.open_data()
        kept = [setup for setup in grid.setups(folders) if setup.key in grid.sampled(folders)]
        assert [(s.pair, s.seeds, s.method) for s in kept] == [(pair, "5k", "c1"), (pair, "1k", "c1")]


def test_several_data_sets_with_their_own_pairs_and_seeds(tmp_path: Path) -> None:
    folder_with(tmp_path / "one", ["en-fi", "en-fr"])
    folder_with(tmp_path / "two", ["bg-ca"], ("1k",))
    grid = read(
        tmp_path / "own.toml",
        """
        [data.one]
        path = "one"
        pairs = ["en-fr"]
        [data.two]
        path = "two"
        seeds = "1k"
        [grid]
        seeds = "5k"
        [[method]]
        name = "procrustes"
        """,
    )
    found = [(s.dataset, s.pair, s.seeds) for s in grid.setups(grid.open_data())]
    assert found == [("one", "en-fr", "5k"), ("two", "bg-ca", "1k")]


C1 = '[[method]]\nname = "c1"\n'
LM = f'{C1}[[method.lm]]\nname = "x"\n'
WRONG = [
    ('[[method]]\nlabel = "c1"', r"line 8: 'name' is missing in \[\[method\]\], which has label"),
    ('[[method]]\nnaem = "c1"', r"line 9: there is no key 'naem' in \[\[method\]\]; .* Did you mean 'name'"),
    (C1 + 'seed = "5k"', r"line 10: there is no key 'seed' in \[\[method\]\]; .* Did you mean 'seeds'\?"),
    (
        LM + "mixng = 0.2",
        r"line 12: there is no key 'mixng' in \[\[method.lm\]\]; .* Did you mean 'mixing'\?",
    ),
    (
        '[[methods]]\nname = "c1"',
        r"line 8: there is no key 'methods' at the top level; .* Did you mean 'method'\?",
    ),
    (f"limti = 5\n{C1}", r"line 8: there is no key 'limti' in \[grid\]; .* Did you mean 'limit'\?"),
    (
        '[[method]]\nname = "vecmap"',
        r"line 9: 'name' is 'vecmap'; method 'vecmap' is not known; .* Did you mean 'vecmap-semi'\?",
    ),
    (
        C1 + "settings = { update = 3 }",
        r"line 10: there is no key 'update' in \[method.settings\]; .* Did you mean 'updates'\?",
    ),
    (C1 + 'settings = { updates = "many" }', "line 10: 'updates' is 'many'; input should be a valid integer"),
    (C1 + "settings = { seed = 3 }", r"line 10: there is no key 'seed' in \[method.settings\]"),
    (
        C1 + "[method.settings]\ncontrastive = 1",
        "line 11: 'contrastive' is 1; input should be a valid boolean",
    ),
    (LM + "mixing = 1.5", r"line 12: 'mixing' is 1\.5; give a λ from 0 to 1"),
    (LM + "mixing = [0.2, -1]", r"line 12: 'mixing' is \[0\.2, -1\]; give a λ"),
    (LM + 'mixing = "outo"', "line 12: 'mixing' is 'outo'; give a λ from 0 to 1 or"),
    (LM + "mixing = []", r"line 12: 'mixing' is \[\]; give"),
    (
        LM + "tuning = { epoch = 3 }",
        r"line 12: there is no key 'epoch' in \[method.lm.tuning\]; .* Did you mean 'epochs'\?",
    ),
    (LM + "tuning = { epochs = 0 }", "line 12: 'tuning' is .*; epochs is 0"),
    (
        LM + 'tuning = { preset = "cup" }',
        "line 12: 'preset' is 'cup'; input should be 'paper', 'light' or 'demo'",
    ),
    (
        LM + "tune = false\ntuning = { epochs = 1 }",
        "line 13: 'tuning' is .*; it has no meaning with tune = false",
    ),
    (C1 + 'seeds = "6k"', "line 10: '6k' is not among the grid's 5k, 1k"),
    (C1 + "seeds = []", r"line 10: 'seeds' is \[\]; give"),
    (C1 + 'pairs = "en-fj"', r"line 8: pair 'en-fj' has no dictionaries in own\. Did you mean 'en-f"),
    (f"limit = 0\n{C1}", "line 8: 'limit' is 0; give a number of words"),
    (f'device = "tpu"\n{C1}', "line 8: 'device' is 'tpu'; input should be 'auto', 'cpu' or 'cuda'"),
    (
        '[method]\nname = "c1"',
        r"line 8: 'method' must be an array of tables; head each with \[\[method\]\]",
    ),
    ("", "the grid has no methods"),
    (
        C1 + '[[method]]\nname = "rcsls"\nlabel = "c1"',
        "line 10: label 'c1' stands for two different setups on en-fi with 5k seeds",
    ),
    ('[[method]\nname = "c1"', r"is not valid TOML \(.*line 8"),
    (f'pairs = ["en-fi"]\n{C1}pairs = ["en-fr"]', "line 11: 'en-fr' is not among the grid's en-fi"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_what_is_wrong_is_reported_with_its_line(file: Path, text: str, sentence: str) -> None:
    with pytest.raises(BilexError, match=sentence) as caught:
        labels(read(file, HEAD + text))
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_other_faults(file: Path, tmp_path: Path) -> None:
    with pytest.raises(BilexError, match=r"neither such a file nor a ready grid.* Did you mean 'paper-main'"):
        Grid.read("paper-mian")
    with pytest.raises(BilexError, match=r"the grid has no data; write \[data.NAME\]"):
        read(file, '[grid]\nseeds = "5k"\n[[method]]\nname = "c1"')
    with pytest.raises(BilexError, match="'seeds' is missing"):
        read(file, '[data.own]\npath = "data"\n[[method]]\nname = "c1"')
    with pytest.raises(BilexError, match=r"has no path for the data 'xling'; give --data xling=FOLDER"):
        Grid.read("paper-main").open_data()
    with pytest.raises(BilexError, match="method 'procrustes' cannot do without seeds"):
        labels(read(file, HEAD.replace('"1k"', '"0"') + '[[method]]\nname = "procrustes"'))
    with pytest.raises(BilexError, match="has no setup left"):
        restricted = read(file, HEAD + '[[method]]\nname = "c1"\npairs = "en-fi"')
        labels(restricted.choosing(pairs=["en-fr"]))
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BilexError, match="is not UTF-8 text"):
        Grid.read(file)


def test_lines_of_nested_tables() -> None:
    text = 'a = 1\n[[m]]\nx = 1\n[[m.l]]\ny = 2\n[[m.l]]\ny = 3\n[[m]]\n[[m.l]]\n"y" = 4\n[d.e]\nf.g = 1\n'
    file = TomlFile("f.toml", text)
    places = [
        ("a",),
        ("m", 0, "x"),
        ("m", 0, "l", 1, "y"),
        ("m", 1),
        ("m", 1, "l", 0, "y"),
        ("d", "e", "f", "g"),
    ]
    assert [file.where(*place) for place in places] == [f"f.toml, line {n}" for n in (1, 3, 7, 8, 10, 12)]
    assert file.where("m", 1, "unknown") == "f.toml, line 8" and file.where("unknown") == "f.toml"


# What the paper's tables need: setups, labels.
PAPER = {
    "paper-main": (28 * 2 * 6, {"RCSLS", "VecMap", "LNMap", "FIPP", "C1", "C2 (C1)"}),
    "paper-panlex": (
        6 * 6 + 2,
        {"VecMap", "FIPP", "C1", "mBERT", "mBERT (tuned)", "C2 (C1)", "C2 (C1, lambda=0.4)"},
    ),
    "paper-c2-over-others": (
        3 * 2 * 6,
        {"RCSLS", "C2 (RCSLS)", "VecMap", "C2 (VecMap)", "C1", "C2 (C1)"},
    ),
    "paper-lms": (8 * 2 * 4, {"C1", "C2 [mBERT]", "C2 [XLM]", "C2 [mT5]"}),
    "paper-ablation": (
        28 * 2 * 7,
        {"C1 w/o CL", "C1 w/o SL", "C1", "mBERT", "mBERT (tuned)", "C1+mBERT", "C2 (C1)"},
    ),
    "paper-lambda": (
        (8 * 2 + 6) * 12,
        {"C1"} | {f"C2 (C1), λ = {step / 10:g}" for step in range(11)},
    ),
}


@pytest.mark.parametrize("name", PAPER)
def test_ready_grids_of_the_paper(name: str, tmp_path: Path) -> None:
    folders = {
        "xling": folder_with(tmp_path / "xling", XLING),
        "panlex": folder_with(tmp_path / "panlex", PANLEX),
    }
    grid = Grid.read(name)
    grid = grid.choosing(data=[f"{name}={folders[name]}" for name in grid.data])
    setups = grid.setups(grid.open_data())
    assert (len(setups), {setup.label for setup in setups}) == PAPER[name]
    supervised = {s.method for s in setups if s.label == "VecMap" and s.seeds == "5k"}
    semi = {s.method for s in setups if s.label == "VecMap" and s.seeds == "1k"}
    assert supervised <= {"vecmap-supervised"} and semi <= {"vecmap-semi"}


def test_ready_grid_without_seeds(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "xling", XLING)
    grid = Grid.read("no-seeds").choosing(data=[str(folder)])
    setups = grid.setups(grid.open_data())
    assert len(setups) == 24 and {setup.seeds for setup in setups} == {"0"}
    assert {setup.method for setup in setups} == {"vecmap-identical", "vecmap-unsupervised", "c1"}


def test_ready_grid_of_the_shared_data(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "xling", XLING)
    grid = Grid.read("shared-data").choosing(data=[str(folder)])
    setups = grid.setups(grid.open_data())
    assert len({setup.key for setup in setups}) == 242 and len(setups) == 246  # λ = 0.2 and 1 have two names
    assert len({setup.pair for setup in setups}) == 6
    assert {setup.method for setup in setups} >= {
        "rcsls",
        "fipp",
        "lnmap",
        "vecmap-semi",
        "vecmap-supervised",
    }


def test_quick_grid_needs_nothing_but_the_package() -> None:
    grid = Grid.read("quick")
    folders = grid.open_data()
    setups = grid.setups(folders)
    assert [setup.label for setup in setups] == ["Procrustes", "C1", "C2 (C1)"]
    assert isinstance(folders["sample"], DataFolder)
    for setup in setups:
        folders["sample"].check(setup.pair, setup.seeds)


def test_every_ready_grid_has_a_sentence() -> None:
    assert all(about.endswith(".") and "\n" not in about for about in ready_grids().values())
    with pytest.raises(BilexError, match=r"no ready grid 'quikc'.* Did you mean 'quick'"):
        ready_text("quikc")
