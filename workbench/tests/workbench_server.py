"""A server of the workbench for tests, and what is right in its planted model."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
from starlette.testclient import TestClient

from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.server import application
from bilex_workbench.workbench import Settings, Workbench

TOKEN = "a-token-for-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def opened(model: Path, **settings: object) -> Workbench:
    """A workbench whose model is open and, unless `fill` is false, whose table is filled."""
    bench = Workbench(Settings(work=model.parent, **settings), model)
    bench.wait_until_ready()
    return bench


def serving(bench: Workbench) -> TestClient:
    """A client; when it is closed the workbench is stopped."""
    app = application(bench, AccessPolicy(TOKEN, LOCAL))
    return TestClient(app, base_url="http://127.0.0.1:8765", headers=BEARER)


def right_answer(bench: Workbench, source: str) -> str:
    """The planted translation of a source word."""
    space = bench.engine.space
    return space.target.index_to_key[space.source.key_to_index[source]]


class Described:
    """A client that compares each response with the description of the server that sent it."""

    def __init__(self, client):
        self.client, self.schema = client, client.get("/openapi.json").json()
        self.seen = {}

    def __call__(self, method, path, *, expect=200, **rest):
        answer = self.client.request(method, path, **rest)
        template = next(
            known
            for known in sorted(self.schema["paths"], key=lambda known: "{" in known)
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path)
        )
        operation = self.schema["paths"][template][method.lower()]
        assert answer.status_code == expect, answer.text
        self.seen.setdefault(operation["operationId"], set()).add(expect)
        described = operation["responses"][str(expect)]
        if expect == 204:
            return None
        kind = answer.headers["content-type"].partition(";")[0]
        content = described["content"][kind]
        if kind != "application/json":
            return answer.content
        found = answer.json()
        jsonschema.validate(
            found,
            {**content["schema"], "components": self.schema["components"]},
            format_checker=jsonschema.FormatChecker(),
        )
        return found
