"""A GPU's recordings, imitated where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bilex.core import cuda_graphs as replay


def imitate_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a recording be the pass itself, run again on the memory that a recording reads."""

    def record(work: Callable[[], torch.Tensor], *_: object) -> tuple[Callable[[], None], torch.Tensor]:
        result = torch.full((), torch.nan)
        return lambda: result.copy_(work()), result

    monkeypatch.setattr(replay, "new_memory", object)
    monkeypatch.setattr(replay, "record", record)
