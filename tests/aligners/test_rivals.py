"""Every method on a problem whose answer is known, and what each says to bad input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilex.aligners import Aligner, Map, get_method, vecmap
from bilex.core.errors import BilexError
from bilex.core.progress import Silent, Task
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

WORDS, DIM = 600, 24
QUICK: dict[str, dict[str, Any]] = {
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
        "autoencoder_epochs": 5,
        "autoencoder_samples": 4000,
        "autoencoder_rate": 5e-3,
        "mapper_epochs": 100,
        "batch": 64,
        "mapper_rate": 3e-4,
        "rounds": 1,
        "growth": 100,
    },
}


def _languages(noise: float = 0.05, seed: int = 0, shared_words: int = 60) -> tuple[WordVectors, WordVectors]:
    """Word i of one language means word i of the other; skewed so that the two have a shape."""
    random = np.random.default_rng(seed)
    x = random.standard_t(5, size=(WORDS, DIM)) * np.linspace(0.5, 2, DIM) + 0.3
    rotation, _ = np.linalg.qr(random.normal(size=(DIM, DIM)))
    y = x @ rotation + noise * random.normal(size=x.shape)
    source = [f"s{i}" if i >= shared_words else f"w{i}" for i in range(WORDS)]
    target = [f"t{i}" if i >= shared_words else f"w{i}" for i in range(WORDS)]
    return WordVectors(source, x.astype(np.float32)), WordVectors(target, y.astype(np.float32))


def _seeds(source: WordVectors, target: WordVectors, count: int) -> Lexicon:
    pairs = zip(source.index_to_key[:count], target.index_to_key[:count], strict=True)
    return Lexicon(list(pairs), "planted")


def _accuracy(aligner: Aligner, source: WordVectors, target: WordVectors, first: int) -> list[float]:
    """P@1 by nearest neighbour of the words from `first` on, both ways."""
    space = Space.from_aligner(aligner, source, target)
    rows = np.arange(first, len(source))
    found = [space.search(rows, 1, direction=d, retrieval="nn")[1][:, 0] for d in ("forward", "backward")]
    return [float((answer == rows).mean()) for answer in found]


def _fitted(name: str, **changes: Any) -> tuple[Aligner, WordVectors, WordVectors]:
    source, target = _languages()
    aligner = get_method(name)(device="cpu", **(QUICK[name] | changes))
    seeds = _seeds(source, target, 200) if aligner.needs_seeds else None
    return aligner.fit(source, target, seeds), source, target


@pytest.mark.parametrize("name", sorted(QUICK))
def test_planted_rotation_is_found_both_ways(name: str) -> None:
    aligner, source, target = _fitted(name)
    assert min(_accuracy(aligner, source, target, 200)) > 0.97


@pytest.mark.parametrize("name", sorted(QUICK))
def test_same_seed_same_maps_and_a_saved_map_maps_alike(name: str) -> None:
    quick = {"autoencoder_epochs": 1, "mapper_epochs": 2, "rounds": 1} if name == "lnmap" else {}
    (one, source, target), (two, _, _) = _fitted(name, **quick), _fitted(name, **quick)
    for side, vectors in (("source", source), ("target", target)):
        first, second = getattr(one, f"{side}_map_"), getattr(two, f"{side}_map_")
        mapped = first(vectors.vectors)
        np.testing.assert_array_equal(mapped, second(vectors.vectors))
        kinds, tensors = first.state("map")
        again = Map.from_state("map", kinds, tensors.__getitem__)
        np.testing.assert_array_equal(again(vectors.vectors[:7]), first(vectors.vectors[:7]))


@pytest.mark.parametrize("name", sorted(QUICK))
def test_no_seeds_are_refused_by_those_that_need_them(name: str) -> None:
    source, target = _languages()
    aligner = get_method(name)(device="cpu", **QUICK[name])
    if aligner.needs_seeds:
        with pytest.raises(BilexError, match="needs a seed dictionary"):
            aligner.fit(source, target)
        with pytest.raises(BilexError, match="needs at least 2 pairs"):
            aligner.fit(source, target, Lexicon([("nowhere", "niemals")], "odd.tsv"))


@pytest.mark.parametrize("name", ["rcsls", "fipp"])
def test_different_dimensions_are_refused_before_work(name: str) -> None:
    source, target = _languages()
    narrow = WordVectors(target.index_to_key, target.vectors[:, :10])
    with pytest.raises(BilexError, match="needs vectors of one dimension, not 24 and 10"):
        get_method(name)().fit(source, narrow, _seeds(source, target, 50))


@pytest.mark.parametrize("name", ["vecmap-supervised", "vecmap-semi", "lnmap"])
def test_different_dimensions_are_taken_by_the_others(name: str) -> None:
    source, target = _languages()
    wide = WordVectors(
        target.index_to_key, np.pad(target.vectors, ((0, 0), (0, 6))) @ np.eye(30, dtype=np.float32)[::-1]
    )
    aligner = get_method(name)(device="cpu", **QUICK[name]).fit(source, wide, _seeds(source, target, 200))
    assert min(_accuracy(aligner, source, wide, 200)) > 0.95


@pytest.mark.parametrize("name", sorted(set(QUICK) - {"lnmap"}))
def test_fewer_seeds_than_dimensions_stay_finite(name: str) -> None:
    source, target = _languages()
    aligner = get_method(name)(device="cpu", **QUICK[name]).fit(source, target, _seeds(source, target, 10))
    assert np.isfinite(aligner.source_map_(source.vectors)).all()
    assert np.isfinite(aligner.target_map_(target.vectors)).all()


def test_identical_start_without_shared_words_is_reported() -> None:
    source, target = _languages(shared_words=0)
    with pytest.raises(BilexError, match="share 0 words, too few"):
        get_method("vecmap-identical")(device="cpu").fit(source, target)


def test_a_collapse_is_said() -> None:
    """Unrelated languages are matched all the same, but the pairs do not predict each other."""
    random = np.random.default_rng(9)
    source, target = (
        WordVectors([f"{side}{i}" for i in range(WORDS)], random.normal(size=(WORDS, 100)).astype(np.float32))
        for side in "st"
    )
    impatient = get_method("vecmap-semi")(device="cpu", patience=2, growth=10.0)
    aligner = impatient.fit(source, target, _seeds(source, target, 200))
    assert aligner.report_.recovered < 0.25
    assert "probably not brought together" in aligner.report_.warnings[0]


class _CtrlC(Silent):
    """Presses Ctrl-C at a round of self-learning."""

    def __init__(self, at: int) -> None:
        self.at = at

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        listener = self

        class Bar:
            def advance(self, steps: float = 1, **figures: float | int | str) -> None:
                if figures.get("round") == listener.at:
                    raise KeyboardInterrupt

        yield Bar()


@pytest.mark.parametrize("at", [2, 7, 12])
def test_self_learning_that_was_cut_off_goes_on_to_the_same_maps(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vecmap, "_SECONDS_KEPT", -1.0)
    source, target = _languages(noise=0.5)
    seeds = _seeds(source, target, 40)

    def fit(**more: Any) -> Aligner:
        return get_method("vecmap-semi")(device="cpu", patience=3).fit(source, target, seeds, **more)

    whole = fit()
    assert whole.report_.rounds > 12
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=tmp_path / "kept", progress=_CtrlC(at))
    again = fit(checkpoint=tmp_path / "kept", progress=_CtrlC(at - 1))
    assert again.report_ == whole.report_
    for side, vectors in (("source_map_", source), ("target_map_", target)):
        np.testing.assert_array_equal(
            getattr(again, side)(vectors.vectors), getattr(whole, side)(vectors.vectors)
        )


def test_a_success_is_not_called_a_collapse() -> None:
    aligner, _, _ = _fitted("vecmap-semi")
    assert aligner.report_.recovered > 0.9
    assert not aligner.report_.warnings


def test_importing_the_methods_does_not_need_numba(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "numba.py").write_text("raise ImportError('no numba here')", encoding="utf-8")
    code = "from bilex.aligners import methods; assert 'lnmap' in methods()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
