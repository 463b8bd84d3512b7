"""Contrastive tuning of an encoder on word pairs (stage C2)."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from bilex.encoders.checkpoint import load_checkpoint, save_checkpoint
from bilex.encoders.loss import contrastive_loss, whole_batch_loss
from bilex.encoders.model import WordEncoder, autocast
from bilex.encoders.pairs import TrainingPairs
from bilex.encoders.presets import TuningSettings
from bilex.encoders.tokens import Integers, PackedWords, TokenTable, pack, to_device
from bilex.encoders.trimming import trimmed_embeddings
from bilex.errors import BilexError
from bilex.progress import SILENT, Progress, Task


@dataclass
class TuningReport:
    """What happened: the mean loss of each epoch, pairs used, and sentences about anything unusual."""

    losses: list[float] = field(default_factory=list)
    pairs: int = 0
    dropped: int = 0
    micro_batch: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Batch:
    """Some pairs: their distinct words laid out, where each word of a pair is, which are target words."""

    words: PackedWords
    places: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
    is_target: torch.Tensor


class Tuner:
    """Tunes one encoder; `run` does the whole of it.

    Args:
        encoder: The encoder, changed in place.
        source_tokens: The tokens of the source vocabulary.
        target_tokens: The tokens of the target vocabulary.
        pairs: Positives and negatives.
        settings: How to tune.
        progress: Who is told how far the work is.
        checkpoint: A folder where the state is kept after each epoch; a run that was cut off goes on
            from there.
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
        self.encoder = encoder
        self.settings = settings
        self.progress = progress
        self.checkpoint = checkpoint
        self.report = TuningReport()
        self.tokens = TokenTable.join(source_tokens, target_tokens)
        self.target_start = len(source_tokens)
        self.columns = self._columns(pairs, len(source_tokens))
        self.rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        self.world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
        self.micro_batch = settings.batch_size
        self.updates = 0

    def _columns(self, pairs: TrainingPairs, target_start: int) -> Integers:
        """For each usable pair the words it needs, as rows of `tokens`: source, target, negatives of both."""
        columns: Integers = np.concatenate(
            [
                pairs.positives[:, :1],
                pairs.positives[:, 1:] + target_start,
                pairs.source_negatives,
                pairs.target_negatives + target_start,
            ],
            axis=1,
        )
        readable = (self.tokens.lengths[columns[:, :2]] > 0).all(axis=1)
        self.source_negatives = pairs.source_negatives.shape[1]
        self.report.pairs = int(readable.sum())
        self.report.dropped = int((~readable).sum())
        if not readable.any():
            raise BilexError(
                "the tokenizer turns every word of the dictionary into nothing; choose another --lm."
            )
        columns = columns[readable]
        unreadable = self.tokens.lengths[columns] == 0
        columns[unreadable] = np.broadcast_to(columns[:, :1], columns.shape)[unreadable]
        return columns

    def run(self) -> TuningReport:
        """Tune; afterwards the encoder holds the last good weights and is in evaluation mode.

        Raises:
            BilexError: The loss is not a number before one epoch was done.
        """
        module = self.encoder.module
        self.tokens, restore = trimmed_embeddings(module.encoder, self.tokens, self.columns)
        try:
            with _dropout(module.encoder, self.settings.dropout):
                self._epochs(module)
        finally:
            restore(1 - self.settings.learning_rate * self.settings.weight_decay, self.updates)
            module.zero_grad(set_to_none=True)
            module.eval()
        self.report.micro_batch = self.micro_batch
        return self.report

    def _epochs(self, module: nn.Module) -> None:
        """All epochs that are left to do."""
        settings = self.settings
        optimiser = torch.optim.AdamW(
            [p for p in module.parameters() if p.requires_grad],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        stamp = self._stamp() if self.checkpoint else {}
        first, self.report.losses = load_checkpoint(self.checkpoint, module, optimiser, stamp)
        trained = self._parallel(module)
        steps_an_epoch = -(-len(self.columns) // settings.batch_size)
        with self.progress.task("Tuning the language model", settings.epochs * steps_an_epoch) as task:
            task.advance(first * steps_an_epoch)
            self.updates = first * steps_an_epoch
            for epoch in range(first, settings.epochs):
                good = [p.detach().clone() for p in module.parameters()]
                loss = self._epoch(trained, optimiser, epoch, task)
                if not np.isfinite(loss):
                    self._go_back(module, good, epoch)
                    self.updates = epoch * steps_an_epoch
                    return
                self.report.losses.append(loss)
                if self.rank == 0:
                    save_checkpoint(self.checkpoint, module, optimiser, stamp, self.report.losses)

    def _stamp(self) -> dict[str, Any]:
        """What a checkpoint must agree with to be taken up: settings, pairs with their tokens, encoder."""
        content = hashlib.sha256(self.columns.tobytes())
        content.update(self.tokens.ids.tobytes())
        return {
            "settings": asdict(self.settings),
            "pairs": content.hexdigest(),
            "encoder": self.encoder.fingerprint(),
        }

    def _epoch(self, module: nn.Module, optimiser: torch.optim.Optimizer, epoch: int, task: Task) -> float:
        """One pass over all pairs; returns the mean loss, NaN as soon as a batch's loss is not finite."""
        settings = self.settings
        seed = settings.seed + epoch
        order = np.random.default_rng(seed).permutation(len(self.columns))
        torch.manual_seed(seed * 1000 + self.rank)
        module.train()
        losses: list[float] = []
        waiting: Callable[[], float] | None = None
        for start in range(0, len(order), settings.batch_size):
            loss = _read_later(self._update(module, optimiser, order[start : start + settings.batch_size]))
            if waiting is not None:
                losses.append(waiting())
                if not np.isfinite(losses[-1]):
                    return float("nan")
                task.advance(1, loss=round(losses[-1], 4))
            waiting = loss
        losses.append(waiting() if waiting is not None else float("nan"))
        task.advance(1, loss=round(losses[-1], 4))
        sizes = np.diff(np.append(np.arange(0, len(order), settings.batch_size), len(order)))
        return float(np.average(losses, weights=sizes))

    def _update(self, module: nn.Module, optimiser: torch.optim.Optimizer, chosen: Integers) -> torch.Tensor:
        """One optimiser step; where memory runs out, the batch is cut in smaller parts and done again."""
        while True:
            optimiser.zero_grad(set_to_none=True)
            try:
                loss = self._gradients(module, chosen)
                break
            except torch.cuda.OutOfMemoryError:
                self._halve()
        optimiser.step()
        self.updates += 1
        return loss

    def _gradients(self, module: nn.Module, chosen: Integers) -> torch.Tensor:
        """Gradients of the mean loss over `chosen`, in parts; every process does its share of the pairs."""
        mine = chosen[self.rank :: self.world]
        parts = [mine[i : i + self.micro_batch] for i in range(0, len(mine), self.micro_batch)] or [mine]
        total = torch.zeros((), device=self.encoder.device)
        for number, part in enumerate(parts):
            with _unsynchronised(module, number < len(parts) - 1):
                loss = self._part_loss(module, part) / len(chosen)
                torch.autograd.backward(loss * self.world)
            total += loss.detach()
        if self.world > 1:
            torch.distributed.all_reduce(total)
        return total

    def _part_loss(self, module: nn.Module, part: Integers) -> torch.Tensor:
        weight = 1.0
        if not len(part):
            part, weight = np.zeros(1, np.int64), 0.0
        batch = self._lay_out(part)
        with autocast(self.encoder.device, self.settings.precision):
            vectors = module(batch.words)
        if self.settings.whole_batch:
            sources, targets = batch.places[:2]
            loss = whole_batch_loss(vectors, sources, targets, batch.is_target, self.settings.temperature)
        else:
            loss = contrastive_loss(vectors, *batch.places, self.settings.temperature)
        return weight * loss

    def _lay_out(self, part: Integers) -> _Batch:
        """The distinct words of some pairs, packed, and the place of every word that the pairs name."""
        columns = self.columns[part]
        distinct, inverse = np.unique(columns, return_inverse=True)
        device = self.encoder.device
        packed, rows = pack(self.tokens, distinct, device)
        place = np.empty(len(distinct), np.int64)
        place[np.searchsorted(distinct, rows)] = np.arange(len(rows))
        places = to_device(torch.from_numpy(place[inverse.reshape(columns.shape)]), device)
        split = 2 + self.source_negatives
        named = (places[:, 0], places[:, 1], places[:, 2:split], places[:, split:])
        is_target = to_device(torch.from_numpy(rows >= self.target_start), device)
        return _Batch(packed, named, is_target)

    def _halve(self) -> None:
        torch.cuda.empty_cache()
        if self.micro_batch == 1:
            raise BilexError(
                "the GPU has too little memory for one word pair and its negatives; use --device cpu or a "
                "smaller --lm."
            )
        self.micro_batch = -(-self.micro_batch // 2)
        sentence = (
            f"GPU memory is too small for the whole batch: going on with {self.micro_batch} pairs at a time; "
            "gradients still cover the whole batch, so results do not change."
        )
        self.report.warnings.append(sentence)
        self.progress.say(sentence)

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
        sentence = (
            f"The tuning loss is not a number in epoch {epoch + 1}: the weights after epoch {epoch} are kept."
        )
        self.report.warnings.append(sentence)
        self.progress.say(sentence)

    def _parallel(self, module: nn.Module) -> nn.Module:
        """The module behind torch's own data parallelism, where there are several processes."""
        if self.world == 1:
            return module
        whole = self.encoder.module.packed
        return DistributedDataParallel(module, find_unused_parameters=not whole)


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


def _read_later(value: torch.Tensor) -> Callable[[], float]:
    """A number that is on its way from the GPU: asking for it waits for its own step, not for later ones."""
    if value.device.type != "cuda":
        number = float(value)
        return lambda: number
    host = torch.empty((), dtype=value.dtype, pin_memory=True)
    host.copy_(value, non_blocking=True)
    arrived: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()

    def read() -> float:
        arrived.synchronize()
        return float(host)

    return read


def _unsynchronised(module: nn.Module, wanted: bool) -> contextlib.AbstractContextManager[None]:
    if wanted and isinstance(module, DistributedDataParallel):
        return module.no_sync()
    return contextlib.nullcontext()
