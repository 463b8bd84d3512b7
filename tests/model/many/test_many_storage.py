from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilex import C1, BilexError, ManyLanguages
from bilex.model import Translator
from bilex.model.jointly import align_languages
from bilex.model.storage import StoredModel
from bilex.vectors import Subwords
from many_planted import PlantedMany


@pytest.fixture(scope="module")
def saved(joined: ManyLanguages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "many"
    joined.save(folder)
    return folder


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "many")
    return tmp_path / "many"


def test_a_loaded_model_answers_as_the_saved_one(joined: ManyLanguages, saved: Path) -> None:
    loaded = ManyLanguages.load(saved)
    assert loaded.languages == joined.languages
    words = joined.vocabularies["ru"].index_to_key[380:420]
    before, after = (model.translate(words, "ru", "en") for model in (joined, loaded))
    assert [a.as_dict() for a in before] == [a.as_dict() for a in after]
    assert loaded.provenance.report == joined.provenance.report


@pytest.mark.parametrize("part", ["languages/fi/vectors.safetensors", "maps.safetensors", "seeds/en-fi.json"])
def test_a_damaged_file_is_named(copied: Path, part: str) -> None:
    content = bytearray((copied / part).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / part).write_bytes(content)
    with pytest.raises(BilexError, match=part):
        ManyLanguages.load(copied)


def test_a_model_is_described_as_it_is_without_being_opened(joined: ManyLanguages, saved: Path) -> None:
    found, opened = StoredModel.open(saved).check(verify=False), ManyLanguages.load(saved)
    assert (found.provenance, found.words) == (opened.provenance, opened.words)
    assert (found.seeds, found.calibrations) == (opened.seeds, opened.calibrations)
    assert StoredModel.open(saved).check(verify=True).words == {
        code: len(words) for code, words in joined.vocabularies.items()
    }


def test_a_description_reads_the_whole_model_only_when_asked_to(copied: Path) -> None:
    part = copied / "languages/fi/vectors.safetensors"
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    StoredModel.open(copied).check(verify=False)
    with pytest.raises(BilexError, match=part.name):
        StoredModel.open(copied).check(verify=True)
    part.write_bytes(content[:-1])
    with pytest.raises(BilexError, match=part.name):
        StoredModel.open(copied).check(verify=False)


@pytest.mark.parametrize("part", ["config.json", "seeds/en-fi.json"])
def test_what_a_description_reads_is_compared_with_its_checksum(copied: Path, part: str) -> None:
    with (copied / part).open("a", encoding="utf-8") as file:
        file.write(" ")
    with pytest.raises(BilexError, match=part):
        StoredModel.open(copied).check(verify=False)


def test_a_missing_file_is_named(copied: Path) -> None:
    (copied / "maps.safetensors").unlink()
    with pytest.raises(BilexError, match=r"maps\.safetensors"):
        ManyLanguages.load(copied)


def test_the_card_may_be_edited_and_is_then_not_overwritten(joined: ManyLanguages, copied: Path) -> None:
    card = copied / "README.md"
    assert "English, Finnish, French and Russian" in card.read_text(encoding="utf-8")
    card.write_text("my own words", encoding="utf-8")
    assert ManyLanguages.load(copied).languages == ["en", "fi", "fr", "ru"]
    with pytest.raises(BilexError, match=r"README\.md"):
        joined.save(copied)
    assert card.read_text(encoding="utf-8") == "my own words"


def test_a_folder_of_other_things_is_never_replaced(joined: ManyLanguages, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(BilexError, match="other things"):
        joined.save(tmp_path)
    assert (tmp_path / "diary.txt").exists()


def test_an_earlier_model_is_replaced(joined: ManyLanguages, copied: Path) -> None:
    joined.save(copied)
    assert ManyLanguages.load(copied).languages == joined.languages


def test_a_newer_format_and_other_folders_are_refused_in_a_sentence(copied: Path, tmp_path: Path) -> None:
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    (copied / "config.json").write_text(json.dumps({**config, "format_version": 99}), encoding="utf-8")
    with pytest.raises(BilexError, match="format version 99"):
        ManyLanguages.load(copied)
    with pytest.raises(BilexError, match="no such model"):
        ManyLanguages.load(tmp_path / "nothing")


def test_a_folder_of_two_languages_and_one_of_many_are_told_apart(
    saved: Path, hub_models: dict[str, Translator], tmp_path: Path
) -> None:
    with pytest.raises(BilexError, match="--from and --to"):
        Translator.load(saved)
    assert Translator.load(saved, languages=("Finnish", "ru")).language_codes == ["fi", "ru"]
    hub_models["en-fi"].save(tmp_path / "en-fi")
    with pytest.raises(BilexError, match="not a model of several languages"):
        ManyLanguages.load(tmp_path / "en-fi")


def test_unknown_words_are_read_from_their_n_grams(world: PlantedMany, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    spelt = Subwords(rng.normal(size=(50, 20)).astype(np.float32), 3, 4)
    vocabularies = {"en": replace(world.vocabularies["en"], subwords=spelt), "fi": world.vocabularies["fi"]}
    many = align_languages(
        vocabularies,
        {("en", "fi"): world.pairs("en", "fi", 0, 400)},
        C1(device="cpu", updates=0),
        calibrated=False,
    )
    many.save(tmp_path / "many")
    loaded = ManyLanguages.load(tmp_path / "many")
    answer = loaded.translate("unheardof", "en", "fi", 1)
    assert answer.origin == "subwords"
    assert answer[0].word == many.translate("unheardof", "en", "fi", 1)[0].word
    assert not loaded.translate("unheardof", "fi", "en", 1).known


def test_a_folder_of_the_first_version_opens_and_becomes_one_of_this(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "first_version_many"
    opened = ManyLanguages.load(folder, device="cpu")
    opened.save(tmp_path / "again")
    for many in (opened, ManyLanguages.load(tmp_path / "again", device="cpu")):
        first, second = many.translate("fi30", "fi", "ru", 2)
        assert (first.word, second.word) == ("ru30", "ru17")
        assert (first.score, second.score) == (0.8175273537635803, 0.49898284673690796)
        assert many.translate("en5", "en", "fi", 1)[0].known
    before, after = (StoredModel.open(place).check(verify=True) for place in (folder, tmp_path / "again"))
    assert (before.words, before.provenance) == (after.words, after.provenance)
    assert (before.seeds, before.calibrations) == (after.seeds, after.calibrations)


def test_a_translator_opens_two_languages_of_many(joined: ManyLanguages, copied: Path) -> None:
    opened = Translator.load(copied, languages=("Finnish", "ru"), device="cpu")
    assert opened.languages == ("Finnish", "Russian")
    words = opened.space.source.index_to_key[:20]
    assert opened.translate(words, 2) == joined.translate(words, "fi", "ru", 2)
    with pytest.raises(BilexError, match="name two of them"):
        Translator.load(copied)
    opened.save(copied.parent / "fi-ru")
    assert Translator.load(copied.parent / "fi-ru", languages=("fi", "ru")).languages == opened.languages
    with pytest.raises(BilexError, match="translates from Finnish to Russian, not the other way round"):
        Translator.load(copied.parent / "fi-ru", languages=("ru", "fi"))
