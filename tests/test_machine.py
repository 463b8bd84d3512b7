"""Machine facts, on this system and as other systems would report them; devices; silent progress."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bilex import BilexError
from bilex.core import machine
from bilex.core.device import resolve_device
from bilex.core.progress import SILENT

X86 = ["sse4.2", "fma", "avx", "f16c", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"]
X86 += ["avx512bf16", "amx-tile", "popcnt"]
ARM = ["neon", "fullfp16", "dotprod", "sve", "i8mm", "bf16", "crc"]


@pytest.fixture(autouse=True)
def nothing_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        monkeypatch.delenv(variable, raising=False)


def pretend(monkeypatch: pytest.MonkeyPatch, features: list[str]) -> None:
    listed = {**dict.fromkeys(features, True), "avx10.1": False}
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: listed)


def test_this_machine() -> None:
    here = machine.processor()
    assert here.name
    assert 1 <= here.threads <= (os.cpu_count() or 1)
    assert 0 < machine.available_memory() <= machine.total_memory()
    before = machine.peak_memory()
    held = bytearray(80 << 20)
    held[::4096] = b"1" * len(held[::4096])
    after = machine.peak_memory()
    assert before is not None
    assert after is not None
    assert 60 << 20 < after <= machine.total_memory()
    assert after >= before


def test_no_torch_for_machine_facts() -> None:
    code = (
        "import sys, bilex.core.machine as m; m.processor(); m.available_memory(); "
        "print('torch' in sys.modules)"
    )
    caught = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert caught.stdout.strip() == "False"


def test_instructions_of_x86_have_linux_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, X86)
    assert machine.processor().features == {
        *("sse4_2", "fma", "avx", "f16c", "avx2"),
        *("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "amx_tile"),
    }
    pretend(monkeypatch, ARM)
    assert machine.processor().features == {"neon", "fullfp16", "dotprod", "sve", "i8mm", "bf16"}
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some Processor\n\nmodel name\t: other\n")
    monkeypatch.setattr(machine, "_CPU_INFO", tmp_path / "cpuinfo")
    assert machine.processor().name == "Some Processor"


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="compares LLVM's list with Linux's")
def test_llvm_finds_what_the_system_lists() -> None:
    found = machine.processor().features
    if not found:
        pytest.skip("LLVM does not know this processor")
    if platform.machine() == "x86_64":
        assert found <= set(Path("/proc/cpuinfo").read_text().split())


@pytest.mark.parametrize(
    ("variable", "value", "left"),
    [
        ("ATEN_CPU_CAPABILITY", "avx2", {"sse4_2", "avx", "avx2", "fma", "f16c"}),
        ("ATEN_CPU_CAPABILITY", "default", {"sse4_2"}),
        ("ONEDNN_MAX_CPU_ISA", "AVX2", {"sse4_2", "avx", "avx2", "fma", "f16c"}),
        ("ONEDNN_MAX_CPU_ISA", "SSE41", {"sse4_2"}),
    ],
)
def test_an_imitated_processor_has_fewer_instructions(
    variable: str, value: str, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, X86)
    assert "avx512_bf16" in machine.processor().features
    monkeypatch.setenv(variable, value)
    assert machine.processor().features == left


def test_onednn_without_bfloat16_keeps_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, X86)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")
    found = machine.processor().features
    assert "avx512_vnni" in found
    assert not found & {"avx512_bf16", "amx_tile"}


def test_arm_is_not_held_back_by_x86_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, ARM)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert "bf16" in machine.processor().features
    assert machine.processor().name


def test_a_container_may_use_less_than_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text(f"{200 << 20}\n")
    (tmp_path / "memory.current").write_text(f"{150 << 20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {30 << 20}\n")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine.total_memory() == 200 << 20
    assert machine.available_memory() == 80 << 20
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.total_memory() > 200 << 20


def test_the_cache_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "with space" / "käyttäjä"
    monkeypatch.setenv("BILEX_CACHE", str(folder))
    assert machine.cache_folder() == folder
    assert folder.is_dir()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("variable", ["BILEX_CACHE", "HOME"])
def test_without_a_folder_to_write_a_temporary_one_is_taken_and_said_once(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    for name in ("BILEX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with caplog.at_level(logging.WARNING, "bilex"):
        folder = machine.cache_folder()
        assert machine.cache_folder() == folder
    assert folder.is_relative_to(tmp_path / "temporary")
    assert machine.can_write(folder)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert str(tmp_path / "file") in said[0]
    assert "set BILEX_CACHE" in said[0]


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
