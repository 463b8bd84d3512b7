"""One translator that the tests of this room share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bilex.aligners.procrustes import Procrustes
from bilex.translator import Translator
from planted import Planted, planted


@pytest.fixture(scope="session")
def world() -> Planted:
    return planted()


@pytest.fixture(scope="session")
def translator(world: Planted) -> Translator:
    return Translator.fit(Procrustes(device="cpu"), world.source, world.target, world.pairs(0, 600))
