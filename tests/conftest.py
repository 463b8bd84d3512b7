"""What all tests of bilex share: files and a model for the command line, a translator, tiny encoders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli_files import Files
from planted import Planted, planted

if TYPE_CHECKING:
    from bilex.encoders import WordEncoder
    from bilex.model import Translator

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def helpers_for_child_processes() -> Iterator[None]:
    """Processes that tests start find the helper modules too."""
    with pytest.MonkeyPatch.context() as patch:
        places = [str(HERE), str(HERE / "encoders"), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
        yield


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """On these tiny problems two threads of torch wait for each other more than they compute."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Two vector files, seeds, a test dictionary, and a model made of them."""
    from bilex.cli import run

    folder = tmp_path_factory.mktemp("cli")
    world = planted(900, 20, 0.9)
    made = Files(
        folder, *(folder / name for name in ("src.vec", "tgt.vec", "seeds.tsv", "test.tsv", "model"))
    )
    world.source.save(made.source)
    world.target.save(made.target)
    world.pairs(0, 400).save(made.seeds)
    world.pairs(400, 900).save(made.test)
    command = ["align", made.source, made.target, "--seeds", made.seeds, "-o", made.model]
    assert run([*map(str, command), "--method", "procrustes", "--device", "cpu"]) == 0
    return made


@pytest.fixture(scope="session")
def world() -> Planted:
    """Two languages with known answers."""
    return planted()


@pytest.fixture(scope="session")
def translator(world: Planted) -> Translator:
    """A translator of these, fitted once."""
    from bilex.model import Translator

    return Translator("procrustes").fit(world.source, world.target, world.pairs(0, 600))


@pytest.fixture
def make_encoder() -> Callable[..., WordEncoder]:
    """A function from model kind and pooling to a fresh tiny encoder, always with the same weights."""
    from tiny_encoders import tiny_encoder

    return tiny_encoder


@pytest.fixture
def tiny_folder(tmp_path: Path, make_encoder: Callable[..., WordEncoder]) -> Path:
    """A tiny encoder as a model folder."""
    folder = tmp_path / "tiny"
    make_encoder().save(folder, "a tiny encoder")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say aloud what was not tested: what runs on a GPU, and the workbench's page in a browser."""
    skipped = terminalreporter.stats.get("skipped", [])
    for part, name, remedy in (
        ("test_gpu.py", "GPU TESTS", ""),
        ("workbench/browser/", "BROWSER TESTS", "; 'make test-browser' installs what it may and runs them"),
    ):
        reasons = [report.longrepr[2] for report in skipped if part in report.nodeid]
        if reasons:
            line = f"{len(reasons)} {name} WERE NOT RUN ({reasons[0].removeprefix('Skipped: ')}){remedy}"
            terminalreporter.write_sep("!", line, yellow=True, bold=True)
    if "not slow" in config.getoption("markexpr"):
        line = "slow tests were left out, most browser tests among them: make test-browser, make test-all"
        terminalreporter.write_sep("!", line, yellow=True)
