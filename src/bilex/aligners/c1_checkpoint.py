"""The state of a C1 fit between its rounds, in a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from bilex.aligners.base import Pairs
from bilex.errors import BilexError
from bilex.files import atomic_folder, read_json, write_json
from bilex.vectors import WordVectors

_FORMAT = 1


def fingerprint(settings: dict[str, Any], source: WordVectors, target: WordVectors, pairs: Pairs) -> str:
    """A hash of all that decides a fit, so that a checkpoint is never resumed by another problem."""
    digest = hashlib.sha256(json.dumps(settings | {"device": None}, sort_keys=True, default=str).encode())
    for vectors in (source, target):
        digest.update("\n".join(vectors.index_to_key).encode())
        digest.update(np.ascontiguousarray(vectors.vectors[:: max(1, len(vectors) // 1000)]).tobytes())
    digest.update(pairs.tobytes())
    return digest.hexdigest()


class Checkpoint:
    """Reads and writes the maps of the last finished round.

    Args:
        folder: Where; None keeps nothing.
        identity: The `fingerprint` of the problem.
    """

    def __init__(self, folder: Path | None, identity: str) -> None:
        self.folder, self.identity = folder, identity

    def load(self, device: torch.device) -> tuple[tuple[torch.Tensor, torch.Tensor] | None, int]:
        """The two maps and how many rounds are done; None and 0 if there is no checkpoint.

        Raises:
            BilexError: The checkpoint belongs to other data or settings, or cannot be read.
        """
        if self.folder is None or not (self.folder / "state.json").exists():
            return None, 0
        state = read_json(self.folder / "state.json")
        if state.get("format") != _FORMAT or state.get("identity") != self.identity:
            raise BilexError(
                f"{self.folder}: this checkpoint was made from other vectors, seeds or settings; "
                "remove it or name another folder."
            )
        try:
            tensors = load_file(self.folder / "maps.safetensors")
            maps = tuple(torch.from_numpy(tensors[name]).to(device) for name in ("source", "target"))
        except Exception as error:
            raise BilexError(
                f"{self.folder}: the checkpoint is damaged; remove it and start anew."
            ) from error
        return (maps[0], maps[1]), int(state["iterations_done"])

    def save(self, maps: tuple[torch.Tensor, torch.Tensor], done: int) -> None:
        """Keep the maps after `done` rounds."""
        if self.folder is None:
            return
        with atomic_folder(self.folder) as folder:
            tensors = {
                name: np.ascontiguousarray(m.cpu().numpy())
                for name, m in zip(("source", "target"), maps, strict=True)
            }
            save_file(tensors, folder / "maps.safetensors")
            write_json(
                folder / "state.json", {"format": _FORMAT, "identity": self.identity, "iterations_done": done}
            )
