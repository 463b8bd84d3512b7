"""LNMap's parts against computations of their own: its objective, its steps, its replayed training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bilex import replay
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.lnmap import LNMap, round_trip_error
from bilex.aligners.small_networks import (
    Part,
    StoppedError,
    Training,
    half_autoencoder,
    linear,
    side_by_side,
)
from bilex.dropout import Dropout
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.progress import SILENT, Silent, Task
from bilex.vectors import WordVectors
from imitated import imitate_recordings

SMALL: dict[str, Any] = {
    "hidden": 16,
    "latent": 12,
    "autoencoder_epochs": 1,
    "autoencoder_samples": 300,
    "rounds": 0,
    "device": "cpu",
}


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _problem() -> tuple[WordVectors, WordVectors, Lexicon]:
    random = np.random.default_rng(8)
    source, target = (
        WordVectors([f"{side}{i}" for i in range(200)], random.normal(size=(200, 8)).astype(np.float32))
        for side in "st"
    )
    return source, target, Lexicon([(f"s{i}", f"t{i}") for i in range(60)], "planted")


def _mapper(seed: int) -> nn.Sequential:
    random = _generator(seed)
    return nn.Sequential(linear(5, 7, random), nn.Tanh(), linear(7, 5, random)).double()


def _applied(mapper: nn.Sequential, rows: np.ndarray) -> np.ndarray:
    first, _, last = mapper
    weights = [p.detach().numpy() for p in (first.weight, first.bias, last.weight, last.bias)]
    return np.tanh(rows @ weights[0].T + weights[1]) @ weights[2].T + weights[3]


def test_round_trip_error_and_gradient_equal_the_definition() -> None:
    """Three sums of squares by numpy; the gradient by differences of them."""
    random = np.random.default_rng(0)
    there, back = _mapper(1), _mapper(2)
    decoder = nn.Linear(5, 6).double()
    start, goal, own = random.normal(size=(9, 5)), random.normal(size=(9, 5)), random.normal(size=(9, 6))

    def by_definition() -> float:
        arrived = _applied(there, start)
        returned = _applied(back, arrived)
        decoded = returned @ decoder.weight.detach().numpy().T + decoder.bias.detach().numpy()
        return float(
            sum(((a - b) ** 2).sum() for a, b in ((arrived, goal), (returned, start), (decoded, own)))
        )

    error = round_trip_error(there, back, decoder, *map(torch.from_numpy, (start, goal, own)))
    error.backward()
    assert float(error.detach()) == pytest.approx(by_definition(), rel=1e-12)
    for mapper in (there, back):
        for parameter in mapper.parameters():
            flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
            for place in (0, len(flat) // 2, len(flat) - 1):
                known, sides = float(flat[place]), []
                for step in (1e-6, -1e-6):
                    flat[place] = known + step
                    sides.append(by_definition())
                flat[place] = known
                assert float(gradient[place]) == pytest.approx(
                    (sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6
                )


@pytest.mark.parametrize("pairs", [40, 160])
def test_steps_on_the_seeds_do_not_depend_on_their_number(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    whole = Training.epoch

    def counted(self: Training, rows: torch.Tensor) -> float:
        if rows.ndim == 2:
            steps.append(len(torch.split(rows, self._batch)))
        return whole(self, rows)

    monkeypatch.setattr(Training, "epoch", counted)
    source, target, _ = _problem()
    seeds = Lexicon([(f"s{i}", f"t{i}") for i in range(pairs)], "planted")
    LNMap(mapper_steps=50, mapper_batch=20, **SMALL).fit(source, target, seeds)
    forward_and_backward = 2
    assert sum(steps) == pytest.approx(forward_and_backward * 50, abs=forward_and_backward * pairs / 20)


def test_a_mapper_that_diverges_is_reported() -> None:
    source, target, seeds = _problem()
    with pytest.raises(BilexError, match="diverged at mapper_rate 1000000"):
        LNMap(mapper_rate=1e6, mapper_steps=200, **SMALL).fit(source, target, seeds)


class _CtrlC(Silent):
    """Presses Ctrl-C when the bar of a name has moved so often."""

    def __init__(self, name: str, moves: int) -> None:
        self.name, self.moves = name, moves

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        listener = self

        class Bar:
            def advance(self, steps: float = 1, **figures: float | int | str) -> None:
                listener.moves -= name == listener.name
                if listener.moves < 0:
                    raise KeyboardInterrupt

        yield Bar()


@pytest.mark.parametrize("stop", [("source autoencoder", 2), ("forward mapper", 9), ("backward mapper", 5)])
def test_a_fit_that_was_cut_off_goes_on_to_the_same_maps(stop: tuple[str, int], tmp_path: Path) -> None:
    source, target, seeds = _problem()
    settings = SMALL | {"autoencoder_epochs": 3, "mapper_steps": 12, "mapper_batch": 20, "rounds": 3}
    whole = LNMap(**settings).fit(source, target, seeds)
    with pytest.raises(KeyboardInterrupt):
        LNMap(**settings).fit(source, target, seeds, checkpoint=tmp_path / "kept", progress=_CtrlC(*stop))
    again = LNMap(**settings).fit(source, target, seeds, checkpoint=tmp_path / "kept")
    finished = LNMap(**settings).fit(
        source, target, seeds, checkpoint=tmp_path / "kept", progress=_CtrlC("forward mapper", 1)
    )
    for other in (again, finished):
        assert other.report_ == whole.report_
        for side, vectors in (("source_map_", source), ("target_map_", target)):
            mapped = [getattr(fit, side)(vectors.vectors) for fit in (whole, other)]
            np.testing.assert_array_equal(*mapped)


def test_what_runs_beside_a_failure_is_stopped() -> None:
    """The other thread would count for a minute if it were not stopped."""

    def fail(stop: Event) -> int:
        raise BilexError("broken")

    def wait(stop: Event) -> int:
        assert stop.wait(60)
        raise StoppedError

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(BilexError, match="broken"):
            side_by_side(torch.device("cpu"), fail, wait)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_replayed_training_equals_ordinary_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording needs a GPU; here it is imitated by the step itself on the memory that it reads."""
    imitate_recordings(monkeypatch)
    rows = torch.randn(50, 6, generator=_generator(5))

    def trained(replayed: bool) -> tuple[float, torch.Tensor]:
        random = _generator(6)
        network = half_autoencoder([6, 8, 6], 0.2, random)
        optimizer = torch.optim.Adam(network.parameters(), 1e-2)
        part = Part("network", random, Checkpoint(None, ""), Event(), SILENT)
        training = Training(lambda n: (network(rows[n]) - rows[n]).pow(2).sum(), optimizer, 16, part)
        if replayed:
            training._step = replay.ReplayedPass(training._one_step, pytest.fail, [random])
        totals = [training.epoch(torch.randperm(50, generator=random)) for _ in range(4)]
        return totals[-1], network[0].weight.detach()

    (loss, weight), (expected, expected_weight) = trained(True), trained(False)
    assert loss == expected
    assert torch.equal(weight, expected_weight)


def test_dropout_keeps_the_mean_and_is_quiet_outside_training() -> None:
    layer = Dropout(0.25, _generator(7))
    ones = torch.ones(400, 50)
    dropped = layer(ones)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    assert layer.eval()(ones) is ones
