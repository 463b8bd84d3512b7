from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.server import application
from workbench_server import TOKEN, serving


@pytest.fixture
def stranger(bench):
    """A client without a token."""
    return TestClient(application(bench, AccessPolicy(TOKEN, LOCAL)), base_url="http://127.0.0.1:8765")


def test_all_but_health_needs_the_token(client, stranger):
    assert stranger.get("/api/health").status_code == 200
    paths = client.get("/openapi.json").json()["paths"]
    addresses = [(method, path) for path, ways in paths.items() for method in ways if path != "/api/health"]
    assert len(addresses) > 30
    for method, path in [
        *addresses,
        ("get", "/docs"),
        ("get", "/openapi.json"),
        ("get", "/"),
        ("get", "/x.js"),
    ]:
        answer = stranger.request(method, path)
        assert answer.status_code == 401 and answer.json()["detail"], path
    wrong = stranger.get("/api/model", headers={"Authorization": "Bearer no"})
    assert wrong.status_code == 401
    assert stranger.post("/api/health").status_code == 401


def test_the_link_sets_a_cookie_that_is_not_the_token(stranger):
    answer = stranger.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert stranger.get("/api/model").status_code == 200  # the client kept the cookie
    assert stranger.get("/", params={"token": "wrong"}, follow_redirects=False).status_code == 401


def test_a_browser_without_a_token_is_asked_for_it(stranger):
    page = stranger.get("/", headers={"accept": "text/html"})
    assert page.status_code == 401 and "<form" in page.text and "<script" not in page.text
    assert stranger.post("/", data={"token": "wrong"}).status_code == 401
    assert stranger.post("/", data={"token": TOKEN}, follow_redirects=False).status_code == 303


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", ""])
def test_other_host_names_are_refused(client, host):
    assert client.get("/api/health", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1:8765", "[::1]:8765"])
def test_own_names_are_served(client, host):
    assert client.get("/api/health", headers={"host": host}).status_code == 200


def test_requests_of_other_sites_are_refused(client):
    body = {"source": "x", "reviewer": "a"}
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
    ):
        refused = client.post("/api/review/skip", json=body, headers=headers)
        assert refused.status_code == 403, headers
    own = client.post("/api/review/skip", json=body, headers={"origin": "http://127.0.0.1:8765"})
    assert own.status_code == 404  # let in; there is no such word


def test_every_answer_has_the_strict_headers(client, stranger):
    for answer in (client.get("/api/model"), stranger.get("/api/model"), client.get("/api/none")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_bodies_are_limited_whatever_they_announce(client):
    refused = client.post("/api/review/decide", content=b"x" * (1 << 20) + b"xx")
    assert refused.status_code == 413

    def pieces():
        for _ in range(20):
            yield b"x" * (1 << 16)

    refused = client.post("/api/review/decide", content=pieces())
    assert refused.status_code == 413 and refused.json()["detail"]


def test_strange_words_come_back_as_they_are(client, bench):
    source = bench.engine.space.source.index_to_key[300]
    for word in ("<script>alert(1)</script>", "a\u202eb", "\x00\x07", "=1+1", "שלום", "'; DROP TABLE x"):
        body = {"source": source, "reviewer": "<b>", "verdict": "accept", "accepted": [word]}
        answer = client.post("/api/review/decide", json=body)
        assert answer.json()["entry"]["accepted"] == [word]
        assert answer.headers["content-type"] == "application/json"


def test_a_request_that_takes_too_long_is_ended(bench, monkeypatch):
    import time

    monkeypatch.setattr(type(bench), "describe", lambda self: time.sleep(0.6) or {})
    app = application(bench, AccessPolicy(TOKEN, LOCAL, seconds=0.1))
    slow = TestClient(app, base_url="http://127.0.0.1:8765", headers={"Authorization": f"Bearer {TOKEN}"})
    answer = slow.get("/api/model")
    assert answer.status_code == 504 and answer.json()["detail"]


def test_without_a_model_only_the_setup_works(tmp_path):
    from bilex_workbench.state import Settings, Workbench

    bench = Workbench(Settings(work=tmp_path))
    with serving(bench) as client:
        assert client.get("/api/model").json()["state"] == "none"
        refused = client.get("/api/translate", params={"word": "dog"})
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        assert client.get("/api/entries").status_code == 503
