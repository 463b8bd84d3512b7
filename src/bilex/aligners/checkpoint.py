"""The state of a fit between its rounds, in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from bilex.aligners.base import Pairs
from bilex.errors import BilexError
from bilex.files import atomic_folder, read_json, write_json
from bilex.vectors import WordVectors

_FORMAT = 2
_TENSORS = "arrays.safetensors"


def fingerprint(settings: dict[str, Any], source: WordVectors, target: WordVectors, pairs: Pairs) -> str:
    """A hash of all that decides a fit, so that a checkpoint is never resumed by another problem."""
    digest = hashlib.sha256(json.dumps(settings | {"device": None}, sort_keys=True, default=str).encode())
    for vectors in (source, target):
        digest.update("\n".join(vectors.index_to_key).encode())
        digest.update(np.ascontiguousarray(vectors.vectors[:: max(1, len(vectors) // 1000)]).tobytes())
    digest.update(pairs.tobytes())
    return digest.hexdigest()


class Kept(NamedTuple):
    """What a checkpoint holds: tensors by name, on the CPU, and numbers and words beside them."""

    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]


class Checkpoint:
    """Keeps the state of the last finished round.

    Args:
        folder: Where; None keeps nothing.
        identity: The `fingerprint` of the problem.
    """

    def __init__(self, folder: Path | None, identity: str) -> None:
        self.folder, self.identity = folder, identity

    @classmethod
    def of_fit(
        cls,
        folder: Path | None,
        settings: dict[str, Any],
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
    ) -> Checkpoint:
        """The checkpoint of a fit; the fingerprint is taken only where something is kept."""
        return cls(folder, fingerprint(settings, source, target, pairs) if folder is not None else "")

    def part(self, name: str) -> Checkpoint:
        """A checkpoint of its own for a part of the work, inside this one."""
        return Checkpoint(None if self.folder is None else self.folder / name, self.identity)

    def load(self) -> Kept | None:
        """What was kept; None if there is nothing.

        Raises:
            BilexError: The checkpoint belongs to other data or settings, or cannot be read.
        """
        if self.folder is None or not (self.folder / "state.json").exists():
            return None
        state = read_json(self.folder / "state.json")
        if state.get("format") != _FORMAT or state.get("identity") != self.identity:
            raise BilexError(
                f"{self.folder}: this checkpoint was made from other vectors, seeds or settings; "
                "remove it or name another folder."
            )
        try:
            return Kept(load_file(self.folder / _TENSORS), state["state"])
        except Exception as error:
            raise BilexError(
                f"{self.folder}: the checkpoint is damaged; remove it and start anew."
            ) from error

    def save(self, tensors: Mapping[str, torch.Tensor], **state: Any) -> None:
        """Put a new state in the place of what was kept; tensors may be on any device."""
        if self.folder is None:
            return
        with atomic_folder(self.folder) as folder:
            kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(kept, folder / _TENSORS)
            write_json(folder / "state.json", {"format": _FORMAT, "identity": self.identity, "state": state})
