"""Tuning only the token embeddings that the pairs use, with the same result as tuning all of them.

A multilingual vocabulary has 100,000 to 250,000 tokens, most of a small model's parameters; the words of a
dictionary and their negatives use a tenth. A token that no batch contains has no gradient, AdamW's moments
for it stay zero, and all that happens to its row is the decay: a factor 1 − lr·wd an update. So those rows
are set aside and multiplied once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from bilex.encoders.tokens import Integers, TokenTable


def trimmed_embeddings(
    encoder: Any, tokens: TokenTable, rows: Integers
) -> tuple[TokenTable, Callable[[float, int], None]]:
    """Replace the encoder's token embeddings by those that some words use.

    Args:
        encoder: A transformers encoder, changed in place.
        tokens: The tokens of many words.
        rows: The words of `tokens` that will be used.

    Returns:
        The tokens with new numbers (only those of words in `rows` mean anything), and a function of
        (decay an update, updates) that puts the whole embedding back.
    """
    whole: nn.Embedding = encoder.get_input_embeddings()
    ids = tokens.ids[np.unique(rows)]
    lengths = tokens.lengths[np.unique(rows)]
    used = np.unique(ids[np.arange(ids.shape[1]) < lengths[:, None]])
    padding = whole.padding_idx
    if padding is not None:
        used = np.union1d(used, [padding])
    renumbered = np.zeros(whole.num_embeddings, np.int32)
    renumbered[used] = np.arange(len(used))
    chosen = torch.from_numpy(used.astype(np.int64)).to(whole.weight.device)
    small = nn.Embedding(
        len(used), whole.embedding_dim, None if padding is None else int(renumbered[padding])
    ).to(whole.weight)
    with torch.no_grad():
        small.weight.copy_(whole.weight[chosen])
    encoder.set_input_embeddings(small)

    def restore(decay: float, updates: int) -> None:
        with torch.no_grad():
            whole.weight.mul_(decay**updates)
            whole.weight[chosen] = small.weight
        encoder.set_input_embeddings(whole)

    return TokenTable(renumbered[tokens.ids], tokens.lengths), restore
