"""The vocabularies in the space of a fitted candidate, mapped where the candidate was fitted."""

from __future__ import annotations

import torch

from bilex.aligners.base import Aligner
from bilex.aligners.maps import Map
from bilex.aligners.unit_rows import UnitRows
from bilex.device import resolve_device
from bilex.space import Space
from bilex.vectors import WordVectors

_ON_DEVICE = ["unit", "linear", "unit"]


def candidate_space(aligner: Aligner, source: WordVectors, target: WordVectors) -> Space:
    """The space of a candidate.

    A trial asks for several of them and keeps none. On a GPU one matrix is applied there, which takes a
    fraction of the time that the CPU beside it takes.

    Args:
        aligner: A fitted candidate.
        source: Source vectors.
        target: Target vectors.
    """
    device = resolve_device(aligner.device)
    if device.type == "cpu":
        return Space.from_aligner(aligner, source, target)
    return space_on(device, aligner, source, target)


def space_on(device: torch.device, aligner: Aligner, source: WordVectors, target: WordVectors) -> Space:
    """The same, mapped by torch on a device, where the maps are a matrix between unit rows."""
    maps = (aligner.source_map_, aligner.target_map_)
    if aligner.metric != "cosine" or any([step.kind for step in map_.steps] != _ON_DEVICE for map_ in maps):
        return Space.from_aligner(aligner, source, target)
    mapped_source, mapped_target = (
        _mapped(words, map_, device) for words, map_ in zip((source, target), maps, strict=True)
    )
    return Space(mapped_source, mapped_target, "cosine", aligner.device)


def _mapped(words: WordVectors, map_: Map, device: torch.device) -> WordVectors:
    rows = UnitRows(words, device).mapped(torch.from_numpy(map_.matrix).to(device))
    return WordVectors(words.index_to_key, rows.cpu().numpy(), ("unit",))
