"""What each fast path of `bilex.search` saves in the jobs that people run.

    python -m research.fast_paths DATA                       every path on every job it touches
    python -m research.fast_paths DATA --paths pools --jobs sample --repeat 3
    python -m research.fast_paths DATA --against TREE        the jobs here and in another checkout

Each measurement is a process of its own; with and without a path take turns. The table gives the processor
time of the job (user and system, all threads), after a small run that compiles; `--cpu avx2` imitates AVX2.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
}
Clock = Callable[[Callable[[], Any]], None]


# ---------------------------------------------------------------------------------------------- jobs


def sample(data: Path, clock: Clock) -> None:
    """`align` of the packaged sample with c1: preset best, 24 updates per round."""
    _align(lambda: _c1(preset="best", updates=24), *_sample(), clock)


def fi_ru(data: Path, clock: Clock) -> None:
    """Finnish-Russian, 5k seeds, the first 20,000 words, preset paper, 16 updates per round."""
    from research.packed import read_dictionary, read_vectors

    source, target = (read_vectors(data, name).head(20_000) for name in ("fi", "ru"))
    seeds = read_dictionary(data, "fi-ru", "train.freq.5k")
    _align(lambda: _c1(preset="paper", updates=16), source, target, seeds, clock)


def vecmap_semi(data: Path, clock: Clock) -> None:
    """`align` of the sample with vecmap-semi, with a patience of 1 instead of 50 rounds."""
    from bilex.aligners.vecmap import VecMapSemi

    _align(lambda: VecMapSemi(patience=1, growth=3, device="cpu"), *_sample(), clock)


def lexicon(data: Path, clock: Clock) -> None:
    """The best translations of 10,000 words among 200,000, from a model that has its CSLS terms."""
    from bilex.model.space import Space

    source, target = _planted(data, 200_000)
    space = Space(source, target, device="cpu")
    rng = np.random.default_rng(0)
    terms = rng.uniform(0.4, 0.6, (2, 200_000)).astype(np.float32)
    space.keep_neighbourhoods(terms[0], terms[1])
    space.search(np.arange(600), 5)
    clock(lambda: space.search(np.arange(10_000), 5))


def terms(data: Path, clock: Clock) -> None:
    """The CSLS terms of 40,000 words, which every `align` computes for its model."""
    from bilex.search import neighbourhoods

    source, target = (words.vectors[:40_000] for words in _planted(data, 200_000))
    neighbourhoods(source[:600], target[:600], device="cpu")
    clock(lambda: neighbourhoods(source, target, device="cpu"))


def serve_one(data: Path, clock: Clock) -> None:
    """`serve`: forty searches for one word among 200,000."""
    _serve(data, clock, 40, 1)


def serve_twenty(data: Path, clock: Clock) -> None:
    """`serve`: ten searches for the words of 20 clients together among 200,000."""
    _serve(data, clock, 10, 20)


def translate(data: Path, clock: Clock) -> None:
    """`translate` of one word: the first search of a process that has loaded nothing."""
    from bilex.search import top_k

    _, target = _planted(data, 200_000)
    clock(lambda: top_k(np.asarray(target.vectors[5:6]), target.vectors, 5))


JOBS = (sample, fi_ru, vecmap_semi, lexicon, terms, serve_one, serve_twenty, translate)


def _c1(**settings: Any) -> Any:
    from bilex.aligners.c1 import C1

    return C1(device="cpu", **settings)


def _sample() -> tuple[Any, Any, Any]:
    from bilex.data import sample_path
    from bilex.lexicon import Lexicon
    from bilex.vectors import WordVectors

    folder = sample_path()
    return (*(WordVectors.load(folder / name) for name in ("en", "fi")), Lexicon.load(folder / "seeds.tsv"))


def _align(aligner: Callable[[], Any], source: Any, target: Any, seeds: Any, clock: Clock) -> None:
    from bilex.model.space import Space

    def fit(words: int) -> None:
        x, y = source.head(words), target.head(words)
        made = aligner().fit(x, y, seeds)
        Space.from_aligner(made, x, y).neighbourhoods()

    fit(1_500)
    clock(lambda: fit(1 << 30))


def _planted(data: Path, words: int) -> tuple[Any, Any]:
    """Planted vectors, made once."""
    from bilex.vectors import WordVectors
    from research.large_vocabulary import Planted

    sides = []
    problem = Planted(words)
    for name in ("source", "target"):
        path = Path(os.environ["FAST_PATHS_WORK"]) / f"{name}-{words}.npy"
        if not path.exists():
            make = getattr(problem, f"{name}_rows")
            np.save(path, np.concatenate([make(block) for block in problem.blocks]))
        rows = np.load(path, mmap_mode="r")
        sides.append(WordVectors([f"{name}{number}" for number in range(words)], rows, ("unit",)))
    return sides[0], sides[1]


def _serve(data: Path, clock: Clock, times: int, words: int) -> None:
    from bilex_workbench.served import Keys

    source, target = _planted(data, 200_000)
    keys = Keys(target, np.random.default_rng(0).uniform(0.4, 0.6, 200_000).astype(np.float32))
    queries = np.asarray(source.vectors[: words * (times + 1)])
    keys.top_k(queries[-words:], 10, penalised=True)

    def ask() -> None:
        for number in range(times):
            keys.top_k(queries[number * words : (number + 1) * words], 10, penalised=True)

    clock(ask)


# --------------------------------------------------------------------------------------------- paths


def low_precision() -> None:
    import torch

    from bilex.search import arithmetic

    arithmetic.fastest_search = lambda *_, **__: torch.float32
    real = arithmetic.fastest
    arithmetic.fastest = lambda job: torch.float32 if job == "matching" else real(job)


def int8() -> None:
    """bfloat16 takes its place."""
    _only("bfloat16")


def bfloat16() -> None:
    """int8 takes its place."""
    _only("int8")


def _only(name: str) -> None:
    from bilex.search import arithmetic

    for job in ("search", "matching"):
        candidates = arithmetic._CANDIDATES[job]
        arithmetic._CANDIDATES[job] = tuple(each for each in candidates if each.name == name)


def llvm_comparison() -> None:
    """Plain numba loops take its place."""
    from bilex.search.kernels import proposed_score
    from numba import njit

    from bilex.search import kernels, stochastic_kernels

    number = stochastic_kernels._number

    @njit(nogil=True, inline="always")
    def collect(hits, block, r, scale, scales, raised, bar, coarse, bars):
        found = 0
        for c in range(block.shape[1]):
            score = proposed_score(block[r, c], scale, scales[c]) + raised[c]
            hits[found] = c
            found += np.int32(score >= bar) | np.int32(score + coarse >= bars[c])
        return found

    @njit(nogil=True, inline="always")
    def lower(block, row, start, scale, bar, other_bar, penalty, scales, bars, other_bars, penalties):
        bits = np.uint64(0)
        for c in range(64):
            place = start + c
            score = number(block[row, place]) * scale * scales[place]
            of_row = min(bar, other_bar + penalties[place])
            of_column = min(bars[place], other_bars[place] + penalty)
            bits |= np.uint64(score >= min(of_row, of_column)) << np.uint64(c)
        return bits

    kernels._collect, stochastic_kernels.reaching_lower = collect, lower


def first_bars() -> None:
    from numba import njit

    from bilex.search import kernels

    @njit(nogil=True)
    def rows(block, first_row, first_key, lists):
        pass

    @njit(nogil=True)
    def columns(block, first_row, first_key, forward, backward):
        pass

    kernels._first_row_bars, kernels._first_column_bars = rows, columns


def both_ways() -> None:
    """Two searches take the place of one pass."""
    from bilex.search import cpu

    def twice(source, target, k, memory, dtype=None):
        forward = cpu.top_k(source, target, k, None, memory, dtype)
        return *forward, *cpu.top_k(target, source, k, None, memory, dtype)

    cpu.top_k_both_ways = twice


def own_threads() -> None:
    """One thread looks at blocks that torch multiplies with all threads."""
    from bilex.search.cpu import Sweep

    def run(self, visit):
        for number, start in enumerate(range(0, len(self.left.rows), self.rows)):
            self._strip(number, start, visit)

    Sweep.run = run


def matching_lists() -> None:
    """Products, `topk` and random masks of torch take their place."""
    from bilex.search.stochastic_gpu import GpuMatching

    from bilex.search import stochastic

    def call(self, source, target, keep):
        x, y = source.float(), target.float()
        key = self._keys()[0]
        from bilex.search import stochastic_gpu

        stochastic_gpu.rounded_units = lambda rows: rows
        return stochastic.Matches(*GpuMatching(x, y, self.k, keep, key % 2**62).run(self._blocks))

    stochastic.StochasticMatcher.__call__ = call


def matching_tiles() -> None:
    """Torch's 8-bit products of blocks take their place."""
    from bilex.search import arithmetic

    arithmetic.tile_kind = lambda: None


def pools() -> None:
    """Every update searches every query in full: a product and `topk`."""
    import torch
    from bilex.search.hard_negatives import Nearest

    from bilex.aligners import contrast

    class Plain:
        searched = 0

        def __init__(self, keys, n, temperature, forbidden):
            self.keys, self.n, self.temperature = (
                keys,
                max(1, min(n, len(keys) - forbidden.most)),
                temperature,
            )
            counts = np.diff(forbidden.starts)
            self.rows = torch.from_numpy(np.repeat(np.arange(len(counts)), counts))
            self.columns = torch.from_numpy(forbidden.keys)

        def look(self, now):
            pass

        def nearest(self, now):
            found = []
            for start in range(0, len(now.queries), 512):
                scores = now.query_units[start : start + 512] @ now.key_units.T
                own = (self.rows >= start) & (self.rows < start + 512)
                scores[self.rows[own] - start, self.columns[own]] = -torch.inf
                score, key = scores.topk(self.n, dim=1)
                weight = (score / self.temperature).exp()
                scaled = weight * now.inverse_norm[key]
                context = torch.bmm(scaled[:, None], self.keys[key])[:, 0]
                found.append((weight.sum(1), context, key, score))
            return Nearest(*(torch.cat(part) for part in zip(*found, strict=True)))

    contrast.hard_negatives = Plain


def pool_precision() -> None:
    import torch

    from bilex.search import hard_negatives_cpu

    hard_negatives_cpu.precision_for = lambda *_: torch.float32


def pool_locality() -> None:
    from bilex.search import hard_negatives_cpu

    hard_negatives_cpu.near_together = lambda rows: np.arange(len(rows))


def pool_ahead() -> None:
    """Only the pools that have run out are searched."""
    from bilex.search import hard_negatives_cpu

    hard_negatives_cpu.updates_ahead = lambda *_: 0.0


def pool_sure_keys() -> None:
    """Keys that are surely among the nearest are fetched twice, like all others."""
    from bilex.search.hard_negatives_cpu import CpuHardNegatives

    real = CpuHardNegatives._attend
    CpuHardNegatives._attend = lambda self, now, wanted, bars, sure: real(
        self, now, wanted, bars, np.full_like(sure, np.inf)
    )


def pool_levels() -> None:
    """A new pool begins without a threshold."""
    from bilex.search.hard_negatives_cpu import CpuHardNegatives

    real = CpuHardNegatives._search

    def search(self, now, wanted, step):
        self.pools.level[wanted] = -np.inf
        real(self, now, wanted, step)

    CpuHardNegatives._search = search


def pool_four_rows() -> None:
    """One row at a time is multiplied and added."""
    from numba import njit

    from bilex.search import pool_kernels

    @njit(nogil=True, fastmath=True)
    def score(query, keys, inverse_norm, index, first, last, scores):
        for j in range(first, last):
            row, total = keys[index[j]], np.float32(0)
            for d in range(query.shape[0]):
                total += query[d] * row[d]
            scores[j] = total * inverse_norm[index[j]]

    @njit(nogil=True, fastmath=True)
    def add_rows(context, keys, index, weights, first, last):
        for j in range(first, last):
            row, weight = keys[index[j]], weights[j]
            for d in range(context.shape[0]):
                context[d] += weight * row[d]

    pool_kernels._score, pool_kernels._add_rows = score, add_rows


def compiled_units() -> None:
    import torch

    from bilex.aligners import contrast

    def to_units(image, previous):
        inverse = image.norm(dim=1).clamp_min_(1e-37).reciprocal_()
        image.mul_(inverse[:, None])
        step = torch.zeros_like(inverse) if previous is None else (image - previous).norm(dim=1)
        return inverse, image, step

    contrast.to_units = to_units


def symmetric_norms() -> None:
    """The gradient through the norms takes one whole product."""
    from bilex.aligners import contrast

    contrast._outer_sum = lambda rows, amounts: (rows * amounts[:, None]).T @ rows


def served_instructions() -> None:
    """The compiled loop over float32 queries takes the place of VNNI."""
    from bilex.search import int8_tiles

    int8_tiles.kind = lambda: None


def served_int8() -> None:
    """A float32 product with the keys in their file takes the place of rounded keys."""
    from bilex_workbench import served

    class Plain:
        def __init__(self, keys, penalty, read):
            self.keys, self.penalty, self.read = keys, penalty, read

        def top_k(self, queries, k, *, penalised):
            from bilex.search.few import top_k

            scores = np.empty((len(queries), len(self.keys)), np.float32)
            for start in range(0, len(self.keys), 8192):
                scores[:, start : start + 8192] = queries @ self.keys[start : start + 8192].T
            if penalised:
                scores = 2 * scores - self.penalty
            self.read()
            found, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
            for place, line in enumerate(scores):
                threshold = np.partition(line, -k)[-k] - 1e-4
                near = np.flatnonzero(line >= threshold)
                penalty = self.penalty[near] if penalised else None
                found[place], best = top_k(queries[place : place + 1], self.keys[near], k, penalty)
                rows[place] = near[best]
            return found, rows

    import bilex.search.streamed

    bilex.search.streamed.StreamedKeys = Plain
    assert served


def few_queries() -> None:
    from bilex.search import few

    few.are_few = lambda *_: False


ALIGN = ("sample", "fi_ru")
SERVE = ("serve_one", "serve_twenty")
PATHS: dict[Callable[[], None], tuple[str, ...]] = {
    low_precision: ("lexicon", "terms", "fi_ru", "vecmap_semi"),
    int8: ("lexicon", "terms", "vecmap_semi"),
    bfloat16: ("lexicon", "terms"),
    llvm_comparison: ("lexicon", "terms", "vecmap_semi"),
    first_bars: ("lexicon", "terms"),
    both_ways: ("terms", "fi_ru"),
    own_threads: ("lexicon", "fi_ru"),
    matching_lists: ("vecmap_semi",),
    matching_tiles: ("vecmap_semi",),
    pools: ALIGN,
    pool_precision: ALIGN,
    pool_locality: ALIGN,
    pool_ahead: ALIGN,
    pool_sure_keys: ALIGN,
    pool_levels: ALIGN,
    pool_four_rows: ALIGN,
    compiled_units: ALIGN,
    symmetric_norms: ("sample",),
    served_instructions: SERVE,
    served_int8: SERVE,
    few_queries: ("translate",),
}


# ------------------------------------------------------------------------------------------- driver


def run(job: str, data: Path, without: str | None) -> dict[str, float]:
    """Run a job in this process."""
    for path in PATHS:
        if path.__name__ == without:
            path()
    times: dict[str, float] = {}

    def clock(work: Callable[[], Any]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times.update(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu)

    next(each for each in JOBS if each.__name__ == job)(data, clock)
    return times


def measured(
    job: str, options: argparse.Namespace, without: str | None, tree: Path | None
) -> dict[str, float]:
    """Run a job in a process of its own, with an own place for compiled loops."""
    place = options.work / "-".join(
        filter(None, (tree.name if tree else "here", without or "all", options.cpu))
    )
    environment = {**os.environ, "FAST_PATHS_WORK": str(options.work), "NUMBA_CACHE_DIR": str(place)}
    environment["BILEX_CACHE"] = str(place / "cache")
    environment |= AVX2 if options.cpu == "avx2" else {}
    root = Path(__file__).resolve().parent.parent
    code = tree or root
    paths = [code / "src", code / "workbench/src", code / "bench/src", root]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    command = [sys.executable, str(Path(__file__).resolve()), str(options.data), "--run", job]
    command += ["--without", without] if without else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(job, without or tree or "all", found, file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, and print one row of the table for each path and job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--paths", nargs="*", default=[path.__name__ for path in PATHS])
    parser.add_argument("--jobs", nargs="*", default=[job.__name__ for job in JOBS])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--cpu", choices=["avx2"])
    parser.add_argument("--work", type=Path, default=Path("/tmp/fast_paths"))
    parser.add_argument("--against", type=Path)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--without", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run, options.data, options.without)))
        return
    options.work.mkdir(parents=True, exist_ok=True)
    print(
        "| path | job | with, s | without, s | ratio (processor) | ratio (wall) |\n|---|---|---|---|---|---|"
    )
    for job in options.jobs:
        paths = [each.__name__ for each, jobs in PATHS.items() if job in jobs]
        others = [each for each in paths if each in options.paths] if not options.against else [""]
        if not others:
            continue
        times: dict[str, list[dict[str, float]]] = {each: [] for each in ("", *others)}
        before = []
        for _ in range(options.repeat):
            before.append(measured(job, options, None, None))
            for each in others:
                times[each].append(measured(job, options, each or None, options.against))
        for each in others:
            (with_cpu, cpu), (with_wall, wall) = (
                [statistics.median(t[kind] for t in side) for side in (before, times[each])]
                for kind in ("cpu", "wall")
            )
            print(
                f"| {each or options.against} | {job} | {with_cpu:.2f} | {cpu:.2f} | {cpu / with_cpu:.2f} "
                f"| {wall / with_wall:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
