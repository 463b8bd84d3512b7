"""Commands from vectors to a benchmark on systems that lack what this one has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bilex
import bilex_bench
from bilex_bench.store import ResultsStore
from planted import planted

PACKAGE = Path(bilex.__file__).parent
BENCH = Path(bilex_bench.__file__).parents[1]
AWKWARD = "Åsa Öberg's 文件 folder"  # spaces, a quote, letters of two scripts
GRID = """
[data.world]
path = "data"

[grid]
pairs = "all"
seeds = "1k"

[[method]]
name = "procrustes"

[[method]]
name = "c1"
settings = { iterations = 1, updates = 3, negatives = 5 }
"""
# psutil is loaded first and register_at_fork stays: on Linux psutil and torch need themselves what they do
# without on Windows.
WITHOUT_UNIX = """
import os, sys
import asyncio.selector_events  # which asks os.sysconf since Python 3.12
import psutil
for name in ("fcntl", "resource", "grp", "pwd", "termios"):
    sys.modules[name] = None
for name in ("sysconf", "sysconf_names", "fork", "forkpty", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
if hasattr(os, "process_cpu_count"):  # since Python 3.13, by what was just removed
    os.process_cpu_count = os.cpu_count
"""


RUN_EACH = """
import json, sys
if __name__ == "__main__":
    from bilex.cli import run
    for command in json.loads(sys.argv[1]):
        if run(command):
            sys.exit(f"failed: {command}")
        print(end="\\0", flush=True)
"""


class OtherSystem:
    """Commands from vectors to a benchmark, in a process with another environment.

    Args:
        folder: Where files are written, and where the commands run.
        changes: Environment variables; None removes one.
    """

    def __init__(self, folder: Path, **changes: str | None) -> None:
        self.folder = folder
        self.environment = {**os.environ, **{k: v for k, v in changes.items() if v is not None}}
        for name in (name for name, value in changes.items() if value is None):
            self.environment.pop(name, None)
        self.warnings = ""
        folder.mkdir(parents=True)
        world = planted(300, 16, 0.5)
        data = folder / "data"
        world.source.save(data / "vectors" / "aa.vec")
        world.target.save(data / "vectors" / "bb.vec")
        world.pairs(0, 120).save(data / "aa-bb.train.1k.tsv")
        world.pairs(120, 300).save(data / "aa-bb.test.tsv")
        (folder / "grid.toml").write_text(GRID, encoding="utf-8")
        self.word, self.translation = world.pairs(0, 1).pairs[0]

    def bilex(self, *commands: list[object]) -> list[str]:
        """Run commands, one after the other, in one process; what each of them writes to stdout."""
        lines = [[str(part) for part in command] for command in commands]
        done = subprocess.run(
            [sys.executable, "-c", RUN_EACH, json.dumps(lines)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.warnings += done.stderr
        return done.stdout.split("\0")[:-1]

    def go(self) -> None:
        """Align, translate, evaluate, run a grid, and check what comes out."""
        vectors, model = self.folder / "data" / "vectors", self.folder / "my model"
        seeds, test = (self.folder / "data" / f"aa-bb.{name}.tsv" for name in ("train.1k", "test"))
        settings = [part for s in ("iterations=1", "updates=3", "negatives=5") for part in ("--set", s)]
        _, translated, evaluated, _ = self.bilex(
            ["align", vectors / "aa.vec", vectors / "bb.vec", "--seeds", seeds, "-o", model, *settings],
            ["translate", model, self.word, "--json"],
            ["evaluate", model, test, "--json"],
            ["benchmark", "run", "grid.toml", "-o", "results.sqlite", "--workers", 1],
        )
        assert json.loads(translated)["translations"][0]["word"] == self.translation
        assert json.loads(evaluated)["forward"]["csls"]["p@1"] > 0.9
        with ResultsStore.open(self.folder / "results.sqlite", create=False) as store:
            results = store.results()
        assert {result.setup.method for result in results} == {"procrustes", "c1"}
        assert all(result.error is None for result in results)
        for result in results:
            assert result.environment["memory_gigabytes"] > 0


def test_without_what_only_unix_has_in_folders_with_awkward_and_long_names(tmp_path: Path) -> None:
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(WITHOUT_UNIX, encoding="utf-8")
    long = tmp_path / AWKWARD / ("long " * 30).strip() / ("ä" * 60) / ("n" * 80)
    system = OtherSystem(long, PYTHONPATH=os.pathsep.join(map(str, (hiding, PACKAGE.parent, BENCH))))
    shown = subprocess.run(
        [sys.executable, "-c", "import os; print(hasattr(os, 'fork'), hasattr(os, 'sysconf')); import fcntl"],
        env=system.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.stdout == "False False\n"
    assert "ModuleNotFoundError" in shown.stderr
    system.go()


class ReadOnly:
    """A package and a home in which nothing can be written, also by root: the places for it are files."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / AWKWARD / "site" / "bilex"
        self.temporary, home = folder / "temporary", folder / "home"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        for inside in [self.package, *(path for path in self.package.rglob("*") if path.is_dir())]:
            (inside / "__pycache__").write_text("a file, so that nothing can be kept in it")
        home.write_text("a file, so that nothing can be kept in it")
        self.temporary.mkdir()
        self.before = self.state()
        self.system = OtherSystem(
            folder / "files",
            PYTHONPATH=str(self.package.parent),
            **dict.fromkeys(("HOME", "USERPROFILE", "LOCALAPPDATA"), str(home)),
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.temporary)),
            **dict.fromkeys(("BILEX_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")),
            NUMBA_OPT="0",  # compiles faster
        )

    def state(self) -> list[tuple[Path, int]]:
        """Everything in the package, and when it was changed."""
        return sorted((path, path.stat().st_mtime_ns) for path in self.package.rglob("*"))

    def check(self) -> None:
        """The command worked with a temporary cache, and the user was informed."""
        assert "replaces it as the cache until bilex ends; set BILEX_CACHE" in self.system.warnings
        assert not list(self.temporary.glob("bilex-*")), "the temporary cache was left behind"
        assert self.state() == self.before


def test_compiled_loops_where_neither_the_home_nor_the_package_can_be_written(tmp_path: Path) -> None:
    read_only = ReadOnly(tmp_path)
    read_only.system.bilex(["info", "data/vectors/aa.vec"])
    read_only.check()


@pytest.mark.slow
@pytest.mark.promise
def test_all_the_way_where_neither_the_home_nor_the_package_can_be_written(tmp_path: Path) -> None:
    read_only = ReadOnly(tmp_path)
    read_only.system.go()
    read_only.check()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locales")
def test_a_word_in_the_c_locale(tmp_path: Path) -> None:
    system = OtherSystem(tmp_path / AWKWARD, LC_ALL="C", LANG=None, PYTHONUTF8=None, PYTHONIOENCODING=None)
    vectors = [system.folder / "data" / "vectors" / f"{language}.vec" for language in ("aa", "bb")]
    seeds, model = system.folder / "data" / "aa-bb.train.1k.tsv", system.folder / "ä"
    saved, translated = system.bilex(
        ["align", *vectors, "--seeds", seeds, "-o", model, "--method", "advanced"],
        ["translate", model, system.word],
    )
    assert AWKWARD in saved and system.translation in translated
