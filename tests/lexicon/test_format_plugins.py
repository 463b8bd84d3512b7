"""A dictionary format of another distribution: one module, registered by an entry point."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bilex.cli import run
from bilex.core.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.lexicon.formats import all_formats, format_named

MODULE = """
from bilex.lexicon.entries import Entry
from bilex.lexicon.formats import DictionaryFormat

class Arrows(DictionaryFormat):
    "Arrows between words."

    name, noun, suffixes = "arrows", "a file of arrows", (".arrows",)

    def _parse(self, reading):
        for number, line in enumerate(reading.path.read_text(encoding="utf-8").splitlines(), 1):
            source, _, target = line.partition("->")
            reading.add(number, [Entry(source, target)])

    def _pieces(self, dictionary, options):
        for entry in dictionary.entries:
            yield f"{entry.source}->{entry.target}\\n"
"""


@pytest.mark.filterwarnings("ignore:dictionary format 'broken'")
def test_a_registered_format_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "arrows_format.py").write_text(MODULE, encoding="utf-8")
    facts = tmp_path / "arrows_format-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: arrows-format\nVersion: 1.0\n")
    points = ["arrows = arrows_format:Arrows", "broken = no_such_module:FORMAT", "tsv = arrows_format:Arrows"]
    (facts / "entry_points.txt").write_text("[bilex.formats]\n" + "\n".join(points) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="'broken' cannot be loaded"):
        Lexicon([("dog", "koira")]).save(tmp_path / "d.arrows")
    assert (tmp_path / "d.arrows").read_text() == "dog->koira\n"
    assert list(Lexicon.load(tmp_path / "d.arrows").pairs) == [("dog", "koira")]
    assert (
        run(["convert", str(tmp_path / "d.arrows"), "-o", str(tmp_path / "d.tsv"), "--kind", "dictionary"])
        == 0
    )
    assert (tmp_path / "d.tsv").read_text() == "dog\tkoira\n", "a format of ours is not replaced"
    named = ["convert", str(tmp_path / "d.arrows"), "-o", str(tmp_path / "e.tsv"), "--from", "arrows"]
    assert run(named) == 0 and (tmp_path / "e.tsv").read_text() == "dog\tkoira\n"
    assert run(["lexicon", str(tmp_path), "--format", "nonsense"]) == 2
    assert "arrows" in capsys.readouterr().err.rpartition("choose one of")[2], (
        "a wrong name lists all formats"
    )
    with pytest.raises(BilexError, match="'broken' cannot be loaded"):
        format_named("broken")
    monkeypatch.undo()
    sys.modules.pop("arrows_format", None)
    assert "arrows" not in {form.name for form in all_formats()}
