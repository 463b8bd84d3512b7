"""A translator with a language model: any word can be asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bilex.aligners import Map
from bilex.aligners.maps import Linear, Unit
from bilex.core.manifest import ModelFiles
from bilex.encoders import Combination
from bilex.model import Translator, unknown
from bilex.model.unknown import FromEncoder, FromSubwords, Remapped
from bilex.vectors.stored import unit_rows
from planted import planted
from tiny_encoders import tiny_encoder

RNG = np.random.default_rng(0)


class Letters:
    """An encoder that knows the words 'one' and 'two'."""

    known: ClassVar = {word: RNG.normal(size=6).astype(np.float32) for word in ("one", "two")}

    def encode(self, words: list[str]) -> np.ndarray:
        return np.stack([self.known.get(word, np.zeros(6, np.float32)) for word in words])


class Ngrams(FromSubwords):
    """Subwords that know 'two' and 'three'."""

    known: ClassVar = {word: unit_rows(RNG.normal(size=(1, 8)))[0] for word in ("two", "three")}

    def __init__(self) -> None:
        super().__init__({}, {})

    def vectors(self, words: Any, side: Any) -> list[np.ndarray | None]:
        return [self.known.get(word) for word in words]


def test_static_and_encoded_vectors_are_mixed() -> None:
    encoder_map = RNG.normal(size=(6, 8)).astype(np.float32)
    combination = Combination(np.eye(8, dtype=np.float32), encoder_map, 0.3)
    reader = FromEncoder(Letters, combination, lambda path: None, Ngrams())
    one, two, three, four = reader.vectors(["one", "two", "three", "four"], "source")
    encoded = {word: unit_rows((row @ encoder_map)[None])[0] for word, row in Letters.known.items()}
    assert four is None
    assert np.allclose(one, encoded["one"], atol=1e-6)
    assert np.allclose(three, Ngrams.known["three"], atol=1e-6)
    mixed = 0.7 * Ngrams.known["two"] + 0.3 * encoded["two"]
    assert np.allclose(two, mixed / np.linalg.norm(mixed), atol=1e-6)
    whole = combination(np.stack([Ngrams.known["two"]]), np.stack([Letters.known["two"]]))
    assert np.allclose(two, whole[0], atol=1e-6)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with a tokenizer of letters, as a model folder."""
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    tiny_encoder().save(folder, "tiny")
    return folder


@pytest.mark.parametrize("mixing", [0.4, "auto"])
def test_both_stages_fit_save_and_load(tiny: Path, tmp_path: Path, mixing: Any) -> None:
    from bilex import C2
    from bilex.encoders import TuningSettings

    world = planted(500, 16, 0.6)
    tuning = TuningSettings(negatives=2, epochs=1, batch_size=50, induced=0)
    stage = C2(tiny, mixing=mixing, tuning=tuning, device="cpu")
    made = Translator("procrustes", encoder=stage).fit(world.source, world.target, world.pairs(0, 300))
    assert made.space.dim == 24
    assert made.calibration.parts["forward", "csls"].words >= 40
    used = made.provenance.language_model.mixing
    assert used == 0.4 or mixing == "auto"
    answer = made.translate("unheardof")
    assert answer.origin == "encoder" and answer[0].confidence is None
    assert len(made.map_vectors(world.source, "source")) == 500
    made.save(tmp_path / "model")
    loaded = Translator.load(tmp_path / "model", device="cpu")
    assert [found.word for found in loaded.translate("unheardof")] == [found.word for found in answer]
    words = world.source.index_to_key[:50]
    assert loaded.translate(words) == made.translate(words)
    loaded.save(tmp_path / "again")
    assert Translator.load(tmp_path / "again").translate("unheardof").known


def test_the_device_of_a_loaded_translator_is_that_of_its_encoder(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bilex import C2
    from bilex.encoders import WordEncoder

    world = planted(120, 16, 0.6)
    stage = C2(tiny, mixing=0.4, tune=False, device="cpu")
    made = Translator("procrustes", encoder=stage).fit(
        world.source, world.target, world.pairs(0, 60), calibrate=False
    )
    made.save(tmp_path / "model")
    asked: list[str] = []
    original = WordEncoder.load

    def spy(where: Any, device: str = "auto", **rest: Any) -> WordEncoder:
        asked.append(device)
        return original(where, device="cpu", **rest)

    monkeypatch.setattr(WordEncoder, "load", spy)
    loaded = Translator.load(tmp_path / "model", device="cpu")
    assert loaded.translate("unheardof").origin == "encoder"
    assert asked == ["cpu"]


class Twos:
    """Knows words of two letters; their vectors go through the maps of its time."""

    kind: ClassVar[str] = "language_pairs"

    def __init__(self, maps: Any) -> None:
        self._maps = maps

    def vectors(self, words: Any, side: Any) -> list[Any]:
        rows = [
            np.array([ord(word[0]), ord(word[1])], np.float32) if len(word) == 2 else None for word in words
        ]
        return [None if row is None else self._maps[side](row[None])[0] for row in rows]

    def save(self, folder: Any) -> None:
        (folder / "nothing").touch()

    @classmethod
    def load(cls, folder: Any, maps: Any, device: str, files: ModelFiles) -> Twos:
        return cls(maps)


def maps() -> dict[Any, Map]:
    return {side: Map([Unit(), Linear(RNG.normal(size=(2, 2))), Unit()]) for side in ("source", "target")}


def test_words_go_through_both_maps_also_after_loading(tmp_path, monkeypatch):
    monkeypatch.setitem(unknown.KINDS, "language_pairs", Twos)
    before, onward = maps(), maps()
    reader = Remapped(Remapped(Twos(before), before, onward), onward, maps())
    reader.save(tmp_path)
    again = Remapped.load(tmp_path, maps(), "cpu", ModelFiles(tmp_path))
    for side in ("source", "target"):
        first, none = reader.vectors(["ab", "abc"], side)
        assert none is None and np.isclose(np.linalg.norm(first), 1)
        inner = onward[side](Twos(before).vectors(["ab"], side)[0][None])[0]
        assert not np.allclose(first, inner)
        assert np.allclose(again.vectors(["ab"], side)[0], first)
