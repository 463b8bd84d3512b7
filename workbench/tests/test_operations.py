"""Operations that change the model: one at a time, whole after a kill, and never over damage."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys

import pytest
from tools.attack_workbench import other_model, pairs, prepared

from bilex import BilexError
from bilex.model import Translator
from bilex.model.storage import replace_calibration
from bilex_workbench import learn, versions
from bilex_workbench.api import ProblemError
from bilex_workbench.audit import apply_recalibration
from bilex_workbench.database import fact
from bilex_workbench.setup import UploadIn, Uploads
from bilex_workbench.versions import (
    Versions,
    earlier_models,
    fingerprint,
    previous_folder,
    retrained_folder,
)
from bilex_workbench.workbench import Settings, Workbench
from workbench_server import opened, serving


@pytest.fixture
def waiting(made_model, tmp_path):
    """A model with a retrained one, decisions and a recalibration, and a server of it."""
    folder = prepared(tmp_path / "place", made_model, *other_model(made_model, tmp_path))
    bench = opened(folder, fill=False)
    yield bench, folder
    bench.stop()


def waiting_model(bench):
    return learn.waiting_model(bench)["waiting"]


def stored_fact(bench, name):
    with bench.database.reading() as db:
        return fact(db, name)


def flip(folder):
    """Change a byte of the vectors."""
    file = max(folder.rglob("*.safetensors"), key=lambda one: one.stat().st_size)
    content = bytearray(file.read_bytes())
    content[-5] ^= 255
    file.write_bytes(content)


@pytest.mark.slow
@pytest.mark.promise
def test_every_pair_of_operations_leaves_a_whole_model(made_model):
    assert "nothing lost" in pairs(made_model, 600, rounds=2)


def test_the_loser_learns_the_present_state(waiting):
    bench, _ = waiting
    with serving(bench) as client:
        bench.begin("import")
        for path in ("/api/learn/keep", "/api/learn/discard", "/api/audit/apply", "/api/learn"):
            answer = client.post(path, json={})
            assert answer.status_code == 409 and answer.json()["operation"] == "import", path
        bench.end()
        assert client.post("/api/learn/discard").status_code == 200


def test_applying_twice_is_applying_once(waiting):
    bench, folder = waiting
    engine = bench.engine
    word = engine.space.source.index_to_key[300]
    before = [found.confidence for found in engine.translate(word, 3)]
    apply_recalibration(bench)
    bench.wait_until_ready()
    once = fingerprint(folder)
    bench._engine = engine  # a second request that began before the first had ended
    apply_recalibration(bench)
    bench.wait_until_ready()
    assert fingerprint(folder) == once
    served = [found.confidence for found in bench.engine.translate(word, 3)]
    own = [found.confidence for found in Translator.load(folder).translate(word, 3)]
    assert served == pytest.approx(before, abs=1e-5) and own == pytest.approx(before, abs=1e-4)


def test_damage_is_neither_served_nor_given_new_checksums(waiting, tmp_path):
    bench, folder = waiting
    calibration = bench.engine.translator.calibration
    flip(folder)
    damaged = fingerprint(folder)
    with pytest.raises(BilexError, match="checksum"):
        replace_calibration(folder, calibration, {})
    with serving(bench) as client:
        assert client.post("/api/audit/apply").status_code == 409
    assert fingerprint(folder) == damaged
    again = Workbench(Settings(work=tmp_path, fill=False), folder)
    with pytest.raises(BilexError, match="checksum"):
        again.wait_until_ready()
    again.stop()


def test_a_damaged_retrained_model_is_not_kept(waiting):
    bench, folder = waiting
    before = fingerprint(folder)
    flip(retrained_folder(folder))
    with pytest.raises(BilexError, match="checksum"):
        learn.keep_model(bench)
    assert fingerprint(folder) == before


def fingerprints(folder):
    """The earlier models, the newest first."""
    return [fingerprint(one) for one in earlier_models(folder).values()]


@pytest.mark.parametrize(
    ("operation", "moment"),
    [
        *itertools.product(["keep", "restore"], ["exchange", "sync", "_end_replacement"]),
        ("keep", "remove_model"),
    ],
)
def test_a_replacement_that_is_killed_is_finished_at_the_next_start(
    waiting, made_model, tmp_path, monkeypatch, operation, moment
):
    bench, folder = waiting
    for number in (1, 2):  # of earlier keeps
        shutil.copytree(made_model, previous_folder(folder) / str(number))
    old, new = fingerprint(folder), fingerprint(retrained_folder(folder))
    if operation == "restore":
        shutil.rmtree(previous_folder(folder) / "1")
        retrained_folder(folder).rename(previous_folder(folder) / "1")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(Versions if moment.startswith("_") else versions, moment, killed)
        bench.settings = Settings(work=tmp_path, fill=False, earlier=2)
        with pytest.raises(KeyboardInterrupt):
            if operation == "keep":
                learn.keep_model(bench)
            else:
                learn.restore_model(bench, learn.RestoreIn(number=1))
    bench.stop()
    again = opened(folder, fill=False, earlier=1 if moment != "exchange" else 5)
    if moment == "exchange":
        beside = [fingerprint(retrained_folder(folder)), *fingerprints(folder)]
        assert fingerprint(folder) == old and new in beside
        assert (waiting_model(again) is not None) == (operation == "keep")
    else:
        assert fingerprint(folder) == new and fingerprints(folder) == [old]
        assert not retrained_folder(folder).exists() and waiting_model(again) is None
        (model,) = learn.model_versions(again)["earlier"]
        assert ("retraining" if operation == "keep" else "restored") in model["reason"]
    again.stop()


def test_every_earlier_model_can_be_restored(waiting, tmp_path):
    bench, folder = waiting
    old, new = fingerprint(folder), fingerprint(retrained_folder(folder))
    with serving(bench) as client:
        assert client.post("/api/models/restore", json={"number": 1}).status_code == 409  # one waits
        assert client.post("/api/learn/keep").status_code == 200
        bench.wait_until_ready()
        assert client.post("/api/models/restore", json={"number": 7}).status_code == 404
        for number, expected in ((1, old), (2, new), (3, old)):
            (earlier,) = client.get("/api/models").json()["earlier"]
            assert earlier["number"] == number and earlier["replaced"] and earlier["reason"]
            answer = client.post("/api/models/restore", json={"number": number})
            assert answer.status_code == 200, answer.text
            bench.wait_until_ready()
            assert bench.engine.fingerprint == fingerprint(folder) == expected
        assert client.get("/api/review/status").json()["decisions"] == 5


def test_only_the_last_models_are_kept(waiting, made_model, tmp_path):
    bench, folder = waiting
    for number in range(1, 6):
        shutil.copytree(made_model, previous_folder(folder) / str(number))
    learn.keep_model(bench)
    bench.wait_until_ready()
    assert list(earlier_models(folder)) == [6, 5, 4, 3, 2]


def test_the_earlier_model_of_an_older_version_can_be_restored(waiting, made_model, tmp_path):
    bench, folder = waiting
    bench.stop()
    shutil.copytree(made_model, previous_folder(folder))
    again = opened(folder, fill=False)
    (model,) = learn.model_versions(again)["earlier"]
    assert model["number"] == 1 and "earlier version" in model["reason"]
    again.stop()


@pytest.mark.parametrize("moment", ["remove_model", "_end_replacement"])
def test_a_keep_on_a_disk_that_fills_up_says_what_it_did(waiting, made_model, monkeypatch, moment):
    bench, folder = waiting
    for number in range(1, 6):
        shutil.copytree(made_model, previous_folder(folder) / str(number))
    old, new = fingerprint(folder), fingerprint(retrained_folder(folder))

    def full(*_, **__):
        raise ProblemError(503, "The disk is full.")

    with serving(bench) as client:
        with monkeypatch.context() as during:
            during.setattr(Versions if moment.startswith("_") else versions, moment, full)
            assert client.post("/api/learn/keep").status_code == 200
        bench.wait_until_ready()
        assert bench.engine.fingerprint == fingerprint(folder) == new
        assert fingerprints(folder)[0] == old and waiting_model(bench) is None
        assert client.post("/api/learn/keep").status_code == 409  # and ends what was left to do
        assert not retrained_folder(folder).exists() and stored_fact(bench, "waiting") is None
        assert len(earlier_models(folder)) == 5


def test_discard_leaves_the_model_its_recalibration_and_decisions_alone(waiting):
    bench, folder = waiting
    before, files = stored_fact(bench, "recalibration"), contents(folder)
    assert before is not None and bench.engine.recalibration.decisions
    with serving(bench) as client:
        assert client.post("/api/learn/discard").json() == {"waiting": None}
        assert not retrained_folder(folder).exists() and client.get("/api/learn").json() == {"waiting": None}
        assert client.post("/api/learn/keep").status_code == 409
        assert client.get("/api/review/status").json()["decisions"] == 5
        assert stored_fact(bench, "recalibration") == before and contents(folder) == files


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_discard_on_a_full_disk_says_what_it_did(waiting, monkeypatch):
    bench, folder = waiting

    def full(*_, **__):
        raise ProblemError(503, "The disk is full.")

    monkeypatch.setattr(learn, "set_facts", full)
    with serving(bench) as client:
        assert client.post("/api/learn/discard").status_code == 200
        assert not retrained_folder(folder).exists() and waiting_model(bench) is None


def test_the_server_notices_that_its_model_is_replaced_or_gone(waiting, made_model, monkeypatch):
    bench, folder = waiting
    monkeypatch.setattr("bilex_workbench.workbench._CHECK_FOLDER_SECONDS", 0.0)
    generation = bench.generation
    with serving(bench) as client:
        folder.rename(folder.with_name("away"))
        assert client.get("/api/translate?word=x").status_code == 503
        answer = client.get("/api/model").json()
        assert answer["state"] == "failed" and "gone" in answer["detail"]
        folder.with_name("away").rename(folder)
        assert client.get("/api/model").json()["state"] == "ready"
        translator = Translator.load(made_model)
        translator.with_parts(seeds=translator.seeds.head(50)).save(folder)  # align --force
        client.get("/api/model")
        bench.wait_until_ready()
        assert bench.generation == generation + 1 and bench.engine.fingerprint == fingerprint(folder)


def test_a_piece_that_could_not_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    uploads = Uploads(tmp_path, 1 << 20)
    number = uploads.start(UploadIn(name="a.vec", size=30)).id
    uploads.add(number, 0, b"x" * 10)
    path = uploads.get(number)._path
    with path.open("ab") as file:
        file.write(b"half of a piece")  # what a full disk took before it refused the rest
    uploads.add(number, 10, b"y" * 10)
    assert uploads.add(number, 20, b"z" * 10).complete
    assert uploads.path(number).read_bytes() == b"x" * 10 + b"y" * 10 + b"z" * 10
    path.write_bytes(b"?" * 30)
    with pytest.raises(BilexError, match="damaged"):
        uploads.path(number)


def test_uploads_of_a_killed_server_are_removed(tmp_path):
    program = (
        "import os, sys; from pathlib import Path; from bilex_workbench.setup import UploadIn, Uploads; "
        "kept = Uploads(Path(sys.argv[1]), 100); kept.start(UploadIn(name='a.vec', size=3)); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert len(list(tmp_path.glob(".*/*.vec"))) == 1
    alive = Uploads(tmp_path, 100)
    alive.start(UploadIn(name="b.vec", size=3))
    Uploads(tmp_path, 100)
    assert len(list(tmp_path.glob(".*/*.vec"))) == 1
    alive.clear()
    assert not list(tmp_path.iterdir())


def test_language_models_and_hidden_folders_cannot_be_reached(tmp_path):
    folder = tmp_path / "data"
    (folder / ".secret").mkdir(parents=True)
    bench = Workbench(Settings(folder=folder, work=tmp_path))
    with serving(bench) as client:
        body = {"sample": True, "name": "x", "method": "procrustes"}
        for name in ("/etc", "../..", "bert-base-multilingual-uncased", "http://example.org/x", ".secret"):
            answer = client.post("/api/setup/fit", json={**body, "language_model": name})
            assert answer.status_code in (400, 404), name
        assert client.get("/api/setup/files?path=.secret").status_code == 404


def test_an_import_is_limited_and_shows_how_far_it_is(waiting, monkeypatch):
    bench, _ = waiting
    words = bench.engine.space.source.index_to_key[:450]
    sheet = "source,target,verdict\n" + "".join(f"{word},x,yes\n" for word in words)
    seen = []
    with serving(bench) as client:
        monkeypatch.setattr("bilex_workbench.sheets.time.sleep", lambda _: seen.append(bench.progress))
        found = client.post("/api/publish/import?reviewer=aino2", content=sheet).json()
        assert found["accepted"] + found["unchanged"] == 450
        assert seen == [(0, 450), (200, 450), (400, 450)] and bench.progress is None
        monkeypatch.setattr("bilex_workbench.sheets._MOST_WORDS", 100)
        assert client.post("/api/publish/import?reviewer=a", content=sheet).status_code == 400
        assert client.post("/api/publish/import?reviewer=%20", content=sheet).status_code in (400, 422)
        bad = client.post("/api/publish/import?reviewer=a", content="source,target,verdict\na\x00,b,yes\n")
        assert bad.status_code == 400 or bad.json()["problems"]


def test_a_clock_that_jumps_back_changes_no_order(client, bench, monkeypatch):
    word = bench.engine.space.source.index_to_key[0]
    times = iter(["2030-01-01T00:00:00", *["1999-01-01T00:00:00"] * 20])
    monkeypatch.setattr("bilex_workbench.decisions.now", lambda: next(times))
    for accepted in ("first", "second"):
        body = {"source": word, "reviewer": "aino", "verdict": "accept", "accepted": [accepted]}
        assert client.post("/api/review/decide", json=body).status_code == 200
        note = {"source": word, "reviewer": accepted, "note": accepted}
        assert client.post("/api/review/note", json=note).status_code == 200
    entry = client.get("/api/entry", params={"source": word}).json()
    assert entry["accepted"] == ["second"] and entry["notes"][0]["note"] == "second"
