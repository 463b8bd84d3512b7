"""Contrastive tuning of an encoder on word pairs (stage C2): pairs and negatives, the loss, the updates.

Positive pairs are the seeds, and with few seeds also induced pairs; negatives are the nearest wrong words in
the aligner's space. With unit vectors x̂, ŷ the logits of a pair are [x̂·ŷ ; x̂·ŷ' for its target negatives ;
x̂'·ŷ for its source negatives] / τ, and its loss is the cross-entropy with the true pair at index 0 (InfoNCE).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bilex.aligners.base import Pairs
from bilex.aligners.c1_settings import MANY_SEEDS
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.induction import induce_pairs, without_pairs, without_words_of
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.encoders.model import PackedWords, TokenTable, WordEncoder, pack, resolve_dtype, to_device
from bilex.encoders.settings import TuningSettings
from bilex.search import top_k
from bilex.search.plain import Floats, Rows

_FREQUENT, _KEPT_PER_SIDE = 20_000, 6_000
_WEIGHT, _MOMENT = "weight.encoder.", "moment."
_SHOWN = 10  # reading a loss waits for the GPU, so that only every tenth is


@dataclass(frozen=True)
class TrainingPairs:
    """Positive pairs and the negatives of each, as rows of the two vocabularies.

    Positives may repeat and then count twice; the first `seeds` are the user's, the rest was induced. The
    source negatives of a pair are near its target word, the target negatives near its source word.
    """

    positives: Pairs
    source_negatives: Rows
    target_negatives: Rows
    seeds: int

    def __len__(self) -> int:
        return len(self.positives)


def training_pairs(
    source: Floats,
    target: Floats,
    seeds: Pairs,
    settings: TuningSettings,
    device: str = "auto",
    rejected: Pairs | None = None,
) -> TrainingPairs:
    """Positives and negatives in the aligner's space; see `positive_pairs` and `hard_negatives`."""
    positives = positive_pairs(source, target, seeds, settings.induced, device, rejected)
    positives = positives[: settings.max_pairs]
    xs, ys = positives[:, 0], positives[:, 1]
    return TrainingPairs(
        positives,
        hard_negatives(target[ys], source[: settings.frequent], xs, settings.negatives, device),
        hard_negatives(source[xs], target[: settings.frequent], ys, settings.negatives, device),
        min(len(seeds), len(positives)),
    )


def positive_pairs(
    source: Floats,
    target: Floats,
    seeds: Pairs,
    induced: int,
    device: str = "auto",
    rejected: Pairs | None = None,
) -> Pairs:
    """The pairs to tune on: the seeds, and with few seeds the surest induced pairs as well.

    In the paper, 5,000 seeds are used alone, and 4,000 induced pairs join 1,000 seeds; here they join fewer
    than 2,236. Induced pairs are half CSLS's best, of the 20,000 most frequent words of each side, 6,000 per
    side, taken in turn from either side by rank, without pairs with a word of the seeds, repeated and
    rejected pairs. The vectors are unit rows in the common space.
    """
    if len(seeds) >= MANY_SEEDS or induced == 0:
        return seeds
    found = induce_pairs(source, target, frequent=_FREQUENT, keep=_KEPT_PER_SIDE, device=device)
    both = min(map(len, found))
    in_turn = np.stack([part[:both] for part in found], axis=1).reshape(-1, 2)
    fresh = without_words_of(np.concatenate([in_turn, *(part[both:] for part in found)]), seeds)
    if rejected is not None:
        fresh = without_pairs(fresh, rejected)
    _, first = np.unique(fresh, axis=0, return_index=True)
    return np.concatenate([seeds, fresh[np.sort(first)][:induced]])


def hard_negatives(queries: Floats, keys: Floats, partners: Rows, count: int, device: str = "auto") -> Rows:
    """For each query the `count` keys of highest cosine, or all, except its translation, its partner."""
    if count == 0:
        return np.zeros((len(queries), 0), np.int64)
    _, nearest = top_k(queries, keys, count + 1, device=device)
    left_out = nearest == partners[:, None]
    left_out[~left_out.any(axis=1), -1] = True
    kept: Rows = nearest[~left_out].reshape(len(queries), nearest.shape[1] - 1)
    return kept


def contrastive_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    source_negatives: torch.Tensor,
    target_negatives: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE over each pair's negatives, summed over the pairs, so that parts of a batch add up.

    `vectors` has one row per distinct word of the batch; the others are rows of it, one per pair or several.
    The gradient goes through the norms.
    """
    unit = nn.functional.normalize(vectors.float(), dim=1)
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
    return nn.functional.cross_entropy(logits / temperature, truth, reduction="sum")


def whole_batch_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    is_target: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE in which every other word of the batch is a negative too, summed over the pairs.

    As `contrastive_loss`, but a pair's negatives are all target words of the batch for its source word and
    all source words for its target word; `is_target` marks the rows of target words. The paper does not use
    them, but they cost nothing.
    """
    unit = nn.functional.normalize(vectors.float(), dim=1)
    never = torch.finfo(torch.float32).min
    forward = (unit.index_select(0, sources) @ unit.T / temperature).masked_fill(~is_target, never)
    backward = (unit.index_select(0, targets) @ unit.T / temperature).masked_fill(is_target, never)
    backward = backward.scatter(1, sources[:, None], never)
    return nn.functional.cross_entropy(torch.cat([forward, backward], dim=1), targets, reduction="sum")


class Tuner:
    """Tunes one encoder, in place; `run` does the whole of it.

    Pairs with a word that the tokenizer turns into nothing are dropped, and such a negative is replaced by
    the pair's source word. With a `checkpoint` folder the state is kept after each epoch, and an interrupted
    run resumes there. `losses` has the mean loss of each epoch, `warnings` sentences about anything unusual.
    """

    def __init__(
        self,
        encoder: WordEncoder,
        source_tokens: TokenTable,
        target_tokens: TokenTable,
        pairs: TrainingPairs,
        settings: TuningSettings,
        *,
        progress: Progress = SILENT,
        checkpoint: Path | None = None,
    ) -> None:
        self.encoder, self.settings = encoder, settings
        self.progress, self.checkpoint = progress, checkpoint
        self.tokens = TokenTable(
            np.concatenate([source_tokens.ids, target_tokens.ids]),
            np.concatenate([source_tokens.lengths, target_tokens.lengths]),
        )
        start = self.target_start = len(source_tokens)  # target words are numbered after the source words
        self.source_negatives = pairs.source_negatives.shape[1]
        negatives = pairs.source_negatives, pairs.target_negatives + start
        columns = np.hstack([pairs.positives + np.array([0, start]), *negatives])
        readable = (self.tokens.lengths[columns[:, :2]] > 0).all(axis=1)
        if not readable.any():
            raise BilexError(
                "the tokenizer turns every word of the dictionary into nothing; choose another --lm."
            )
        self.dropped = int((~readable).sum())
        self.columns: Rows = columns[readable]
        unreadable = self.tokens.lengths[self.columns] == 0
        self.columns[unreadable] = np.broadcast_to(self.columns[:, :1], self.columns.shape)[unreadable]
        self.micro_batch, self.updates = settings.batch_size, 0
        self.dtype = resolve_dtype(encoder.device, settings.precision, "tuning")
        self.losses: list[float] = []
        self.warnings: list[str] = []

    def run(self) -> Tuner:
        """Tune; afterwards the encoder holds the last good weights and is in evaluation mode."""
        model = self.encoder.model
        own_rates = {layer: layer.p for layer in model.modules() if isinstance(layer, nn.Dropout)}
        try:
            for layer, own_rate in own_rates.items():
                layer.p = own_rate if self.settings.dropout is None else self.settings.dropout
            with self._trimmed_embeddings(model):
                self._epochs()
        finally:
            for layer, own_rate in own_rates.items():
                layer.p = own_rate
            self.encoder.zero_grad(set_to_none=True)
            self.encoder.eval()
        return self

    def lay_out(self, chosen: Rows) -> tuple[PackedWords, torch.Tensor, torch.Tensor]:
        """Some of the pairs as a batch, with every distinct word once.

        Returns these words, the numbers of each pair's words (source, target, source negatives, target
        negatives), and which of the words are target words.
        """
        columns, device = self.columns[chosen], self.encoder.device
        distinct, inverse = np.unique(columns, return_inverse=True)
        words, rows = pack(self.tokens, distinct, device)
        place = np.empty(len(distinct), np.int64)
        place[np.searchsorted(distinct, rows)] = np.arange(len(rows))
        places = to_device(place[inverse.reshape(columns.shape)], device)
        return words, places, to_device(rows >= self.target_start, device)

    def _epochs(self) -> None:
        """All epochs that are left to do."""
        settings, encoder = self.settings, self.encoder
        steps = -(-len(self.columns) // settings.batch_size)
        optimiser = torch.optim.AdamW(
            [p for p in encoder.parameters() if p.requires_grad],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        state = Checkpoint(self.checkpoint, self._identity() if self.checkpoint else "", self.progress)
        self.losses = _resumed(state, encoder.model, optimiser)
        first = len(self.losses)
        with self.progress.task("Tuning the language model", settings.epochs * steps) as task:
            task.advance(first * steps)
            self.updates = first * steps
            for epoch in range(first, settings.epochs):
                good = copy.deepcopy(encoder.state_dict())
                loss = self._epoch(optimiser, epoch, task)
                if not np.isfinite(loss):
                    encoder.load_state_dict(good)
                    self.updates = epoch * steps
                    if epoch == 0:
                        raise BilexError(
                            "the tuning loss is not a number in the first epoch; lower the learning rate or "
                            "use precision float32."
                        )
                    self._warn(
                        f"The tuning loss is not a number in epoch {epoch + 1}: the weights after epoch "
                        f"{epoch} are kept."
                    )
                    return
                self.losses.append(loss)
                if self.checkpoint:
                    state.save(_state(encoder.model, optimiser), losses=self.losses)

    def _epoch(self, optimiser: torch.optim.Optimizer, epoch: int, task: Task) -> float:
        """One pass over all pairs; returns the mean loss, which is not finite if that of a batch is not."""
        settings = self.settings
        seed = settings.seed + epoch
        order = np.random.default_rng(seed).permutation(len(self.columns))
        torch.manual_seed(seed * 1000)
        self.encoder.train()
        total = torch.zeros((), device=self.encoder.device)
        for start in range(0, len(order), settings.batch_size):
            chosen = order[start : start + settings.batch_size]
            loss = self._update(optimiser, chosen)
            total += loss * len(chosen)
            if self.updates % _SHOWN:
                task.advance()
                continue
            task.advance(1, loss=round(float(loss), 4))
            if not torch.isfinite(loss):
                break
        return float(total) / len(order)

    def _update(self, optimiser: torch.optim.Optimizer, chosen: Rows) -> torch.Tensor:
        """One optimiser step; where memory runs out, again with half as many pairs at a time."""
        while True:
            optimiser.zero_grad()
            try:
                loss = self._gradients(chosen)
                break
            except torch.cuda.OutOfMemoryError as error:
                torch.cuda.empty_cache()
                if self.micro_batch == 1:
                    raise BilexError(
                        "the GPU has too little memory for one word pair and its negatives; use --device cpu "
                        "or a smaller --lm."
                    ) from error
                self.micro_batch = -(-self.micro_batch // 2)
                fewer = self.settings.whole_batch  # the other words of the batch are the negatives
                changed = "but pairs have fewer negatives" if fewer else "so results do not change"
                self._warn(
                    f"GPU memory is too small for the whole batch: continuing with {self.micro_batch} pairs "
                    f"at a time; gradients still cover the whole batch, {changed}."
                )
        optimiser.step()
        self.updates += 1
        return loss

    def _gradients(self, chosen: Rows) -> torch.Tensor:
        """Add up the gradients of `chosen`, in parts; returns the mean loss."""
        settings, device = self.settings, self.encoder.device
        total = torch.zeros((), device=device)
        for start in range(0, len(chosen), self.micro_batch):
            words, places, is_target = self.lay_out(chosen[start : start + self.micro_batch])
            with torch.autocast(device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
                vectors = self.encoder(words)
            pair, temperature = (places[:, 0], places[:, 1]), settings.temperature
            if settings.whole_batch:
                loss = whole_batch_loss(vectors, *pair, is_target, temperature)
            else:
                near_target, near_source = places[:, 2:].tensor_split([self.source_negatives], dim=1)
                loss = contrastive_loss(vectors, *pair, near_target, near_source, temperature)
            loss = loss / len(chosen)
            torch.autograd.backward(loss)
            total += loss.detach()
        return total

    def _warn(self, sentence: str) -> None:
        self.warnings.append(sentence)
        self.progress.log(sentence)

    @contextlib.contextmanager
    def _trimmed_embeddings(self, encoder: Any) -> Iterator[None]:
        """Train only the token embeddings that the pairs use, renumbered; AdamW decays the others."""
        whole: nn.Embedding = encoder.get_input_embeddings()
        tokens, rows = self.tokens, np.unique(self.columns)
        used = np.unique(tokens.ids[rows][np.arange(tokens.ids.shape[1]) < tokens.lengths[rows, None]])
        padding = whole.padding_idx
        if padding is not None:
            used = np.union1d(used, [padding])
        renumbered = np.zeros(whole.num_embeddings, np.int32)
        renumbered[used] = np.arange(len(used))
        chosen = torch.from_numpy(used.astype(np.int64)).to(whole.weight.device)
        small = nn.Embedding(
            len(used), whole.embedding_dim, None if padding is None else int(renumbered[padding])
        ).to(whole.weight)
        small.weight.data.copy_(whole.weight[chosen])
        small.weight.requires_grad_(whole.weight.requires_grad)
        encoder.set_input_embeddings(small)
        self.tokens = TokenTable(renumbered[tokens.ids], tokens.lengths)
        try:
            yield
        finally:
            decay = 1 - self.settings.learning_rate * self.settings.weight_decay
            with torch.no_grad():
                whole.weight.mul_(decay**self.updates)
                whole.weight[chosen] = small.weight
            encoder.set_input_embeddings(whole)

    def _identity(self) -> str:
        """A hash of what a checkpoint must agree with: settings, pairs with their tokens, encoder."""
        content = hashlib.sha256(self.columns.tobytes() + self.tokens.ids.tobytes())
        stamp = {
            "settings": asdict(self.settings),
            "pairs": content.hexdigest(),
            "encoder": self.encoder.fingerprint(),
        }
        return hashlib.sha256(json.dumps(stamp, sort_keys=True, default=str).encode()).hexdigest()


def _state(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Weights and the optimiser's moments, for a checkpoint."""
    moments = {
        f"{_MOMENT}{number}.{name}": torch.as_tensor(value)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    return {**{f"{_WEIGHT}{name}": weight for name, weight in model.named_parameters()}, **moments}


def _resumed(state: Checkpoint, model: nn.Module, optimiser: torch.optim.Optimizer) -> list[float]:
    """Load a checkpoint, if there is one of this run; returns the losses of the epochs that are done."""
    kept = state.load(of_another="ignore")
    if kept is None:
        return []
    weights = {name: kept.tensors[_WEIGHT + name] for name, _ in model.named_parameters()}
    model.load_state_dict(weights, strict=False)  # buffers are not kept
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in kept.tensors.items():
        if name.startswith(_MOMENT):
            _, number, part = name.split(".", 2)
            moments.setdefault(int(number), {})[part] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    return list(kept.state["losses"])
