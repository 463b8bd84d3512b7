"""The seconds of each part of stage C2; run with `python -m research.stage_c2 DATA --timing fi-ru`."""

from __future__ import annotations

import argparse
import time

import torch

from bilex.aligners import get_method
from bilex.encoders.model import WordEncoder
from bilex.encoders.settings import OFFLINE_ENCODER, EncoderPreset, Reading, lightened
from bilex.encoders.stage import Combination
from bilex.encoders.tuning import Tuner, training_pairs
from bilex.vectors.stored import unit_rows
from research.packed import read_dictionary, read_vectors


def random_mbert(device: str) -> WordEncoder:
    """An encoder of mBERT's shape with random weights, read with e5's tokenizer."""
    from transformers import BertConfig, BertModel

    small = WordEncoder.load(OFFLINE_ENCODER, device="cpu")
    model = BertModel(BertConfig(vocab_size=len(small.tokenizer)), add_pooling_layer=False)
    preset = EncoderPreset(reading=Reading(pooling="cls", max_length=6))
    return WordEncoder(model, small.tokenizer, preset, "random mBERT", device)


def timing(options: argparse.Namespace) -> None:
    """Print the seconds of each part, in several rounds: the first includes the GPU's start."""
    limits = dict(entry.split("=") for entry in options.limit)
    source, target = (
        read_vectors(options.data, language, int(limits.get(language, 0)) or None)
        for language in options.timing.split("-")
    )
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
        settings = lightened(encoder.preset.tuning, options.tuning[0])
        clock = _Clock(f"round {round_number + 1}, {encoder!r}, preset {options.tuning[0]}")
        pairs = training_pairs(*static, seeds, settings, options.device)
        clock.lap(f"negatives of {len(pairs)} pairs")
        tokens = [encoder.tokenise(side.index_to_key) for side in (source, target)]
        clock.lap("tokenising")
        report = Tuner(encoder, tokens[0], tokens[1], pairs, settings).run()
        clock.lap(f"TUNING (losses {[round(x, 3) for x in report.losses]})")
        for warning in report.warnings:
            print(f"           {warning}")
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
