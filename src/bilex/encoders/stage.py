"""Stage C2 from end to end: tune an encoder in an aligner's space, encode all words, combine both views.

torch is imported only where an encoder is tuned or run: translating needs a `Combination` without it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Aligner, Pairs
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.encoders.settings import C2, StageReport
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex.vectors.stored import slices, unit_rows

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

Floats = npt.NDArray[np.float32]
Both = tuple[Floats, Floats]
_FEWEST_PAIRS = 2
_BLOCK_ROWS = 16_384


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
    """Tune an encoder in the space of a fitted aligner of any method, and combine the two.

    The vectors are those that the aligner was fitted on; `lexicon` has the seed pairs, None for an aligner
    without seeds. The folder `checkpoint` keeps the state of tuning, to resume after an interruption, and the
    encodings: a second run with another λ neither tunes nor encodes again.
    """
    from bilex.core.locks import exclusive_lock
    from bilex.encoders.model import encode_cached
    from bilex.encoders.tuning import Tuner, training_pairs

    stage = stage or C2()
    times = [time.monotonic()]

    def lap() -> float:
        times.append(time.monotonic())
        return round(times[-1] - times[-2], 2)

    with exclusive_lock(checkpoint):
        encoder = stage.open(progress)
        mixing, settings = stage.mixing_for(encoder), stage.settings_for(encoder)
        static = aligned_views(aligner, source, target)
        rows = source.key_to_index, target.key_to_index
        known = lexicon or Lexicon([])
        seeds, rejected = known.index(*rows), known.rejected_index(*rows)
        pairs = training_pairs(*static, seeds, settings, stage.device, rejected)
        if len(pairs) < _FEWEST_PAIRS:
            raise BilexError(
                f"stage C2 has {len(pairs)} word pairs with both words in the vectors and needs at least "
                f"{_FEWEST_PAIRS}; give a larger dictionary with --seeds."
            )
        report = StageReport(
            lm=str(stage.lm),
            encoder=encoder.name,
            preset=stage.resolved_preset,
            tuned=stage.tune,
            aligner=aligner.name,
            mixing=mixing,
            pairs=len(pairs),
            seed_pairs=pairs.seeds,
            induced_pairs=len(pairs) - pairs.seeds,
        )
        lap()
        words = (source.index_to_key, target.index_to_key)
        tokens = (encoder.tokenise(words[0]), encoder.tokenise(words[1]))
        sides = list(zip(words, tokens, strict=True))
        empty = [side[row] for side, table in sides for row in np.flatnonzero(table.lengths == 0)]
        report.unreadable_words = len(empty)
        if empty:
            progress.log(
                f"The tokenizer of {encoder.name} turns {len(empty)} words into nothing (the first is "
                f"'{empty[0]}'): they keep their static vectors alone."
            )
        report.tokenise_seconds = lap()
        if stage.tune:
            if stage.preset == "auto" and report.preset == "light":
                progress.log(
                    f"The encoder runs on a CPU, so the light tuning of {encoder.name} is used "
                    f"({len(pairs):,} pairs, {settings.negatives} negatives per side, {settings.epochs} "
                    "epochs); --tuning paper is the paper's."
                )
            state = checkpoint / "tuning" if checkpoint else None
            tuner = Tuner(encoder, *tokens, pairs, settings, progress=progress, checkpoint=state).run()
            report.tuning, report.arithmetic = settings, str(tuner.dtype).removeprefix("torch.")
            report.losses, report.warnings = tuner.losses, tuner.warnings
            report.unreadable_pairs = tuner.dropped
            report.tune_seconds = lap()
        cache = stage.cache or (checkpoint / "encodings" if checkpoint else None)
        x, y = (
            unit_rows(encode_cached(encoder, *side, cache, precision=settings.precision, progress=progress))
            for side in sides
        )
        report.encode_seconds = lap()
        combination = Combination.fit(static, (x, y), pairs.positives, mixing)
        combined = combination.vocabularies(words, static, (x, y))
        report.combine_seconds = lap()
        report.seconds = round(times[-1] - times[0], 2)
    return StageResult(encoder, combination, static, (x, y), *combined, report)


def aligned_views(aligner: Aligner, source: WordVectors, target: WordVectors) -> Both:
    """Both vocabularies in a fitted aligner's space, unit rows."""
    return unit_rows(aligner.source_map_(source.vectors)), unit_rows(aligner.target_map_(target.vectors))


def generalised_procrustes(views: Floats, others: Floats) -> Both:
    """Maps with orthonormal rows or columns that bring two views of the same words together.

    With the SVD of viewsᵀ·others = USVᵀ the map from the smaller space into the larger one is U[I,0]Vᵀ; the
    larger space stays as it is, so that one of the two maps is the identity.
    """
    import scipy.linalg  # here, so that words are translated without it

    product = views.astype(np.float64).T @ others.astype(np.float64)
    u, _, vt = scipy.linalg.svd(product, full_matrices=False)
    across = (u @ vt).astype(np.float32)
    first, second = across.shape
    if first <= second:
        return across, np.eye(second, dtype=np.float32)
    return np.eye(first, dtype=np.float32), np.ascontiguousarray(across.T)


@dataclass(frozen=True, eq=False)
class Combination:
    """How a static vector and an encoder's vector of one word become one vector.

    `static_map` and `encoder_map` lead into the combined space; `mixing` is λ, the weight of the encoder: 0
    uses the static vectors alone, 1 the encoder alone.
    """

    static_map: Floats
    encoder_map: Floats
    mixing: float

    @classmethod
    def fit(cls, static: Both, encoded: Both, pairs: Pairs, mixing: float) -> Combination:
        """Learn the maps from the words of the training pairs, each with itself in the other space.

        The rows are all source words of the pairs, then all target words, repeats kept; all are unit rows.
        """
        xs, ys = pairs.T
        views = np.concatenate([static[0][xs], static[1][ys]])
        others = np.concatenate([encoded[0][xs], encoded[1][ys]])
        return cls(*generalised_procrustes(views, others), mixing)

    def with_mixing(self, mixing: float) -> Combination:
        """The same maps with another λ."""
        return replace(self, mixing=mixing)

    def __call__(self, static: Floats, encoded: Floats) -> Floats:
        """Unit rows (1−λ)·static + λ·encoder in the combined space.

        A row of zeros in either view (a word that one of them does not know) leaves the other alone.
        """
        rows = np.empty((len(encoded), self.static_map.shape[1]), np.float32)
        for block in slices(len(encoded), _BLOCK_ROWS):
            rows[block] = mixed_views(*self.views(static[block], encoded[block]), self.mixing)
        return rows

    def vocabularies(
        self, words: tuple[list[str], list[str]], static: Both, encoded: Both
    ) -> tuple[WordVectors, WordVectors]:
        """Source and target words with their combined vectors, from both views of each language."""
        combined = zip(words, map(self, static, encoded), strict=True)
        source, target = (WordVectors(side, vectors, ("unit",)) for side, vectors in combined)
        return source, target

    def views(self, static: Floats, encoded: Floats) -> Both:
        """Both views of the words in the combined space, unit rows; `mixed_views` takes them with any λ."""
        views = ((static, self.static_map), (encoded, self.encoder_map))
        # One of the two maps is the identity, which costs nothing.
        moved = (rows if np.array_equal(by, np.eye(*by.shape)) else rows @ by for rows, by in views)
        of_static, of_encoder = map(unit_rows, moved)
        return of_static, of_encoder

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The maps and λ as tensors, for a safetensors file; `from_state` reads them."""
        return {
            "static_map": np.ascontiguousarray(self.static_map),
            "encoder_map": np.ascontiguousarray(self.encoder_map),
            "mixing": np.array([self.mixing], np.float64),
        }

    @classmethod
    def from_state(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> Combination:
        """The combination that `state` stored; a missing tensor is a KeyError."""
        return cls(tensors["static_map"], tensors["encoder_map"], float(tensors["mixing"][0]))


def mixed_views(static: Floats, encoded: Floats, mixing: float) -> Floats:
    """Unit rows (1−λ)·static + λ·encoder of two views in one space, `mixing` being λ.

    A word that only one view knows (the other row is zero) has the vector of that view, whatever λ is.
    """
    mixed = mixing * encoded + (1 - mixing) * static
    if mixing in (0, 1):
        mixed = np.where(mixed.any(axis=1, keepdims=True), mixed, static + encoded)
    return unit_rows(mixed)


def _card_text(encoder: WordEncoder, report: StageReport) -> str:
    """The README.md of a tuned encoder: what it is, how it was made, how it is used."""
    reading = encoder.preset.reading
    tuning = asdict(report.tuning) if report.tuning else {}
    losses = ", ".join([*(f"{loss:.4f}" for loss in report.losses), f"computed in {report.arithmetic}"])
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

Mean loss of each epoch: {losses if report.losses else "not tuned"}.

| setting | value |
|---|---|
{settings}

```python
from bilex.encoders import WordEncoder
vectors = WordEncoder.load("THIS FOLDER").encode(["house", "talo"])
```
"""
