"""Packages that import their parts late still show them for tab completion."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize("package", ["bilex", "bilex.fit", "bilex.model", "bilex.encoders"])
def test_names_complete(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert not [name for name in dir(module) if name.startswith("_") and not name.startswith("__")]
