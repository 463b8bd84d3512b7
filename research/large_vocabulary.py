"""Two languages of millions of words with a known answer: building them, aligning, exporting, memory.

    python -m research.large_vocabulary build OUT --words 2000000 --dtype float16
    python -m research.large_vocabulary run OUT --words 2000000    align with c1, save, load, mutual export

**The vocabulary.** A word's meaning is the mean of the language, a topic, a narrower field inside it, and a
part of its own, each Gaussian with variances that fall as a power of the dimension; topics and fields have
sizes by Zipf's law. The constants were set so that the spectrum and the similarities of neighbours are
near those of the Finnish and the Russian vectors.
**The two languages.** In each, a share of the word's own part is noise of that language, a share that grows
with the rank; the target is rotated as well. A share of the words has no partner: the target has another
word there. Inside a block the target's order of frequency differs from the source's.
Every block follows from the number of the block alone, so that nothing larger than a block is ever held.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.model.space import CSLS_NEIGHBOURS, Space
from bilex.vectors.stored import row_blocks

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

DIM, BLOCK = 300, 1 << 15
TOPIC, FIELD, MEAN = 0.34, 0.28, 0.05  # shares of the variance; the rest is the word's own
WORDS_A_TOPIC, WORDS_A_FIELD = 300, 20
SPECTRUM = 0.75
# The share of noise in a word's own part: of the first word, and what each factor of ten in the rank adds.
NOISE = (0.78, 0.05)
LONELY = 0.15
SEEDS, SEED_RANKS, TEST_WORDS = 5000, 10_000, 500
BANDS = (0, 10_000, 50_000, 200_000, 500_000, 1_000_000, 2_000_000)


@dataclass(frozen=True)
class Planted:
    """A planted problem, given block by block.

    Args:
        words: Words of each language.
        seed: Of everything that is random.
    """

    words: int
    seed: int = 0

    @property
    def blocks(self) -> range:
        """The numbers of the blocks."""
        return range(-(-self.words // BLOCK))

    def ranks(self, block: int) -> Rows:
        """The meanings of a block, most frequent first, counted from 0."""
        return np.arange(block * BLOCK, min((block + 1) * BLOCK, self.words))

    @cached_property
    def spread(self) -> Floats:
        """The standard deviation of each dimension; the squares add up to 1."""
        variances = (np.arange(DIM) + 2.0) ** -SPECTRUM
        return np.asarray(np.sqrt(variances / variances.sum()), np.float32)

    @cached_property
    def rotation(self) -> Floats:
        """What takes the source's space to the target's."""
        return np.linalg.qr(self._random(1).standard_normal((DIM, DIM)))[0].astype(np.float32)

    @cached_property
    def mean(self) -> Floats:
        """What all words of the language have in common."""
        direction = self._random(2).standard_normal(DIM)
        return np.asarray(np.sqrt(MEAN) * direction / np.linalg.norm(direction), np.float32)

    @cached_property
    def topics(self) -> Floats:
        """One centre a topic."""
        return self._normal(self._random(3), max(1, self.words // WORDS_A_TOPIC))

    @cached_property
    def fields(self) -> tuple[Floats, Rows]:
        """One centre a field, without its topic, and the topic of each."""
        count = max(1, self.words // WORDS_A_FIELD)
        topic = _zipf(self._random(4), len(self.topics), count)
        return self._normal(self._random(5), count), topic

    def meanings(self, block: int, part: int = 0) -> tuple[Floats, Floats]:
        """What the words of a block mean, as the part that is like their neighbours' and their own.

        Args:
            block: The block.
            part: 1 gives other words for the same ranks.
        """
        random = self._random(6, block, part)
        centres, topic = self.fields
        field = _zipf(random, len(centres), len(self.ranks(block)))
        own = self._normal(random, len(field))
        shared = np.float32(np.sqrt(FIELD)) * centres[field]
        shared += np.float32(np.sqrt(TOPIC)) * self.topics[topic[field]]
        shared += self.mean
        return shared, own

    def lonely(self, block: int) -> npt.NDArray[np.bool_]:
        """Which meanings of a block the target has no word for."""
        return self._random(7, block).random(len(self.ranks(block))) < LONELY

    def order(self, block: int) -> Rows:
        """The meanings of a block, as places in it, in the order of their frequency in the target."""
        jitter = self._random(8, block).normal(0, 0.3, len(self.ranks(block)))
        return np.argsort(np.log(self.ranks(block) + 1.0) + jitter)

    def source_rows(self, block: int) -> Floats:
        """The source's vectors of a block."""
        return self._seen(*self.meanings(block), block, 0)

    def target_rows(self, block: int) -> Floats:
        """The target's vectors of a block, in the target's order."""
        meaning, lonely = self.meanings(block), self.lonely(block)
        for known, other in zip(meaning, self.meanings(block, 1), strict=True):
            known[lonely] = other[lonely]
        return (self._seen(*meaning, block, 1) @ self.rotation)[self.order(block)]

    def source_words(self) -> list[str]:
        """Words of nine letters and digits."""
        return [f"s{rank:08d}" for rank in range(self.words)]

    def target_words(self) -> list[str]:
        """The words of the target in its order; the number is that of the meaning."""
        words = []
        for block in self.blocks:
            order, lonely = self.order(block), self.lonely(block)
            for place in order.tolist():
                words.append(f"{'x' if lonely[place] else 't'}{block * BLOCK + place:08d}")
        return words

    def pairs(self, first: int, last: int, count: int) -> list[tuple[str, str]]:
        """Some of the true pairs with meanings of these ranks."""
        alone = np.concatenate(
            [self.lonely(block) for block in self.blocks[first // BLOCK : last // BLOCK + 1]]
        )
        start = first // BLOCK * BLOCK
        known = np.flatnonzero(~alone[first - start : last - start]) + first
        chosen = np.sort(self._random(9, first).permutation(known)[:count])
        return [(f"s{rank:08d}", f"t{rank:08d}") for rank in chosen.tolist()]

    def _seen(self, shared: Floats, own: Floats, block: int, language: int) -> Floats:
        """Unit vectors of words whose own part is mixed with noise of the language."""
        noise = self._normal(self._random(10, block, language), len(own))
        share = np.minimum(1, NOISE[0] + NOISE[1] * np.log10(1 + self.ranks(block) / 1000))[:, None]
        rows: Floats = own * np.sqrt(1 - share).astype(np.float32) + noise * np.sqrt(share).astype(np.float32)
        rows *= np.float32(np.sqrt(1 - TOPIC - FIELD - MEAN))
        rows += shared
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _normal(self, random: np.random.Generator, count: int) -> Floats:
        return random.standard_normal((count, DIM), dtype=np.float32) * self.spread

    def _random(self, *what: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([self.seed, *what]))


def _zipf(random: np.random.Generator, kinds: int, count: int) -> Rows:
    """Draws among `kinds` things whose probability falls with their number, the first ones levelled off."""
    weights = np.cumsum(1 / (np.arange(kinds) + 0.02 * kinds + 5))
    return np.asarray(np.searchsorted(weights, random.random(count) * weights[-1]), np.int64)


def build(options: argparse.Namespace) -> None:
    """Write both languages, the seeds and the test pairs."""
    from bilex.lexicon import Lexicon
    from bilex.vectors.folder import write_blocks

    problem = Planted(options.words, options.seed)
    started = time.perf_counter()
    sides = {
        "source": (problem.source_words(), map(problem.source_rows, problem.blocks)),
        "target": (problem.target_words(), map(problem.target_rows, problem.blocks)),
    }
    _ = problem.spread, problem.rotation, problem.mean, problem.topics, problem.fields  # shared by both
    write = partial(write_blocks, dim=DIM, dtype=options.dtype, preprocessing=("unit",))
    with ThreadPoolExecutor() as pool:
        for written in [
            pool.submit(write, options.out / side, words, blocks=blocks)
            for side, (words, blocks) in sides.items()
        ]:
            written.result()
    seed_ranks = min(SEED_RANKS, options.words)
    seeds = problem.pairs(0, seed_ranks, min(SEEDS, seed_ranks // 2))
    known = {source for source, _ in seeds}
    asked = [
        pair
        for first, last in bands(options.words)
        for pair in problem.pairs(first, last, TEST_WORDS if first else 2 * SEEDS)
        if pair[0] not in known
    ]
    Lexicon(seeds).save(options.out / "seeds.tsv")
    Lexicon(asked).save(options.out / "test.tsv")
    report("build", words=options.words, seconds=round(time.perf_counter() - started, 1), peak=peak())


def bands(words: int) -> list[tuple[int, int]]:
    """Ranges of ranks to ask for, the last one cut off at the end of the vocabulary."""
    return [(a, min(b, words)) for a, b in itertools.pairwise(BANDS) if a < words]


def run(options: argparse.Namespace) -> None:
    """Align, save, load and export, as the commands do; each step's time and peak memory."""
    from bilex.aligners.c1 import C1
    from bilex.aligners.c1_settings import C1Report
    from bilex.evaluation import evaluate
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.vectors import WordVectors

    overrides = {name: json.loads(value) for name, _, value in (s.partition("=") for s in options.set)}
    with step("open"):
        source, target = (
            WordVectors.load(options.out / side, limit=options.words, lowercase=True)
            for side in ("source", "target")
        )
        seeds = Lexicon.load(options.out / "seeds.tsv")
    aligner = C1(device=options.device, **overrides)
    with step("fit, map, neighbourhoods" + (", confidences" if options.calibrate else "")) as found:
        translator = Translator(aligner).fit(source, target, seeds, calibrate=options.calibrate)
        report = translator.provenance.report
        assert isinstance(report, C1Report)
        found |= {"fit of c1": report.seconds, "history": len(report.history)}
    with step("check") as found:
        found["furthest from float64"] = furthest_term(translator.space)
    with step("save"):
        translator.save(options.out / "model")
    del translator, source, target
    with step("load, checksums compared"):
        translator = Translator.load(options.out / "model", device=options.device)
    with step("translate one word"):
        translator.translate("s00000500")
    with step("evaluate by band") as found:
        test = Lexicon.load(options.out / "test.tsv")
        for first, last in bands(options.words):
            pairs = [pair for pair in test.pairs if first <= int(pair[0][1:]) < last][:TEST_WORDS]
            figures = evaluate(translator.space, Lexicon(pairs), bootstrap=0).as_dict()
            found[f"P@1 csls, ranks {first:,}-{last:,}"] = [
                round(100 * figures[side]["csls"]["p@1"], 1) for side in ("forward", "backward")
            ]
    with step("mutual export") as found:
        dictionary = translator.lexicon(mutual=True)
        dictionary.save(options.out / "mutual.tsv")
        right = sum(entry.target == "t" + entry.source[1:] for entry in dictionary)
        found |= {"pairs": len(dictionary), "right %": round(100 * right / max(1, len(dictionary)), 1)}


def furthest_term(space: Space, asked: int = 64) -> float:
    """The largest difference of some CSLS terms, in either language, from those of plain float64."""
    terms, furthest = space.neighbourhoods(), 0.0
    for own, (query_side, key_side) in zip(
        terms, (space.sides("forward"), space.sides("backward")), strict=True
    ):
        rows = np.linspace(0, len(query_side) - 1, asked).astype(np.int64)
        queries = np.asarray(query_side.vectors[rows], np.float64)
        best = np.empty((asked, 0))
        for block in row_blocks(key_side.vectors):
            scores = np.concatenate([best, queries @ block.astype(np.float64).T], axis=1)
            best = np.partition(scores, -CSLS_NEIGHBOURS, axis=1)[:, -CSLS_NEIGHBOURS:]
        furthest = max(furthest, float(np.abs(best.mean(axis=1) - own[rows]).max()))
    return furthest


def peak() -> dict[str, float]:
    """Peak memory in GB so far, of the process and of the GPU if one is used."""
    torch = sys.modules.get("torch")
    found = {"host_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)}
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kinds = {
        line.split(":")[0]: int(line.split()[1]) * 1024 / 1e9 for line in status if line.startswith("Rss")
    }
    found |= {"now_anonymous_gb": round(kinds["RssAnon"], 2), "now_file_gb": round(kinds["RssFile"], 2)}
    if torch is not None and torch.cuda.is_available():
        found["gpu_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    return found


@contextmanager
def step(name: str) -> Iterator[dict[str, Any]]:
    """Report how long a step took and what was found in it."""
    found: dict[str, Any] = {}
    started = time.perf_counter()
    yield found
    report(name, seconds=round(time.perf_counter() - started, 1), **found, peak=peak())


def report(what: str, **figures: Any) -> None:
    """One JSON line."""
    print(json.dumps({"step": what, **figures}), flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Do what the first word says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["build", "run"])
    parser.add_argument("out", type=Path, help="the folder of the problem")
    parser.add_argument("--words", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float16", choices=["float32", "float16", "int8"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--calibrate", action="store_true", help="for run: learn confidences too")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=JSON", help="settings of c1")
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    (build if options.what == "build" else run)(options)


if __name__ == "__main__":
    main(sys.argv[1:])
