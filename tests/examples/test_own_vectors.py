"""The worked example from own vectors to a dictionary, on a planted world."""

from __future__ import annotations

from pathlib import Path

import pytest

import own_vectors
from bilex import Lexicon, Translator
from planted import planted


def test_vectors_and_pairs_become_a_model_and_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = planted(600, 16, 0.5)
    files = [tmp_path / name for name in ("a.vec", "b.vec", "seeds.tsv")]
    world.source.save(files[0])
    world.target.save(files[1])
    world.pairs(0, 300).save(files[2])
    arguments = [*files[:2], "--seeds", files[2], "-o", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["own_vectors.py", *map(str, arguments)])
    own_vectors.main()
    accuracy = float(capsys.readouterr().out.split("held-out pairs: ")[1].split("%")[0])
    assert accuracy > 80  # 0.2 by chance
    right = dict(world.pairs(300, 600).pairs)
    found = dict(Lexicon.load(tmp_path / "out" / "dictionary.tsv").pairs)
    unseen = [source for source in right if source in found]
    assert len(unseen) > 200
    assert sum(found[source] == right[source] for source in unseen) > 0.9 * len(unseen)
    assert Translator.load(tmp_path / "out" / "model").space.source.index_to_key[0] in world.source
