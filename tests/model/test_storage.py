"""Saving and loading."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.core.files import sha256
from bilex.model import Translator
from bilex.vectors import Subwords, WordVectors
from planted import Planted, planted


@pytest.fixture(scope="module")
def saved(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    translator.save(folder)
    return folder


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("method", ["csls", "nn"])
def test_a_loaded_model_answers_as_the_saved_one(
    translator: Translator, saved: Path, world: Planted, direction: str, method: str
) -> None:
    loaded = Translator.load(saved, device="cpu")
    query_side = world.source if direction == "forward" else world.target
    words = query_side.index_to_key[::7]
    assert loaded.translate(words, direction=direction, retrieval=method) == translator.translate(
        words, direction=direction, retrieval=method
    )


def test_everything_else_comes_back(translator: Translator, saved: Path, world: Planted) -> None:
    loaded = Translator.load(saved)
    assert loaded.calibration == translator.calibration
    assert list(loaded.seeds.pairs) == list(translator.seeds.pairs)
    assert loaded.provenance.as_dict() == translator.provenance.as_dict()
    assert loaded.aligner == translator.aligner and loaded.encoder is None
    assert loaded.provenance.expectation == translator.provenance.expectation
    assert loaded.lowercase is True
    assert np.array_equal(loaded.map_vectors(world.source, "source").vectors, loaded.space.source.vectors)


def test_vectors_are_mapped_not_read(saved: Path) -> None:
    loaded = Translator.load(saved)
    assert not loaded.space.source.vectors.flags.writeable
    assert not loaded.space.source.vectors.flags.owndata


def test_saving_again_gives_the_same_files(saved: Path, tmp_path: Path) -> None:
    Translator.load(saved).save(tmp_path / "again")
    names = [file.relative_to(saved) for file in files_of(saved)]
    assert names == [file.relative_to(tmp_path / "again") for file in files_of(tmp_path / "again")]
    for name in names:
        assert sha256(saved / name) == sha256(tmp_path / "again" / name), name


def test_a_flipped_byte_in_any_file_is_found(copied: Path) -> None:
    checked = [file for file in files_of(copied) if file.name != "README.md"]
    assert len(checked) >= 10
    for file in checked:
        content = file.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            flipped = bytearray(content)
            flipped[place] ^= 0x01
            file.write_bytes(bytes(flipped))
            with pytest.raises(BilexError) as caught:
                Translator.load(copied)
            caught = str(caught.value)
            assert file.name in caught or file.name == "SHA256SUMS", caught
            assert "\n" not in caught
        file.write_bytes(content)
    Translator.load(copied)


def test_a_missing_file_is_found(copied: Path) -> None:
    for file in files_of(copied):
        if file.name == "README.md":
            continue
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(BilexError, match=r"config\.json" if file.name == "config.json" else file.name):
            Translator.load(copied)
        file.write_bytes(content)


def test_checksums_are_those_of_sha256sum(saved: Path) -> None:
    program = shutil.which("sha256sum")
    if program is None:
        pytest.skip("no sha256sum here")
    checked = subprocess.run(
        [program, "-c", "--quiet", "SHA256SUMS"], cwd=saved, capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_models_of_other_versions_open(copied: Path) -> None:
    """The first version wrote less; a method that is not installed may have written more."""
    config = json.loads((copied / "config.json").read_text())
    later = ("expectation", "trial", "asked", "arithmetic", "processor", "source_language", "seeds_optional")
    config = {name: value for name, value in config.items() if name not in later}
    config |= {"method": "theirs", "report": {"seed_pairs": 7, "theirs": [1, 2]}, "round": "last"}
    config["recalibrated"] = {"decisions": 120}
    (copied / "config.json").write_text(json.dumps(config))
    opened = Translator.load(copied, verify=False)
    made = opened.provenance
    assert (made.method, made.report.seed_pairs, made.source_language) == ("theirs", 7, None)
    assert not made.expectation.measured and not made.trial.ran
    assert opened.languages[0] == "source"
    opened.save(copied)
    stored = json.loads((copied / "config.json").read_text())
    assert stored["recalibrated"] == {"decisions": 120}
    assert stored["report"] == {"seed_pairs": 7, "seed_pairs_used": 0, "warnings": [], "theirs": [1, 2]}


def test_a_model_that_the_first_bilex_wrote_opens(tmp_path: Path) -> None:
    """The folder was written by commit e372f93, before models knew their languages."""
    folder = shutil.copytree(Path(__file__).parent / "first_version", tmp_path / "model")
    opened = Translator.load(folder)
    best = [answer.translations[0] for answer in opened.translate(["s0", "s30", "s39"])]
    assert [(found.word, found.rank) for found in best] == [("t0", 1), ("t30", 31), ("t39", 40)]
    assert [found.score for found in best] == pytest.approx([0.893119, 1.008043, 1.029178], abs=1e-4)
    assert best[0].known and not best[1].known
    assert opened.provenance.made.startswith("2026-11-16")
    opened.save(tmp_path / "again")
    again = Translator.load(tmp_path / "again")
    assert again.translate(["s30"]) == opened.translate(["s30"])


def test_a_changed_report_is_refused(copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "seed_pairs": "many"}))
    with pytest.raises(BilexError, match=r"do not fit together \(seed_pairs is 'many'\)"):
        Translator.load(copied, verify=False)


def test_a_newer_version_is_reported(copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    config["format_version"] = 99
    (copied / "config.json").write_text(json.dumps(config))
    with pytest.raises(BilexError, match="version 99, and this bilex reads up to 2; install a newer bilex"):
        Translator.load(copied)


def test_what_is_no_model_is_refused(tmp_path: Path, world: Planted) -> None:
    with pytest.raises(BilexError, match="no such model"):
        Translator.load(tmp_path / "nowhere")
    with pytest.raises(BilexError, match="not a bilex model"):
        Translator.load(tmp_path)
    world.source.save(tmp_path / "vectors")
    with pytest.raises(BilexError, match="not a bilex model"):
        Translator.load(tmp_path / "vectors")


def test_an_earlier_model_is_replaced_and_nothing_else_is(
    translator: Translator, copied: Path, tmp_path: Path
) -> None:
    translator.save(copied)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(BilexError, match="other things"):
        translator.save(other)
    assert (other / "thesis.txt").read_text() == "years of work"
    with pytest.raises(BilexError, match="is a file"):
        translator.save(other / "thesis.txt")


def test_a_failed_save_leaves_nothing(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("bilex.model.provenance.card_of", fail)
    with pytest.raises(KeyboardInterrupt):
        translator.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_the_card_says_how_well(saved: Path, translator: Translator) -> None:
    text = (saved / "README.md").read_text()
    part = translator.calibration.parts["forward", "csls"]
    assert f"{part.accuracy:.1%}" in text and f"{part.error:.3f}" in text
    assert "procrustes" in text and "600 of its 600 pairs" in text


def test_subwords_are_kept(tmp_path: Path) -> None:
    world = planted(120, 8, 0.1)
    rows = np.random.default_rng(3).normal(size=(50, 8)).astype(np.float32)
    source = WordVectors(world.source.index_to_key, world.source.vectors, subwords=Subwords(rows, 3, 6))
    made = Translator("procrustes").fit(source, world.target, world.pairs(0, 60), calibrate=False)
    answer = made.translate("zzunknownzz")
    assert answer.origin == "subwords" and answer[0].confidence is None
    expected = made.space.search(made.source_map(source.subwords.vector("zzunknownzz")[None]), 5)[1][0]
    assert [found.rank - 1 for found in answer] == expected.tolist()
    assert not made.translate("zzunknownzz", direction="backward").known
    made.save(tmp_path / "model")
    assert Translator.load(tmp_path / "model").translate("zzunknownzz") == answer
