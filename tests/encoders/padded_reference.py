"""A plain, padded implementation of reading words, and words to try it on."""

from __future__ import annotations

import torch

from bilex.encoders import WordEncoder

WORDS = ["ab", "abc", "a", "hello", "world", "ab", "tuning", "zz", "contrast"]


def padded_vectors(encoder: WordEncoder, words: list[str]) -> torch.Tensor:
    """The ordinary way: one rectangle padded to the longest word, a mask, then pooling."""
    model = encoder.model
    model.set_attn_implementation("eager")
    reading = encoder.preset.reading
    batch = encoder.tokenizer(
        words,
        padding=True,
        truncation=True,
        max_length=reading.max_length,
        return_tensors="pt",
        return_token_type_ids=False,
    )
    hidden = model(**batch).last_hidden_state
    if reading.pooling == "cls":
        return hidden[:, 0]
    mask = batch["attention_mask"][..., None]
    return (hidden * mask).sum(1) / mask.sum(1)
