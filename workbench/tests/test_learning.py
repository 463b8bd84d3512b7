"""Models learned from decisions and made from files: retraining, its report, and what goes wrong."""

from __future__ import annotations

import json

import pytest

from bilex.core.progress import SILENT
from bilex.lexicon import Lexicon
from bilex.model import Translator, refine
from bilex_workbench.learn import is_held_out
from bilex_workbench.versions import earlier_models, retrained_folder
from bilex_workbench.workbench import Settings, Workbench
from bilex_workbench.worker import compare, held_out_accuracy, sign_test
from planted import planted
from workbench_server import Described, opened, right_answer, serving


def review(client, bench, count):
    """A reviewer who knows everything goes through the queue."""
    for item in client.get("/api/entries", params={"sort": "-priority", "limit": count}).json()["rows"]:
        source = item["source"]
        shown = [
            t["word"]
            for t in client.get("/api/translate", params={"word": source, "k": 9}).json()["translations"]
        ]
        body = {"source": source, "reviewer": "aino", "verdict": "accept", "candidates": shown}
        answer = client.post("/api/review/decide", json={**body, "accepted": [right_answer(bench, source)]})
        assert answer.status_code == 200


def finish(client):
    """Follow the events until the job ends; all of them are returned."""
    found = []
    with client.stream("GET", "/api/job/events") as stream:
        kind = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                found.append((kind, json.loads(line[6:])))
    return found


def test_retraining_is_compared_kept_and_undone(client, bench, model, monkeypatch):
    call = Described(client)
    call("POST", "/api/learn", json={}, expect=409)  # nothing was decided
    assert "Nothing was decided" in call("GET", "/api/learn/estimate")["sentence"]
    review(client, bench, 120)
    decided = {row["source"] for row in client.get("/api/entries?reviewer=aino&limit=500").json()["rows"]}
    expected = call("GET", "/api/learn/estimate")
    assert expected["basis"] == "measurement" and "about" in expected["sentence"]
    with monkeypatch.context() as patch:
        patch.setattr(refine, "_REFIT_WORDS", 50)
        refit = call("GET", "/api/learn/estimate")
        fit_seconds = Translator.load(model).provenance.fit_seconds
        assert "fitted again" in refit["sentence"] and refit["seconds"] >= round(2 * fit_seconds, 1)
    assert call("POST", "/api/learn", json={"held_out": 0.3}, expect=202)["job"]["kind"] == "learn"
    call("POST", "/api/learn", json={}, expect=409)  # one at a time
    events = finish(client)
    assert events[-1][0] == "end" and events[-1][1]["state"] == "done", events[-1]
    assert len({event["phase"] for _, event in events}) > 1
    waiting = call("GET", "/api/learn")["waiting"]
    held_out = waiting["held_out"]
    assert held_out["words"] > 10 and 0 <= held_out["before"] <= 1
    assert held_out["after"] >= held_out["before"] - 0.1
    assert waiting["learned_from"]["accepted"] == 120 - held_out["words"]
    changes = call("GET", "/api/learn/changes", params={"limit": 500})
    assert changes["total"] == waiting["changed"] > 0
    for row in changes["rows"]:
        assert row["before"] != row["after"]
        if row["decided"]:  # what was decided is what the new model answers
            assert row["after"] in row["decided"] and row["reason"] == "a decision on this word"
        else:
            assert row["near"] in decided and row["near"] in row["reason"] and row["similarity"] < 1
    again = call("GET", "/api/learn/estimate")
    assert again["basis"] == "last run" and abs(again["seconds"] - waiting["seconds"]) < 0.2
    generation, before = call("GET", "/api/model")["generation"], model.stat().st_ino
    call("POST", "/api/learn/keep")
    bench.wait_until_ready()
    assert call("GET", "/api/model")["generation"] == generation + 1
    assert model.stat().st_ino != before and list(earlier_models(model)) == [1]
    assert not retrained_folder(model).exists()
    versions = call("GET", "/api/models")
    assert versions["current"]["accuracy"]["share"] == held_out["after"]
    assert versions["earlier"][0]["accuracy"]["share"] == held_out["before"]
    assert versions["current"]["learned_pairs"] >= 120 and versions["kept"] == 5
    assert Translator.load(model, verify=True).provenance.retrained.accepted == 120
    assert client.get("/api/review/status").json()["decisions"] == 120  # never lost
    row = changes["rows"][0]
    assert client.get("/api/entry", params={"source": row["source"]}).json()["target"] == row["after"]
    call("POST", "/api/models/restore", json={"number": 1})
    bench.wait_until_ready()


def test_cancel_leaves_nothing(client, bench, model):
    review(client, bench, 5)
    client.post("/api/learn", json={})
    answer = client.post("/api/job/cancel").json()
    assert answer["job"]["state"] == "cancelled"
    assert client.post("/api/job/cancel").status_code == 409
    assert client.get("/api/learn").json() == {"waiting": None}
    assert not retrained_folder(model).exists()


def test_a_job_whose_process_is_killed_says_so_and_lets_others_begin(client, bench):
    review(client, bench, 5)
    client.post("/api/learn", json={})
    bench._process.kill()
    job = finish(client)[-1][1]
    assert job["state"] == "failed" and "ended unexpectedly" in job["detail"]
    assert client.get("/api/model").json()["operation"] is None


def test_held_out_words_are_the_same_every_time():
    words = [f"word{number}" for number in range(2000)]
    chosen = [word for word in words if is_held_out(word, 0.1)]
    assert 140 < len(chosen) < 260
    assert set(chosen) <= {word for word in words if is_held_out(word, 0.2)}


def fit_and_wait(client, body):
    started = client.post("/api/setup/fit", json=body)
    assert started.status_code == 202, started.text
    events = finish(client)
    return events[-1][1]


@pytest.fixture
def empty(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    bench = Workbench(Settings(folder=folder, work=tmp_path / "work", upload_limit=1 << 20))
    (tmp_path / "work").mkdir()
    with serving(bench) as client:
        yield client, bench, folder


def write_problem(folder, words=260):
    from planted import planted

    problem = planted(words, dim=8, noise=0.3)
    problem.source.save(folder / "en.vec", "text")
    problem.target.save(folder / "fi.vec", "text")
    problem.pairs(0, 220).save(folder / "seeds.tsv")
    return problem


def test_a_model_from_nothing_with_chosen_and_uploaded_files(empty):
    client, bench, folder = empty
    problem = write_problem(folder)
    listed = client.get("/api/setup/files").json()["entries"]
    assert [entry["name"] for entry in listed] == ["en.vec", "fi.vec", "seeds.tsv"]
    content = (folder / "fi.vec").read_bytes()
    upload = client.post("/api/setup/uploads", json={"name": "../../fi.vec", "size": len(content)}).json()
    half = len(content) // 2
    address = f"/api/setup/uploads/{upload['id']}"
    assert client.put(address, params={"offset": 0}, content=content[:half]).json()["received"] == half
    wrong = client.put(address, params={"offset": 0}, content=content)
    assert wrong.status_code == 409 and str(half) in wrong.json()["detail"]
    body = {
        "name": "en-fi",
        "source": {"path": "en.vec"},
        "target": {"upload": upload["id"]},
        "seeds": {"path": "seeds.tsv"},
        "source_language": "en",
        "target_language": "fi",
        "method": "procrustes",
    }
    early = client.post("/api/setup/fit", json=body)
    assert early.status_code == 409 and "not complete" in early.json()["detail"]
    assert client.put(address, params={"offset": half}, content=content[half:]).json()["complete"]
    job = fit_and_wait(client, body)
    assert job["state"] == "done", job
    bench.wait_until_ready()
    assert client.get("/api/model").json()["source"]["name"] == "English"
    word = problem.source.index_to_key[240]
    found = client.get("/api/translate", params={"word": word}).json()
    assert found["translations"][0]["word"] == problem.target.index_to_key[240]
    again = client.post("/api/setup/fit", json=body)
    assert again.status_code == 409 and "already" in again.json()["detail"]


def test_a_fit_that_cannot_be_says_why(empty):
    client, _, folder = empty
    (folder / "broken.vec").write_text("this is no vector file", encoding="utf-8")
    write_problem(folder, 100)
    body = {
        "name": "x",
        "source": {"path": "broken.vec"},
        "target": {"path": "fi.vec"},
        "method": "procrustes",
    }
    job = fit_and_wait(client, body)
    assert job["state"] == "failed" and "broken.vec" in job["detail"]
    assert client.get("/api/model").json()["state"] == "none"


@pytest.mark.parametrize("path", ["..", "../work", "/etc/passwd", "link/passwd", "nosuch", "link"])
def test_paths_never_leave_the_folder(empty, path):
    client, _, folder = empty
    (folder / "link").symlink_to("/etc")
    assert client.get("/api/setup/files", params={"path": path}).status_code == 404
    body = {"name": "x", "source": {"path": path}, "target": {"path": path}, "method": "procrustes"}
    assert client.post("/api/setup/fit", json=body).status_code == 404


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a..b", "x" * 200])
def test_names_never_leave_the_folder(empty, name):
    client, _, _ = empty
    answer = client.post("/api/setup/fit", json={"sample": True, "name": name, "method": "procrustes"})
    assert answer.status_code in (400, 422)


def test_uploads_are_limited_and_removed(empty, tmp_path):
    client, _bench, _ = empty
    assert client.post("/api/setup/uploads", json={"name": "a", "size": 2 << 20}).status_code == 413
    upload = client.post("/api/setup/uploads", json={"name": "a.vec", "size": 10}).json()
    address = f"/api/setup/uploads/{upload['id']}"
    assert client.put(address, params={"offset": 0}, content=b"x" * 11).status_code == 413
    (kept,) = (tmp_path / "work").glob(".uploads.*/*.vec")
    assert kept.name == f"{upload['id']}.vec"
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert not list((tmp_path / "work").glob(".uploads.*/*.vec"))


def test_setup_offers_methods_and_the_sample(empty):
    client, _, folder = empty
    found = client.get("/api/setup").json()
    assert found["sample"] and found["folder"] == str(folder)
    assert {"c1", "procrustes"} <= {method["name"] for method in found["methods"]}


# What a retraining reports: accuracy on held-out words with intervals, and entries that changed.


WORLD = planted(200, noise=0.3)
SOURCE, TARGET = WORLD.source.index_to_key, WORLD.target.index_to_key
PHRASES = [(SOURCE[150], f"{TARGET[150]} {TARGET[3]}"), (f"{SOURCE[7]} {SOURCE[9]}", TARGET[160])]


@pytest.fixture(scope="module")
def translator():
    """A model whose seeds hold phrases."""
    seeds = Lexicon([*WORLD.pairs(0, 100).pairs, *PHRASES])
    return Translator("procrustes").fit(WORLD.source, WORLD.target, seeds, languages=("en", "fi"))


@pytest.mark.parametrize(
    ("gained", "lost", "verdict"),
    [
        (0, 0, "too few to tell"),
        (5, 0, "too few to tell"),
        (6, 0, "better"),
        (0, 6, "worse"),
        (12, 10, "too few to tell"),
    ],
)
def test_a_few_words_are_too_few_to_tell(gained, lost, verdict):
    assert sign_test(gained, lost) == verdict


def test_the_comparison_has_intervals():
    world = planted(words=700, dim=24, noise=0.7, seed=3)
    weak = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 15), calibrate=False)
    found = held_out_accuracy(weak, weak, {a: [b] for a, b in world.pairs(400, 700).pairs})
    low, high = found["before_interval"]
    assert low < found["before"] < high and found["before_interval"] == found["after_interval"]
    assert (found["gained"], found["lost"], found["verdict"]) == (0, 0, "too few to tell")


def test_changes_are_reported_with_phrases(translator):
    after = translator.with_parts(seeds=Lexicon(WORLD.pairs(0, 100).pairs))
    _, changes = compare(translator, after, set(), set(), SILENT)
    assert [SOURCE[150], 151, PHRASES[0][1]] in [change[:3] for change in changes]


def test_answers_and_entries_name_the_phrases(translator, tmp_path):
    translator.save(tmp_path / "en-fi")
    with serving(opened(tmp_path / "en-fi")) as client:
        for word, translation in PHRASES:
            found = client.get("/api/translate", params={"word": word, "k": 3}).json()
            assert found["translations"][0]["word"] == translation
        rows = client.get("/api/entries", params={"limit": 500}).json()["rows"]
        assert {row["source"]: row["target"] for row in rows}[PHRASES[0][0]] == PHRASES[0][1]
