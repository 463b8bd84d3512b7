"""Choosing where the numbers are crunched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.errors import BilexError
from bilex.core.forking import survive_forks

survive_forks()

if TYPE_CHECKING:
    import torch


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Turn a user's word into a torch device.

    Args:
        device: "auto" (a GPU if there is one), "cpu", "cuda", or any torch device.

    Raises:
        BilexError: The device does not exist here.
    """
    import torch

    if isinstance(device, torch.device):
        return device
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise BilexError(f"device '{device}' is not known; use auto, cpu or cuda.") from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise BilexError(f"device '{device}' was asked for but torch sees no GPU here; use --device cpu.")
    return resolved
