"""Stage C2 from end to end: tune an encoder in an aligner's space, encode, combine."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bilex.aligners.base import Aligner
from bilex.core.errors import BilexError
from bilex.core.locks import exclusive_lock
from bilex.core.progress import SILENT, Progress, duration
from bilex.encoders.combine import Both, Combination, aligned_views
from bilex.encoders.model import WordEncoder, encode_cached
from bilex.encoders.packing import TokenTable
from bilex.encoders.pairs import TrainingPairs, training_pairs
from bilex.encoders.settings import C2, StageReport
from bilex.encoders.tuning import Tuner
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows

_FEWEST_PAIRS = 2
_FORWARD_SHARE = 1 / 3  # of the products of an update


@dataclass(eq=False)
class StageResult:
    """What stage C2 yields; `static` and `encoded` are both views of the vocabularies, unit rows."""

    encoder: WordEncoder
    combination: Combination
    static: Both
    encoded: Both
    source: WordVectors
    target: WordVectors
    report: StageReport

    def mixed(self, mixing: float) -> tuple[WordVectors, WordVectors]:
        """Both vocabularies with another λ; nothing is tuned or encoded again."""
        words = (self.source.index_to_key, self.target.index_to_key)
        return self.combination.with_mixing(mixing).vocabularies(words, self.static, self.encoded)

    def save_encoder(self, folder: str | Path) -> None:
        """Write the tuned encoder, with its card, as a Hugging Face model folder."""
        self.encoder.save(folder, _card_text(self.encoder, self.report))


def run_stage_c2(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: C2 | None = None,
    *,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> StageResult:
    """Tune an encoder in the space of a fitted aligner, and combine the two (C2(Mod) for any Mod).

    Args:
        aligner: A fitted aligner of any method.
        source: Source vectors as the aligner was given them.
        target: Target vectors.
        lexicon: The seed pairs; None for an aligner without seeds.
        stage: The settings.
        progress: Receives how far the work is.
        checkpoint: A folder where tuning keeps its state, to go on after an interruption, and where the
            encodings are kept: a second run with another λ neither tunes nor encodes again.
    """
    with exclusive_lock(checkpoint):
        return _run(aligner, source, target, lexicon, stage or C2(), progress, checkpoint)


def _run(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: C2,
    progress: Progress,
    checkpoint: Path | None,
) -> StageResult:
    times = [time.monotonic()]

    def lap() -> float:
        times.append(time.monotonic())
        return round(times[-1] - times[-2], 2)

    encoder = stage.open(progress)
    mixing, settings = stage.mixing_for(encoder), stage.settings_for(encoder)
    static = aligned_views(aligner, source, target)
    rows = source.key_to_index, target.key_to_index
    known = lexicon or Lexicon([])
    pairs = training_pairs(*static, known.index(*rows), settings, stage.device, known.rejected_index(*rows))
    if len(pairs) < _FEWEST_PAIRS:
        raise BilexError(
            f"stage C2 has {len(pairs)} word pairs with both words in the vectors and needs at least "
            f"{_FEWEST_PAIRS}; give a larger dictionary with --seeds."
        )
    report = StageReport(
        lm=str(stage.lm),
        encoder=encoder.name,
        preset=stage.preset_in_force,
        tuned=stage.tune,
        aligner=aligner.name,
        mixing=mixing,
        pairs=len(pairs),
        seed_pairs=pairs.seeds,
        induced_pairs=len(pairs) - pairs.seeds,
    )
    words = (source.index_to_key, target.index_to_key)
    lap()
    tokens = (encoder.tokenise(words[0]), encoder.tokenise(words[1]))
    sides = zip(words, tokens, strict=True)
    empty = [side[row] for side, table in sides for row in np.flatnonzero(table.lengths == 0)]
    report.unreadable_words = len(empty)
    if empty:
        progress.say(
            f"The tokenizer of {encoder.name} turns {len(empty)} words into nothing (the first is "
            f"'{empty[0]}'): they keep their static vectors alone."
        )
    report.tokenise_seconds = lap()
    if stage.tune:
        _tune(encoder, tokens, pairs, stage, report, progress, checkpoint / "tuning" if checkpoint else None)
        report.tune_seconds = lap()
    raw = encode_cached(
        encoder,
        list(zip(words, tokens, strict=True)),
        stage.cache or (checkpoint / "encodings" if checkpoint else None),
        precision=settings.precision,
        progress=progress,
    )
    encoded = (unit_rows(raw[0]), unit_rows(raw[1]))
    report.encode_seconds = lap()
    combination = Combination.fit(static, encoded, pairs.positives, mixing)
    combined = combination.vocabularies(words, static, encoded)
    report.combine_seconds = lap()
    report.seconds = round(times[-1] - times[0], 2)
    return StageResult(encoder, combination, static, encoded, *combined, report)


def _tune(
    encoder: WordEncoder,
    tokens: tuple[TokenTable, TokenTable],
    pairs: TrainingPairs,
    stage: C2,
    report: StageReport,
    progress: Progress,
    checkpoint: Path | None,
) -> None:
    settings = stage.settings_for(encoder)

    def announce_light(seconds: float, per_token: float) -> None:
        """Say that and how the tuning is light, and what is left to wait for."""
        all_tokens = sum(int(table.lengths.sum()) for table in tokens)
        progress.say(
            f"No GPU here, so the light tuning of {encoder.name} is taken ({len(pairs):,} pairs, "
            f"{settings.negatives} negatives per side, {settings.epochs} epochs): about "
            f"{duration(seconds)}, and {duration(per_token * all_tokens * _FORWARD_SHARE)} to "
            "encode all words; --tuning paper is the paper's."
        )

    unasked = stage.preset == "auto" and stage.preset_in_force == "light"
    on_pace = announce_light if unasked else None
    tuner = Tuner(
        encoder, *tokens, pairs, settings, progress=progress, checkpoint=checkpoint, on_pace=on_pace
    )
    done = tuner.run()
    report.tuning = settings
    report.arithmetic = str(tuner.dtype).removeprefix("torch.")
    report.losses, report.warnings, report.unreadable_pairs = done.losses, done.warnings, done.dropped


def _card_text(encoder: WordEncoder, report: StageReport) -> str:
    """The README.md of a tuned encoder: what it is, how it was made, how it is used."""
    reading = encoder.preset.reading
    tuning = asdict(report.tuning) if report.tuning else {}
    losses = ", ".join(f"{loss:.4f}" for loss in report.losses)
    if losses:
        losses += f", computed in {report.arithmetic}"
    pooled = "the first token" if reading.pooling == "cls" else "the mean over all tokens"
    settings = "\n".join(f"| {name} | {value} |" for name, value in tuning.items())
    return f"""---
base_model: {encoder.name}
library_name: transformers
tags: [bilingual-lexicon-induction, word-translation]
---
# {encoder.name}, tuned for word translation

A language model tuned by bilex (stage C2 of Li et al., ACL 2022) on {report.pairs} word pairs,
{report.induced_pairs} of them induced, with hard negatives from the space of the aligner
`{report.aligner or "none"}`.

A word's vector is {pooled} in the last layer, from at most {reading.max_length} tokens, special ones
included, of the text `{reading.template.replace("{}", "word")}`.

Mean loss of each epoch: {losses or "not tuned"}.

| setting | value |
|---|---|
{settings}

```python
from bilex.encoders import WordEncoder
vectors = WordEncoder.load("THIS FOLDER").encode(["house", "talo"])
```
"""
