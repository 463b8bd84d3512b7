"""A model whose seeds hold phrases: they are shown where the seeds say so, and rows keep their words."""

from __future__ import annotations

import pytest

from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex_workbench.workbench import Settings, Workbench
from bilex_workbench.worker import compare
from planted import planted
from workbench_server import serving

WORLD = planted(200, noise=0.3)
SOURCE, TARGET = WORLD.source.index_to_key, WORLD.target.index_to_key
PHRASES = [(SOURCE[150], f"{TARGET[150]} {TARGET[3]}"), (f"{SOURCE[7]} {SOURCE[9]}", TARGET[160])]


@pytest.fixture(scope="module")
def translator():
    seeds = Lexicon([*WORLD.pairs(0, 100).pairs, *PHRASES])
    return Translator("procrustes").fit(WORLD.source, WORLD.target, seeds, languages=("en", "fi"))


def test_answers_and_entries_name_the_phrases(translator, tmp_path):
    translator.save(tmp_path / "en-fi")
    bench = Workbench(Settings(work=tmp_path), tmp_path / "en-fi")
    bench.wait_until_ready()
    try:
        with serving(bench) as client:
            for word, translation in PHRASES:
                found = client.get("/api/translate", params={"word": word, "k": 3}).json()
                assert found["translations"][0]["word"] == translation
            rows = client.get("/api/entries", params={"limit": 500}).json()["rows"]
            entries = {row["source"]: row["target"] for row in rows}
            assert entries[PHRASES[0][0]] == PHRASES[0][1]
    finally:
        bench.stop()


def test_changes_are_reported_with_phrases(translator):
    after = translator.with_parts(seeds=Lexicon(WORLD.pairs(0, 100).pairs))
    from bilex.core.progress import SILENT

    _, changes = compare(translator, after, set(), set(), SILENT)
    assert [SOURCE[150], 151, PHRASES[0][1]] in [change[:3] for change in changes]
