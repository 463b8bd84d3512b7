"""One family from vectors to results: what is shared is done once, what fails does not stop the rest."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runner_world as world
from bilex import C2
from bilex.aligners import get_method
from bilex.core.progress import Silent
from bilex.encoders import TuningSettings, WordEncoder, run_stage_c2
from bilex.evaluation import evaluate
from bilex.fit import FitResult, fit
from bilex.fit.trial import decide
from bilex.model.space import Space
from bilex_bench import family
from bilex_bench.work import FamilyOutOfMemoryError, Workplace

TUNING = {"negatives": 3, "batch_size": 30, "epochs": 1, "induced": 0, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> str:
    return world.make_encoder(tmp_path_factory.mktemp("lm") / "tiny")


@pytest.fixture
def place(folder: world.KnownFolder, tmp_path: Path) -> Workplace:
    return Workplace(world.plan_for(folder, tmp_path))


def test_a_result_is_what_fitting_and_evaluating_by_hand_give(
    place: Workplace, folder: world.KnownFolder
) -> None:
    [result] = place.run([world.setup("advanced")])
    source, target = place.vocabularies(world.setup())
    seeds, test = folder.seeds("aa-bb", "1k"), folder.test("aa-bb")
    aligner = get_method("advanced")(device="cpu").fit(source, target, seeds)
    by_hand = evaluate(Space.from_aligner(aligner, source, target), test, train=seeds)
    assert result.status == "done"
    assert result.evaluation == by_hand.as_dict()
    assert result.predictions["backward"] == by_hand.backward.predictions
    assert set(result.seconds) == {"fit", "evaluate"}
    assert result.gigabytes and 0.05 < result.gigabytes < 20
    assert result.gpu_gigabytes is None and result.device == "cpu"
    assert result.environment["libraries"]["numpy"] == np.__version__
    assert result.report["aligner"]["seed_pairs_used"] == world.SEEDS
    assert result.samples == {}


def test_a_fit_is_done_once_and_then_taken_from_the_work_folder(place: Workplace, tmp_path: Path) -> None:
    log = tmp_path / "fits"
    setup = world.setup("troublesome", settings={"log": str(log)})
    first = list(place.run([setup]))
    again = list(Workplace(place.plan).run([setup]))
    assert len(world.fits_logged(log)) == 1
    assert world.outcomes(first) == world.outcomes(again)
    assert again[0].seconds["fit"] == first[0].seconds["fit"]
    assert again[0].report == first[0].report


def test_other_vectors_under_the_same_name_are_another_fit(tmp_path: Path) -> None:
    log = tmp_path / "fits"
    setup = world.setup("troublesome", settings={"log": str(log)})
    folder = world.make_folder(tmp_path / "data")
    list(Workplace(world.plan_for(folder, tmp_path)).run([setup]))
    path = folder.vectors_path("aa")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:], lines[1]]), encoding="utf-8")
    list(Workplace(world.plan_for(folder, tmp_path)).run([setup]))
    assert len(world.fits_logged(log)) == 2


def test_a_damaged_stored_fit_is_made_again(place: Workplace) -> None:
    [first] = place.run([world.setup()])
    for file in place.fits.rglob("arrays.safetensors"):
        file.write_bytes(b"damaged")
    [again] = place.run([world.setup()])
    assert world.outcomes([first]) == world.outcomes([again])


def test_maps_that_share_memory_are_stored(place: Workplace) -> None:
    small = {
        "hidden": 16,
        "latent": 8,
        "autoencoder_epochs": 1,
        "autoencoder_samples": 200,
        "mapper_epochs": 1,
    }
    more = {"rounds": 1, "growth": 20, "candidates": 100, "queries": 100, "batch": 32}
    setup = world.setup("lnmap", settings=small | more)
    [first] = place.run([setup])
    assert first.status == "done", first.error
    [again] = Workplace(place.plan).run([setup])
    assert world.outcomes([first]) == world.outcomes([again])


def test_what_cannot_be_stored_keeps_its_checkpoint(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fit_and_keep(*arguments: Any, **options: Any) -> FitResult:
        found = fit(*arguments, **options)
        (options["checkpoint"] / "aligner").mkdir(parents=True)
        monkeypatch.setattr("safetensors.torch.save_file", full)
        return found

    monkeypatch.setattr(family, "fit", fit_and_keep)
    [result] = place.run([world.setup()])
    assert result.status == "done"
    assert [path.suffix for path in place.fits.iterdir()] == [".unfinished"]


def test_what_fails_is_recorded_with_its_sentence(place: Workplace) -> None:
    [caught] = place.run([world.setup("troublesome", settings={"trouble": "error"})])
    assert (caught.status, caught.error) == ("failed", "this method fails on purpose; do not use it.")
    [bug] = place.run([world.setup("troublesome", settings={"trouble": "bug"})])
    assert bug.error == "ZeroDivisionError: a bug on purpose"
    assert "_make_trouble" in bug.report["traceback"]
    [unknown] = place.run([world.setup(settings={"typo": 1})])
    assert "typo" in str(unknown.error) and unknown.status == "failed"


def test_a_broken_language_model_fails_alone(place: Workplace, tmp_path: Path) -> None:
    setups = [
        world.setup(lm=str(tmp_path / "no-such-model"), mixing=0.2),
        world.setup(),
    ]
    alone, broken = place.run(setups)
    assert (alone.setup.lm, alone.status) == (None, "done")
    assert broken.status == "failed" and "no-such-model" in str(broken.error)


def test_running_out_of_memory_is_kept_apart(place: Workplace) -> None:
    setup = world.setup("troublesome", settings={"trouble": "memory"})
    with pytest.raises(FamilyOutOfMemoryError):
        list(place.run([setup]))
    [result] = place.run([setup], attempt=2)
    assert result.status == "failed" and "memory ran out" in str(result.error)
    assert result.attempts == 2


def test_stage_c2_is_run_once_for_all_mixings(
    place: Workplace, folder: world.KnownFolder, lm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def counted(*args: object, **more: object) -> object:
        if more.get("checkpoint") is not None:  # the held-out trial runs the stage too, but keeps nothing
            runs.append(1)
        return run_stage_c2(*args, **more)

    monkeypatch.setattr("bilex.encoders.stage.run_stage_c2", counted)
    setups = [world.setup(lm=lm, tuning=TUNING, mixing=mixing) for mixing in (0.2, 1.0, "auto")]
    results = {r.setup.mixing: r for r in place.run(setups)}
    assert len(runs) == 1
    source, target = place.vocabularies(setups[0])
    seeds, test = folder.seeds("aa-bb", "1k"), folder.test("aa-bb")
    aligner = get_method("procrustes")(device="cpu").fit(source, target, seeds)
    encoder = WordEncoder.load(lm, device="cpu")
    settings = C2(encoder, mixing="auto", tuning=TuningSettings(**TUNING), device="cpu")
    chosen = decide(aligner, source, target, seeds, encoder=settings, calibrate=False).mixing
    by_hand = run_stage_c2(aligner, source, target, seeds, replace(settings, mixing=chosen))
    for override, mixing in ((0.2, 0.2), (1.0, 1.0), ("auto", chosen)):
        space = Space(*by_hand.mixed(mixing), "cosine", "cpu")
        assert results[override].evaluation == evaluate(space, test, train=seeds).as_dict()
        assert results[override].report["mixing"] == mixing
    assert {"fit", "tune", "encode", "combine", "trial", "evaluate"} == set(results["auto"].seconds)
    assert "trial" not in results[0.2].seconds
    more = list(Workplace(place.plan).run([world.setup(lm=lm, tuning=TUNING, mixing=0.5), setups[0]]))
    assert len(runs) == 1, "another λ is had from what is stored"
    assert more[1].evaluation == results[0.2].evaluation
    assert more[0].evaluation == evaluate(Space(*by_hand.mixed(0.5)), test, train=seeds).as_dict()


def test_tuning_that_was_cut_off_goes_on(
    place: Workplace, lm: str, folder: world.KnownFolder, tmp_path: Path
) -> None:
    class Impatient(Silent):
        """Leaves when the vocabularies are about to be encoded, as Ctrl-C would."""

        def task(self, name: str, total: float | None = None) -> object:  # type: ignore[override]
            if "ncod" in name:
                raise KeyboardInterrupt
            return super().task(name, total)

    setups = [world.setup(lm=lm, tuning=TUNING, mixing=0.3)]
    with pytest.raises(KeyboardInterrupt):
        list(place.run(setups, progress=Impatient()))
    assert list(place.stages.glob("*.unfinished/encoder/tuning"))
    [resumed] = place.run(setups)
    assert resumed.report["stage"]["resumed"] is True
    [at_once] = Workplace(world.plan_for(folder, tmp_path / "other")).run(setups)
    assert at_once.report["stage"]["resumed"] is False
    assert world.outcomes([resumed]) == world.outcomes([at_once])
    assert not list(place.stages.glob("*.unfinished"))


def test_encodings_of_a_model_as_it_is_serve_all_families(place: Workplace, lm: str) -> None:
    for method in ("procrustes", "advanced"):
        [result] = place.run([world.setup(method, lm=lm, tune=False, mixing=0.2)])
        assert result.status == "done", result.error
    assert len(list(place.encodings.glob("*.safetensors"))) == 2, "one for each language, not for each family"


def test_vectors_for_pictures_are_kept_where_they_are_asked_for(
    folder: world.KnownFolder, tmp_path: Path, lm: str
) -> None:
    setups = [
        world.setup(),
        world.setup(lm=lm, tuning=TUNING, mixing=0.2),
        world.setup(lm=lm, tune=False, mixing=0.2),
    ]
    plan = world.plan_for(folder, tmp_path, sampled=frozenset(setup.key for setup in setups))
    alone, tuned, untuned = Workplace(plan).run(setups)
    assert set(alone.samples) == {"static", "aligned"}
    assert set(untuned.samples) == {"static", "aligned", "lm", "combined"}
    assert set(tuned.samples) == {"static", "aligned", "lm", "lm-tuned", "combined"}
    sample = tuned.samples["lm"]
    np.testing.assert_allclose(sample.source, untuned.samples["lm"].source, atol=1e-5)
    assert not np.allclose(sample.source, tuned.samples["lm-tuned"].source, atol=1e-3)
    pairs = set(folder.test("aa-bb").pairs)
    assert all(pair in pairs for pair in zip(sample.source_words, sample.target_words, strict=True))
    assert sample.source.shape == (world.WORDS - world.SEEDS, 24)
    row = alone.samples["static"].source_words[5]
    source, _ = Workplace(plan).vocabularies(setups[0])
    np.testing.assert_array_equal(alone.samples["static"].source[5], source[row])


def test_finished_stages_that_were_not_used_for_longest_make_room(tmp_path: Path) -> None:
    for number in range(3):
        home = tmp_path / f"stage{number}"
        home.mkdir()
        (home / "state.json").write_text("{}")
        (home / "arrays.safetensors").write_bytes(bytes(1000))
        os.utime(home / "state.json", (number, number))
    family.prune(tmp_path, limit=2100)
    assert sorted(home.name for home in tmp_path.iterdir()) == ["stage1", "stage2"]


def test_a_stage_is_known_by_what_its_language_model_holds_not_by_its_path(
    place: Workplace, tmp_path: Path
) -> None:
    path = tmp_path / "lm"
    world.make_encoder(path)
    setups = [world.setup(lm=str(path), tune=False, mixing=1.0)]
    [first] = place.run(setups)
    shutil.rmtree(path)
    world.make_encoder(path, seed=5)
    [second] = Workplace(place.plan).run(setups)
    assert len([home for home in place.stages.iterdir() if home.is_dir()]) == 2
    assert world.outcomes([first]) != world.outcomes([second])


def test_damaged_encodings_are_made_again(place: Workplace, lm: str, tmp_path: Path) -> None:
    setups = [world.setup(lm=lm, tune=False, mixing=0.2)]
    [first] = place.run(setups)
    for file in place.encodings.iterdir():
        content = bytearray(file.read_bytes())
        content[-5] ^= 0x40
        file.write_bytes(content)
    other = [world.setup("advanced", lm=lm, tune=False, mixing=0.2)]
    [second] = place.run(other)
    [fresh] = Workplace(world.plan_for(place.plan.folders["world"], tmp_path / "fresh")).run(other)
    assert world.outcomes([second]) == world.outcomes([fresh])
    assert first.status == second.status == "done"
