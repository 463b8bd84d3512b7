"""bilex as a library: what a notebook shows, tables of pandas, progress, languages."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bilex import BilexError
from bilex.aligners import get_method, methods
from bilex.core.languages import code_of, language_name, language_of_file
from bilex.core.progress import SILENT, resolve_progress
from bilex.lexicon import Entry, Lexicon
from bilex.model import InducedLexicon, Translator
from bilex.vectors import WordVectors
from planted import Planted, planted

PAIRS = [(f"word{i}", f"sana{i}") for i in range(5000)]


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(600, 16, 0.5)


@pytest.fixture(scope="module")
def translator(world: Planted) -> Translator:
    procrustes = get_method("procrustes")(device="cpu")
    return Translator(procrustes).fit(
        world.source, world.target, world.pairs(0, 300), languages=("en", "fi"), calibrate=False
    )


def test_reprs_are_short(translator: Translator) -> None:
    assert repr(Lexicon(PAIRS, "seeds.tsv")) == (
        "Lexicon(5,000 pairs of seeds.tsv: word0–sana0, word1–sana1, word2–sana2, ...)"
    )
    assert repr(translator) == "Translator(English–Finnish, 600 × 600 words, procrustes)"
    for shown in (repr(translator.lexicon()), repr(translator.translate("nosuchword"))):
        assert len(shown) < 120


def test_notebooks_get_tables(translator: Translator, world: Planted) -> None:
    page = Lexicon([("<b>", "a&b"), *PAIRS])._repr_html_()
    assert page.count("<tr>") == 11 and "&lt;b&gt;" in page and "a&amp;b" in page and "5,001 rows" in page
    answer = translator.translate(world.source.index_to_key[0], 3)
    assert answer[0].word in answer._repr_html_() and "known" in answer._repr_html_()
    assert translator.lexicon()._repr_html_().startswith("<table>")


def test_pandas_in_and_out(translator: Translator) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: its tables are NOT tested")
    frame = pandas.DataFrame(
        {"nr": [1, 2, 3], "English": ["Dog", "cat", None], "Finnish": ["koira", "kissa", "x"]}
    )
    lexicon = Lexicon.from_pandas(frame, "English", "Finnish")
    assert list(lexicon.pairs) == [("dog", "koira"), ("cat", "kissa")]
    assert list(Lexicon.from_pandas(lexicon.to_pandas()).pairs) == list(lexicon.pairs)
    with pytest.raises(BilexError, match="it has nr, English, Finnish"):
        Lexicon.from_pandas(frame, "Swedish", "Finnish")
    found = translator.lexicon(k=2)
    table = found.to_pandas()
    assert list(table.columns) == [
        "source",
        "target",
        "score",
        "confidence",
        "source_rank",
        "target_rank",
        "known",
    ]
    assert list(zip(table.source, table.target, strict=True)) == list(found.pairs().pairs)
    assert table.known.sum() == 300


def test_missing_numbers_are_nan_in_pandas() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: its tables are NOT tested")
    table = InducedLexicon(
        (Entry("a", "b", 0.5, None, 1, None), Entry("c", "d", 0.25, None, None, 2))
    ).to_pandas()
    assert table.confidence.dtype == table.score.dtype == "float64" and table.confidence.isna().all()
    assert table.source_rank.dtype == "Int64" and table.source_rank.isna().tolist() == [False, True]


def test_without_pandas_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BilexError, match="pip install pandas"):
        Lexicon(PAIRS).to_pandas()


def test_arrays_and_keyed_vectors_are_mapped(translator: Translator, world: Planted) -> None:
    whole = translator.map_vectors(world.source, "source")
    array = translator.map_vectors(world.source.vectors[:7], "source")
    assert isinstance(array, np.ndarray)
    assert np.allclose(array, whole.vectors[:7], atol=1e-6)
    one = translator.map_vectors(np.asarray(world.source.vectors[3], np.float64), "source")
    assert one.shape == (16,) and np.allclose(one, whole.vectors[3], atol=1e-6)
    with pytest.raises(BilexError, match="dimension 5"):
        translator.map_vectors(np.zeros((2, 5), np.float32), "target")


def test_gensims_vectors_are_mapped(translator: Translator, world: Planted) -> None:
    pytest.importorskip("gensim", reason="gensim is not installed: its vectors are NOT tested")
    mapped = translator.map_vectors(world.target.to_gensim(), "target")
    assert mapped.index_to_key == world.target.index_to_key
    assert np.allclose(mapped.vectors, translator.map_vectors(world.target, "target").vectors, atol=1e-6)


@pytest.mark.parametrize("function", [Translator.lexicon, Translator.fit, Translator.translate, Lexicon.load])
def test_signatures_name_every_argument(function: Any) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_progress_is_shown_in_terminals_and_notebooks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert resolve_progress(None) is SILENT and resolve_progress(False) is SILENT
    assert resolve_progress(True) is not SILENT
    assert resolve_progress(SILENT) is SILENT
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert resolve_progress(None) is not SILENT
    assert resolve_progress(False) is SILENT
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    assert resolve_progress(None) is not SILENT


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("wiki.fi.vec", "fi"),
        ("cc.de.300.vec.gz", "de"),
        ("data/en.vec", "en"),
        ("en", "en"),
        ("finnish-vectors.txt", "fi"),
        ("vectors_ru.npy", "ru"),
        ("my-vectors.vec", None),
        ("no.idea.about.it.vec", "no"),
        ("model.bin", None),
        ("en-fi.vec", None),
    ],
)
def test_languages_of_file_names(name: str, code: str | None) -> None:
    assert language_of_file(name) == code


def test_codes_and_names() -> None:
    assert code_of("Suomi") == code_of("finnish") == code_of("FI") == "fi"
    assert code_of("Klingon") is None and language_name("tlh") == "tlh" and language_name("fi") == "Finnish"


def test_languages_come_from_the_files_unless_given(tmp_path: Any, world: Planted) -> None:
    for name, side in (("wiki.sv.vec", world.source), ("et.vec", world.target)):
        side.save(tmp_path / name)
    source, target = WordVectors.load(tmp_path / "wiki.sv.vec"), WordVectors.load(tmp_path / "et.vec")
    fit = {"calibrate": False, "progress": False}
    aligner = get_method("procrustes")
    assert Translator(aligner()).fit(source, target, world.pairs(0, 50), **fit).languages == (
        "Swedish",
        "Estonian",
    )
    assert Translator(aligner()).fit(
        source, source, Lexicon([(w, w) for w in source.index_to_key[:50]]), **fit
    ).languages == (
        "source",
        "target",
    )


def test_tables_of_polars_and_arrow(translator: Translator) -> None:
    pytest.importorskip("polars", reason="polars is not installed: its tables are NOT tested")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables are NOT tested")
    found = translator.lexicon(k=2)
    pandas, polars, arrow = found.to_pandas(), found.to_polars(), found.to_arrow()
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert pandas.source.tolist() == polars["source"].to_list() == arrow["source"].to_pylist()
    assert polars["confidence"].null_count() == len(found)
    assert str(arrow.schema.field("confidence").type) == "double"
    assert arrow["known"].to_pylist().count(True) == 300
    pairs = Lexicon(PAIRS)
    assert pairs.to_polars().rows() == PAIRS == list(map(tuple, pairs.to_pandas().values.tolist()))
    assert pairs.to_arrow().to_pydict() == {"source": [a for a, _ in PAIRS], "target": [b for _, b in PAIRS]}


@pytest.mark.parametrize(("method", "library"), [("to_polars", "polars"), ("to_arrow", "pyarrow")])
def test_tables_name_the_library_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, method: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BilexError, match=f"pip install {library}"):
        getattr(Lexicon(PAIRS), method)()


@pytest.mark.parametrize("name", sorted(methods()))
def test_aligners_are_cloned_by_scikit_learn(name: str, world: Planted) -> None:
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed: clone is NOT tested")
    aligner = get_method(name)(device="cpu").set_params(seed=7)
    copied = base.clone(aligner)
    assert copied is not aligner
    assert type(copied) is type(aligner)
    assert copied.get_params() == aligner.get_params() == aligner.settings()
    assert copied.seed == 7


def test_parameters_are_checked_by_name(world: Planted) -> None:
    aligner = get_method("procrustes")(device="cpu")
    with pytest.raises(BilexError, match=r"procrustes.*'sead'.*Did you mean"):
        aligner.set_params(device="cuda", sead=1)
    assert aligner.device == "cpu"
    fitted = aligner.fit(world.source, world.target, world.pairs(0, 100))
    assert not hasattr(fitted.clone(), "source_map_")
