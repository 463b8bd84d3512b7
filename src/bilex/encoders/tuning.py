"""Contrastive tuning of an encoder on word pairs (stage C2): the batches, their loss, and the updates."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bilex.aligners.checkpoint import Checkpoint
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.encoders.model import WordEncoder, autocast, dtype_in_force
from bilex.encoders.packing import Integers, PackedWords, TokenTable, pack, to_device
from bilex.encoders.pairs import TrainingPairs
from bilex.encoders.settings import TuningSettings

_WEIGHT, _MOMENT = "weight.", "moment."
_SHOWN = 10  # reading a loss waits for the GPU, so that only every tenth is


def contrastive_loss(
    vectors: torch.Tensor,
    sources: torch.Tensor,
    targets: torch.Tensor,
    source_negatives: torch.Tensor,
    target_negatives: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE over a pair's own negatives, summed over the pairs, so that parts of a batch add up.

    With unit vectors x̂, ŷ the logits of a pair are [x̂·ŷ ; x̂·ŷ' for its target negatives ; x̂'·ŷ for its
    source negatives] / τ, and its loss is the cross-entropy with the true pair at index 0. The gradient
    goes through the norms. `vectors` has one row for each distinct word of the batch; the others are rows of
    it, one of each pair or several.
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
    is_target: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """InfoNCE in which every other word of the batch is a negative too, summed over the pairs.

    As `contrastive_loss`, but a pair's negatives are all target words of the batch for its source word and
    all source words for its target word; `is_target` says which rows are of target words. They cost nothing,
    since their vectors are there already. The paper does not use them.
    """
    unit = torch.nn.functional.normalize(vectors.float(), dim=1)
    never = torch.finfo(torch.float32).min
    forward = (unit.index_select(0, sources) @ unit.T / temperature).masked_fill(~is_target, never)
    backward = (unit.index_select(0, targets) @ unit.T / temperature).masked_fill(is_target, never)
    backward = backward.scatter(1, sources[:, None], never)
    return torch.nn.functional.cross_entropy(torch.cat([forward, backward], dim=1), targets, reduction="sum")


@dataclass(frozen=True)
class Batch:
    """Some pairs: their distinct words laid out, which of these are target words, and where each word is.

    A row of `places` has the numbers of a pair's source word, target word, source negatives and target
    negatives.
    """

    words: PackedWords
    places: torch.Tensor
    is_target: torch.Tensor
    source_negatives: int

    def loss(self, vectors: torch.Tensor, settings: TuningSettings) -> torch.Tensor:
        """The loss summed over the pairs, `vectors` being those of `words`."""
        sources, targets = self.places[:, 0], self.places[:, 1]
        if settings.whole_batch:
            return whole_batch_loss(vectors, sources, targets, self.is_target, settings.temperature)
        split = 2 + self.source_negatives
        near_targets, near_sources = self.places[:, 2:split], self.places[:, split:]
        return contrastive_loss(vectors, sources, targets, near_targets, near_sources, settings.temperature)


class Batches:
    """Lays out the batches of a tuning run, every distinct word of a batch once.

    Pairs of a word that the tokenizer turns into nothing are left out, and such a negative is replaced by the
    pair's own source word.
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
        return len(self.columns)

    def lay_out(self, chosen: Integers, device: torch.device) -> Batch:
        """Some of the pairs as a batch."""
        columns = self.columns[chosen]
        distinct, inverse = np.unique(columns, return_inverse=True)
        packed, rows = pack(self.tokens, distinct, device)
        place = np.empty(len(distinct), np.int64)
        place[np.searchsorted(distinct, rows)] = np.arange(len(rows))
        return Batch(
            packed,
            to_device(torch.from_numpy(place[inverse.reshape(columns.shape)]), device),
            to_device(torch.from_numpy(rows >= self.target_start), device),
            self.source_negatives,
        )


@dataclass
class TuningReport:
    """What happened: the mean loss of each epoch, pairs used, and sentences about anything unusual."""

    losses: list[float] = field(default_factory=list)
    pairs: int = 0
    dropped: int = 0
    micro_batch: int = 0
    warnings: list[str] = field(default_factory=list)


class Tuner:
    """Tunes one encoder, in place; `run` does the whole of it.

    With a `checkpoint` folder the state is kept after each epoch, and a run that was cut off goes on from
    there. `on_pace` receives once, after the second update, the seconds that all updates take and those of
    one token, forward and backward; only on a CPU are they right.
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
        on_pace: Callable[[float, float], None] | None = None,
    ) -> None:
        self.encoder = encoder
        self.settings = settings
        self.progress = progress
        self.checkpoint = checkpoint
        self.on_pace = on_pace
        self.batches = Batches(source_tokens, target_tokens, pairs)
        self.report = TuningReport(pairs=len(self.batches), dropped=self.batches.dropped)
        self.micro_batch = settings.batch_size
        self.steps_per_epoch = -(-len(self.batches) // settings.batch_size)
        self.updates = 0
        self.dtype = dtype_in_force(encoder.device, settings.precision, "tuning")

    def run(self) -> TuningReport:
        """Tune; afterwards the encoder holds the last good weights and is in evaluation mode."""
        module, settings = self.encoder.module, self.settings
        decay = 1 - settings.learning_rate * settings.weight_decay
        try:
            with self._trimmed_embeddings(module.encoder, decay), _dropout(module.encoder, settings.dropout):
                self._epochs(module)
        finally:
            module.zero_grad(set_to_none=True)
            module.eval()
        self.report.micro_batch = self.micro_batch
        return self.report

    def _epochs(self, module: nn.Module) -> None:
        """All epochs that are left to do."""
        settings, steps = self.settings, self.steps_per_epoch
        optimiser = torch.optim.AdamW(
            [p for p in module.parameters() if p.requires_grad],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        state = Checkpoint(self.checkpoint, self._identity() if self.checkpoint else "", self.progress)
        self.report.losses = _resumed(state, module, optimiser)
        first = len(self.report.losses)
        with self.progress.task("Tuning the language model", settings.epochs * steps) as task:
            task.advance(first * steps)
            self.updates = first * steps
            for epoch in range(first, settings.epochs):
                good = [p.detach().clone() for p in module.parameters()]
                loss = self._epoch(module, optimiser, epoch, task)
                if not np.isfinite(loss):
                    self._go_back(module, good, epoch)
                    self.updates = epoch * steps
                    return
                self.report.losses.append(loss)
                if self.checkpoint:
                    state.save(_state(module, optimiser), losses=self.report.losses)

    def _identity(self) -> str:
        """A hash of what a checkpoint must agree with: settings, pairs with their tokens, encoder."""
        content = hashlib.sha256(self.batches.columns.tobytes())
        content.update(self.batches.tokens.ids.tobytes())
        stamp = {
            "settings": asdict(self.settings),
            "pairs": content.hexdigest(),
            "encoder": self.encoder.fingerprint(),
        }
        return hashlib.sha256(json.dumps(stamp, sort_keys=True, default=str).encode()).hexdigest()

    def _epoch(self, module: nn.Module, optimiser: torch.optim.Optimizer, epoch: int, task: Task) -> float:
        """One pass over all pairs; returns the mean loss, which is not finite if that of a batch is not."""
        settings = self.settings
        seed = settings.seed + epoch
        order = np.random.default_rng(seed).permutation(len(self.batches))
        torch.manual_seed(seed * 1000)
        module.train()
        total = torch.zeros((), device=self.encoder.device)
        for start in range(0, len(order), settings.batch_size):
            chosen = order[start : start + settings.batch_size]
            began = time.monotonic()
            loss = self._update(module, optimiser, chosen)
            total += loss * len(chosen)
            self._report_pace(chosen, began)
            if self.updates % _SHOWN:
                task.advance()
                continue
            task.advance(1, loss=round(float(loss), 4))
            if not torch.isfinite(loss):
                break
        return float(total) / len(order)

    def _report_pace(self, chosen: Integers, began: float) -> None:
        """Report how long all updates take, if this is the second, or the only one."""
        updates = self.settings.epochs * self.steps_per_epoch
        if self.on_pace is None or self.updates < min(2, updates):
            return
        seconds = time.monotonic() - began
        tokens = self.batches.tokens.lengths[np.unique(self.batches.columns[chosen])].sum()
        self.on_pace(seconds * updates, seconds / int(tokens))
        self.on_pace = None

    def _update(self, module: nn.Module, optimiser: torch.optim.Optimizer, chosen: Integers) -> torch.Tensor:
        """One optimiser step; where memory runs out, the batch is cut in smaller parts and done again."""
        while True:
            optimiser.zero_grad()
            try:
                loss = self._gradients(module, chosen)
                break
            except torch.cuda.OutOfMemoryError:
                self._halve()
        optimiser.step()
        self.updates += 1
        return loss

    def _gradients(self, module: nn.Module, chosen: Integers) -> torch.Tensor:
        """Add up the gradients of `chosen`, in parts; returns the mean loss."""
        device = self.encoder.device
        total = torch.zeros((), device=device)
        for start in range(0, len(chosen), self.micro_batch):
            batch = self.batches.lay_out(chosen[start : start + self.micro_batch], device)
            total += self._pass(module, batch, len(chosen))
        return total

    def _pass(self, module: nn.Module, batch: Batch, pairs: int) -> torch.Tensor:
        """Forward and backward, adding to the gradients; returns the batch's part of a mean over `pairs`."""
        with autocast(self.encoder.device, self.dtype):
            vectors = module(batch.words)
        loss = batch.loss(vectors, self.settings) / pairs
        torch.autograd.backward(loss)
        return loss.detach()

    def _halve(self) -> None:
        """Go on with half as many pairs at a time."""
        torch.cuda.empty_cache()
        if self.micro_batch == 1:
            raise BilexError(
                "the GPU has too little memory for one word pair and its negatives; use --device cpu or a "
                "smaller --lm."
            )
        self.micro_batch = -(-self.micro_batch // 2)
        self._warn(
            f"GPU memory is too small for the whole batch: going on with {self.micro_batch} pairs at a time; "
            "gradients still cover the whole batch, so results do not change."
        )

    def _go_back(self, module: nn.Module, good: list[torch.Tensor], epoch: int) -> None:
        """Put the weights of the last whole epoch back after a loss that is not a number."""
        with torch.no_grad():
            for parameter, value in zip(module.parameters(), good, strict=True):
                parameter.copy_(value)
        if epoch == 0:
            raise BilexError(
                "the tuning loss is not a number in the first epoch; lower the learning rate or use "
                "precision float32."
            )
        self._warn(
            f"The tuning loss is not a number in epoch {epoch + 1}: the weights after epoch {epoch} are kept."
        )

    def _warn(self, sentence: str) -> None:
        self.report.warnings.append(sentence)
        self.progress.say(sentence)

    @contextlib.contextmanager
    def _trimmed_embeddings(self, encoder: Any, decay: float) -> Iterator[None]:
        """Train only the token embeddings that the pairs use, renumbered; AdamW decays the others."""
        whole: nn.Embedding = encoder.get_input_embeddings()
        tokens, rows = self.batches.tokens, np.unique(self.batches.columns)
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
        self.batches.tokens = TokenTable(renumbered[tokens.ids], tokens.lengths)
        try:
            yield
        finally:
            with torch.no_grad():
                whole.weight.mul_(decay**self.updates)
                whole.weight[chosen] = small.weight
            encoder.set_input_embeddings(whole)


@contextlib.contextmanager
def _dropout(encoder: nn.Module, rate: float | None) -> Iterator[None]:
    """Set every dropout of the encoder to `rate` for a while."""
    layers: list[Any] = [m for m in encoder.modules() if isinstance(m, nn.Dropout)]
    before = [layer.p for layer in layers]
    try:
        for layer in layers if rate is not None else []:
            layer.p = rate
        yield
    finally:
        for layer, own in zip(layers, before, strict=True):
            layer.p = own


def _state(module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Weights and the optimiser's moments, for a checkpoint."""
    moments = {
        f"{_MOMENT}{number}.{name}": torch.as_tensor(value)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    return {**{f"{_WEIGHT}{name}": weight for name, weight in module.named_parameters()}, **moments}


def _resumed(state: Checkpoint, module: nn.Module, optimiser: torch.optim.Optimizer) -> list[float]:
    """Take up the run of a checkpoint: the losses of the epochs that are done."""
    kept = state.load(of_another="ignore")
    if kept is None:
        return []
    weights, moments = (
        {name.removeprefix(prefix): t for name, t in kept.tensors.items() if name.startswith(prefix)}
        for prefix in (_WEIGHT, _MOMENT)
    )
    own = dict(module.named_parameters())
    if {n: w.shape for n, w in weights.items()} != {n: p.shape for n, p in own.items()}:
        return []
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])
    current = optimiser.state_dict()
    current["state"] = {}
    for name, value in moments.items():
        number, part = name.split(".", 1)
        current["state"].setdefault(int(number), {})[part] = value
    optimiser.load_state_dict(current)
    return list(kept.state["losses"])
