from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bilex.core.errors import BilexError
from bilex.model.many import ManyLanguages
from many_planted import PlantedMany


def test_each_language_has_a_column(world: PlantedMany, joined: ManyLanguages, tmp_path: Path) -> None:
    found = joined.lexicon("en", ["fi", "ru"], ranks=(1, 100))
    found.save(tmp_path / "words.tsv")
    lines = [line.split("\t") for line in (tmp_path / "words.tsv").read_text(encoding="utf-8").splitlines()]
    assert lines[0] == ["en", "fi", "ru"]
    assert len(lines) == 101
    assert lines[8] == [world.vocabularies[code].index_to_key[7] for code in ("en", "fi", "ru")]
    assert list(csv.reader(io.StringIO(found.text("csv")))) == lines


def test_a_language_without_a_mutual_answer_is_left_empty(joined: ManyLanguages) -> None:
    found = joined.lexicon("fi", ["ru", "fr"], mutual=True)
    assert any(len(entry.translations) == 1 for entry in found)
    empty = next(row for row in found.text("tsv").splitlines()[1:] if "" in row.split("\t"))
    assert empty.count("\t") == 2


def test_json_lines_have_scores(joined: ManyLanguages) -> None:
    first = json.loads(joined.lexicon("en", ["fi", "fr"], k=2).text("jsonl").splitlines()[0])
    assert first["language"] == "en"
    assert [len(answers) for answers in first["translations"].values()] == [2, 2]
    assert first["translations"]["fi"][0]["known"] is True


def test_a_tab_in_a_word_divides_no_column(joined: ManyLanguages) -> None:
    found = joined.lexicon("en", ["fi"], ranks=(1, 1))
    broken = replace(found, entries=(replace(found.entries[0], word="a\tb"),))
    assert broken.text("tsv").splitlines()[1].split("\t")[0] == "a b"


def test_a_language_named_twice_is_refused(joined: ManyLanguages) -> None:
    with pytest.raises(BilexError, match="once"):
        joined.lexicon("en", ["fi", "Finnish"])
