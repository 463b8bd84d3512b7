"""Models on a hub, against a server that behaves like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilex import BilexError, ManyLanguages
from bilex.aligners import get_method
from bilex.model import Translator
from bilex.model.joining import join
from hub_server import running_hub
from planted import planted

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: the hub is NOT tested")


@pytest.fixture(scope="module")
def translator() -> Translator:
    world = planted(300, 12, 0.3)
    procrustes = get_method("procrustes")(device="cpu")
    return Translator(procrustes).fit(
        world.source, world.target, world.pairs(0, 150), languages=("en", "fi"), calibrate=False
    )


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")


def test_a_pushed_model_is_fetched_whole(translator: Translator, tmp_path: Path) -> None:
    words = translator.space.source.index_to_key[:20]
    with running_hub() as hub:
        address = translator.push_to_hub("someone/en-fi", endpoint=hub.address, token="secret")
        assert address.startswith(f"{hub.address}/someone/en-fi/commit/")
        card = hub.repositories["someone/en-fi"]["README.md"].decode("utf-8")
        assert card.startswith("---\nlanguage:\n- en\n- fi\nlibrary_name: bilex\n")
        assert "# A bilex translation model: English and Finnish" in card
        fetched = Translator.from_pretrained("someone/en-fi", endpoint=hub.address, cache=tmp_path)
        assert [a.as_dict() for a in fetched.translate(words)] == [
            a.as_dict() for a in translator.translate(words)
        ]
    again = Translator.from_pretrained("someone/en-fi", endpoint=hub.address, cache=tmp_path)
    assert again.languages == ("English", "Finnish")


def test_a_file_that_was_damaged_on_the_hub_is_named(translator: Translator, tmp_path: Path) -> None:
    with running_hub() as hub:
        translator.push_to_hub("someone/en-fi", endpoint=hub.address, token="secret")
        files = hub.repositories["someone/en-fi"]
        files["seeds/en-fi.json"] = files["seeds/en-fi.json"].replace(b'"', b"'", 1)
        with pytest.raises(BilexError, match=r"en-fi\.json: was changed or damaged"):
            Translator.from_pretrained("someone/en-fi", endpoint=hub.address, cache=tmp_path)


def test_models_of_many_languages_travel_too(translator: Translator, tmp_path: Path) -> None:
    many = join({"en-fi": translator})
    with running_hub() as hub:
        many.push_to_hub("someone/many", endpoint=hub.address, token="secret")
        fetched = ManyLanguages.from_pretrained("someone/many", endpoint=hub.address, cache=tmp_path)
    assert fetched.languages == ["en", "fi"]


def test_a_folder_that_is_here_needs_no_hub(translator: Translator, tmp_path: Path) -> None:
    translator.save(tmp_path / "en-fi")
    assert Translator.from_pretrained(str(tmp_path / "en-fi")).languages == ("English", "Finnish")


def test_what_goes_wrong_is_one_sentence(translator: Translator, tmp_path: Path) -> None:
    with running_hub() as hub:
        with pytest.raises(
            BilexError, match="someone/nothing: is not a folder here and could not be fetched"
        ) as caught:
            Translator.from_pretrained("someone/nothing", endpoint=hub.address, cache=tmp_path)
        assert "\n" not in str(caught.value)
        address = hub.address
    with pytest.raises(BilexError, match="could not be fetched from the hub") as caught:
        Translator.from_pretrained("someone/other", endpoint=address, cache=tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(BilexError, match="could not be written to the hub") as caught:
        translator.push_to_hub("someone/en-fi", endpoint=address, token="secret")
    assert "\n" not in str(caught.value)
    with pytest.raises(BilexError, match="could not be fetched"):
        Translator.from_pretrained("not a/valid/name", endpoint=address, cache=tmp_path)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BilexError, match=r"bilex\[hub\]"):
        Translator.from_pretrained("someone/en-fi")
