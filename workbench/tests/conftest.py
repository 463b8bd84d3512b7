"""A small planted model, and a client of a server that has it open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bilex.aligners import get_method
from bilex.model import Translator
from bilex_workbench.database import review_file
from bilex_workbench.workbench import Workbench
from planted import planted
from workbench_server import opened, serving


@pytest.fixture(scope="session")
def made_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 600 planted words whose confidences were calibrated."""
    problem = planted(600, noise=1.1)
    aligner = get_method("procrustes")()
    translator = Translator(aligner).fit(
        problem.source, problem.target, problem.pairs(0, 250), languages=("en", "fi"), progress=False
    )
    folder = tmp_path_factory.mktemp("models") / "made"
    translator.save(folder)
    return folder


@pytest.fixture
def model(made_model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "en-fi"
    shutil.copytree(made_model, folder)
    return folder


@pytest.fixture(scope="session")
def filled_table(made_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The review file of that model with its table of entries, which takes longer to fill than to copy."""
    work = tmp_path_factory.mktemp("filled")
    folder = shutil.copytree(made_model, work / "en-fi")
    opened(folder).stop()
    return review_file(folder)


@pytest.fixture
def bench(model: Path, filled_table: Path) -> Iterator[Workbench]:
    shutil.copy(filled_table, review_file(model))
    found = opened(model)
    yield found
    found.stop()


@pytest.fixture
def client(bench: Workbench) -> Iterator[TestClient]:
    with serving(bench) as found:
        yield found


@pytest.fixture(scope="session")
def shared_bench(made_model: Path, filled_table: Path, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """A workbench for tests that change nothing."""
    model = shutil.copytree(made_model, tmp_path_factory.mktemp("shared") / "en-fi")
    shutil.copy(filled_table, review_file(model))
    return opened(model)


@pytest.fixture(scope="session")
def shared_client(shared_bench: Workbench) -> Iterator[TestClient]:
    with serving(shared_bench) as found:
        yield found
