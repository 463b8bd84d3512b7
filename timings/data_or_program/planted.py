"""What each method finds where the right answer is known.

The source are the most frequent Finnish words with their real vectors, the target the same words under a
random rotation. Before rows are made unit, both get noise of their own, of some strength times the length
of a vector, in one of three kinds:

- "plain": Gaussian noise, another vector for each word; what VecMap assumes holds, but for chance;
- "lonely": the same, and a fifth of the words have no counterpart: the target has other words there;
- "shared": words of one neighbourhood, ten on average, get the same noise, so that neighbourhoods stay
  together but stand differently to each other in the two languages; what VecMap assumes does not hold.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.stats

from bilex.aligners import get_method
from bilex.aligners.maps import Array, Linear, Map
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.space import Space
from bilex.vectors import WordVectors
from timings.data_or_program.common import Row, both_ways, hits, markdown, percents, vectors
from timings.data_or_program.self_learning import relational_similarity

WHAT = "planted"
KINDS = ("plain", "lonely", "shared")
LANGUAGE = "fi"
METHODS = ("procrustes", "vecmap-supervised", "vecmap-semi", "rcsls", "fipp", "c1")
CEILING = "the true rotation"
LONELY, NEIGHBOURHOOD, ASKED = 0.2, 10, 3000
Case = tuple[str, float, int]


class Problem(NamedTuple):
    """Two languages with a known rotation between them, pairs to learn from and pairs to ask for."""

    source: WordVectors
    target: WordVectors
    rotation: Array
    seeds: Lexicon
    asked: Lexicon


def planted(real: Array, words: int, kind: str, noise: float, seeds: int, seed: int = 0) -> Problem:
    """A problem made from real vectors.

    Args:
        real: Unit rows, most frequent word first; "lonely" needs a fifth more than `words`.
        words: Words of each language.
        kind: One of `KINDS`.
        noise: Length of the noise; a vector has length 1.
        seeds: How many of the most frequent pairs are known.
        seed: Of everything that is random.
    """
    random = np.random.default_rng(seed)
    dim = real.shape[1]
    left, right = real[:words], real[:words].copy()
    paired = np.ones(words, bool)
    if kind == "lonely":
        paired[random.choice(words, round(LONELY * words), replace=False)] = False
        right[~paired] = real[words : words + (~paired).sum()]
    centres = left[random.choice(words, words // NEIGHBOURHOOD, replace=False)]
    turn = scipy.stats.ortho_group.rvs(dim, random_state=random).astype(np.float32)

    def disturbed(rows: Array) -> Array:
        groups = (rows @ centres.T).argmax(axis=1) if kind == "shared" else np.arange(words)
        moved = rows + noise * random.normal(0, dim**-0.5, (words, dim))[groups]
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)

    known: npt.NDArray[np.int64] = np.flatnonzero(paired)
    rest = random.permutation(known[seeds:])[:ASKED]
    return Problem(
        WordVectors([f"s{i}" for i in range(words)], disturbed(left), ("unit",)),
        WordVectors([f"t{i}" for i in range(words)], disturbed(right) @ turn, ("unit",)),
        turn,
        Lexicon([(f"s{i}", f"t{i}") for i in known[:seeds]]),
        Lexicon([(f"s{i}", f"t{i}") for i in rest]),
    )


def run(options: argparse.Namespace, case: Case) -> list[Row]:
    """One row for each method on one problem, and one for the true rotation."""
    kind, noise, seeds = case
    real = np.asarray(vectors(options.data, LANGUAGE, options.limit).vectors)
    words = min(options.words, int(len(real) / (1 + LONELY)))
    problem = planted(real, words, kind, noise, seeds)
    source, target = problem.source, problem.target
    gold = problem.asked.index(source.key_to_index, target.key_to_index)
    about = {
        "what": WHAT,
        "kind": kind,
        "noise": noise,
        "seeds": seeds,
        "words": words,
        "relational similarity": round(
            relational_similarity(source.vectors[gold[:, 0]], target.vectors[gold[:, 1]]), 4
        ),
    }
    truth = Space.from_maps(source, target, Map([Linear(problem.rotation)]), Map([]), device=options.device)
    rows = [about | {"method": CEILING, "p@1": percents(hits(truth, problem.asked))}]
    for method in options.methods:
        overrides = {"patience": options.patience} if method == "vecmap-semi" else {}
        aligner = get_method(method)(device=options.device, **overrides)
        started = time.perf_counter()
        try:
            aligner.fit(source, target, problem.seeds)
        except BilexError as error:
            rows.append(about | {"method": method, "failed": str(error)})
            continue
        seconds = round(time.perf_counter() - started, 1)
        found = percents(hits(Space.from_aligner(aligner, source, target), problem.asked))
        rows.append(about | {"method": method, "p@1": found, "seconds": seconds})
    return rows


def summary(rows: list[Row]) -> str:
    """A line for each problem, a column for each method: P@1 by NN / by CSLS, mean of both directions."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cases: dict[tuple[str, int, float], dict[str, str]] = {}
    similarity = {}
    for row in rows:
        case = row["kind"], row["seeds"], row["noise"]
        similarity[case] = f"{row['relational similarity']:.2f}"
        figures = " / ".join(both_ways(row["p@1"], s) for s in ("nn", "csls")) if "p@1" in row else "failed"
        cases.setdefault(case, {})[row["method"]] = figures
    lines = [
        [*case, similarity[case], *(cases[case].get(method, "") for method in methods)]
        for case in sorted(cases, key=lambda case: (KINDS.index(case[0]), -case[1], case[2]))
    ]
    head = ["kind", "seeds", "noise", "relational similarity", *methods]
    return (
        f"### A planted problem, {rows[0]['words']:,} words\n\n"
        "P@1 in %, NN / CSLS, mean of both directions.\n\n" + markdown(head, lines)
    )
