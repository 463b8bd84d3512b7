from __future__ import annotations

import pytest
import torch

from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT


def test_devices_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(BilexError, match="no GPU here; use --device cpu"):
        resolve_device("cuda")
    with pytest.raises(BilexError, match="device 'tpu5000' is not known; use auto, cpu or cuda"):
        resolve_device("tpu5000")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda")


def test_a_torch_device_stays_what_it_is() -> None:
    assert resolve_device(torch.device("meta")) == torch.device("meta")


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with SILENT.task("working", 3) as task:
        task.advance(2, loss=0.5)
        task.advance()
    SILENT.log("something")
    assert capsys.readouterr() == ("", "")
