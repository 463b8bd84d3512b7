"""The sample session is what really comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.build_session import STEPS, session

from planted import planted


def test_every_command_of_the_session_is_run_and_noted(tmp_path: Path) -> None:
    world = planted(500, 12, 0.5)
    for side, vectors in (("en", world.source), ("fi", world.target)):
        vectors.save(tmp_path / side)
    world.pairs(0, 300).save(tmp_path / "seeds.tsv")
    world.pairs(300, 500).save(tmp_path / "test.tsv")
    steps = [
        ("Learn.", "bilex align en.vec fi.vec --seeds seeds.tsv --method procrustes -o en-fi"),
        ("Translate.", f"bilex translate en-fi {world.source.index_to_key[0]} -k 2"),
    ]
    page = session(tmp_path, steps)
    assert "Saved en-fi after a while." in page and "Expect the first answer" in page
    assert f"{world.source.index_to_key[0]}\t{world.target.index_to_key[0]}\t" in page and "\tknown\n" in page
    assert " after 0." not in page, "progress is left out"
    with pytest.raises(SystemExit, match="no such model"):
        session(tmp_path, [("", "bilex translate nowhere dog")])


def test_the_session_written_down_is_that_of_the_program() -> None:
    page = (Path(__file__).parents[2] / "docs" / "quickstart.md").read_text(encoding="utf-8")
    shown = [line[2:] for line in page.splitlines() if line.startswith("$ ")]
    assert shown[-len(STEPS) :] == [command for _, command in STEPS]
