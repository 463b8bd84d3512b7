"""The server is killed, its disk fills up: a few rounds of what `tools/` does for longer."""

from __future__ import annotations

import re

import pytest
from tools.attack_workbench import decisions, full_disk, kills


@pytest.mark.slow
@pytest.mark.promise
def test_no_acknowledged_decision_is_lost(model):
    found = re.fullmatch(
        "decisions: 5 kills, ([0-9]+) acknowledged decisions, none lost", decisions(model, 0)
    )
    assert found and int(found[1]) > 20


@pytest.mark.slow
@pytest.mark.promise
def test_no_kill_while_a_model_is_written_or_kept_loses_one(made_model):
    assert kills(made_model, 0).startswith("kills: 4 kills, no model or decision lost")


@pytest.mark.slow
@pytest.mark.promise
def test_a_full_disk_loses_nothing(made_model):
    said = full_disk(made_model, 60)
    if "not tried" in said:
        pytest.skip(said)
    assert "no model or decision lost" in said and "refused" in said
