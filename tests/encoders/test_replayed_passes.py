"""Padding batches to few shapes and replaying recorded passes, against the ordinary way.

A recording needs a GPU; here it is imitated by running the pass again on the memory that a recording reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_contrastive_tuning import STILL, assert_same_weights, run_short_of_memory, tuner_for

from bilex.core import cuda_graphs as replay
from bilex.encoders.model import WordEncoder
from bilex.encoders.packing import round_up
from bilex.encoders.tuning import Tuner
from imitated import imitate_recordings

CPU = torch.device("cpu")


@pytest.fixture
def imitated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every tuner record, and a recording be the pass itself."""
    imitate_recordings(monkeypatch)
    monkeypatch.setattr(Tuner, "_can_replay", lambda _: True)


@pytest.mark.parametrize("whole_batch", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_padding_changes_neither_loss_nor_gradients(
    make_encoder: Callable[..., WordEncoder], whole_batch: bool, pooling: str
) -> None:
    rows = np.array([0, 10, 3, 7, 11])
    found = []
    for padded in (False, True):
        encoder = make_encoder("bert", pooling)
        tuner = tuner_for(encoder, replace(STILL, whole_batch=whole_batch))
        batch = tuner.batches.lay_out(rows, CPU, few_shapes=padded)
        if padded:
            tokens = torch.nn.functional.pad(batch.words.tokens, (0, 0, 0, 3))  # three rows of padding
            tokens[2, -3:] = -1
            batch = replace(batch, words=replace(batch.words, tokens=tokens))
            assert len(batch.sides) == 5 * 8 > int((batch.sides >= 0).sum())
        loss = tuner._pass(encoder.module.eval(), batch, len(rows))
        gradients = [p.grad for p in encoder.module.parameters()]
        found.append((loss, gradients))
    assert abs(float(found[0][0]) - float(found[1][0])) < 1e-5
    assert len(found[0][1]) > 10
    for plain, padded_gradient in zip(found[0][1], found[1][1], strict=True):
        assert plain is not None and padded_gradient is not None
        assert (plain - padded_gradient).abs().max() < 1e-5 * max(1.0, float(plain.abs().max()))


def test_few_shapes_hold_little_padding() -> None:
    sizes = [round_up(count) for count in range(1, 1000)]
    assert all(count <= size <= 1.0625 * count for count, size in enumerate(sizes, 1))
    assert len({size for size in sizes if 256 <= size <= 336}) == 6


def test_replaying_equals_ordinary_updates(
    make_encoder: Callable[..., WordEncoder], imitated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 pairs in batches of 5: two whole batches and a smaller one, which is never replayed, an epoch."""
    settings = replace(STILL, batch_size=5, epochs=4, weight_decay=0.1)
    replayed = make_encoder()
    tuner = tuner_for(replayed, settings)
    report = tuner.run()
    orders = [np.random.default_rng(settings.seed + epoch).permutation(12) for epoch in range(4)]
    whole = [order[start : start + 5] for order in orders for start in (0, 5)]
    shapes = {tuner.batches.lay_out(chosen, CPU, few_shapes=True).shape for chosen in whole}
    assert report.replayed == len(whole) - len(shapes) >= 5, "all but the first batch of each shape"
    assert not report.warnings
    assert all(p.grad is None for p in replayed.module.parameters())
    monkeypatch.setattr(Tuner, "_can_replay", lambda _: False)
    ordinary = make_encoder()
    expected = tuner_for(ordinary, settings).run()
    assert expected.replayed == 0
    np.testing.assert_allclose(report.losses, expected.losses, atol=1e-5)
    assert_same_weights(replayed, ordinary)


def test_a_gpu_that_cannot_record_tunes_all_the_same(
    make_encoder: Callable[..., WordEncoder], imitated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(replay, "record", refuse)
    encoder, ordinary = make_encoder(), make_encoder()
    report = tuner_for(encoder, replace(STILL, epochs=2)).run()
    assert report.replayed == 0
    assert len(report.warnings) == 1
    assert "not permitted when stream is capturing): training goes on" in report.warnings[0]
    monkeypatch.setattr(Tuner, "_can_replay", lambda _: False)
    tuner_for(ordinary, replace(STILL, epochs=2)).run()
    assert_same_weights(encoder, ordinary)


def test_too_little_memory_ends_replaying(make_encoder: Callable[..., WordEncoder], imitated: None) -> None:
    reference, encoder = make_encoder(), make_encoder()
    tuner_for(reference, STILL).run()
    tuner = tuner_for(encoder, STILL)
    run_short_of_memory(tuner)
    report = tuner.run()
    assert (report.micro_batch, report.replayed) == (1, 0)
    assert_same_weights(encoder, reference)


def test_batches_of_two_shapes_are_recorded_apart(
    imitated: None, make_encoder: Callable[..., WordEncoder]
) -> None:
    tuner = tuner_for(make_encoder(), STILL)
    seen: list[torch.Tensor] = []
    passes = replay.ReplayedPass(lambda batch: seen.append(batch.places) or batch.places.sum(), pytest.fail)
    for chosen in ([0, 1, 2, 3], [4, 5], [4, 5, 6, 7], [6, 7], [8, 9, 10, 11], [0, 1]):
        batch = tuner.batches.lay_out(np.array(chosen), CPU, few_shapes=True)
        assert int(passes(batch)) == int(batch.places.sum())
        assert torch.equal(seen[-1], batch.places)
    assert passes.replayed == 4
    assert seen[2] is seen[4] and seen[3] is seen[5], "a recording reads one place in memory"
