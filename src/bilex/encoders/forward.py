"""Running an encoder over packed words: one vector a word, nothing computed on padding.

Encoders of BERT's family take all words of a batch in one row: everything but attention works token by
token, and for attention, through transformers' attention interface, some words of one length make a
sequence in which a token sees its own word only. Any other encoder is run once for each length of word.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bilex.encoders.presets import Pooling
from bilex.encoders.tokens import Group, PackedWords

_ATTENTION = "bilex_packed_words"
_TOKENS_A_SEQUENCE = 64
# cuDNN's kernels are left out: they are planned anew for each shape, and every batch has new shapes.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_PACKABLE = ("bert", "roberta", "xlm-roberta")


class WordVectorsModule(nn.Module):
    """An encoder with its pooling: packed words in, one row a word out, in the packed order.

    Args:
        encoder: A transformers encoder.
        pooling: "cls" or "mean".
    """

    def __init__(self, encoder: nn.Module, pooling: Pooling) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        _prepare_packing(encoder)

    @property
    def packed(self) -> bool:
        """Whether all words go through the encoder in one row, or one rectangle for each length."""
        config: Any = self.encoder.config
        return bool(config._attn_implementation == _ATTENTION)

    def forward(self, words: PackedWords) -> torch.Tensor:
        """The vectors of `words`, not normalised."""
        with sdpa_kernel(_KERNELS):
            parts = self._hidden(words)
        if self.pooling == "cls":
            return torch.cat([part[:, 0] for part in parts])
        return torch.cat([part.mean(dim=1) for part in parts])

    def _hidden(self, words: PackedWords) -> list[torch.Tensor]:
        """The last layer for each group, of shape (words, tokens, width)."""
        if self.packed:
            hidden = self._one_row(words)
            return [hidden[g.start : g.stop].view(g.words, g.length, -1) for g in words.groups]
        return [self._rectangle(words, group) for group in words.groups]

    def _one_row(self, words: PackedWords) -> torch.Tensor:
        config: Any = self.encoder.config
        offset = 0 if config.model_type == "bert" else config.pad_token_id + 1
        ids = words.ids[None]
        output = self.encoder(
            input_ids=ids,
            position_ids=words.positions[None] + offset,
            token_type_ids=torch.zeros_like(ids),
            word_groups=words.groups,
        )
        hidden: torch.Tensor = output.last_hidden_state[0]
        return hidden

    def _rectangle(self, words: PackedWords, group: Group) -> torch.Tensor:
        ids = words.ids[group.start : group.stop].view(group.words, group.length)
        hidden: torch.Tensor = self.encoder(input_ids=ids).last_hidden_state
        return hidden


def _prepare_packing(encoder: Any) -> None:
    """Switch a BERT-like encoder to attention over packed words; leave one of another kind alone."""
    from transformers import AttentionInterface

    config = encoder.config
    if config.model_type not in _PACKABLE or getattr(config, "is_decoder", False):
        return
    if getattr(config, "position_embedding_type", None) not in (None, "absolute"):
        return
    AttentionInterface.register(_ATTENTION, _packed_attention)
    encoder.set_attn_implementation(_ATTENTION)


def _packed_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    word_groups: tuple[Group, ...] | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **_others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention in which each token sees the tokens of its own word; shapes (1, heads, tokens, width).

    Without `word_groups` the input is an ordinary padded batch (somebody else uses the encoder).
    """
    attend = nn.functional.scaled_dot_product_attention
    if word_groups is None:
        mixed = attend(query, key, value, attn_mask=attention_mask, dropout_p=dropout, scale=scaling)
        return mixed.transpose(1, 2), None
    rows = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]
    parts = []
    for start, sequences, words, length in _sequences(word_groups):
        stop = start + sequences * words * length
        q, k, v = (
            tensor[start:stop].view(sequences, words * length, *tensor.shape[1:]).transpose(1, 2)
            for tensor in rows
        )
        size = words * length
        mask = _own_word_mask(length, query.dtype, query.device)[:size, :size] if words > 1 else None
        mixed = attend(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling)
        parts.append(mixed.transpose(1, 2).flatten(0, 1))
    return torch.cat(parts)[None], None


def _sequences(groups: tuple[Group, ...]) -> Iterator[tuple[int, int, int, int]]:
    """Cut every group into sequences of about 64 tokens, which is what attention kernels do at once.

    Yields:
        The first token, how many sequences, words a sequence, tokens a word; a group's last words, too few
        for a whole sequence, come by themselves.
    """
    for group in groups:
        words = max(1, _TOKENS_A_SEQUENCE // group.length)
        whole, left = divmod(group.words, words)
        if whole:
            yield group.start, whole, words, group.length
        if left:
            yield group.stop - left * group.length, 1, left, group.length


@functools.lru_cache(maxsize=64)
def _own_word_mask(length: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Lets a token of a sequence see its own word only: 0 in blocks on the diagonal, −∞ elsewhere."""
    word = torch.arange(_TOKENS_A_SEQUENCE, device=device) // length
    return torch.zeros((), dtype=dtype, device=device).where(word[:, None] == word, float("-inf"))
