"""Words as token numbers, laid out with hardly any padding, and an encoder run over them.

A word has three to a handful of tokens. A batch is therefore laid out in rows that hold many words each,
words of several lengths together, so that next to no place is wasted.

Encoders of BERT's family take these rows as they are: everything but attention works token by token, and
attention gets a mask in which a token sees its own word only. The positions start anew with each word. Any
other encoder is run once for each length of word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bilex.encoders.settings import Pooling

Integers = npt.NDArray[np.int64]
_TOKENS_PER_ROW = 64  # what a GPU's attention kernels do at once; on a CPU 16 or 32 are no faster
# cuDNN's kernels are left out: they are planned anew for each shape, and every batch has new shapes.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_PACKABLE = ("bert", "roberta", "xlm-roberta")


@dataclass(frozen=True)
class TokenTable:
    """The tokens of many words, a row of `ids` each, tokens first; an empty word has length 0."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    @staticmethod
    def join(first: TokenTable, second: TokenTable) -> TokenTable:
        """The words of two tables of one encoder, one after the other."""
        return TokenTable(
            np.concatenate([first.ids, second.ids]), np.concatenate([first.lengths, second.lengths])
        )


@dataclass(frozen=True)
class PackedWords:
    """Words laid out in rows for the encoder; they are numbered from the shortest to the longest.

    Args:
        ids: The token numbers, of shape (rows, tokens per row); 0 for padding.
        positions: The place of each token in its word, from 0.
        numbers: The number of the word that each token belongs to, −1 for padding.
        starts: For each word the place of its first token, counted through all rows.
        counts: How many words there are of each length: (length, words), the shortest first.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    numbers: torch.Tensor
    starts: torch.Tensor
    counts: tuple[tuple[int, int], ...]


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the main memory on `device`, without waiting for what the device is doing."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def pack(table: TokenTable, rows: Integers, device: torch.device) -> tuple[PackedWords, Integers]:
    """The words `rows` of `table`, none empty, laid out on a device; and `rows` in the packed order."""
    rows = rows[np.argsort(table.lengths[rows], kind="stable")]
    lengths = table.lengths[rows].astype(np.int64)
    found = zip(*np.unique(lengths, return_counts=True), strict=True)
    counts = tuple((int(length), int(count)) for length, count in found)
    longest = counts[-1][0] if counts else 1
    width = max(longest, min(_TOKENS_PER_ROW, int(lengths.sum())))
    width += -width % 8  # kernels want masks in multiples of 8
    starts, used_rows = _starts(counts, width)
    places = np.arange(longest)
    used = places < lengths[:, None]
    flat = (starts[:, None] + places)[used]
    tokens = np.zeros((3, used_rows * width), np.int64)
    tokens[2] = -1
    tokens[0, flat] = table.ids[rows, :longest][used]
    tokens[1, flat] = np.broadcast_to(places, used.shape)[used]
    tokens[2, flat] = np.repeat(np.arange(len(rows)), lengths)
    laid_out = to_device(torch.from_numpy(tokens.reshape(3, used_rows, width)), device)
    ids, positions, numbers = laid_out
    return PackedWords(ids, positions, numbers, to_device(torch.from_numpy(starts), device), counts), rows


def _starts(counts: tuple[tuple[int, int], ...], width: int) -> tuple[Integers, int]:
    """The places of the words' first tokens, the shortest words first, and how many rows there are.

    The longest words are placed first, each in the first row that has room for it.
    """
    free = np.zeros(0, np.int64)
    parts: list[Integers] = [np.zeros(0, np.int64)]
    for length, count in reversed(counts):
        more = -(-max(0, count - int((free // length).sum())) // (width // length))
        free = np.concatenate([free, np.full(more, width)])
        room = free // length
        before = np.cumsum(room) - room
        taken = np.clip(count - before, 0, room)
        row = np.repeat(np.arange(len(free)), taken)
        nth = np.arange(count) - np.repeat(before, taken)
        parts.append(row * width + (width - free)[row] + nth * length)
        free -= taken * length
    return np.concatenate(parts[::-1]), len(free)


class WordVectorsModule(nn.Module):
    """An encoder with its pooling: packed words in, one row per word out, in the packed order."""

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
        kind = words.ids.device.type  # the mask is of the dtype of queries and keys: no layer converts it
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
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
