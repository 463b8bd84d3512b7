"""The server is killed under load; `tools/kill_workbench.py` does it a hundred times."""

from __future__ import annotations

import pytest
from tools.kill_workbench import run_rounds


@pytest.mark.slow
@pytest.mark.promise
def test_no_acknowledged_decision_is_lost(model):
    assert run_rounds(model, 5) > 20
