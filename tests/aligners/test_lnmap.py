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

from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.dropout import Dropout
from bilex.aligners.lnmap import LNMap
from bilex.aligners.lnmap_objectives import Autoencoder, RoundTrip
from bilex.aligners.remembering import remembering
from bilex.aligners.small_networks import (
    Part,
    StoppedError,
    Training,
    by_autograd,
    half_autoencoder,
    linear,
    side_by_side,
)
from bilex.aligners.written_out.chain import Chain
from bilex.core import cuda_graphs as replay
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Silent, Task
from bilex.fit import fit
from bilex.lexicon import Lexicon
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


def _problem(words: int = 200) -> tuple[WordVectors, WordVectors, Lexicon]:
    random = np.random.default_rng(8)
    source, target = (
        WordVectors([f"{side}{i}" for i in range(words)], random.normal(size=(words, 8)).astype(np.float32))
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
    decoder = nn.Sequential(linear(5, 6, _generator(3))).double()
    start, goal, own = random.normal(size=(9, 5)), random.normal(size=(9, 5)), random.normal(size=(9, 6))

    def by_definition() -> float:
        arrived = _applied(there, start)
        returned = _applied(back, arrived)
        decoded = returned @ decoder[0].weight.detach().numpy().T + decoder[0].bias.detach().numpy()
        return float(
            sum(((a - b) ** 2).sum() for a, b in ((arrived, goal), (returned, start), (decoded, own)))
        )

    error = RoundTrip(there, back, decoder).error(*map(torch.from_numpy, (start, goal, own)))
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


def _autoencoder(dropout: float = 0.0) -> Autoencoder:
    random = _generator(4)
    encoder = half_autoencoder([6, 9, 8, 5], dropout, random).append(nn.Tanh()).double()
    return Autoencoder(encoder, half_autoencoder([5, 8, 9, 6], dropout, random).double())


def _taken(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    """The gradients, which the parameters lose."""
    found = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    assert all(gradient is not None for gradient in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("rows", [16, 9])
def test_written_out_gradients_equal_autograd(rows: int) -> None:
    """Of both objectives, with whole batches and with the rest of an epoch."""
    random = _generator(5)
    own, start, goal = (torch.randn(50, width, generator=random).double() for width in (6, 5, 5))
    autoencoder = _autoencoder()
    numbers = torch.randint(50, (rows,), generator=random)
    loss = autoencoder.gradients(own, 16)(numbers)
    found = _taken(autoencoder.parameters())
    decoded = autoencoder.decoder(autoencoder.encoder(own[numbers]))
    by_definition = (decoded - own[numbers]).square().mean()
    by_definition.backward()
    torch.testing.assert_close(loss, by_definition.detach())
    torch.testing.assert_close(found, _taken(autoencoder.parameters()))

    autoencoder.freeze()
    trip = RoundTrip(_mapper(1), _mapper(2), autoencoder.decoder)
    pairs = torch.randint(50, (rows, 2), generator=random)
    loss = trip.gradients(start, goal, own, 16)(pairs)
    found = _taken(trip.parameters())
    queries, keys = pairs.T
    by_definition = trip.error(start[queries], goal[keys], own[queries])
    by_definition.backward()
    torch.testing.assert_close(loss, by_definition.detach())
    torch.testing.assert_close(found, _taken(trip.parameters()))
    assert all(parameter.grad is None for parameter in autoencoder.decoder.parameters()), "it is frozen"


def test_written_out_gradients_are_those_of_what_was_dropped() -> None:
    """With the same random numbers the same is dropped, so that differences of losses show the gradient."""
    autoencoder = _autoencoder(dropout=0.3)
    random = autoencoder.encoder[2].random
    rows = torch.randn(50, 6, generator=_generator(6)).double()
    gradients = autoencoder.gradients(rows, 16)

    def loss() -> float:
        random.manual_seed(7)
        return float(gradients(torch.arange(16)))

    whole = loss()
    found = _taken(autoencoder.parameters())
    random.manual_seed(8)
    assert float(gradients(torch.arange(16))) != whole, "other numbers, other drops"
    for parameter, gradient in zip(autoencoder.parameters(), found, strict=True):
        flat = parameter.data.view(-1)
        place = len(flat) // 2
        known, sides = float(flat[place]), []
        for step in (1e-6, -1e-6):
            flat[place] = known + step
            sides.append(loss())
        flat[place] = known
        expected = (sides[0] - sides[1]) / 2e-6
        assert float(gradient.view(-1)[place]) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_a_written_out_pass_drops_its_share_and_only_in_training() -> None:
    network = nn.Sequential(linear(1, 300, _generator(7)), nn.Tanh(), Dropout(0.1, _generator(8)))
    chain = Chain(network, 400)
    ones = torch.ones(400, 1)
    with torch.no_grad():
        first = chain.forward(ones).clone()
        second = chain.forward(ones).clone()
        network.eval()
        quiet = chain.forward(ones).clone()
        torch.testing.assert_close(quiet, network(ones))
    for dropped in (first, second):
        kept = dropped / quiet
        assert kept.mean() == pytest.approx(1, abs=0.01)
        assert (kept == 0).float().mean() == pytest.approx(0.1, abs=0.01)
        torch.testing.assert_close(kept[kept != 0], torch.full_like(kept[kept != 0], 1 / 0.9))
        for axis in (0, 1):
            assert (kept == 0).float().mean(axis).std() < 0.03, "no row or column is dropped more often"
    assert ((first == 0) & (second == 0)).float().mean() == pytest.approx(0.01, abs=0.004), "drawn anew"


def test_a_part_without_gradients_is_refused() -> None:
    with pytest.raises(TypeError, match="no gradients for ReLU"):
        Chain(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), 4)


class _Epochs:
    """The epochs of the autoencoders: their rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        whole = Training.epoch

        def epoch(training: Training, rows: torch.Tensor) -> float:
            if rows.ndim == 1:
                self.rows.append(len(rows))
            return whole(training, rows)

        monkeypatch.setattr(Training, "epoch", epoch)


def test_fits_that_remember_train_their_autoencoders_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, target, seeds = _problem()
    settings = SMALL | {"mapper_steps": 12, "mapper_batch": 20}
    alone = LNMap(**settings).fit(source, target, seeds)
    counted = _Epochs(monkeypatch)
    with remembering():
        LNMap(**settings | {"mapper_steps": 5}).fit(source, target, seeds.head(30))
        again = LNMap(**settings).fit(source, target, seeds, checkpoint=tmp_path / "kept")
        assert len(counted.rows) == 2
        LNMap(**settings, seed=1).fit(source, target, seeds)
        assert len(counted.rows) == 4, "another seed, another autoencoder"
        LNMap(**settings).fit(target, source, Lexicon([(b, a) for a, b in seeds.pairs], "swapped"))
        assert len(counted.rows) == 6, "as the other language it starts from other numbers"
    finished = LNMap(**settings).fit(source, target, seeds, checkpoint=tmp_path / "kept")
    assert len(counted.rows) == 6, "the checkpoint holds what was remembered"
    LNMap(**settings).fit(source, target, seeds)
    assert len(counted.rows) == 8, "nothing is remembered unasked"
    for other in (again, finished):
        assert other.report_ == alone.report_
        np.testing.assert_array_equal(
            *(fit.source_map_(source.vectors) for fit in (alone, other)),
        )


def test_the_trial_and_the_fit_share_autoencoders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maps are the same with and without a trial before them."""
    source, target, _ = _problem(600)
    seeds = Lexicon([(f"s{i}", f"t{i}") for i in range(600)], "planted")
    settings = {name: value for name, value in SMALL.items() if name != "device"} | {"mapper_steps": 12}
    counted = _Epochs(monkeypatch)
    fits = []
    for calibrate in (True, False):
        fits.append(fit(LNMap(**settings), source, target, seeds, calibrate=calibrate))
    assert fits[0].report.trial.ran and not fits[1].report.trial.ran
    assert len(counted.rows) == 4
    for side, vectors in (("source_map_", source), ("target_map_", target)):
        np.testing.assert_array_equal(*(getattr(one.aligner, side)(vectors.vectors) for one in fits))


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
        gradients = by_autograd(
            lambda n: (network(rows[n]) - rows[n]).pow(2).sum(), list(network.parameters())
        )
        training = Training(gradients, optimizer, 16, part)
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
