"""The spaCy component."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.aligners import get_method
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.joining import join
from bilex.vectors import WordVectors
from planted import Planted, planted

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: its component is NOT tested")
import bilex.spacy_component  # noqa: E402  (an installed bilex is found by its entry point)


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(300, 12, 0.3)


@pytest.fixture(scope="module")
def model(world: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spacy") / "en-fi"
    procrustes = get_method("procrustes")(device="cpu")
    Translator(procrustes).fit(world.source, world.target, world.pairs(0, 250), languages=("en", "fi")).save(
        folder
    )
    return folder


def test_tokens_have_translations(model: Path, world: Planted) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("bilex", config={"model": str(model), "k": 2})
    one, other = world.source.index_to_key[0], world.source.index_to_key[1]
    doc = nlp(f"{one.capitalize()}, nosuchword {other} 7.")
    found = [token._.translations for token in doc]
    assert found[0][0]["word"] == world.target.index_to_key[0]
    assert found[0][0]["known"] is True
    assert [len(answers) for answers in found] == [2, 0, 0, 2, 0, 0]


def test_phrases_of_the_vocabulary_are_spans(world: Planted, tmp_path: Path) -> None:
    words = list(world.source.index_to_key)
    words[5], words[6] = "new_york", "new_york_city"
    source = WordVectors(words, world.source.vectors)
    seeds = Lexicon([(words[i], world.target.index_to_key[i]) for i in range(250)])
    Translator(get_method("procrustes")(device="cpu")).fit(source, world.target, seeds).save(tmp_path / "m")
    nlp = spacy.blank("en")
    nlp.add_pipe("bilex", config={"model": str(tmp_path / "m")})
    doc = nlp("from New York City to New York")
    assert [span.text for span in doc.spans["bilex"]] == ["New York City", "New York"]
    found = [span._.translations[0]["word"] for span in doc.spans["bilex"]]
    assert found == [world.target.index_to_key[6], world.target.index_to_key[5]]


def test_documents_keep_their_translations_when_stored(model: Path, world: Planted) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("bilex", config={"model": str(model)})
    doc = nlp(world.source.index_to_key[3])
    again = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert again[0]._.translations == doc[0]._.translations != []


def test_the_direction_and_the_confidence_can_be_chosen(model: Path, world: Planted) -> None:
    nlp = spacy.blank("fi")
    nlp.add_pipe("bilex", config={"model": str(model), "target": "en", "min_confidence": 1.1})
    doc = nlp(f"{world.target.index_to_key[2]} {world.target.index_to_key[299]}")
    assert [answer["word"] for answer in doc[0]._.translations] == [world.source.index_to_key[2]]
    assert doc[1]._.translations == []


def test_a_model_of_many_languages_serves(model: Path, world: Planted, tmp_path: Path) -> None:
    join({"en-fi": Translator.load(model)}).save(tmp_path / "many")
    nlp = spacy.blank("fi")
    nlp.add_pipe("bilex", config={"model": str(tmp_path / "many"), "target": "en", "k": 1})
    assert nlp(world.target.index_to_key[5])[0]._.translations[0]["word"] == world.source.index_to_key[5]


def test_a_wrong_model_is_said_in_a_sentence() -> None:
    with pytest.raises(BilexError, match="no such model"):
        spacy.blank("en").add_pipe("bilex", config={"model": "nothing/there"})


def test_the_entry_point_names_the_factory() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    module, name = project["entry-points"]["spacy_factories"]["bilex"].split(":")
    assert getattr(sys.modules[module], name) is bilex.spacy_component.make_component
