"""Words as token numbers, and batches of them without padding.

A word has three to a handful of tokens. A batch is therefore laid out as one long row of tokens, words
of equal length side by side, so that every group of equal length is a rectangle and no place is wasted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

Integers = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Words of one length: the first token's place in the row, how many words, tokens a word."""

    start: int
    words: int
    length: int

    @property
    def stop(self) -> int:
        """The place after the group's last token."""
        return self.start + self.words * self.length


@dataclass(frozen=True)
class TokenTable:
    """The tokens of many words.

    Args:
        ids: One row a word, its tokens first, the rest of the row filled with anything.
        lengths: Tokens of each word; 0 for a word that the tokenizer turns into nothing.
    """

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Integers) -> TokenTable:
        """Some of the words, in the order of `rows`."""
        return TokenTable(self.ids[rows], self.lengths[rows])

    @staticmethod
    def join(first: TokenTable, second: TokenTable) -> TokenTable:
        """The words of two tables of one encoder, one after the other."""
        return TokenTable(
            np.concatenate([first.ids, second.ids]), np.concatenate([first.lengths, second.lengths])
        )


@dataclass(frozen=True)
class PackedWords:
    """Words laid out for the encoder, the shortest first.

    Args:
        ids: All tokens in one row.
        positions: The place of each token in its word, from 0.
        groups: Where the words of each length are.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    groups: tuple[Group, ...]

    def to(self, device: torch.device) -> PackedWords:
        """The same words on another device."""
        return PackedWords(to_device(self.ids, device), to_device(self.positions, device), self.groups)


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the main memory on `device`, without waiting for what the device is doing."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def pack(table: TokenTable, rows: Integers) -> tuple[PackedWords, Integers]:
    """Lay out the words `rows` of `table`, none of which may be empty.

    Returns:
        The packed words, and their rows in the order in which they were laid out.
    """
    rows = rows[np.argsort(table.lengths[rows], kind="stable")]
    lengths = table.lengths[rows]
    width = int(lengths[-1]) if len(rows) else 0
    places = np.arange(width)
    used = places < lengths[:, None]
    ids = table.ids[rows, :width][used]
    positions = np.broadcast_to(places, used.shape)[used]
    groups = []
    start = 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        groups.append(Group(start, int(count), int(length)))
        start = groups[-1].stop
    packed = PackedWords(
        torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(positions.astype(np.int64)), tuple(groups)
    )
    return packed, rows
