"""The state of a fit between its rounds, in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

import bilex
from bilex.aligners.base import Pairs
from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.manifest import manifest_folder, optional_save, verify_manifest
from bilex.core.progress import SILENT, Progress
from bilex.vectors import WordVectors

_KIND = "bilex-checkpoint-3"
_TENSORS, _STATE = "arrays.safetensors", "state.json"
_BLOCK_ROWS = 8192


def fingerprint(settings: dict[str, Any], source: WordVectors, target: WordVectors, pairs: Pairs) -> str:
    """A hash of all that decides a fit, so that a checkpoint is never resumed by another problem.

    Every word, every number of the vectors, every pair and every setting but the device is in it, and the
    version of bilex.
    """
    decided_by = settings | {"device": None, "bilex": bilex.__version__}
    digest = hashlib.sha256(json.dumps(decided_by, sort_keys=True, default=str).encode())
    for vectors in (source, target):
        digest.update(repr((vectors.vectors.shape, str(vectors.vectors.dtype))).encode())
        digest.update(json.dumps(vectors.index_to_key).encode())
        for start in range(0, len(vectors), _BLOCK_ROWS):
            digest.update(np.ascontiguousarray(vectors.vectors[start : start + _BLOCK_ROWS]).data)
    digest.update(np.ascontiguousarray(pairs).data)
    return digest.hexdigest()


class Kept(NamedTuple):
    """What a checkpoint holds: tensors by name, on the CPU, and numbers and words beside them."""

    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """Keeps the state of the last finished round.

    Args:
        folder: Where; None keeps nothing.
        identity: The `fingerprint` of the problem.
        progress: Where it is reported that a state could not be written.
    """

    folder: Path | None
    identity: str
    progress: Progress = SILENT

    @classmethod
    def of_fit(
        cls,
        folder: Path | None,
        settings: dict[str, Any],
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
    ) -> Checkpoint:
        """The checkpoint of a fit; the fingerprint is taken only where something is kept."""
        identity = fingerprint(settings, source, target, pairs) if folder is not None else ""
        return cls(folder, identity, progress)

    def part(self, name: str) -> Checkpoint:
        """A checkpoint for a part of the work, in a folder inside this one."""
        return replace(self, folder=self.folder and self.folder / name)

    def load(self, of_another: Literal["refuse", "ignore"] = "refuse") -> Kept | None:
        """What was kept; None if there is nothing."""
        if self.folder is None or not verify_manifest(self.folder, _KIND):
            return None
        state = read_json(self.folder / _STATE)
        if state["identity"] != self.identity:
            if of_another == "ignore":
                return None
            raise BilexError(
                f"{self.folder}: this checkpoint was made from other vectors, seeds or settings, or by "
                "another version of bilex; remove it or name another folder."
            )
        from safetensors.torch import load_file

        return Kept(load_file(self.folder / _TENSORS), state["state"])

    def save(self, tensors: Mapping[str, torch.Tensor], **state: Any) -> None:
        """Replace the stored state; tensors may be on any device.

        A full disk does not end the fit: the earlier state stays, which is reported.
        """
        if self.folder is None:
            return
        from safetensors.torch import save_file

        with optional_save(self.folder, self.progress), manifest_folder(self.folder, _KIND) as folder:
            kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(kept, folder / _TENSORS)
            write_json(folder / _STATE, {"identity": self.identity, "state": state})
