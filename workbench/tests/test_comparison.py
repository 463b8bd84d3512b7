from __future__ import annotations

import pytest

from bilex.model import Translator
from bilex_workbench.worker import held_out_accuracy, sign_test
from planted import planted

WORLD = planted(words=700, dim=24, noise=0.7, seed=3)
HELD_BACK = {a: [b] for a, b in WORLD.pairs(400, 700).pairs}


@pytest.mark.parametrize(
    ("gained", "lost", "verdict"),
    [
        (0, 0, "too few to tell"),
        (5, 0, "too few to tell"),
        (6, 0, "better"),
        (0, 6, "worse"),
        (12, 10, "too few to tell"),
    ],
)
def test_a_few_words_are_too_few_to_tell(gained, lost, verdict):
    assert sign_test(gained, lost) == verdict


def test_the_comparison_has_intervals():
    weak = Translator("procrustes").fit(WORLD.source, WORLD.target, WORLD.pairs(0, 15), calibrate=False)
    found = held_out_accuracy(weak, weak, HELD_BACK)
    low, high = found["before_interval"]
    assert low < found["before"] < high and found["before_interval"] == found["after_interval"]
    assert (found["gained"], found["lost"], found["verdict"]) == (0, 0, "too few to tell")
