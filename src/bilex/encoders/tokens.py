"""Words as token numbers, and batches of them with hardly any padding.

A word has three to a handful of tokens. A batch is therefore laid out in rows that hold many words each,
words of several lengths together, so that next to no place is wasted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

Integers = npt.NDArray[np.int64]
_TOKENS_A_ROW = 64  # what a GPU's attention kernels do at once; on a CPU 16 or 32 are no faster


@dataclass(frozen=True)
class TokenTable:
    """The tokens of many words.

    Args:
        ids: One row per word, its tokens first, the rest of the row filled with anything.
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
    """Words laid out in rows for the encoder; they are numbered from the shortest to the longest.

    Args:
        tokens: Of shape (3, rows, tokens a row): token numbers; the place of each token in its word, from 0;
            the number of the word that it belongs to. Padding has token 0, place 0 and word −1.
        starts: For each word the place of its first token, counted through all rows; room that no word takes
            is filled with 0, and what comes out there means nothing.
        counts: How many words there are of each length: (length, words), the shortest first.
    """

    tokens: torch.Tensor
    starts: torch.Tensor
    counts: tuple[tuple[int, int], ...]

    @property
    def ids(self) -> torch.Tensor:
        """The token numbers, a matrix of rows."""
        return self.tokens[0]

    @property
    def positions(self) -> torch.Tensor:
        """The place of each token in its word."""
        return self.tokens[1]

    @property
    def numbers(self) -> torch.Tensor:
        """The word of each token, −1 for padding."""
        return self.tokens[2]


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the main memory on `device`, without waiting for what the device is doing."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def pack(
    table: TokenTable, rows: Integers, device: torch.device, room: int | None = None
) -> tuple[PackedWords, Integers]:
    """Lay out the words `rows` of `table`, none of which may be empty, on a device.

    Args:
        table: The tokens of many words.
        rows: Those to lay out.
        device: Where they go.
        room: Make batches of about one size have one shape: leave room for so many words, and add empty rows
            up to a round number. None lays out what there is and no more.

    Returns:
        The packed words, and their rows in the order in which they are numbered.
    """
    rows = rows[np.argsort(table.lengths[rows], kind="stable")]
    lengths = table.lengths[rows].astype(np.int64)
    found = zip(*np.unique(lengths, return_counts=True), strict=True)
    counts = tuple((int(length), int(count)) for length, count in found)
    longest = counts[-1][0] if counts else 1
    width = max(longest, min(_TOKENS_A_ROW, int(lengths.sum())))
    width += -width % 8  # kernels want masks in multiples of 8
    starts, used_rows = _starts(counts, width)
    if room is not None:
        used_rows = round_up(used_rows)
    places = np.arange(longest)
    used = places < lengths[:, None]
    flat = (starts[:, None] + places)[used]
    tokens = np.zeros((3, used_rows * width), np.int64)
    tokens[2] = -1
    tokens[0, flat] = table.ids[rows, :longest][used]
    tokens[1, flat] = np.broadcast_to(places, used.shape)[used]
    tokens[2, flat] = np.repeat(np.arange(len(rows)), lengths)
    if room is not None:
        starts = np.pad(starts, (0, room - len(starts)))
    laid_out = to_device(torch.from_numpy(tokens.reshape(3, used_rows, width)), device)
    return PackedWords(laid_out, to_device(torch.from_numpy(starts), device), counts), rows


def round_up(count: int) -> int:
    """The next number of at most five binary digits before its zeros: never 7 % more, few different ones."""
    step = 1 << max(0, count.bit_length() - 5)
    return -(-count // step) * step


def _starts(counts: tuple[tuple[int, int], ...], width: int) -> tuple[Integers, int]:
    """Give every word a place: the longest words first, each in the first row that has room for it.

    Returns:
        The places of the words' first tokens, the shortest words first, and how many rows there are.
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
