"""What C1 makes of pairs that people have rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from c1_worlds import World, quick, same_maps

import bilex.aligners.c1 as c1_module
from bilex.lexicon import Lexicon

WORDS, DIM, PAIRS, NEGATIVES = 200, 12, 30, 6


def test_rejected_pairs_are_never_induced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word from anybody these pairs are found; rejected, they are in no dictionary of any round."""
    world = World()
    learned: list[set[tuple[int, int]]] = []

    def listening(self: Any, rows: Any, dictionary: dict[Any, np.ndarray], progress: Any) -> Any:
        learned.append(set(map(tuple, dictionary["source", "target"].tolist())))
        return plain(self, rows, dictionary, progress)

    plain = c1_module.C1._mapping
    monkeypatch.setattr(c1_module.C1, "_mapping", listening)
    world.fit(quick(), 100)
    wrong = sorted(set.union(*learned) - {(i, i) for i in range(100)})[::20]
    assert len(wrong) > 5
    learned.clear()
    rejected = tuple((f"s{a}", f"t{b}") for a, b in wrong)
    world.fit(quick(), Lexicon(world.seeds(100).pairs, "seeds", rejected=rejected))
    assert len(learned) > 2 and not set(wrong) & set.union(*learned)


def test_a_rejected_pair_is_pushed_apart() -> None:
    """A rejected pair pushes apart: that word's cosine with it falls."""
    world = World(noise=1.0)

    def cosine(rejected: tuple[tuple[str, str], ...]) -> float:
        seeds = Lexicon(world.seeds(60).pairs, "seeds", rejected=rejected)
        fitted = world.fit(quick(updates=40, iterations=1), seeds)
        x, y = fitted.source_map_(world.source.vectors[:1]), fitted.target_map_(world.target.vectors)
        return float((x @ y.T)[0, place])

    place = 0
    plain = world.fit(quick(updates=40, iterations=1), 60)
    near = plain.source_map_(world.source.vectors[:1]) @ plain.target_map_(world.target.vectors).T
    # A word far down the list is no hard negative of the pair: only the rejection makes it one.
    place = int(np.argsort(-near[0])[450])
    assert cosine((("s0", f"t{place}"),)) < cosine(())


def test_nothing_changes_where_nothing_is_rejected() -> None:
    world = World()
    other = (("s500", "nowhere"),)
    assert same_maps(
        world.fit(quick(iterations=1), 100),
        world.fit(quick(iterations=1), Lexicon(world.seeds(100).pairs, "seeds", rejected=other)),
    )


def test_a_checkpoint_of_other_rejections_is_not_resumed(tmp_path: Any) -> None:
    from bilex.core.errors import BilexError

    world = World()
    world.fit(quick(iterations=1), 100, checkpoint=tmp_path / "state")
    with pytest.raises(BilexError, match="other vectors, seeds or settings"):
        world.fit(
            quick(iterations=1),
            Lexicon(world.seeds(100).pairs, "seeds", rejected=(("s1", "t2"),)),
            checkpoint=tmp_path / "state",
        )
