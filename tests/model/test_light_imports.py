"""Imports: translating with a saved model needs numpy and safetensors; what is missing to fit is named."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from bilex.model import Translator

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""
HEAVY = {"torch", "numba", "scipy"}
ALL = HEAVY | {"rich", "click", "filelock", "psutil", "platformdirs", "anyascii", "huggingface_hub"}


def without(names: set[str], program: str) -> str:
    code = BLOCKED.format(names=names) + program
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def saved(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light") / "model"
    translator.save(folder)
    return folder


def test_a_program_translates_with_numpy_and_safetensors(translator: Translator, saved: Path) -> None:
    word = translator.space.source.index_to_key[700]
    program = f"""
from bilex import Translator
opened = Translator.load({str(saved)!r})
for retrieval in ("csls", "nn"):
    print(*(found.word for found in opened.translate({word!r}, 3, retrieval=retrieval)))
print(opened.translate("zzzz").known)
"""
    expected = [
        " ".join(found.word for found in translator.translate(word, 3, retrieval=retrieval))  # type: ignore[arg-type]
        for retrieval in ("csls", "nn")
    ]
    assert without(ALL, program).splitlines() == [*expected, "False"]


def test_the_command_translates_without_what_fitting_needs(translator: Translator, saved: Path) -> None:
    word = translator.space.source.index_to_key[700]
    arguments = ["translate", str(saved), word, "-k", "1", "--format", "tsv"]
    found = without(HEAVY, f"from bilex.cli import run\nassert run({arguments!r}) == 0\n")
    assert found.split("\t")[:2] == [word, translator.translate(word, 1)[0].word]


@pytest.mark.parametrize("statement", ["from bilex import C1", "from bilex import Translator; Translator()"])
def test_what_is_missing_to_fit_is_named(statement: str) -> None:
    program = f"""
try:
    {statement}
except ImportError as error:
    print(error)
"""
    said = without({"torch"}, program)
    assert "needs torch, which is not installed" in said and "fitting needs torch, numba, scipy" in said


# Packages that import their parts late still show them for tab completion.


@pytest.mark.parametrize("package", ["bilex", "bilex.fit", "bilex.model", "bilex.encoders"])
def test_names_complete(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert not [name for name in dir(module) if name.startswith("_") and not name.startswith("__")]
