"""Models of two languages joined to one of many: translations, and dictionaries with several languages."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError, ManyLanguages
from bilex.model import Translator
from bilex.model.joining import join
from bilex.model.provenance import Provenance
from many_planted import PlantedMany, share_right


def test_languages_that_no_model_holds_together_are_translated(
    world: PlantedMany, joined: ManyLanguages
) -> None:
    for a, b in (("fi", "ru"), ("ru", "fr"), ("fr", "fi")):
        assert share_right(joined.pair(a, b).space, world.pairs(a, b, 400, 800)) > 0.7


def test_pairs_of_the_models_stay_as_good(
    world: PlantedMany, joined: ManyLanguages, hub_models: dict[str, Translator]
) -> None:
    for code in ("fi", "fr", "ru"):
        test = world.pairs("en", code, 400, 800)
        before = share_right(hub_models[f"en-{code}"].space, test)
        assert share_right(joined.pair("en", code).space, test) > before - 0.05


def test_one_model_keeps_its_answers(hub_models: dict[str, Translator]) -> None:
    model = hub_models["en-fi"]
    alone = join({"en-fi": model})
    words = model.space.source.index_to_key[500:520]
    assert [a[0].word for a in alone.translate(words, "en", "fi")] == [
        a[0].word for a in model.translate(words)
    ]
    backward = alone.translate(model.space.target.index_to_key[600], "fi", "en", 1)
    direct = model.translate(model.space.target.index_to_key[600], 1, direction="backward")
    assert backward[0].confidence == pytest.approx(direct[0].confidence, abs=1e-3)


def test_new_vectors_are_mapped_to_where_the_words_are(world: PlantedMany, joined: ManyLanguages) -> None:
    mapped = joined.pair("fi", "ru").map_vectors(world.vocabularies["fi"], "source")
    np.testing.assert_allclose(mapped.vectors, joined.vocabularies["fi"].vectors, atol=1e-4)


def test_known_pairs_come_first_whatever_the_direction(world: PlantedMany, joined: ManyLanguages) -> None:
    en, fi = (world.vocabularies[code].index_to_key[7] for code in ("en", "fi"))
    assert joined.translate(fi, "Finnish", "en", 1)[0].word == en
    assert joined.translate(fi, "fi", "en", 1)[0].known


def test_models_that_share_no_language_are_refused(
    world: PlantedMany, hub_models: dict[str, Translator]
) -> None:
    apart = hub_models["en-fi"].with_parts(provenance=Provenance(source_language="de", target_language="it"))
    with pytest.raises(BilexError, match="shares no language"):
        join({"en-ru": hub_models["en-ru"], "de-it": apart})


def test_models_that_differ_in_case_are_refused(hub_models: dict[str, Translator]) -> None:
    with pytest.raises(BilexError, match="keeps capitals"):
        join({"en-fi": hub_models["en-fi"], "en-ru": hub_models["en-ru"].with_parts(lowercase=False)})


def test_languages_may_be_those_of_the_folders_name(hub_models: dict[str, Translator]) -> None:
    nameless = hub_models["en-fi"].with_parts(provenance=Provenance())
    assert join({"models/en-fi/": nameless}).languages == ["en", "fi"]
    with pytest.raises(BilexError, match="does not say which languages"):
        join({"models/mine": nameless})


def test_a_language_that_the_model_does_not_hold_is_named(joined: ManyLanguages) -> None:
    with pytest.raises(BilexError, match="no language 'de'; it has en, fi, fr, ru"):
        joined.pair("en", "de")
    with pytest.raises(BilexError, match="one language"):
        joined.pair("en", "English")


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
