"""The batches of stage C2, word pairs with their negatives, every distinct word once; and their loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from bilex.core.errors import BilexError
from bilex.encoders.packing import Integers, PackedWords, TokenTable, pack, to_device
from bilex.encoders.pairs import TrainingPairs
from bilex.encoders.presets import TuningSettings


@dataclass(frozen=True)
class Batch:
    """Some pairs: their distinct words laid out, and where each word of a pair is.

    Args:
        words: The distinct words.
        places: One row per pair: the numbers in `words` of its source word, its target word, its source
            negatives and its target negatives.
        sides: For each number 0 for a source word, 1 for a target word, −1 where there is no word.
        source_negatives: How many source negatives a pair has.
    """

    words: PackedWords
    places: torch.Tensor
    sides: torch.Tensor
    source_negatives: int

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All that the batch consists of."""
        return self.words.tokens, self.words.starts, self.places, self.sides

    @property
    def shape(self) -> tuple[torch.Size, ...]:
        """The shape of each of `tensors`."""
        return tuple(tensor.shape for tensor in self.tensors)

    def clone(self) -> Batch:
        """The same batch in memory of its own."""
        tokens, starts, places, sides = (tensor.clone() for tensor in self.tensors)
        words = PackedWords(tokens, starts, self.words.counts)
        return Batch(words, places, sides, self.source_negatives)

    def copy_(self, other: Batch) -> None:
        """Overwrite the tensors with those of a batch of the same shape."""
        for mine, theirs in zip(self.tensors, other.tensors, strict=True):
            mine.copy_(theirs)

    def loss(self, vectors: torch.Tensor, settings: TuningSettings) -> torch.Tensor:
        """The loss summed over the pairs, `vectors` being those of `words`."""
        sources, targets = self.places[:, 0], self.places[:, 1]
        if settings.whole_batch:
            return whole_batch_loss(vectors, sources, targets, self.sides, settings.temperature)
        split = 2 + self.source_negatives
        near_targets, near_sources = self.places[:, 2:split], self.places[:, split:]
        return contrastive_loss(vectors, sources, targets, near_targets, near_sources, settings.temperature)


class Batches:
    """Lays out the batches of a tuning run.

    Args:
        source_tokens: The tokens of the source vocabulary.
        target_tokens: The tokens of the target vocabulary.
        pairs: Positives and negatives. Pairs of a word that the tokenizer turns into nothing are left out,
            and such a negative is replaced by the pair's own source word.

    Raises:
        BilexError: No pair is left.
    """

    def __init__(self, source_tokens: TokenTable, target_tokens: TokenTable, pairs: TrainingPairs) -> None:
        self.tokens = TokenTable.join(source_tokens, target_tokens)
        self.target_start = len(source_tokens)
        self.source_negatives = pairs.source_negatives.shape[1]
        columns: Integers = np.concatenate(
            [
                pairs.positives[:, :1],
                pairs.positives[:, 1:] + self.target_start,
                pairs.source_negatives,
                pairs.target_negatives + self.target_start,
            ],
            axis=1,
        )
        readable = (self.tokens.lengths[columns[:, :2]] > 0).all(axis=1)
        if not readable.any():
            raise BilexError(
                "the tokenizer turns every word of the dictionary into nothing; choose another --lm."
            )
        self.dropped = int((~readable).sum())
        self.columns = columns[readable]
        unreadable = self.tokens.lengths[self.columns] == 0
        self.columns[unreadable] = np.broadcast_to(self.columns[:, :1], self.columns.shape)[unreadable]

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.columns)

    def lay_out(self, chosen: Integers, device: torch.device, *, few_shapes: bool = False) -> Batch:
        """Some of the pairs as a batch; `few_shapes` pads it, so that batches of as many pairs look alike."""
        columns = self.columns[chosen]
        distinct, inverse = np.unique(columns, return_inverse=True)
        packed, rows = pack(self.tokens, distinct, device, columns.size if few_shapes else None)
        place = np.empty(len(distinct), np.int64)
        place[np.searchsorted(distinct, rows)] = np.arange(len(rows))
        sides = np.full(len(packed.starts), -1, np.int64)
        sides[: len(rows)] = rows >= self.target_start
        return Batch(
            packed,
            to_device(torch.from_numpy(place[inverse.reshape(columns.shape)]), device),
            to_device(torch.from_numpy(sides), device),
            self.source_negatives,
        )


def contrastive_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    source_negatives: torch.Tensor,
    target_negatives: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE over a pair's own negatives, summed over the pairs.

    With unit vectors x̂, ŷ the logits of a pair are [x̂·ŷ ; x̂·ŷ' for its target negatives ; x̂'·ŷ for its
    source negatives] / τ, and its loss is the cross-entropy with the true pair at index 0. The gradient
    goes through the norms. The sum is returned, not the mean, so that parts of a batch add up.

    Args:
        vectors: One row for each distinct word of the batch.
        sources: For each pair the row of its source word.
        targets: For each pair the row of its target word.
        source_negatives: For each pair the rows of its source negatives.
        target_negatives: For each pair the rows of its target negatives.
        temperature: τ.
    """
    unit = torch.nn.functional.normalize(vectors.float(), dim=1)
    from_sources = unit.index_select(0, sources) @ unit.T
    from_targets = unit.index_select(0, targets) @ unit.T
    logits = torch.cat(
        [
            from_sources.gather(1, targets[:, None]),
            from_sources.gather(1, target_negatives),
            from_targets.gather(1, source_negatives),
        ],
        dim=1,
    )
    truth = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    return torch.nn.functional.cross_entropy(logits / temperature, truth, reduction="sum")


def whole_batch_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    sides: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE in which every other word of the batch is a negative too, summed over the pairs.

    As `contrastive_loss`, but a pair's negatives are all target words of the batch for its source word and
    all source words for its target word. They cost nothing, since their vectors are there already; this is
    what the light presets use, which have few negatives of their own. The paper does not.

    `sides` is 0 for a row of a source word, 1 for one of a target word, −1 for one that holds no word.
    """
    unit = torch.nn.functional.normalize(vectors.float(), dim=1)
    never = torch.finfo(torch.float32).min
    forward = (unit.index_select(0, sources) @ unit.T / temperature).masked_fill(sides != 1, never)
    backward = (unit.index_select(0, targets) @ unit.T / temperature).masked_fill(sides != 0, never)
    backward = backward.scatter(1, sources[:, None], never)
    return torch.nn.functional.cross_entropy(torch.cat([forward, backward], dim=1), targets, reduction="sum")
