"""Kill bilex at random moments, and check that nothing is lost, mixed or left behind.

    python tools/kill_test.py                 # 240 kills, some minutes
    python tools/kill_test.py --kills 24 --seed 7

Each trial forks a child that does one piece of work, kills it with SIGKILL after a random part of the time
that the work takes, and then checks: the output is whole, and the old or the new one; doing the work again
gives the result of a run that was never killed; no temporary file is left after that. The exit code is 0 if
all of it held each time.

The parent only forks and waits: MKL can hang a child that is forked after its parent has computed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex.cli import run
from bilex.core import files
from bilex.core.files import restore
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.many import ManyLanguages
from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder
from bilex_bench.results import Setup
from bilex_bench.store import ResultsStore
from bilex_bench.work import Workplace, WorkPlan

WORDS, DIM, SEEDS = 400, 24, 150
_FAST = ("--device", "cpu", "--no-calibrate")
TEMPORARY = (".bilex-tmp", ".bilex-old", ".bilex-words", ".bilex-lock")
_LAST_ROUND = "the last round"
TIME_LIMIT = 300.0  # seconds for work that is not killed
LATEST = 1.05  # of the time that the work takes; a little more, so that its very end is hit too


_FORK = multiprocessing.get_context("fork")


class LostError(Exception):
    """A result was lost, mixed or left behind, or the work itself failed."""


@dataclass(frozen=True)
class Work:
    """One kind of work that is killed; its functions get the folder of a trial."""

    name: str
    prepare: Callable[[Path], None]  # makes the earlier output
    do: Callable[[Path], None]  # called in a child that is killed, and again to the end
    state: Callable[[Path], Any]  # the current output, as something that can be compared; None for nothing
    resumes: bool = False  # whether a part of the new state may exist after a kill


def command(*words: object) -> None:
    """Run a command line in this process; an exit code other than 0 is an error."""
    code = run([str(word) for word in words])
    if code:
        raise LostError(f"'bilex {' '.join(map(str, words))}' ended with {code}")


class Kinds:
    """All kinds of work, on planted vectors that are written into a folder."""

    def __init__(self, inputs: Path) -> None:
        self.inputs = inputs
        in_child(self._make_inputs, inputs)

    def _make_inputs(self, inputs: Path) -> None:
        random_numbers = np.random.default_rng(0)
        meaning = random_numbers.normal(size=(WORDS, DIM)).astype(np.float32)
        turn = np.linalg.qr(random_numbers.normal(size=(DIM, DIM)))[0].astype(np.float32)
        noise = 0.3 * random_numbers.normal(size=meaning.shape).astype(np.float32)
        data = inputs / "data"
        for name, rows in (("aa", meaning), ("bb", meaning @ turn + noise)):
            words = WordVectors([f"{name}{row}" for row in range(WORDS)], rows)
            words.save(inputs / f"{name}.vec")
            words.save(data / "vectors" / f"{name}.vec")
        pairs = [(f"aa{row}", f"bb{row}") for row in range(WORDS)]
        Lexicon(pairs[:SEEDS]).save(inputs / "seeds.tsv")
        Lexicon(pairs[:SEEDS]).save(data / "aa-bb.train.1k.tsv")
        Lexicon(pairs[SEEDS:]).save(data / "aa-bb.test.tsv")
        self.align(inputs / "model", "procrustes")
        seeds = inputs / "seeds-of-two"
        for code, rows in (("de", meaning), ("fi", meaning @ turn + noise), ("sv", meaning @ turn.T)):
            WordVectors([f"{code}{row}" for row in range(WORDS)], rows).save(inputs / f"{code}.vec")
        for two in ("de-fi", "de-sv"):
            one, other = two.split("-")
            Lexicon([(f"{one}{row}", f"{other}{row}") for row in range(SEEDS)]).save(seeds / f"{two}.tsv")
            vectors = [inputs / f"{one}.vec", inputs / f"{other}.vec", "--seeds", seeds / f"{two}.tsv"]
            command("align", *vectors, "-o", inputs / two, "--method", "procrustes", *_FAST)
        chosen = random_numbers.integers(60, size=(400, 12))
        lines = [" ".join(f"word{number}" for number in line) + " new york" for line in chosen]
        (inputs / "text.txt").write_text("\n".join(lines), encoding="utf-8")

    def align(self, output: Path, method: str, *more: object) -> None:
        """`bilex align` on the planted vectors."""
        files = [self.inputs / "aa.vec", self.inputs / "bb.vec", "--seeds", self.inputs / "seeds.tsv"]
        command("align", *files, "-o", output, "--method", method, "--force", *_FAST, *more)

    def all(self) -> list[Work]:
        """Every kind of work."""
        return [
            Work("align, new", _nothing, lambda at: self.align(at / "m", "advanced"), _model),
            Work("align, replacing", self._old_model, lambda at: self.align(at / "m", "advanced"), _model),
            Work("saving again and again", self._old_model, self._save_often, _model),
            Work("saving by two renames", self._old_model, self._save_by_two_renames, _model),
            Work("convert to a folder", self._old("v"), self._convert("v"), _vectors("v")),
            Work("convert to npy", self._old("v.npy"), self._convert("v.npy"), _vectors("v.npy")),
            Work("convert to gzip", self._old("v.vec.gz"), self._convert("v.vec.gz"), _vectors("v.vec.gz")),
            Work("lexicon", _old_lexicon, self._lexicon, _text("d.tsv")),
            Work(
                "c1 with a checkpoint", _nothing, self._resumable("c1", "iterations=3", "updates=3"), _model
            ),
            Work(
                "vecmap with a checkpoint",
                _nothing,
                self._resumable("vecmap-semi", "patience=2", "frequent=200"),
                _model,
            ),
            Work("join", self._old_many, self._join, _many),
            Work("align-many", self._old_many, self._align_languages, _many),
            Work("vectors with phrases", self._old("v.vec"), self._train, _vectors("v.vec")),
            Work("lexicon by lemmas", _old_lexicon, self._lemmas, _text("d.tsv")),
            Work("benchmark run", _nothing, self._benchmark, _results, resumes=True),
        ]

    def _old_model(self, at: Path) -> None:
        shutil.copytree(self.inputs / "model", at / "m")

    def _save_often(self, at: Path) -> None:
        translator = Translator.load(self.inputs / "model", device="cpu")
        translator.provenance = replace(translator.provenance, made=_LAST_ROUND)
        for _ in range(10):
            translator.save(at / "m")

    def _save_by_two_renames(self, at: Path) -> None:
        """As on a system that cannot exchange two folders in one step."""
        vars(files)["exchange"] = lambda one, other: False
        self._save_often(at)

    def _old(self, name: str) -> Callable[[Path], None]:
        def prepare(at: Path) -> None:
            WordVectors(["old", "words"], np.ones((2, 3), np.float32)).save(at / name)

        return prepare

    def _convert(self, name: str) -> Callable[[Path], None]:
        return lambda at: command("convert", self.inputs / "aa.vec", at / name)

    def _lexicon(self, at: Path) -> None:
        command("lexicon", self.inputs / "model", "-o", at / "d.tsv", "--device", "cpu")

    def _old_many(self, at: Path) -> None:
        command("join", self.inputs / "de-fi", "-o", at / "m")

    def _join(self, at: Path) -> None:
        command("join", self.inputs / "de-fi", self.inputs / "de-sv", "-o", at / "m", "--force")

    def _align_languages(self, at: Path) -> None:
        vectors = [self.inputs / f"{code}.vec" for code in ("de", "fi", "sv")]
        folder, short = self.inputs / "seeds-of-two", ("--set", "iterations=1", "--set", "updates=2")
        command("align-many", *vectors, "--seeds-dir", folder, "-o", at / "m", "--force", *_FAST, *short)

    def _train(self, at: Path) -> None:
        options = ("--dim", 8, "--epochs", 2, "--threads", 1, "--language", "en")
        command("vectors", self.inputs / "text.txt", "-o", at / "v.vec", *options)

    def _lemmas(self, at: Path) -> None:
        command("lexicon", self.inputs / "de-fi", "--lemmas", "--device", "cpu", "-o", at / "d.tsv")

    def _resumable(self, method: str, *settings: str) -> Callable[[Path], None]:
        chosen = [word for setting in settings for word in ("--set", setting)]
        return lambda at: self.align(at / "m", method, "--checkpoint", at / "state", *chosen)

    def _benchmark(self, at: Path) -> None:
        folder = DataFolder.open(self.inputs / "data", "planted")
        work, cache = str(at / "work"), str(at / "cache")
        place = Workplace(WorkPlan(folders={"planted": folder}, work=work, cache=cache, device="cpu"))
        with ResultsStore.open(at / "r.sqlite") as store, store.claim():
            for method in ("procrustes", "advanced", "rcsls"):
                setup = Setup(dataset="planted", pair="aa-bb", seeds="1k", method=method)
                if not store.attempts(setup.key):
                    for result in place.run([setup]):
                        store.add(result)


def _nothing(at: Path) -> None:
    """There was nothing before."""


def _old_lexicon(at: Path) -> None:
    (at / "d.tsv").write_text("old\tvanha\n", encoding="utf-8")


def _model(at: Path) -> Any:
    """What a model answers; loading it compares every file with its checksum."""
    restore(at / "m")
    if not (at / "m").exists():
        return None
    translator = Translator.load(at / "m", device="cpu")
    words = translator.space.source.index_to_key
    found = [(answer[0].word, round(answer[0].score, 5)) for answer in translator.translate(words, 1)]
    return translator.provenance.method, translator.provenance.made == _LAST_ROUND, found


def _many(at: Path) -> Any:
    """What a model of many languages answers from its first language into each other one."""
    restore(at / "m")
    if not (at / "m").exists():
        return None
    many = ManyLanguages.load(at / "m", device="cpu")
    first, *others = many.languages
    words = many.vocabularies[first].index_to_key[:50]
    found = {other: many.pair(first, other).translate(words, 1) for other in others}
    return {other: [answer[0].word for answer in answers] for other, answers in found.items()}


def _vectors(name: str) -> Callable[[Path], Any]:
    def state(at: Path) -> Any:
        if not (at / name).exists():
            return None
        vectors = WordVectors.load(at / name)
        return vectors.index_to_key, np.asarray(vectors.vectors[:]).tolist()

    return state


def _text(name: str) -> Callable[[Path], Any]:
    return lambda at: (at / name).read_bytes() if (at / name).exists() else None


def _results(at: Path) -> Any:
    if not (at / "r.sqlite").exists():
        return None
    with ResultsStore.open(at / "r.sqlite") as store:
        return {result.setup.key: result.evaluation for result in store.results()}


def in_child(function: Callable[[Path], Any], at: Path, seconds: float = TIME_LIMIT) -> tuple[bool, Any]:
    """Call a function in a child, and kill it after some seconds: whether it ended before, and its result."""
    receiver, sender = _FORK.Pipe(duplex=False)

    def call() -> None:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            sender.send(function(at))
        except BaseException as error:
            sender.send(LostError(f"{at.name}: {type(error).__name__}: {error}"))

    child = _FORK.Process(target=call)
    child.start()
    sender.close()
    result = None
    if ended := receiver.poll(seconds):
        try:
            result = receiver.recv()
        except EOFError:
            result = LostError(f"{at.name}: the child ended without a result")
    child.kill()
    child.join()
    if isinstance(result, LostError):
        raise result
    if not ended and seconds == TIME_LIMIT:
        raise LostError(f"{at.name}: the child did not end within {TIME_LIMIT} s")
    return ended, result


def strays(at: Path) -> list[str]:
    """Temporary files anywhere in a folder."""
    return [str(path.relative_to(at)) for path in at.rglob("*") if path.name.endswith(TEMPORARY)]


@dataclass
class Measured:
    """A kind of work with its output and time when it is not killed."""

    work: Work
    before: Any
    after: Any
    seconds: float


def measure(work: Work, folder: Path) -> Measured:
    """Do the work twice undisturbed; the second time is that of a warm machine, as in the trials."""
    seconds = 0.0
    for name in ("first", "second"):
        at = folder / name
        at.mkdir(parents=True)
        in_child(work.prepare, at)
        _, before = in_child(work.state, at)
        started = time.monotonic()
        in_child(work.do, at)
        seconds = time.monotonic() - started
    return Measured(work, before, in_child(work.state, at)[1], seconds)


def trial(known: Measured, at: Path, seconds: float) -> str:
    """Kill once and check; the output is "old", "new" or "partly new", or the work was "not killed"."""
    work = known.work
    at.mkdir()
    in_child(work.prepare, at)
    ended, _ = in_child(work.do, at, seconds)
    _, found = in_child(work.state, at)
    if found == known.after:
        what = "new"
    elif found == known.before:
        what = "old"
    elif work.resumes and found is not None and found.items() <= known.after.items():
        what = "partly new"
    else:
        raise LostError(
            f"{work.name}: killed after {seconds:.3f} s, the output is neither the old nor the new one"
        )
    in_child(work.do, at)
    if in_child(work.state, at)[1] != known.after:
        raise LostError(f"{work.name}: killed after {seconds:.3f} s, the next run gives another result")
    if left := strays(at):
        raise LostError(f"{work.name}: killed after {seconds:.3f} s, {left[0]} was left after the next run")
    shutil.rmtree(at)
    return "not killed" if ended else what


def main() -> int:
    """Kill, count, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=240, help="how often to kill (default 240)")
    parser.add_argument("--seed", type=int, default=0, help="fixes the moments")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only kinds of work with this in their name"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng, faults = random.Random(options.seed), []
    with tempfile.TemporaryDirectory(prefix="bilex-kills-") as name:
        folder = Path(name)
        kinds = [work for work in Kinds(folder / "inputs").all() if options.only in work.name]
        known = [measure(work, folder / f"kind{number}") for number, work in enumerate(kinds)]
        counts: dict[str, Counter[str]] = {work.name: Counter() for work in kinds}
        number = 0
        while sum(count.total() - count["not killed"] for count in counts.values()) < options.kills:
            one = known[number % len(known)]
            at = folder / f"trial{number}"
            number += 1
            try:
                what = trial(one, at, rng.uniform(0, LATEST * one.seconds))
            except LostError as error:
                faults.append(str(error))
                what = "FAULT"
            counts[one.work.name][what] += 1
    for kind, count in counts.items():
        print(f"{kind:28}" + ", ".join(f"{what} {times}" for what, times in sorted(count.items())))
    for fault in faults:
        print(f"FAULT {fault}")
    print(f"{options.kills} kills, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
