"""Made-up results of a benchmark, as plausible as real ones, for tests of tables, figures and the report.

Every test word has a difficulty that is the same for all methods, and every method has a strength, so that
methods err on the same words as real ones do. All figures are counted from the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bilex.evaluation import DirectionResult, Evaluation, Group, Prediction
from bilex.evaluation.result import bootstrap_intervals, mean_metrics
from bilex.lexicon.statistics import BANDS
from bilex_bench.results import Result, Setup, WordSample

PAIRS = ("en-fi", "en-fr", "en-ru", "fi-fr", "fi-ru", "fr-ru")
SIZES = ("5k", "1k")
LAMBDAS = tuple(round(0.1 * step, 1) for step in range(11))
AT = (1, 5, 10)
LABELS = {
    "procrustes": "Procrustes",
    "advanced": "Advanced mapping",
    "vecmap-semi": "VecMap",
    "rcsls": "RCSLS",
    "lnmap": "LNMap",
    "fipp": "FIPP",
    "c1": "C1",
}
# How well a method does (logits), and its seconds on 2 cores.
ALIGNERS = {
    "procrustes": (-0.6, 4.0),
    "advanced": (-0.2, 9.0),
    "vecmap-semi": (-0.1, 240.0),
    "rcsls": (0.1, 60.0),
    "fipp": (-0.3, 30.0),
    "c1": (0.3, 420.0),
}
HARD_WORDS = ("<b>&amp;", "d'où", 'a"b', "naïve & co", "дом", "</script>")


def fabricated_results(
    pairs: Sequence[str] = PAIRS,
    sizes: Sequence[str] = SIZES,
    *,
    words: int = 120,
    lambdas: Sequence[float] = (0.2,),
    samples: Sequence[str] = (),
    failed: bool = False,
    dataset: str = "xling",
) -> list[Result]:
    """Results of six aligners, and of C2(C1) at some λ and at λ = auto, on some pairs and seed sizes.

    Args:
        pairs: Language pairs.
        sizes: Seed sizes.
        words: Test words per direction.
        lambdas: The λ of C2(C1); "auto" is there too, and chooses 0.3.
        samples: The pairs whose C2(C1) at "auto" carries vectors for pictures.
        failed: Whether a setup that failed is among them.
        dataset: The name of the data set.
    """
    results = []
    for pair in pairs:
        for seeds in sizes:
            place = {"dataset": dataset, "pair": pair, "seeds": seeds}
            for method in ALIGNERS:
                results.append(fabricated(Setup(**place, method=method, label=LABELS[method]), words))
            for mixing in (*lambdas, "auto"):
                label = f"C2 (C1), λ {mixing}" if mixing == "auto" else f"C2 (C1), λ = {mixing:g}"
                setup = Setup(**place, method="c1", lm="e5-small-q4", mixing=mixing, label=label)
                shown = _samples(pair) if pair in samples and mixing == "auto" else {}
                results.append(fabricated(setup, words, shown))
    if failed:
        setup = Setup(dataset=dataset, pair=pairs[0], seeds=sizes[0], method="lnmap", label=LABELS["lnmap"])
        results.append(
            Result(
                setup=setup,
                status="failed",
                error="the worker ran out of memory (12.1 GB <asked>, 8 GB there) & was retried once alone.",
                attempts=2,
                started="2026-11-15T15:00:00+00:00",
            )
        )
    return results


def fabricated(setup: Setup, words: int = 120, samples: dict[str, WordSample] | None = None) -> Result:
    """One made-up result; the same setup gives the same result."""
    strength, seconds = ALIGNERS[setup.method]
    report: dict[str, Any] = {"method": setup.method}
    steps = {"fit": seconds * (1.5 if setup.seeds == "1k" else 1.0), "evaluate": 3.5}
    strength -= 0.4 if setup.seeds == "1k" else 0.0
    if setup.lm is not None:
        chosen = 0.3 if setup.mixing == "auto" else float(setup.mixing or 0)
        strength += 6.0 * (0.35**2 - (chosen - 0.35) ** 2)
        steps |= {"tune": 300.0, "encode": 80.0, "combine": 2.0}
        steps |= {"trial": 250.0} if setup.mixing == "auto" else {}
        report |= {"mixing": chosen, "encoder": setup.lm}
    directions = {
        name: _direction(setup, name, strength - 0.1 * (name == "backward"), words)
        for name in ("forward", "backward")
    }
    evaluation = Evaluation(
        directions["forward"], directions["backward"], f"{setup.pair}.test.tsv", {"csls_neighbours": 10}
    )
    return Result(
        setup=setup,
        status="done",
        evaluation=evaluation.as_dict(),
        predictions={name: found.predictions for name, found in directions.items()},
        seconds=steps,
        gigabytes=2.5,
        environment={
            "bilex": "0.1.0",
            "python": "3.11.2",
            "libraries": {"numpy": "2.3.0", "torch": "2.9.0"},
            "system": "Linux",
            "host": "laptop <1>",
            "processor": "A processor & more",
            "cores": 2,
            "memory_gigabytes": 24.0,
            "gpu": None,
            "threads": 2,
        },
        report=report,
        started="2026-11-15T15:00:00+00:00",
        samples=samples or {},
    )


def _direction(setup: Setup, name: str, strength: float, words: int) -> DirectionResult:
    problem = np.random.default_rng(list(f"{setup.pair}{name}".encode()))  # the same words for all methods
    own = np.random.default_rng(list(f"{setup.key}{name}".encode()))
    difficulty = problem.normal(0, 1.5, words)
    band = problem.integers(0, len(BANDS), words)
    leaked = (problem.random(words) < 0.06) & (not setup.pair.startswith("en"))
    identical = problem.random(words) < 0.1
    ranks = {}
    for retrieval, bonus in (("nn", -0.35), ("csls", 0.0)):
        score = strength + bonus + 0.4 * leaked - difficulty - 0.25 * band + own.logistic(0, 0.5, words)
        ranks[retrieval] = np.where(score > 0, 1, np.ceil(1 + np.exp(np.minimum(-2 * score, 9)))).astype(int)
    predictions = tuple(
        _prediction(number, BANDS[band[number]], bool(identical[number]), bool(leaked[number]), ranks)
        for number in range(words)
    )

    def group(chosen: np.ndarray) -> Group:
        return Group(int(chosen.sum()), {m: mean_metrics(r[chosen], AT) for m, r in ranks.items()})

    return DirectionResult(
        metrics={m: mean_metrics(r, AT) for m, r in ranks.items()},
        intervals={m: bootstrap_intervals(r, AT, replicates=100, seed=0) for m, r in ranks.items()},
        covered=words,
        total=words + 20,
        pairs=words + 60,
        pairs_covered=words + 30,
        oov_as_error={m: mean_metrics(r, AT, words + 20) for m, r in ranks.items()},
        per_pair={m: mean_metrics(r, AT) for m, r in ranks.items()},
        leak_free=group(~leaked),
        bands={name: group(band == i) for i, name in enumerate(BANDS) if (band == i).any()},
        identical=group(identical),
        different=group(~identical),
        predictions=predictions,
    )


def _prediction(
    number: int, band: str, identical: bool, leaked: bool, ranks: dict[str, np.ndarray]
) -> Prediction:
    word = HARD_WORDS[number] if number < len(HARD_WORDS) else f"word{number}"
    gold = word if identical else f"{word}-gold"
    answers = {}
    for retrieval, rank in ranks.items():
        shown = [f"{word}-wrong{i}" for i in range(1, 11)]
        if rank[number] <= len(shown):
            shown[rank[number] - 1] = gold
        answers[retrieval] = tuple(shown)
    return Prediction(
        source=word,
        translations=(gold,),
        band=band,
        identical=identical,
        leaked=leaked,
        answers=answers,
        ranks={retrieval: int(rank[number]) for retrieval, rank in ranks.items()},
    )


def _samples(pair: str, words: int = 60) -> dict[str, WordSample]:
    """Clouds that are apart before and together after."""
    rng = np.random.default_rng(list(pair.encode()))
    topics = rng.normal(size=(6, 24)) * 2
    meaning = (topics[rng.integers(0, 6, words)] + rng.normal(size=(words, 24))).astype(np.float32)
    apart = np.linalg.qr(rng.normal(size=(24, 24)))[0].astype(np.float32)
    source, target = tuple(f"s{i}" for i in range(words)), tuple(f"t{i}" for i in range(words))

    def sample(noise: float, shift: float, rotation: np.ndarray | None = None) -> WordSample:
        other = meaning if rotation is None else meaning @ rotation
        rows = [side + noise * rng.normal(size=side.shape).astype(np.float32) for side in (meaning, other)]
        return WordSample(source, target, rows[0].astype(np.float32), (rows[1] + shift).astype(np.float32))

    return {
        "static": sample(0.2, 0.0, apart[:, :20]),
        "aligned": sample(0.6, 0.0),
        "lm": sample(0.5, 1.5),
        "lm-tuned": sample(0.5, 0.3),
        "combined": sample(0.4, 0.0),
    }
