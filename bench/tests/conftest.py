"""What all tests of the benchmark share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from runner_world import KnownFolder, make_folder

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "tests"  # helper modules that both distributions' tests use

torch.set_num_threads(1)  # on these tiny problems threads wait for each other more than they compute


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> KnownFolder:
    """The data folder of `runner_world`."""
    return make_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def quick_projection() -> Iterator[None]:
    """Instead of t-SNE, which takes seconds per panel."""
    from bilex_bench.figures import tsne

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsne, "projected", lambda sample: tsne.joint_rows(sample)[:, :2])
        yield


@pytest.fixture(scope="session", autouse=True)
def helpers_for_child_processes() -> Iterator[None]:
    """Processes that tests start, workers of Ray among them, find the helper modules too."""
    with pytest.MonkeyPatch.context() as patch:
        places = [str(HERE), str(SHARED), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
        yield
