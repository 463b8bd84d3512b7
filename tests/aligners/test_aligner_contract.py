"""What holds for every method: settings, reports, odd arrays, missing seeds, and the same maps every time."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from c1_worlds import World

from bilex import C1, BilexError
from bilex.aligners import Aligner, Map, get_method, methods
from bilex.cli import run
from bilex.core.files import json_text
from bilex.core.typed_json import as_json, from_json
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

# Only the methods of bilex itself: tests of the benchmark register others.
NAMES = sorted(name for name, method in methods().items() if method.__module__.startswith("bilex."))
EVERY = pytest.mark.parametrize("name", NAMES)
HANGS_AFTER = 120
SMALL: dict[str, dict[str, Any]] = {
    "c1": {"iterations": 1, "updates": 2, "passes": 2},
    "rcsls": {"iterations": 2},
    "lnmap": {
        "hidden": 8,
        "latent": 6,
        "autoencoder_epochs": 1,
        "autoencoder_samples": 50,
        "mapper_epochs": 1,
        "rounds": 1,
    },
    "vecmap-semi": {"patience": 1, "frequent": 40},
    "vecmap-identical": {"patience": 1, "frequent": 40},
    "vecmap-unsupervised": {"patience": 1, "frequent": 40},
}


def fitted(name: str, world: World, seeds: int = 30, **settings: Any) -> Aligner:
    """A method with settings for tiny problems, or those given; of vecmap-identical all words are alike."""
    aligner = get_method(name)(**{"device": "cpu", **SMALL.get(name, {}), **settings})
    if name == "vecmap-identical":
        return aligner.fit(world.source, WordVectors(world.source.index_to_key, world.target.vectors))
    return world.fit(aligner, seeds)


def mapped(aligner: Aligner, source: Any, target: Any) -> tuple[Any, Any]:
    return aligner.source_map_(source), aligner.target_map_(target)


def test_every_method_is_found_by_name() -> None:
    found = methods()
    assert list(found) == sorted(found)
    assert {"procrustes", "advanced", "c1", "vecmap-supervised", "rcsls", "fipp", "lnmap"} <= set(NAMES)
    for name, method in found.items():
        assert get_method(name) is method
        assert method.name == name
        assert method.summary
        assert method.metric in ("cosine", "dot")
        assert not name.startswith("_")
        method()  # every setting has a default


def test_a_mistyped_method_gets_the_nearest_name() -> None:
    with pytest.raises(BilexError, match=r"method 'procustes' is not known; .* Did you mean 'procrustes'\?"):
        get_method("procustes")
    with pytest.raises(BilexError, match="choose one of advanced, c1, ") as caught:
        get_method("xyzzy")
    assert "Did you mean" not in str(caught.value)


def test_the_methods_are_listed_without_numba(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('no numba here')", encoding="utf-8")
    code = "from bilex.aligners import methods; assert 'lnmap' in methods()"
    environment = {"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_aligner_prints_what_differs_from_the_defaults() -> None:
    assert repr(C1()) == "C1()"
    assert repr(C1(updates=5, device="cpu", decay=0.5)) == "C1(device='cpu', updates=5, decay=0.5)"
    assert C1(updates=5) == C1(updates=5) != C1(updates=6)


def test_settings_are_the_constructor_arguments() -> None:
    settings = C1(updates=5).settings()
    assert settings["updates"] == 5
    assert "source_map_" not in settings
    assert C1(**settings) == C1(updates=5)


@pytest.mark.parametrize("name", [name for name in NAMES if get_method(name).needs_seeds])
def test_a_method_that_needs_seeds_says_so(name: str) -> None:
    world, aligner = World(words=50), get_method(name)(device="cpu")
    for none in (None, Lexicon([])):
        with pytest.raises(
            BilexError, match=f"method '{name}' needs a seed dictionary; give one with --seeds"
        ):
            aligner.fit(world.source, world.target, none)


@pytest.mark.parametrize("name", [name for name in NAMES if get_method(name).needs_seeds] + ["c1"])
@pytest.mark.parametrize("pairs", [[("cat", "kissa"), ("dog", "koira")], [("s1", "t1"), ("dog", "t2")]])
def test_seeds_that_cover_too_little_are_refused(name: str, pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(BilexError, match=r"^animals\.txt: .*needs at least 2 pairs") as caught:
        World(words=50).fit(get_method(name)(device="cpu"), Lexicon(pairs, "animals.txt"))
    assert "\n" not in str(caught.value)


@EVERY
def test_reports_survive_json(name: str) -> None:
    aligner = fitted(name, World(words=60), 40)
    report = aligner.report_
    assert report.seed_pairs_used == (0 if name == "vecmap-identical" else 40)
    assert from_json(aligner.report_type(), json.loads(json_text(as_json(report)))) == report
    if name == "c1":
        assert report.constants is not None and len(report.history[0].loss) == 2


def test_the_report_counts_covered_seeds_with_repeats() -> None:
    world = World(words=50)
    seeds = Lexicon([*world.seeds(30).pairs, ("s1", "t1"), ("dog", "koira")])
    report = world.fit(get_method("procrustes")(device="cpu"), seeds).report_
    assert (report.seed_pairs, report.seed_pairs_used) == (32, 31)


# What every method finds: a rotation, in both directions

WORDS, DIM = 600, 24
PLANTED: dict[str, dict[str, Any]] = {
    "procrustes": {},
    "advanced": {},
    "vecmap-supervised": {},
    "vecmap-semi": {"patience": 3},
    "vecmap-identical": {"patience": 3},
    "vecmap-unsupervised": {"patience": 5},
    "rcsls": {},
    "fipp": {"self_learning": False, "epsilon": 0.3},
    "lnmap": {
        "hidden": 48,
        "latent": 32,
        "dropout": 0.0,
        "autoencoder_epochs": 4,
        "autoencoder_samples": 2000,
        "autoencoder_rate": 5e-3,
        "mapper_epochs": 25,
        "batch": 64,
        "mapper_rate": 1e-3,
        "rounds": 1,
        "growth": 100,
    },
}


def languages(noise: float = 0.05, shared_words: int = 60) -> tuple[WordVectors, WordVectors]:
    """Word i of one language means word i of the other; skewed so that the two have a shape."""
    random = np.random.default_rng(0)
    x = random.standard_t(5, size=(WORDS, DIM)) * np.linspace(0.5, 2, DIM) + 0.3
    rotation, _ = np.linalg.qr(random.normal(size=(DIM, DIM)))
    y = x @ rotation + noise * random.normal(size=x.shape)
    source = [f"s{i}" if i >= shared_words else f"w{i}" for i in range(WORDS)]
    target = [f"t{i}" if i >= shared_words else f"w{i}" for i in range(WORDS)]
    return WordVectors(source, x.astype(np.float32)), WordVectors(target, y.astype(np.float32))


def first_pairs(source: WordVectors, target: WordVectors, count: int) -> Lexicon:
    return Lexicon(list(zip(source.index_to_key[:count], target.index_to_key[:count], strict=True)))


def accuracy(aligner: Aligner, source: WordVectors, target: WordVectors, first: int) -> float:
    """P@1 by nearest neighbour of the words from `first` on, in the worse of both directions."""
    space = Space.from_aligner(aligner, source, target)
    rows = np.arange(first, len(source))
    found = [space.search(rows, 1, direction=d, retrieval="nn")[1][:, 0] for d in ("forward", "backward")]
    return min(float((answer == rows).mean()) for answer in found)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_rotation_is_found_and_a_saved_map_maps_alike(name: str) -> None:
    source, target = languages()
    aligner = get_method(name)(device="cpu", **PLANTED[name])
    aligner.fit(source, target, first_pairs(source, target, 200) if aligner.needs_seeds else None)
    assert accuracy(aligner, source, target, 200) > 0.97
    if name == "vecmap-semi":
        assert aligner.report_.recovered > 0.9 and not aligner.report_.warnings
    for map_, vectors in ((aligner.source_map_, source.vectors), (aligner.target_map_, target.vectors)):
        kinds, tensors = map_.state("map")
        again = Map.from_state("map", kinds, tensors.__getitem__)
        np.testing.assert_array_equal(again(vectors[:7]), map_(vectors[:7]))
        if name == "lnmap":  # two mapped vectors side by side
            np.testing.assert_allclose(np.linalg.norm(map_(vectors), axis=1), np.sqrt(2), rtol=1e-5)


@pytest.mark.parametrize("name", ["rcsls", "fipp"])
def test_different_dimensions_are_refused_before_work(name: str) -> None:
    source, target = languages()
    narrow = WordVectors(target.index_to_key, target.vectors[:, :10])
    with pytest.raises(BilexError, match="needs vectors of one dimension, not 24 and 10"):
        get_method(name)().fit(source, narrow, first_pairs(source, target, 50))


@pytest.mark.parametrize("name", ["procrustes", "advanced", "vecmap-supervised", "vecmap-semi", "lnmap"])
def test_different_dimensions_are_accepted_by_the_others(name: str) -> None:
    source, target = languages()
    flipped = np.pad(target.vectors, ((0, 0), (0, 6))) @ np.eye(30, dtype=np.float32)[::-1]
    wide = WordVectors(target.index_to_key, flipped)
    aligner = get_method(name)(device="cpu", **PLANTED[name])
    aligner.fit(source, wide, first_pairs(source, target, 200))
    assert accuracy(aligner, source, wide, 200) > 0.95


# The same input, settings and random seed: the same bytes of maps; with other threads the same answers

FEW_UPDATES: dict[str, dict[str, Any]] = {"c1": {"updates": 5}, "rcsls": {"iterations": 5}}
# Many small steps of stochastic descent, or matching by random numbers: rounding grows with every step.
ROUNDING_GROWS = {"lnmap", "vecmap-semi", "vecmap-unsupervised", "vecmap-identical"}


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@EVERY
def test_the_same_bytes_come_out_again(name: str) -> None:
    world = World(words=200, dim=24)
    with threads(2):
        one, other = (fitted(name, world, 60, **FEW_UPDATES.get(name, {})) for _ in range(2))
    for side in ("source_map_", "target_map_"):
        tensors = [getattr(aligner, side).state("map")[1] for aligner in (one, other)]
        assert [t.tobytes() for t in tensors[0].values()] == [t.tobytes() for t in tensors[1].values()]


@pytest.mark.parametrize("name", sorted(set(NAMES) - ROUNDING_GROWS))
@pytest.mark.parametrize("seeds", [12, 100], ids=["fewer seeds than dimensions", "enough seeds"])
def test_other_numbers_of_threads_give_the_same_answers(name: str, seeds: int) -> None:
    world = World(words=400, dim=40)
    found = []
    for count in (1, 2):
        with threads(count):
            aligner = fitted(name, world, seeds, **FEW_UPDATES.get(name, {}))
        x, y = mapped(aligner, world.source.vectors, world.target.vectors)
        found.append((x @ y.T).argmax(axis=1))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("name", ["procrustes", "advanced", "rcsls", "c1"])
def test_the_order_of_few_seeds_does_not_change_answers(name: str) -> None:
    """Another order of summation, as another number of threads would have."""
    world = World(words=300, dim=40)
    pairs = world.seeds(15).pairs
    found = []
    for seeds in (pairs, pairs[::-1]):
        aligner = get_method(name)(device="cpu", **SMALL.get(name, {}))
        x, y = mapped(world.fit(aligner, Lexicon(seeds)), world.source.vectors, world.target.vectors)
        found.append((x @ y.T).argmax(axis=1))
    assert (found[0] == found[1]).mean() > 0.99


# Settings of wrong kinds and extremes: a finite map, or one sentence

NUMBERS = (-1, 0, 1, 2, -0.5, 0.5, 1e-30, 1e30, math.nan, math.inf, -math.inf, 10**30)
OTHERS = ("", "x", None, True, False, [], b"1", (1, 2), np.float64(0.5))
# Settings whose large values only make a fit longer; such values are left out.
LONG = ("iterations", "updates", "rounds", "autoencoder", "mapper_epochs", "patience", "warm_up")


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    def too_long(*_: object) -> None:
        pytest.fail(f"{what} did not end")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@EVERY
def test_every_setting_works_or_is_refused_in_one_sentence(name: str) -> None:
    method, world = get_method(name), World(words=80, dim=6)
    refused = finished = 0
    for setting in method.settings_fields():
        for value in (*NUMBERS, *OTHERS):
            if setting.startswith(LONG) and isinstance(value, (int, float)) and value > 2:
                continue
            settings = {"device": "cpu", **SMALL.get(name, {}), setting: value}
            with time_limit(f"{name} with {setting}={value!r}"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    aligner = world.fit(method(**settings), 40)
                except BilexError as error:
                    assert "\n" not in str(error)
                    refused += 1
                    continue
            finished += 1
            for rows in mapped(aligner, world.source.vectors[:], world.target.vectors[:]):
                assert np.isfinite(rows).all(), f"{name} with {setting}={value!r}"
    assert refused > 10 and (finished > 0 or name == "vecmap-identical")  # the world has no identical words


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("c1", "temperature", 0),
        ("fipp", "pairs", 0),
        ("procrustes", "seed", -1),
        ("vecmap-semi", "keep", math.nan),
        ("vecmap-semi", "keep", 0),
        ("vecmap-semi", "growth", 1.0),
        ("vecmap-semi", "threshold", -1.0),
    ],
)
def test_impossible_settings_are_refused_by_name(name: str, setting: str, value: float) -> None:
    with pytest.raises(BilexError, match=f"setting '{setting}' of {name} is"):
        World(words=50, dim=4).fit(get_method(name)(device="cpu", **{setting: value}), 20)


# Odd and bad arrays: a finite map, or one sentence before the work starts


def changed(place: Any, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Rows of which some are changed."""

    def change_rows(rows: Any) -> Any:
        rows[place] = change(rows)
        return rows

    return change_rows


def read_only(rows: Any) -> Any:
    rows.flags.writeable = False
    return rows


ODD: dict[str, Callable[[Any], Any]] = {
    "zero rows": changed(slice(None, None, 3), lambda rows: 0),
    "all zero": np.zeros_like,
    "all equal": np.ones_like,
    "duplicated": changed(slice(1, None, 2), lambda rows: rows[::2]),
    "one huge": changed(3, lambda rows: rows[3] * 1e30),
    "one tiny": changed(3, lambda rows: rows[3] * 1e-35),
    "integers": lambda rows: (rows * 100).astype(np.int64),
    "bytes": lambda rows: (rows > 0).astype(np.uint8),
    "booleans": lambda rows: rows > 0,
    "float16": lambda rows: rows.astype(np.float16),
    "float64": lambda rows: rows.astype(np.float64),
    "big-endian": lambda rows: rows.astype(">f4"),
    "read-only": read_only,
    "by column": np.asfortranarray,
    "backwards": lambda rows: rows[::-1, ::-1],
    "every second number": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "one dimension": lambda rows: rows[:, :1],
    "nested lists": lambda rows: rows.tolist(),
}
# The same numbers in another memory layout.
LAYOUTS = ("float64", "big-endian", "read-only", "by column", "every second number", "nested lists")


def fitted_to(name: str, source: Any, target: Any, pairs: int) -> Aligner | None:
    """A method fitted to arrays; None where it refused them in one sentence."""
    world = World(words=10, dim=4)
    try:
        world.source = WordVectors([f"s{i}" for i in range(len(source))], source)
        world.target = WordVectors([f"t{i}" for i in range(len(target))], target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fitted(name, world, pairs)
    except BilexError as error:
        assert "\n" not in str(error) and str(error).endswith((".", "?"))
        return None


def is_finite(aligner: Aligner, source: Any, target: Any) -> bool:
    return all(np.isfinite(rows).all() for rows in mapped(aligner, source, target))


@EVERY
def test_odd_arrays_give_a_finite_map_or_one_sentence(name: str) -> None:
    world = World(words=60, dim=6)
    plain = fitted_to(name, world.source.vectors, world.target.vectors, 30)
    assert plain is not None
    for kind, change in ODD.items():
        source, target = change(world.source.vectors.copy()), change(world.target.vectors.copy())
        found = fitted_to(name, source, target, 30)
        if found is None:
            assert kind not in LAYOUTS, kind
            continue
        assert is_finite(found, source, target), kind
        if kind in LAYOUTS:
            rows = world.source.vectors
            assert np.array_equal(found.source_map_(rows), plain.source_map_(rows)), kind


@EVERY
@pytest.mark.parametrize("words", [0, 1, 2])
def test_vocabularies_of_hardly_a_word(name: str, words: int) -> None:
    world = World(words=10, dim=4)
    source, target = world.source.vectors[:words], world.target.vectors[:words]
    found = fitted_to(name, source, target, words)
    assert found is None or is_finite(found, source, target)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"lnmap"}))
def test_fewer_seeds_than_dimensions_stay_finite(name: str) -> None:
    world = World(words=200, dim=24)
    assert is_finite(fitted(name, world, 10), world.source.vectors, world.target.vectors)


@EVERY
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_refused_by_its_word(name: str, number: float) -> None:
    world = World(words=60, dim=6)
    world.target.vectors[41, 2] = number
    word = "s41" if name == "vecmap-identical" else "t41"
    with pytest.raises(BilexError, match=f"the vector of '{word}' holds NaN or infinity"):
        fitted(name, world)


@pytest.mark.parametrize(
    "vectors",
    [
        np.ones(3),
        np.ones((3, 2, 2)),
        np.ones((2, 2)),
        np.ones((3, 2), complex),
        np.full((3, 2), "1"),
        np.full((3, 2), None),
        [[1.0], [2.0, 3.0], [4.0]],
        None,
        5,
    ],
    ids=["one axis", "three axes", "other rows", "complex", "text", "objects", "ragged", "None", "a number"],
)
def test_what_is_no_matrix_of_numbers_is_refused(vectors: Any) -> None:
    with pytest.raises(BilexError) as caught:
        WordVectors(["a", "b", "c"], vectors)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [[1, 2], ["a", None], [b"a", b"b"]])
def test_words_that_are_no_strings_are_refused(words: Any) -> None:
    with pytest.raises(BilexError, match="the words must be strings"):
        WordVectors(words, np.ones((2, 2)))


@pytest.mark.parametrize("kind", ["all zero", "all equal", "duplicated", "one huge", "one dimension"])
def test_odd_files_give_a_finite_model_or_one_sentence(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world = World(words=60, dim=6)
    for file, side in (("a.vec", world.source), ("b.vec", world.target)):
        rows = ODD[kind](side.vectors.copy()).tolist()
        lines = [
            f"{word} {' '.join(map(repr, row))}" for word, row in zip(side.index_to_key, rows, strict=True)
        ]
        Path(file).write_text("\n".join(lines))
    world.seeds(30).save("seeds.tsv")
    line = ["align", "a.vec", "b.vec", "--seeds", "seeds.tsv", "-o", "model", "--method", "procrustes"]
    code = run(line)
    if code == 0:
        from safetensors.numpy import load_file

        tensors = [load_file(file) for file in sorted(Path("model").rglob("*.safetensors"))]
        assert tensors
        assert all(np.isfinite(tensor).all() for held in tensors for tensor in held.values())
        assert run(["translate", "model", "s1"]) == 0
    else:
        assert code == 2 and "Traceback" not in capsys.readouterr().err and not Path("model").exists()
