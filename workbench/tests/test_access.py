from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from bilex_workbench import access
from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.server import application
from bilex_workbench.workbench import Settings, Workbench
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


def test_requests_of_other_sites_are_refused(shared_client):
    body = {"source": "x", "reviewer": "a"}
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
    ):
        refused = shared_client.post("/api/review/skip", json=body, headers=headers)
        assert refused.status_code == 403, headers
    own = shared_client.post("/api/review/skip", json=body, headers={"origin": "http://127.0.0.1:8765"})
    assert own.status_code == 404  # let in; there is no such word


def test_every_answer_has_the_strict_headers(client, stranger):
    for answer in (client.get("/api/model"), stranger.get("/api/model"), client.get("/api/none")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_bodies_are_limited_whatever_they_announce(shared_client):
    refused = shared_client.post("/api/review/decide", content=b"x" * (1 << 20) + b"xx")
    assert refused.status_code == 413

    def pieces():
        for _ in range(20):
            yield b"x" * (1 << 16)

    refused = shared_client.post("/api/review/decide", content=pieces())
    assert refused.status_code == 413 and refused.json()["detail"]


def test_strange_words_come_back_as_they_are(client, bench):
    source = bench.engine.space.source.index_to_key[300]
    for word in ("<script>alert(1)</script>", "a\u202eb", "=1+1", "שלום", "'; DROP TABLE x"):
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
    free = ("/api/health", "/api/model", "/api/job", "/api/setup", "/api/publish/formats")
    params = {"word": "dog", "source": "dog", "target": "koira", "reviewer": "aino"}
    with serving(Workbench(Settings(work=tmp_path))) as client:
        assert client.get("/api/model").json()["state"] == "none"
        for path, operations in client.get("/openapi.json").json()["paths"].items():
            if "get" in operations and not path.startswith(free):
                refused = client.get(path, params=params)
                assert refused.status_code == 503 and refused.headers["retry-after"] == "1", path
        for path, body in (("/api/learn", {}), ("/api/review/skip", {"source": "dog", "reviewer": "aino"})):
            assert client.post(path, json=body).status_code == 503, path


def test_strange_headers_and_texts_are_refused_with_a_sentence(client, bench):
    word = bench.engine.space.source.index_to_key[0]
    assert client.get("/api/model", headers={"Origin": "http://["}).status_code == 403
    assert client.get("/api/suggest?word=a%00b").status_code == 400
    assert client.get("/%00").status_code == 400
    both = {"Transfer-Encoding": "chunked", "Content-Length": "2"}
    assert client.post("/api/review/skip", content=b"{}", headers=both).status_code == 400
    for strange in ("\x00", "a\x1bb", "a\rb", "a\nb", "\u2028"):
        body = {"source": word, "reviewer": "aino", "verdict": "accept", "accepted": [strange]}
        assert client.post("/api/review/decide", json=body).status_code == 422, repr(strange)
    half = b'{"source": "%s", "reviewer": "\\ud800", "note": "x"}' % word.encode()
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/review/note", content=half, headers=headers).status_code == 422
    multiline = {"source": word, "reviewer": "aino", "note": "two\nlines"}
    assert client.post("/api/review/note", json=multiline).status_code == 200
    assert client.get(f"/api/publish/sheet?limit={10**23}").status_code == 422
    body = {"number": 10**23, "reviewer": "a", "verdict": "none"}
    assert client.post("/api/audit/decide", json=body).status_code == 422


def test_a_code_lets_in_once(bench, monkeypatch):
    app = application(bench, AccessPolicy(TOKEN, LOCAL))

    def enter(code):
        stranger = TestClient(app, base_url="http://127.0.0.1:8765")
        found = stranger.get("/", params={"code": code}, follow_redirects=False).status_code
        return found, stranger.get("/api/model").status_code

    code = app.one_time_code()
    assert TOKEN not in code and len(code) >= 32
    assert enter(code) == (303, 200) and enter(code) == (401, 401)
    assert enter("") == (401, 401) and enter("wrong") == (401, 401)
    late = app.one_time_code()
    moment = access.time.monotonic()
    monkeypatch.setattr(access.time, "monotonic", lambda: moment + 121)
    assert enter(late) == (401, 401)


def test_short_passwords_cannot_be_guessed_by_trying(bench, monkeypatch):
    stranger = TestClient(application(bench, AccessPolicy("password", LOCAL)), base_url="http://127.0.0.1")
    cookie = stranger.post("/", data={"token": "password"}, follow_redirects=False).cookies
    assert cookie
    stranger.cookies.clear()

    def tried(token):
        return stranger.get("/api/model", headers={"Authorization": f"Bearer {token}"}).status_code

    answers = [tried(f"guess{number}") for number in range(40)]
    assert answers == [401] * 20 + [429] * 20
    assert tried("password") == 429  # or the 429 would say which guess was right
    assert stranger.post("/", data={"token": "password"}).status_code == 429
    stranger.cookies.update(cookie)
    assert stranger.get("/api/model").status_code == 200  # who is in stays in
    stranger.cookies.clear()
    moment = access.time.monotonic()
    monkeypatch.setattr(access.time, "monotonic", lambda: moment + 61)
    assert tried("password") == 200
