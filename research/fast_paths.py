"""What each fast path of `bilex.search` saves in the jobs that people run.

    python -m research.fast_paths DATA                       every path on every job it touches
    python -m research.fast_paths DATA --paths pools --jobs sample --repeat 3
    python -m research.fast_paths DATA --against TREE        the jobs here and in another checkout
    python -m research.fast_paths DATA --jobs gpu_fi_ru gpu_sample    pools and their kernel, on a GPU

Each measurement is a process of its own; with and without a path take turns. The table gives the processor
time of the job (user and system, all threads), after a small run that compiles; `--cpu avx2` imitates AVX2.
Paths that were deleted are in the program of commit 93e277a, which measures the code of 5d00727.
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
    space.set_neighbourhoods(terms[0], terms[1])
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


def gpu_fi_ru(data: Path, clock: Clock) -> None:
    """Finnish-Russian, 5k seeds, 200,000 words, preset paper, on a GPU."""
    from research.packed import read_dictionary, read_vectors

    source, target = (read_vectors(data, name) for name in ("fi", "ru"))
    seeds = read_dictionary(data, "fi-ru", "train.freq.5k")
    _align(lambda: _c1(preset="paper", device="cuda"), source, target, seeds, clock)


def gpu_sample(data: Path, clock: Clock) -> None:
    """The packaged sample, preset best, on a GPU."""
    _align(lambda: _c1(preset="best", device="cuda"), *_sample(), clock)


JOBS = (gpu_fi_ru, gpu_sample, sample, fi_ru, vecmap_semi, lexicon, terms, serve_one, serve_twenty, translate)


def _c1(**settings: Any) -> Any:
    from bilex.aligners.c1 import C1

    return C1(**{"device": "cpu", **settings})


def _sample() -> tuple[Any, Any, Any]:
    from bilex.data import sample_path
    from bilex.lexicon import Lexicon
    from bilex.vectors import WordVectors

    folder = sample_path()
    source, target = (WordVectors.load(folder / name) for name in ("en", "fi"))
    return source, target, Lexicon.load(folder / "seeds.tsv")


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
    from bilex_workbench.engine import Keys

    source, target = _planted(data, 200_000)
    keys = Keys(target, np.random.default_rng(0).uniform(0.4, 0.6, 200_000).astype(np.float32))
    queries = np.asarray(source.vectors[: words * (times + 1)])
    keys.top_k(queries[-words:], 10, penalised=True)

    def ask() -> None:
        for number in range(times):
            keys.top_k(queries[number * words : (number + 1) * words], 10, penalised=True)

    clock(ask)


# --------------------------------------------------------------------------------------------- paths


def _replace(owner: object, name: str, new: object) -> None:
    setattr(owner, name, new)


def int8() -> None:
    """float32 products take its place."""
    from bilex.search.low_precision import operands

    _replace(operands, "int8_limit", lambda: 0)


def matching() -> None:
    """Products, `topk` and random masks of torch take the place of the compiled loops."""
    from bilex.search.gpu import match
    from bilex.search.matching import CpuMatcher

    _replace(
        CpuMatcher, "__call__", lambda self, x, y, keep, keys: match(x, y, self.k, keep, keys[0], 2 << 30)
    )


def pools() -> None:
    """Every update searches every query in full: a product and `topk`, on a GPU by groups of keys."""
    import torch

    from bilex.aligners import contrast
    from bilex.search.negatives import Forbidden, Moment, Nearest

    def best(scores: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        width = -(-scores.shape[1] // 16)
        if not scores.is_cuda or width < n:
            return scores.topk(n, dim=1, sorted=False)
        padded = torch.nn.functional.pad(scores, (0, 16 * width - scores.shape[1]), value=-torch.inf)
        groups = padded.view(len(scores), 16, width)
        chosen = groups.amax(1).topk(n, dim=1, sorted=False).indices
        members = groups.gather(2, chosen[:, None].expand(-1, 16, -1)).flatten(1)
        score, place = members.topk(n, dim=1, sorted=False)
        return score, chosen.gather(1, place % n) + place // n * width

    class Plain:
        searched = 0

        def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
            self.keys, self.temperature = keys, temperature
            self.n = max(1, min(n, len(keys) - forbidden.most))
            self.starts, self.forbidden = forbidden.starts, torch.from_numpy(forbidden.keys).to(keys.device)
            rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
            self.rows = torch.from_numpy(rows).to(keys.device)

        def nearest(self, now: Moment) -> Nearest:
            found = []
            block = 512 if self.keys.device.type == "cpu" else 2048
            for start in range(0, len(now.queries), block):
                stop = min(start + block, len(now.queries))
                scores = now.query_units[start:stop] @ now.key_units.T
                own = slice(self.starts[start], self.starts[stop])
                scores[self.rows[own] - start, self.forbidden[own]] = -torch.inf
                score, key = best(scores, self.n)
                weight = (score / self.temperature).exp()
                scaled = weight * now.inverse_norm[key]
                context = torch.bmm(scaled[:, None], self.keys[key])[:, 0]
                found.append((weight.sum(1), context, key, score))
            return Nearest(*(torch.cat(part) for part in zip(*found, strict=True)))

    _replace(contrast, "HardNegatives", Plain)


def triton() -> None:
    """Gathered rows and torch's products take the place of the fused kernel."""
    from bilex.search import negatives

    _replace(negatives, "find_spec", lambda name: None)


def served_int8() -> None:
    """A float32 product with the keys in their file takes the place of rounded keys."""
    from bilex.search import cpu, plain

    class Plain:
        def __init__(self, keys: Any, penalty: Any, read: Callable[[], None]) -> None:
            self.keys, self.penalty, self.read = keys, penalty, read

        def top_k(self, queries: Any, k: int, *, penalised: bool) -> tuple[Any, Any]:
            scores = np.empty((len(queries), len(self.keys)), np.float32)
            for start in range(0, len(self.keys), 8192):
                scores[:, start : start + 8192] = queries @ self.keys[start : start + 8192].T
            scores = 2 * scores - self.penalty if penalised else scores
            self.read()
            found, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
            for place, line in enumerate(scores):
                near = np.flatnonzero(line >= np.partition(line, -k)[-k] - 1e-4)
                penalty = self.penalty[near] if penalised else None
                found[place], best = plain.top_k(queries[place : place + 1], self.keys[near], k, penalty)
                rows[place] = near[best]
            return found, rows

    _replace(cpu, "ServedKeys", Plain)


def served_vnni() -> None:
    """A compiled loop over 8-bit numbers takes the place of the instruction."""
    from bilex.search.low_precision import int8_keys

    _replace(int8_keys, "available", lambda: False)


def few_queries() -> None:
    """The compiled loops and torch take the place of numpy."""
    from bilex.search import plain

    _replace(plain, "are_few", lambda *_: False)


GPU = ("gpu_fi_ru", "gpu_sample")
SERVE = ("serve_one", "serve_twenty")
PATHS: dict[Callable[[], None], tuple[str, ...]] = {
    int8: ("lexicon", "terms", "fi_ru", "vecmap_semi"),
    matching: ("vecmap_semi",),
    pools: ("sample", "fi_ru", *GPU),
    triton: GPU,
    served_int8: SERVE,
    served_vnni: SERVE,
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
    parser.add_argument(
        "--jobs", nargs="*", default=[job.__name__ for job in JOBS if job.__name__ not in GPU]
    )
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
