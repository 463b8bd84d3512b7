"""The card that a tuned encoder carries."""

from __future__ import annotations

from dataclasses import asdict

from bilex.encoders.model import WordEncoder
from bilex.encoders.report import StageReport


def card_text(encoder: WordEncoder, report: StageReport) -> str:
    """The README.md of a tuned encoder: what it is, how it was made, how it is used.

    Args:
        encoder: The tuned encoder.
        report: The report of its stage C2 run.
    """
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
