"""A server of the workbench for tests, and what is right in its planted model."""

from __future__ import annotations

from starlette.testclient import TestClient

from bilex_workbench.access import LOCAL, AccessPolicy
from bilex_workbench.server import application
from bilex_workbench.workbench import Workbench

TOKEN = "a-token-for-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def serving(bench: Workbench) -> TestClient:
    app = application(bench, AccessPolicy(TOKEN, LOCAL))
    return TestClient(app, base_url="http://127.0.0.1:8765", headers=BEARER)


def right_answer(bench: Workbench, source: str) -> str:
    """The planted translation of a source word."""
    space = bench.engine.space
    return space.target.index_to_key[space.source.key_to_index[source]]
