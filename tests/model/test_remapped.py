from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bilex.aligners.maps import Linear, Map, Unit
from bilex.core.manifest import ModelFiles
from bilex.model import unknown
from bilex.model.unknown import Remapped

RNG = np.random.default_rng(0)


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
