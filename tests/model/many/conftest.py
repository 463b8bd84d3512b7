"""Planted languages and models that the tests of this package share."""

from __future__ import annotations

import pytest

from bilex import ManyLanguages
from bilex.model import Translator
from bilex.model.joining import join
from many_planted import PlantedMany, planted_many


@pytest.fixture(scope="session")
def world() -> PlantedMany:
    return planted_many()


@pytest.fixture(scope="session")
def hub_models(world: PlantedMany) -> dict[str, Translator]:
    return {
        f"en-{code}": Translator("procrustes").fit(
            world.vocabularies["en"],
            world.vocabularies[code],
            world.pairs("en", code, 0, 400),
            languages=("en", code),
            progress=False,
        )
        for code in ("fi", "fr", "ru")
    }


@pytest.fixture(scope="session")
def joined(hub_models: dict[str, Translator]) -> ManyLanguages:
    return join(hub_models)
