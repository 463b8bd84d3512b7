"""Contrastive tuning of an encoder on word pairs (stage C2)."""

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
from bilex.core.cuda_graphs import ReplayedPass, own_stream
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.encoders.batches import Batch, Batches
from bilex.encoders.model import WordEncoder, autocast, dtype_in_force
from bilex.encoders.packing import Integers, TokenTable
from bilex.encoders.pairs import TrainingPairs
from bilex.encoders.presets import TuningSettings

_WEIGHT, _MOMENT = "weight.", "moment."


@dataclass
class TuningReport:
    """What happened: the mean loss of each epoch, pairs used, and sentences about anything unusual.

    `replayed` counts the updates whose kernels a GPU replayed as a whole (`bilex.core.cuda_graphs`).
    """

    losses: list[float] = field(default_factory=list)
    pairs: int = 0
    dropped: int = 0
    micro_batch: int = 0
    replayed: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Pace:
    """Seconds that all updates take, and one token, forward and backward; from one timed update."""

    seconds: float
    per_token: float


class Tuner:
    """Tunes one encoder; `run` does the whole of it.

    Args:
        encoder: The encoder, changed in place.
        source_tokens: The tokens of the source vocabulary.
        target_tokens: The tokens of the target vocabulary.
        pairs: Positives and negatives.
        settings: How to tune.
        progress: Receives how far the work is.
        checkpoint: A folder where the state is kept after each epoch; a run that was cut off goes on
            from there.
        on_pace: Receives once how long it will take, after the second update; only on a CPU is that known.
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
        on_pace: Callable[[Pace], None] | None = None,
    ) -> None:
        self.encoder = encoder
        self.settings = settings
        self.progress = progress
        self.checkpoint = checkpoint
        self.on_pace = on_pace
        self.batches = Batches(source_tokens, target_tokens, pairs)
        self.report = TuningReport(pairs=len(self.batches), dropped=self.batches.dropped)
        self.micro_batch = settings.batch_size
        self.updates = 0
        self.replay: ReplayedPass[Batch] | None = None
        self.dtype = dtype_in_force(encoder.device, settings.precision, "tuning")

    def run(self) -> TuningReport:
        """Tune; afterwards the encoder holds the last good weights and is in evaluation mode."""
        module = self.encoder.module
        batches = self.batches
        batches.tokens, restore = _trimmed_embeddings(module.encoder, batches.tokens, batches.columns)
        try:
            with own_stream(self.encoder.device), _dropout(module.encoder, self.settings.dropout):
                self._epochs(module)
        finally:
            self._stop_replaying()
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
        first, self.report.losses = _load_checkpoint(self.checkpoint, module, optimiser, stamp)
        if self._can_replay():
            self._start_replaying(module)
        steps_per_epoch = -(-len(self.batches) // settings.batch_size)
        with self.progress.task("Tuning the language model", settings.epochs * steps_per_epoch) as task:
            task.advance(first * steps_per_epoch)
            self.updates = first * steps_per_epoch
            for epoch in range(first, settings.epochs):
                good = [p.detach().clone() for p in module.parameters()]
                loss = self._epoch(module, optimiser, epoch, task)
                if not np.isfinite(loss):
                    self._go_back(module, good, epoch)
                    self.updates = epoch * steps_per_epoch
                    return
                self.report.losses.append(loss)
                _save_checkpoint(self.checkpoint, module, optimiser, stamp, self.report.losses, self.progress)

    def _stamp(self) -> dict[str, Any]:
        """What a checkpoint must agree with to be taken up: settings, pairs with their tokens, encoder."""
        content = hashlib.sha256(self.batches.columns.tobytes())
        content.update(self.batches.tokens.ids.tobytes())
        return {
            "settings": asdict(self.settings),
            "pairs": content.hexdigest(),
            "encoder": self.encoder.fingerprint(),
        }

    def _epoch(self, module: nn.Module, optimiser: torch.optim.Optimizer, epoch: int, task: Task) -> float:
        """One pass over all pairs; returns the mean loss, NaN as soon as a batch's loss is not finite."""
        settings = self.settings
        seed = settings.seed + epoch
        order = np.random.default_rng(seed).permutation(len(self.batches))
        torch.manual_seed(seed * 1000)
        module.train()
        losses: list[float] = []
        waiting: Callable[[], float] | None = None
        for start in range(0, len(order), settings.batch_size):
            chosen = order[start : start + settings.batch_size]
            began = time.monotonic()
            loss = _read_later(self._update(module, optimiser, chosen))
            self._report_pace(chosen, time.monotonic() - began)
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

    def _report_pace(self, chosen: Integers, seconds: float) -> None:
        """Report how long all updates take, if this is the second, or the only one."""
        updates = self.settings.epochs * -(-len(self.batches) // self.settings.batch_size)
        if self.on_pace is None or self.updates < min(2, updates):
            return
        tokens = self.batches.tokens.lengths[np.unique(self.batches.columns[chosen])].sum()
        self.on_pace(Pace(seconds * updates, seconds / int(tokens)))
        self.on_pace = None

    def _update(self, module: nn.Module, optimiser: torch.optim.Optimizer, chosen: Integers) -> torch.Tensor:
        """One optimiser step; where memory runs out, the batch is cut in smaller parts and done again."""
        while True:
            optimiser.zero_grad(set_to_none=self.replay is None)
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
        if self.replay is not None and len(chosen) == self.settings.batch_size:
            return self.replay(self.batches.lay_out(chosen, device, few_shapes=True))
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

    def _can_replay(self) -> bool:
        """Whether steps can be recorded: on one GPU, with an encoder that takes all words at once."""
        return self.encoder.device.type == "cuda" and self.encoder.module.packed

    def _start_replaying(self, module: nn.Module) -> None:
        """From now on whole batches are recorded and replayed; gradients stay at one place in memory."""
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        pairs = self.settings.batch_size
        self.replay = ReplayedPass(lambda batch: self._pass(module, batch, pairs), self._warn)

    def _stop_replaying(self) -> None:
        if self.replay is not None:
            self.report.replayed += self.replay.replayed
            self.replay = None

    def _halve(self) -> None:
        """Go on with half as many pairs at a time; what recordings hold is given back."""
        self._stop_replaying()
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


def _save_checkpoint(
    folder: Path | None,
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    stamp: dict[str, Any],
    losses: list[float],
    progress: Progress,
) -> None:
    """Write weights, the optimiser's moments and the losses so far; a full disk does not end the tuning."""
    if folder is None:
        return
    moments = {
        f"{_MOMENT}{number}.{name}": torch.as_tensor(value)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    weights = {f"{_WEIGHT}{name}": weight for name, weight in module.named_parameters()}
    _checkpoint(folder, stamp, progress).save({**weights, **moments}, losses=losses)


def _load_checkpoint(
    folder: Path | None, module: nn.Module, optimiser: torch.optim.Optimizer, stamp: dict[str, Any]
) -> tuple[int, list[float]]:
    """Take up a run with the same `stamp`: how many epochs are done, and their losses."""
    kept = _checkpoint(folder, stamp).load(of_another="ignore") if folder is not None else None
    if kept is None:
        return 0, []
    weights, moments = (
        {name.removeprefix(prefix): t for name, t in kept.tensors.items() if name.startswith(prefix)}
        for prefix in (_WEIGHT, _MOMENT)
    )
    own = dict(module.named_parameters())
    if {n: w.shape for n, w in weights.items()} != {n: p.shape for n, p in own.items()}:
        return 0, []
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])
    current = optimiser.state_dict()
    current["state"] = {}
    for name, value in moments.items():
        number, part = name.split(".", 1)
        current["state"].setdefault(int(number), {})[part] = value
    optimiser.load_state_dict(current)
    losses = list(kept.state["losses"])
    return len(losses), losses


def _checkpoint(folder: Path | None, stamp: dict[str, Any], progress: Progress = SILENT) -> Checkpoint:
    identity = hashlib.sha256(json.dumps(stamp, sort_keys=True, default=str).encode()).hexdigest()
    return Checkpoint(folder, identity, progress)


def _trimmed_embeddings(
    encoder: Any, tokens: TokenTable, rows: Integers
) -> tuple[TokenTable, Callable[[float, int], None]]:
    """Replace the encoder's token embeddings by those that the words `rows` use.

    Returns:
        The tokens with new numbers (only those of words in `rows` mean anything), and a function of
        (decay per update, updates) that puts the whole embedding back.
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
