"""Odd and bad arrays, for every method: a finite map, or one sentence before the work starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_worlds import World
from test_settings_fuzz import SMALL

from bilex.aligners import get_method, methods
from bilex.aligners.base import Aligner
from bilex.cli import run
from bilex.core.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

Change = Callable[[Any], Any]


def zero_rows(rows: Any) -> Any:
    rows[::3] = 0
    return rows


def duplicated(rows: Any) -> Any:
    rows[1::2] = rows[::2]
    return rows


def one_huge(rows: Any) -> Any:
    rows[3] *= 1e30
    return rows


def one_tiny(rows: Any) -> Any:
    rows[3] *= 1e-35
    return rows


def read_only(rows: Any) -> Any:
    rows.flags.writeable = False
    return rows


ODD: dict[str, Change] = {
    "zero rows": zero_rows,
    "all zero": np.zeros_like,
    "all equal": np.ones_like,
    "duplicated": duplicated,
    "one huge": one_huge,
    "one tiny": one_tiny,
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
# The same numbers however they lie in memory.
LAYOUTS = ("float64", "big-endian", "read-only", "by column", "every second number", "nested lists")


def small(name: str) -> Aligner:
    """A method with settings for a tiny problem."""
    known = get_method(name).settings_fields()
    settings = {key: value for key, value in SMALL.get(name, {}).items() if key in known}
    return get_method(name)(device="cpu", **settings)


def fitted(name: str, source: Any, target: Any, pairs: int) -> Aligner | None:
    """A method fitted to arrays; None where it refused them in one sentence."""
    identical = name == "vecmap-identical"
    words = [f"w{i}" for i in range(len(source))]
    try:
        x = WordVectors(words, source)
        y = WordVectors(words if identical else [f"t{i}" for i in range(len(target))], target)
        lexicon = Lexicon([(f"w{i}", y.index_to_key[i]) for i in range(pairs)], "seeds.txt")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return small(name).fit(x, y, lexicon)
    except BilexError as error:
        assert "\n" not in str(error) and str(error).endswith((".", "?"))
        return None


def is_finite(aligner: Aligner, source: Any, target: Any) -> bool:
    maps = (aligner.source_map_, aligner.target_map_)
    return all(np.isfinite(into(rows)).all() for into, rows in zip(maps, (source, target), strict=True))


@pytest.mark.parametrize("name", sorted(methods()))
def test_odd_arrays_give_a_finite_map_or_one_sentence(name: str) -> None:
    world = World(words=60, dim=6)
    plain = fitted(name, world.source.vectors, world.target.vectors, 30)
    assert plain is not None
    for kind, change in ODD.items():
        source, target = change(world.source.vectors.copy()), change(world.target.vectors.copy())
        found = fitted(name, source, target, 30)
        if found is None:
            assert kind not in LAYOUTS, kind
            continue
        assert is_finite(found, source, target), kind
        if kind in LAYOUTS:
            rows = world.source.vectors
            assert np.array_equal(found.source_map_(rows), plain.source_map_(rows)), kind


@pytest.mark.parametrize("name", sorted(methods()))
@pytest.mark.parametrize("words", [0, 1, 2])
def test_vocabularies_of_hardly_a_word(name: str, words: int) -> None:
    world = World(words=10, dim=4)
    source, target = world.source.vectors[:words], world.target.vectors[:words]
    found = fitted(name, source, target, words)
    assert found is None or is_finite(found, source, target)


@pytest.mark.parametrize("name", sorted(methods()))
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_refused_by_its_word(name: str, number: float) -> None:
    world = World(words=60, dim=6)
    world.target.vectors[41, 2] = number
    lexicon = world.seeds(30)
    if name == "vecmap-identical":
        world.target = WordVectors(world.source.index_to_key, world.target.vectors)
    word = world.target.index_to_key[41]
    with pytest.raises(BilexError, match=f"the vector of '{word}' holds NaN or infinity"):
        small(name).fit(world.source, world.target, None if name == "vecmap-identical" else lexicon)


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
        rows = ODD[kind](side.vectors.copy())
        lines = [
            f"{w} {' '.join(map(repr, r))}" for w, r in zip(side.index_to_key, rows.tolist(), strict=True)
        ]
        Path(file).write_text("\n".join(lines))
    Path("seeds.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in world.seeds(30).pairs))
    line = ["align", "a.vec", "b.vec", "--seeds", "seeds.tsv", "-o", "model", "--method", "procrustes"]
    code = run(line)
    said = capsys.readouterr().err
    if code == 0:
        from safetensors.numpy import load_file

        tensors = [load_file(file) for file in sorted(Path("model").rglob("*.safetensors"))]
        assert tensors
        assert all(np.isfinite(tensor).all() for held in tensors for tensor in held.values())
        assert run(["translate", "model", "s1"]) == 0
    else:
        assert code == 2 and "Traceback" not in said and not Path("model").exists()
