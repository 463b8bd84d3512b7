"""The interface for programs: every response of a session is as its OpenAPI description says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.testclient import TestClient

from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.server import application
from bilex_workbench.workbench import Settings, Workbench
from workbench_server import BEARER, TOKEN, Described, opened, serving


def decide(call, source, reviewer, accepted=(), verdict="accept", **rest):
    body = {"source": source, "reviewer": reviewer, "verdict": verdict, "accepted": list(accepted)}
    return call("POST", "/api/review/decide", json={**body, **rest})


def test_every_response_of_a_session_is_as_described(client, bench, model):
    call = Described(client)
    call("GET", "/api/health")
    call("GET", "/api/model")
    word, other = bench.engine.space.source.index_to_key[300:302]
    for query in (f"word={word}", f"word={word}&direction=backward", "word=nosuchword"):
        call(
            "GET",
            f"/api/translate?{query}".split("?")[0],
            params=dict(p.split("=") for p in query.split("&")),
        )
    call("GET", "/api/translate", params={"word": ""}, expect=422)
    target = call("GET", "/api/translate", params={"word": word})["translations"][0]["word"]
    call("GET", "/api/suggest", params={"word": word[:2]})
    call("GET", "/api/why", params={"source": word, "target": target})
    call("GET", "/api/why", params={"source": "nosuchword", "target": target}, expect=404)
    call("GET", "/api/map", params={"word": word})
    _table(call, word, other)
    _review(call, word, other, target)
    _audit(call)
    _publish(call)
    call("GET", "/api/setup")
    call("GET", "/api/setup/files", expect=409)
    upload = call("POST", "/api/setup/uploads", json={"name": "a.vec", "size": 3}, expect=201)
    place = f"/api/setup/uploads/{upload['id']}"
    call("PUT", place, params={"offset": 1}, content=b"abc", expect=409)
    call("PUT", place, params={"offset": 0}, content=b"abcd", expect=413)
    call("PUT", place, params={"offset": 0}, content=b"abc")
    call("GET", place)
    call("DELETE", place, expect=204)
    call("GET", place, expect=404)
    call("POST", "/api/setup/fit", json={"sample": True, "name": model.name}, expect=409)
    call("GET", "/api/job")
    call("GET", "/api/learn")
    call("GET", "/api/learn/estimate")
    call("GET", "/api/models")
    call("POST", "/api/job/cancel", expect=409)
    call("POST", "/api/learn/keep", expect=409)
    call("POST", "/api/learn/discard", expect=409)
    call("POST", "/api/models/restore", json={"number": 99}, expect=404)
    operations = {one["operationId"] for path in call.schema["paths"].values() for one in path.values()}
    assert operations - call.seen.keys() == {"job_events", "learn", "changed_entries"}  # test_learning


def _table(call, word, other):
    call("GET", "/api/entries", params={"limit": 5, "doubtful": True})
    call("GET", "/api/entries", params={"kind": "nonsense"}, expect=400)
    call("GET", "/api/entry", params={"source": word})
    call("GET", "/api/entry", params={"source": "nosuchword"}, expect=404)
    call("POST", "/api/entries/mark", json={"reviewer": "aino", "sources": [other], "kind": "name"})
    batch = call(
        "POST", "/api/entries/decide", json={"reviewer": "ben", "sources": [other], "verdict": "accept"}
    )
    divided = call("POST", "/api/entries/assign", json={"reviewer": "aino", "people": ["aino", "ben"]})
    call("POST", "/api/entries/undo", json={"batch": divided["batch"]})
    call("GET", "/api/entries/batches")
    call("POST", "/api/entries/undo", json={"batch": batch["batch"]})
    call("POST", "/api/entries/undo", json={"batch": batch["batch"]}, expect=409)
    call("POST", "/api/entries/undo", json={"batch": 999}, expect=404)
    article = {"part_of_speech": "noun", "senses": [{"gloss": "a", "translations": [{"target": "x"}]}]}
    call("PUT", "/api/entry/article", json={"source": word, "reviewer": "aino", "article": article})
    example = {"source": word, "reviewer": "aino", "target": "x", "example": {"source": "A sentence."}}
    call("POST", "/api/entry/example", json=example)
    call("POST", "/api/entry/example", json={**example, "source": "nosuchword"}, expect=404)
    call("GET", "/api/examples", params={"source": word})


def _review(call, word, other, target):
    call("GET", "/api/review/next", params={"reviewer": "aino"})
    decide(call, word, "aino", [target], candidates=[target])
    decide(call, word, "ben", verdict="none", candidates=[target])
    call("POST", "/api/review/decide", json={"source": word}, expect=422)
    call("POST", "/api/review/skip", json={"source": other, "reviewer": "aino"})
    call("POST", "/api/review/note", json={"source": other, "reviewer": "aino", "note": "look again"})
    call("POST", "/api/review/undo", json={"reviewer": "aino"})
    call("POST", "/api/review/undo", json={"reviewer": "nobody"}, expect=409)
    assert call("GET", "/api/review/disagreements")["total"] == 1
    for name in ("reviewers", "status", "agreement"):
        call("GET", f"/api/review/{name}")


def _audit(call):
    call("GET", "/api/audit")
    call("GET", "/api/audit/next", params={"reviewer": "aino"}, expect=409)
    call("POST", "/api/audit", json={"size": 40, "reviewer": "aino"})
    for one in range(40):
        (item,) = call("GET", "/api/audit/next", params={"reviewer": "aino", "count": 1})["items"]
        said = {"verdict": "accept", "right": item["candidates"][:1]} if one % 2 else {"verdict": "none"}
        call("POST", "/api/audit/decide", json={"number": item["number"], "reviewer": "aino", **said})
    call("POST", "/api/audit/undo", json={"reviewer": "aino"})
    call("GET", "/api/audit/report")
    call("POST", "/api/audit/recalibrate")
    call("DELETE", "/api/audit/recalibrate")
    call("POST", "/api/audit/apply", expect=409)


def _publish(call):
    call("GET", "/api/publish/formats")
    call("GET", "/api/publish/preview")
    for name in ("csv", "site", "ontolex", "tei"):
        assert call("GET", "/api/publish/export", params={"format": name})
    call("GET", "/api/publish/export", params={"which": "confident"}, expect=400)
    call("GET", "/api/publish/changes")
    sheet = call("GET", "/api/publish/sheet", params={"limit": 5})
    call("POST", "/api/publish/import", params={"reviewer": "ben"}, content=sheet)


def test_requests_that_are_not_served_are_as_described(bench, tmp_path):
    with serving(bench) as client:
        call = Described(client)
        call("GET", "/api/model", headers={"Authorization": "Bearer wrong-token"}, expect=401)
        call("GET", "/api/model", headers={"Origin": "http://example.org"}, expect=403)
    with serving(Workbench(Settings(work=tmp_path))) as client:
        call = Described(client)
        call("GET", "/api/model")
        call("GET", "/api/entries", expect=503)


def test_operations_have_names_and_need_a_token(client):
    schema = client.get("/openapi.json").json()
    operations = [(path, one) for path, ways in schema["paths"].items() for one in ways.values()]
    names = [one["operationId"] for _, one in operations]
    assert len(set(names)) == len(names)
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert schema["security"] == [{"token": []}, {"cookie": []}]
    assert [path for path, one in operations if one.get("security") == []] == ["/api/health"]
    for path, one in operations:
        (success,) = [status for status in one["responses"] if status.startswith("2")]
        assert success == "204" or one["responses"][success]["content"], path
    assert "HTTPValidationError" not in schema["components"]["schemas"]


class SlowReader:
    """A language model that takes its time to open."""

    kind = "encoder"

    def __init__(self, translator):
        self.vector = translator.space.source.vectors[0]
        self.opened = threading.Event()

    def vectors(self, words, side):
        if not self.opened.is_set():
            time.sleep(1.0)
            self.opened.set()
        return [self.vector for _ in words]


def test_the_first_word_for_a_language_model_waits_for_it(made_model, tmp_path, monkeypatch):
    bench = opened(shutil.copytree(made_model, tmp_path / "m"), fill=False)
    engine = bench.engine
    engine.translator.unknown.append(SlowReader(engine.translator))
    engine.encoder_open = False
    monkeypatch.setattr("bilex_workbench.engine.LONGEST_WAIT", 0.5)
    app = application(bench, AccessPolicy(TOKEN, LOCAL, seconds=0.5))
    with TestClient(app, base_url="http://127.0.0.1", headers=BEARER) as client:
        answer = client.get("/api/translate", params={"word": "outside"})
        assert answer.status_code == 200 and answer.json()["origin"] == "encoder", answer.text
        assert client.get("/api/translate", params={"word": "outside"}).status_code == 200


@pytest.mark.slow
def test_a_typescript_client_compiles_in_strict_mode(client, tmp_path):
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    (tmp_path / "openapi.json").write_text(json.dumps(client.get("/openapi.json").json()))
    packages = ["openapi-typescript@7", "openapi-fetch@0.13", "typescript@5"]
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", *packages], cwd=tmp_path, check=False
    )
    if installed.returncode:
        pytest.skip("the npm registry cannot be reached")
    (tmp_path / "client.ts").write_text(
        """
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8765" });
type Row = components["schemas"]["Row"];
export async function firstUnreviewed(): Promise<Row | undefined> {
  const { data, error } = await client.GET("/api/entries", { params: { query: { status: "unreviewed" } } });
  if (error) throw new Error(error.detail);
  return data.rows[0];
}
export async function accept(row: Row): Promise<number> {
  const said = { verdict: "accept" as const, accepted: [row.target ?? ""] };
  const body = { source: row.source, reviewer: "aino", ...said };
  const { data, error } = await client.POST("/api/review/decide", { body });
  if (error) throw new Error(error.detail);
  return data.decision.id;
}
"""
    )
    run = tmp_path / "node_modules" / ".bin"
    subprocess.run(
        [run / "openapi-typescript", "openapi.json", "-o", "schema.d.ts", "--default-non-nullable=false"],
        cwd=tmp_path,
        check=True,
    )
    options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]
    found = subprocess.run(
        [run / "tsc", *options, "client.ts"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.slow
def test_a_generated_python_client_makes_a_round_trip(client, bench, tmp_path, monkeypatch):
    pytest.importorskip("openapi_python_client")
    (tmp_path / "openapi.json").write_text(json.dumps(client.get("/openapi.json").json()))
    (tmp_path / "config.json").write_text(
        json.dumps({"content_type_overrides": {"text/csv": "application/octet-stream"}, "post_hooks": []})
    )
    options = ["--path", "openapi.json", "--config", "config.json", "--output-path", "made_client"]
    options += ["--meta", "none", "--fail-on-warning"]
    subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", *options],
        cwd=tmp_path,
        check=True,
    )
    monkeypatch.syspath_prepend(tmp_path)
    from made_client import AuthenticatedClient, Client
    from made_client.api.look import model
    from made_client.api.review import decide, undo
    from made_client.api.table import entries, one_entry, write_article
    from made_client.models import ArticleIn, ArticleInput, DecisionIn, DecisionInVerdict, Problem, UndoIn

    with listening(application(bench, AccessPolicy(TOKEN, LOCAL))) as address:
        assert isinstance(model.sync(client=Client(base_url=address)), Problem)  # no token
        with AuthenticatedClient(base_url=address, token=TOKEN) as made:
            page = entries.sync(client=made, status="unreviewed", sort="-priority", limit=3)
            row = page.rows[0]
            assert (page.total, len(page.rows), row.status) == (600, 3, "unreviewed")
            said = DecisionIn(row.source, "aino", DecisionInVerdict.ACCEPT, accepted=[row.target])
            kept = decide.sync(client=made, body=said)
            assert kept.decision.accepted == [row.target] and kept.entry.status == "accepted"
            article = ArticleIn(row.source, "aino", ArticleInput(part_of_speech="noun"))
            assert write_article.sync(client=made, body=article).article.part_of_speech == "noun"
            entry = one_entry.sync(client=made, source=row.source)
            assert entry.history[0].reviewer == "aino" and entry.candidates[0].word == row.target
            undone = undo.sync(client=made, body=UndoIn("aino"))
            assert undone.undone.id == kept.decision.id and undone.entry.status == "unreviewed"
            refused = undo.sync_detailed(client=made, body=UndoIn("aino"))
            assert refused.status_code == 409 and "no decision left" in refused.parsed.detail


@contextmanager
def listening(app):
    """The address of a server on a port of this machine."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="critical"))
    listener = server.config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def test_the_server_starts_without_what_only_a_fit_needs():
    """With torch, importing the server takes twice as long."""
    program = "import sys, bilex_workbench.server\nprint(sorted({'torch', 'numba'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
