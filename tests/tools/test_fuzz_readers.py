"""The fuzzer of the readers: a short run of it, and that its limits are checked."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bilex import BilexError

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tools" / "fuzz_readers.py"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), "--processes", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_short_run_over_all_readers_finds_nothing() -> None:
    done = run("--inputs", "100", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2,800 inputs, 0 failures" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()[1:-1]]
    assert all("0" not in (row[-5], row[-4]) for row in rows), "a reader read or refused all inputs"


class Reader:
    """A reader that does with an input what it was made for."""

    def __init__(self, act) -> None:
        self.act = act

    def make(self, rng: random.Random) -> dict[str, bytes]:
        return {"input": b"the input"}

    def read(self, rng: random.Random) -> None:
        self.act()


def endless() -> None:
    try:
        while True:
            pass
    except Exception:  # as a reader might that turns whatever goes wrong into a sentence
        raise BilexError("it cannot be read.") from None


def refusal(message: str):
    def act() -> None:
        raise BilexError(message)

    return act


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (endless, "TooSlowError"),
        (lambda: {}["x"], "KeyError"),
        (refusal("two\nlines."), "AssertionError"),
        (refusal("no end"), "AssertionError"),
        (refusal("it is damaged (MemoryError)."), "AssertionError"),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, act, said: str) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import fuzz_readers

    monkeypatch.setattr(fuzz_readers, "SECONDS", 0.5)
    tally = fuzz_readers.fuzz(Reader(act), 0, [0])
    assert (tally.read, tally.refused, tally.inputs) == (0, 0, 1)
    assert said in tally.failures[0] and "the input" in tally.failures[0]


MEMORY = """
import os, sys
from test_fuzz_readers import Reader
from fuzz_readers import fuzz, limit_memory

def touched(megabytes):
    block = bytearray(megabytes << 20)
    block[::4096] = b"x" * len(block[::4096])

if child := os.fork():  # a process that was forked does not inherit the peak of the one that started it
    sys.exit(os.waitpid(child, 0)[1])
limit_memory()
maker = Reader(lambda: None)
maker.make = lambda rng: touched(300) or {"input": b""}
tally = fuzz(maker, 0, [0])
print("made:", tally.read, tally.peak >> 20)
for act in (lambda: touched(700), lambda: bytearray(2 << 30)):  # more than the peak before
    print(fuzz(Reader(act), 0, [0]).failures[0])
"""


def test_memory_beyond_the_limits_is_found() -> None:
    folders = {"PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", MEMORY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **folders})
    assert done.returncode == 0, done.stderr
    assert "made: 1 0\n" in done.stdout, "what the fuzzer itself needs is not held against a reader"
    assert "TooLargeError: the peak of memory rose by" in done.stdout and "\nMemoryError\n" in done.stdout


def test_what_is_read_or_refused_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import fuzz_readers

    tally = fuzz_readers.fuzz(Reader(refusal("a sentence.")), 0, range(5, 8))
    assert (tally.read, tally.refused, tally.failures) == (0, 3, [])
    assert fuzz_readers.fuzz(Reader(lambda: None), 0, range(3)).read == 3
