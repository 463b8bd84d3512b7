"""Running an encoder over packed words: one vector per word, next to nothing computed on padding.

Encoders of BERT's family take the rows of packed words as they are: everything but attention works token by
token, and attention gets a mask in which a token sees its own word only. The positions start anew with each
word. Any other encoder is run once for each length of word.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bilex.encoders.presets import Pooling
from bilex.encoders.tokens import PackedWords

# cuDNN's kernels are left out: they are planned anew for each shape, and every batch has new shapes.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_PACKABLE = ("bert", "roberta", "xlm-roberta")


class WordVectorsModule(nn.Module):
    """An encoder with its pooling: packed words in, one row per word out, in the packed order.

    Args:
        encoder: A transformers encoder.
        pooling: "cls" or "mean".
    """

    def __init__(self, encoder: nn.Module, pooling: Pooling) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.packed = _takes_rows_of_words(encoder)
        """Whether words of all lengths go through the encoder together."""

    def forward(self, words: PackedWords) -> torch.Tensor:
        """The vectors of `words`, not normalised."""
        with sdpa_kernel(_KERNELS):
            return self._together(words) if self.packed else self._by_length(words)

    def _together(self, words: PackedWords) -> torch.Tensor:
        """All words at once, in their rows."""
        config: Any = self.encoder.config
        offset = 0 if config.model_type == "bert" else config.pad_token_id + 1
        own = words.numbers[:, :, None] == words.numbers[:, None, :]
        dtype = _working_dtype(words.tokens.device)
        mask = torch.zeros(own.shape, dtype=dtype, device=own.device).masked_fill_(~own, float("-inf"))
        hidden: torch.Tensor = self.encoder(
            input_ids=words.ids,
            attention_mask=mask[:, None],
            position_ids=words.positions + offset,
            token_type_ids=torch.zeros_like(words.ids),
        ).last_hidden_state
        if self.pooling == "cls":
            return hidden.flatten(0, 1).index_select(0, words.starts)
        with torch.autocast(hidden.device.type, enabled=False):
            sums = torch.bmm(own.to(hidden.dtype), hidden).flatten(0, 1).index_select(0, words.starts)
        lengths = own.sum(2).flatten().index_select(0, words.starts)
        return sums / lengths[:, None]

    def _by_length(self, words: PackedWords) -> torch.Tensor:
        """The words of each length by themselves, as an ordinary batch that needs no padding."""
        ids = words.ids.flatten()
        parts = []
        first = 0
        for length, count in words.counts:
            starts = words.starts[first : first + count, None]
            batch = ids[starts + torch.arange(length, device=ids.device)]
            hidden = self.encoder(input_ids=batch).last_hidden_state
            parts.append(hidden[:, 0] if self.pooling == "cls" else hidden.mean(dim=1))
            first += count
        return torch.cat(parts)


def _takes_rows_of_words(encoder: Any) -> bool:
    """Whether tokens meet in attention alone, with any mask, and know their place from `position_ids` alone.

    Such an encoder is set to torch's own attention, which takes the mask as it is.
    """
    config = encoder.config
    absolute = getattr(config, "position_embedding_type", None) in (None, "absolute")
    fit = config.model_type in _PACKABLE and absolute and not getattr(config, "is_decoder", False)
    if fit:
        encoder.set_attn_implementation("sdpa")
    return fit


def _working_dtype(device: torch.device) -> torch.dtype:
    """What queries and keys will be in, so that the mask is not converted in every layer."""
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32
