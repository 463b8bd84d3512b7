"""Keeping the state of a tuning run after each epoch, so that it can go on where it was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from bilex.files import read_json, write_json
from bilex.sealed import check_seal, sealed_folder

_KIND = "bilex-tuning"
_STATE = "state.json"


def save_checkpoint(
    folder: Path | None,
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    stamp: dict[str, Any],
    losses: list[float],
) -> None:
    """Write weights, the optimiser's moments and the losses so far; nothing where `folder` is None."""
    if folder is None:
        return
    moments = {
        f"{number}.{name}": torch.as_tensor(value).contiguous()
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    weights = {name: p.detach().contiguous() for name, p in module.named_parameters()}
    with sealed_folder(folder, _KIND) as temporary:
        save_file(weights, temporary / "weights.safetensors")
        save_file(moments, temporary / "optimiser.safetensors")
        write_json(temporary / _STATE, {"stamp": stamp, "losses": losses})


def load_checkpoint(
    folder: Path | None, module: nn.Module, optimiser: torch.optim.Optimizer, stamp: dict[str, Any]
) -> tuple[int, list[float]]:
    """Take up a run with the same `stamp`.

    Returns:
        How many epochs are done and their losses: 0 and none where there is nothing to take up.

    Raises:
        BilexError: The checkpoint is damaged, or the folder holds something else.
    """
    if folder is None or not check_seal(folder, _KIND):
        return 0, []
    state = read_json(folder / _STATE)
    if state["stamp"] != stamp:
        return 0, []
    weights = load_file(folder / "weights.safetensors")
    own = dict(module.named_parameters())
    if {n: w.shape for n, w in weights.items()} != {n: p.shape for n, p in own.items()}:
        return 0, []
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])
    current = optimiser.state_dict()
    current["state"] = {}
    for name, value in load_file(folder / "optimiser.safetensors").items():
        number, part = name.split(".", 1)
        current["state"].setdefault(int(number), {})[part] = value
    optimiser.load_state_dict(current)
    return len(state["losses"]), list(state["losses"])
