"""Long work on machines that fail: a full disk, SIGTERM, a GPU that is too small or cannot record."""

from __future__ import annotations

import errno
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bilex import C1, BilexError
from bilex.aligners.checkpoint import Checkpoint
from bilex.cli import run
from bilex.core import manifest
from bilex.core.cuda_graphs import ReplayedStep
from bilex.core.device import enough_memory, in_blocks, with_less_memory
from bilex.core.errors import BilexWarning
from bilex.core.progress import SILENT, Task
from bilex.search.gpu import GpuSearch, match
from planted import planted


class Heard:
    """A Progress that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        with SILENT.task(name, total) as task:
            yield task

    def log(self, message: str) -> None:
        self.said.append(message)


def small_c1(iterations: int) -> C1:
    limits = {"updates": 2, "warm_up": 0, "frequent": 100, "augment": 50}
    return C1(preset="paper", device="cpu", iterations=iterations, **limits)


def matrices(aligner: C1) -> list[bytes]:
    return [aligner.source_map_.matrix.tobytes(), aligner.target_map_.matrix.tobytes()]


def test_a_disk_that_fills_up_ends_no_fit_and_costs_no_earlier_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = planted(300, 12), tmp_path / "state"
    data = world.source, world.target, world.pairs(0, 60)
    undisturbed = small_c1(3).fit(*data)
    real, writes = manifest.sha256, []

    def full_from_the_second_state_on(path: Path) -> str:
        writes.append(path)
        if len(writes) > 2:  # two files a state
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path)

    heard = Heard()
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "sha256", full_from_the_second_state_on)
        fitted = small_c1(3).fit(*data, progress=heard, checkpoint=state)
    assert matrices(fitted) == matrices(undisturbed)
    lost = [sentence for sentence in heard.said if "is not saved" in sentence]
    assert len(lost) == 2 and all(f"stays in {state}" in one and "the disk is full" in one for one in lost)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    heard.said.clear()
    resumed = small_c1(3).fit(*data, progress=heard, checkpoint=state)
    assert f"{state}: going on after round 1." in heard.said
    assert matrices(resumed) == matrices(undisturbed)


@pytest.fixture
def own_handler() -> Iterator[None]:
    """What SIGTERM does to the tests is as it was before."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def saved_and_terminated(self: Checkpoint, *tensors: Any, real: Any = Checkpoint.save, **state: Any) -> None:
    """Keep a state, and be sent SIGTERM after that of a round."""
    real(self, *tensors, **state)
    if self.folder is not None and self.folder.name == "aligner":
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.usefixtures("own_handler")
def test_sigterm_ends_a_fit_as_ctrl_c_does_and_it_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world = planted(300, 12)
    world.source.save("a.vec")
    world.target.save("b.vec")
    Path("seeds.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in world.pairs(0, 60).pairs))
    line = ["align", "a.vec", "b.vec", "--seeds", "seeds.tsv", "-o", "model", "--no-calibrate"]
    line += ["--device", "cpu", "--checkpoint", "state"]
    line += ["--set", "iterations=2", "--set", "updates=2", "--set", "warm_up=0"]
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", saved_and_terminated)
        assert run(line) == 128 + signal.SIGTERM
    said = capsys.readouterr().err
    assert "What was finished is in state; run the same command to continue from it." in said
    assert said.splitlines()[-1] == "bilex: terminated; no output was left half-written."
    assert sorted(path.name for path in Path().iterdir()) == ["a.vec", "b.vec", "seeds.tsv", "state"]
    assert run(line) == 0 and "going on after round 1" in capsys.readouterr().err


def out_of_memory_above(size: int, calls: list[int]) -> Callable[[slice], None]:
    """Work on blocks of rows for which a GPU has memory up to a size."""

    def work(block: slice) -> None:
        if block.stop - block.start > size:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        calls.extend(range(block.start, block.stop))

    return work


def test_blocks_are_halved_until_they_fit_and_every_row_is_done_once() -> None:
    done: list[int] = []
    with pytest.warns(BilexWarning) as said:
        in_blocks(100, 64, out_of_memory_above(20, done))
    assert done == list(range(100))
    assert [str(one.message) for one in said] == [
        "GPU memory is too small for a block of 64 rows: continuing with 32 at a time.",
        "GPU memory is too small for a block of 32 rows: continuing with 16 at a time.",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_blocks(0, 0, out_of_memory_above(0, done))


def test_a_gpu_too_small_for_anything_is_one_sentence() -> None:
    with pytest.warns(BilexWarning), pytest.raises(BilexError, match=r"memory is too small .* --device cpu"):
        in_blocks(3, 2, out_of_memory_above(0, []))

    def never(size: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.warns(BilexWarning), pytest.raises(BilexError, match="memory is too small"):
        with_less_memory(100, 30, never)
    with pytest.raises(BilexError, match="memory is too small"), enough_memory():
        raise torch.OutOfMemoryError("CUDA out of memory.")
    with pytest.raises(BilexError, match="not enough memory for this"), enough_memory():
        torch.empty(2**50)
    with pytest.raises(BilexError, match="not enough memory for this"), enough_memory():
        np.empty(2**50)
    with pytest.raises(RuntimeError, match="something else"), enough_memory():
        raise RuntimeError("something else")


def test_a_search_that_runs_out_of_memory_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU's search runs on the CPU here, and is refused products of more than 8 queries."""
    random = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(50, 8, generator=random), torch.randn(70, 8, generator=random)
    scores, rows = GpuSearch(keys, None).top_k(queries, 3, 1 << 30)
    from bilex.search import gpu

    real = gpu.best_proposals

    def refused(some: torch.Tensor, *rest: object) -> tuple[torch.Tensor, torch.Tensor]:
        if len(some) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(some, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(gpu, "best_proposals", refused)
    with pytest.warns(BilexWarning) as said:
        again = GpuSearch(keys, None).top_k(queries, 3, 1 << 30)
    assert "continuing with 7 at a time" in str(said[-1].message)
    assert torch.equal(again[0], scores) and torch.equal(again[1], rows)


def test_stochastic_matching_goes_on_with_a_smaller_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(900, 8, generator=random), torch.randn(800, 8, generator=random)
    whole = match(x, y, 3, 1.0, 0, 1 << 30)
    real = torch.empty

    def refused(*shape: int, **rest: object) -> torch.Tensor:
        if len(shape) == 2 and shape[0] * shape[1] > 300 * 800:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(*shape, **rest)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(torch, "empty", refused)
    with pytest.warns(BilexWarning):
        parts = with_less_memory(1 << 30, 4 * 256 * len(y), lambda memory: match(x, y, 3, 1.0, 0, memory))
    assert torch.equal(whole[0], parts[0]) and torch.equal(whole[1], parts[1])


def test_warnings_of_ours_are_sentences_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bilex.cli import info

    def warned(**_: object) -> None:
        warnings.warn("the block was too large.", BilexWarning, stacklevel=1)

    monkeypatch.setattr(info.methods, "callback", warned)
    assert run(["methods"]) == 0
    assert capsys.readouterr().err == "bilex: warning: the block was too large.\n"


class _FakeGenerator:
    """A GPU's random numbers: a recording that broke off makes them wait, until their state is replaced."""

    def __init__(self) -> None:
        self.waiting = False

    def clone_state(self) -> str:
        return "fresh"

    def graphsafe_set_state(self, state: str) -> None:
        self.waiting = state != "fresh"


def test_a_recording_that_fails_is_reported_and_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, said = _FakeGenerator(), []

    def broken(*_: object, **__: object) -> None:
        generator.waiting = True
        raise RuntimeError("operation not permitted when stream is capturing\nmore lines")

    def work(batch: torch.Tensor) -> torch.Tensor:
        if generator.waiting:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
        return batch.sum()

    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", broken)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "default_generators", [generator])
    step = ReplayedStep(work, said.append)
    found = [float(step(torch.full((2,), float(number)))) for number in range(4)]
    assert found == [0, 2, 4, 6]
    assert len(said) == 1 and said[0].startswith("The GPU could not record a step (operation not permitted")
