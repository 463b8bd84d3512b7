"""What a retraining reports: accuracy on held-out words with intervals, and entries that changed."""

from __future__ import annotations

import pytest

from bilex.core.progress import SILENT
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex_workbench.worker import compare, held_out_accuracy, sign_test
from planted import planted
from workbench_server import opened, serving

WORLD = planted(200, noise=0.3)
SOURCE, TARGET = WORLD.source.index_to_key, WORLD.target.index_to_key
PHRASES = [(SOURCE[150], f"{TARGET[150]} {TARGET[3]}"), (f"{SOURCE[7]} {SOURCE[9]}", TARGET[160])]


@pytest.fixture(scope="module")
def translator():
    """A model whose seeds hold phrases."""
    seeds = Lexicon([*WORLD.pairs(0, 100).pairs, *PHRASES])
    return Translator("procrustes").fit(WORLD.source, WORLD.target, seeds, languages=("en", "fi"))


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
    world = planted(words=700, dim=24, noise=0.7, seed=3)
    weak = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 15), calibrate=False)
    found = held_out_accuracy(weak, weak, {a: [b] for a, b in world.pairs(400, 700).pairs})
    low, high = found["before_interval"]
    assert low < found["before"] < high and found["before_interval"] == found["after_interval"]
    assert (found["gained"], found["lost"], found["verdict"]) == (0, 0, "too few to tell")


def test_changes_are_reported_with_phrases(translator):
    after = translator.with_parts(seeds=Lexicon(WORLD.pairs(0, 100).pairs))
    _, changes = compare(translator, after, set(), set(), SILENT)
    assert [SOURCE[150], 151, PHRASES[0][1]] in [change[:3] for change in changes]


def test_answers_and_entries_name_the_phrases(translator, tmp_path):
    translator.save(tmp_path / "en-fi")
    with serving(opened(tmp_path / "en-fi")) as client:
        for word, translation in PHRASES:
            found = client.get("/api/translate", params={"word": word, "k": 3}).json()
            assert found["translations"][0]["word"] == translation
        rows = client.get("/api/entries", params={"limit": 500}).json()["rows"]
        assert {row["source"]: row["target"] for row in rows}[PHRASES[0][0]] == PHRASES[0][1]
