"""Keeping the state of a tuning run after each epoch, so that it can go on where it was cut off."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bilex.aligners.checkpoint import Checkpoint
from bilex.core.progress import SILENT, Progress

_WEIGHT, _MOMENT = "weight.", "moment."


def save_checkpoint(
    folder: Path | None,
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    stamp: dict[str, Any],
    losses: list[float],
    progress: Progress,
) -> None:
    """Write weights, the optimiser's moments and the losses so far; nothing where `folder` is None.

    A full disk does not end the tuning: the earlier state stays, which is reported.
    """
    if folder is None:
        return
    moments = {
        f"{_MOMENT}{number}.{name}": torch.as_tensor(value)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    weights = {f"{_WEIGHT}{name}": weight for name, weight in module.named_parameters()}
    _checkpoint(folder, stamp, progress).save({**weights, **moments}, losses=losses)


def load_checkpoint(
    folder: Path | None, module: nn.Module, optimiser: torch.optim.Optimizer, stamp: dict[str, Any]
) -> tuple[int, list[float]]:
    """Take up a run with the same `stamp`.

    Returns:
        How many epochs are done and their losses: 0 and none where there is nothing to take up.

    Raises:
        BilexError: The checkpoint is damaged, or the folder holds something else.
    """
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
