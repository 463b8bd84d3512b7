"""Loss, gradients and the training loop against plain implementations."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from padded_reference import padded_vectors

from bilex import BilexError
from bilex.encoders import TuningSettings, WordEncoder
from bilex.encoders.tuning import TrainingPairs, Tuner, contrastive_loss, whole_batch_loss

SOURCE = ["dog", "cat", "house", "a", "tree", "water", "sun", "moon", "hand", "book", "dogs"]
TARGET = ["hund", "katze", "haus", "ein", "baum", "wasser", "sonne", "mond", "hand", "buch", "hunde"]
STILL = TuningSettings(
    negatives=3, batch_size=4, epochs=1, learning_rate=1e-3, dropout=0.0, precision="float32"
)


def some_pairs() -> TrainingPairs:
    rng = np.random.default_rng(1)
    positives = np.array([[i, i] for i in range(10)] + [[0, 10], [0, 0]])
    negatives = [rng.integers(0, 11, (len(positives), 3)) for _ in range(2)]
    return TrainingPairs(positives, negatives[0], negatives[1], len(positives))


def tuner_for(encoder: WordEncoder, settings: TuningSettings, **others: object) -> Tuner:
    tokens = encoder.tokenise(SOURCE), encoder.tokenise(TARGET)
    return Tuner(encoder, *tokens, some_pairs(), settings, **others)


def assert_same_weights(ours: WordEncoder, theirs: WordEncoder) -> None:
    """Equal weights, but for the keys' biases: the loss does not depend on them, so they follow rounding."""
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if not name.endswith("key.bias"):
            torch.testing.assert_close(parameter, expected[name], atol=3e-5, rtol=1e-3, msg=name)
    found, wanted = (encoder.encode(SOURCE, precision="float32") for encoder in (ours, theirs))
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-3)


def plain_loss(encoder: WordEncoder, pairs: TrainingPairs, rows: list[int]) -> torch.Tensor:
    """One pair at a time, every word encoded again wherever it occurs, the formula written out."""
    losses = []
    for row in rows:
        x, y = pairs.positives[row]
        near_y = [SOURCE[i] for i in pairs.source_negatives[row]]
        near_x = [TARGET[i] for i in pairs.target_negatives[row]]
        vectors = padded_vectors(encoder, [SOURCE[x], TARGET[y], *near_y, *near_x])
        unit = vectors / vectors.norm(dim=1, keepdim=True)
        positive = (unit[0] @ unit[1] / 0.1).exp()
        others = sum((unit[1] @ other / 0.1).exp() for other in unit[2:5])
        others = others + sum((unit[0] @ other / 0.1).exp() for other in unit[5:8])
        losses.append(-torch.log(positive / (positive + others)))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("kind", ["bert", "mt5", "xlm"])
def test_loss_and_gradients_equal_a_plain_padded_implementation(
    make_encoder: Callable[..., WordEncoder], kind: str
) -> None:
    rows = [0, 10, 3, 7, 11]
    plain = make_encoder(kind)
    plain.eval()
    expected = plain_loss(plain, some_pairs(), rows)
    expected.backward()
    ours = make_encoder(kind)
    found = tuner_for(ours.train(False), STILL)._gradients(np.array(rows))
    assert abs(float(found) - expected.item()) < 1e-5
    expected_gradients = dict(plain.named_parameters())
    compared = 0
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None, name
        reference = expected_gradients[name].grad
        assert reference is not None
        assert (parameter.grad - reference).abs().max() < 1e-5 * max(1.0, float(reference.abs().max())), name
        compared += 1
    assert compared > 10


def test_the_gradient_goes_through_the_norms() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(8, 5, dtype=torch.float32, requires_grad=True)
    places = (torch.tensor([0]), torch.tensor([1]), torch.tensor([[2, 3]]), torch.tensor([[4, 5]]))
    contrastive_loss(vectors, *places, 0.1).backward()
    assert vectors.grad is not None
    along = (vectors.grad * vectors.detach()).sum(1)
    assert along.abs().max() < 1e-5, "moving a vector along itself changes no cosine"
    assert vectors.grad[:6].abs().min() > 0
    assert not vectors.grad[6:].any()


def test_with_the_whole_batch_every_other_word_is_a_negative() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(7, 5)
    is_target = torch.tensor([False, True, True, False, True, False, True])
    sources, targets = torch.tensor([0, 3]), torch.tensor([4, 1])
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    expected = 0.0
    for x, y in zip(sources.tolist(), targets.tolist(), strict=True):
        positive = torch.exp(unit[x] @ unit[y] / 0.1)
        others = sum(torch.exp(unit[x] @ unit[w] / 0.1) for w in (1, 2, 4, 6) if w != y)
        others += sum(torch.exp(unit[w] @ unit[y] / 0.1) for w in (0, 3, 5) if w != x)
        expected -= float(torch.log(positive / (positive + others)))
    found = whole_batch_loss(vectors, sources, targets, is_target, 0.1)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_the_tuner_knows_which_words_are_targets(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    tuner = tuner_for(encoder, replace(STILL, whole_batch=True))
    _, places, is_target = tuner.lay_out(np.arange(4))
    sources, targets, near_targets, near_sources = places.split([1, 1, 3, 3], dim=1)
    assert is_target[targets].all() and is_target[near_sources].all()
    assert not is_target[sources].any() and not is_target[near_targets].any()
    tuned = tuner_for(encoder, replace(STILL, whole_batch=True, epochs=3)).run()
    assert tuned.losses[-1] < tuned.losses[0]


def test_micro_batches_add_up_to_the_batch(make_encoder: Callable[..., WordEncoder]) -> None:
    gradients = []
    for micro in (12, 5, 1):
        encoder = make_encoder()
        tuner = tuner_for(encoder.eval(), STILL)
        tuner.micro_batch = micro
        tuner._gradients(np.arange(12))
        gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(gradients[2], gradients[0], atol=1e-6, rtol=1e-4)


def test_training_equals_adamw_over_all_embeddings(make_encoder: Callable[..., WordEncoder]) -> None:
    """The trimmed embedding, the shuffling and the updates against a plain loop over the whole model."""
    settings = replace(STILL, epochs=3, weight_decay=0.1)
    plain = make_encoder()
    optimiser = torch.optim.AdamW(plain.parameters(), lr=1e-3, weight_decay=0.1)
    for epoch in range(3):
        order = np.random.default_rng(settings.seed + epoch).permutation(12)
        for start in range(0, 12, 4):
            optimiser.zero_grad()
            plain_loss(plain, some_pairs(), order[start : start + 4].tolist()).backward()
            optimiser.step()
    tuned = make_encoder()
    report = tuner_for(tuned, settings).run()
    assert len(report.losses) == 3
    assert report.losses[2] < report.losses[0]
    assert_same_weights(tuned, plain)


def test_dropout_is_set_while_tuning_and_put_back(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    for layer in encoder.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.25
    seen: set[float] = set()
    encoder.register_forward_pre_hook(
        lambda module, _: seen.update(m.p for m in module.modules() if isinstance(m, torch.nn.Dropout))
    )
    tuner_for(encoder, replace(STILL, dropout=0.1)).run()
    assert seen == {0.1}
    assert {m.p for m in encoder.modules() if isinstance(m, torch.nn.Dropout)} == {0.25}
    assert not encoder.training


def test_the_same_seed_gives_the_same_encoder(make_encoder: Callable[..., WordEncoder]) -> None:
    results = []
    for seed in (33, 33, 34):
        encoder = make_encoder()
        tuner_for(encoder, replace(STILL, dropout=0.1, seed=seed)).run()
        results.append(encoder.fingerprint())
    assert results[0] == results[1] != results[2]


class _CutOffError(Exception):
    pass


def test_a_run_that_was_cut_off_goes_on_to_the_same_end(
    make_encoder: Callable[..., WordEncoder], tmp_path: Path
) -> None:
    settings = replace(STILL, dropout=0.1, epochs=3)
    whole = make_encoder()
    tuner_for(whole, settings).run()
    first = make_encoder()
    tuner = tuner_for(first, settings, checkpoint=tmp_path / "c")
    ordinary = tuner._epoch

    def epoch_that_dies(*arguments: object) -> float:
        if arguments[1] == 2:
            raise _CutOffError
        return ordinary(*arguments)

    tuner._epoch = epoch_that_dies
    with pytest.raises(_CutOffError):
        tuner.run()
    second = make_encoder()
    resumed = tuner_for(second, settings, checkpoint=tmp_path / "c")
    done: list[int] = []
    resumed_epoch = resumed._epoch
    resumed._epoch = lambda *a: done.append(a[1]) or resumed_epoch(*a)
    report = resumed.run()
    assert done == [2]
    assert len(report.losses) == 3
    for (name, ours), theirs in zip(second.named_parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5, msg=name)
    assert not list((tmp_path / "c").glob("*.pkl")) + list((tmp_path / "c").glob("*.pt"))


def test_a_checkpoint_of_other_settings_is_left_alone(
    make_encoder: Callable[..., WordEncoder], tmp_path: Path
) -> None:
    tuner_for(make_encoder(), STILL, checkpoint=tmp_path / "c").run()
    fresh, alone = make_encoder(), make_encoder()
    tuner_for(fresh, replace(STILL, temperature=0.2), checkpoint=tmp_path / "c").run()
    tuner_for(alone, replace(STILL, temperature=0.2)).run()
    assert fresh.fingerprint() == alone.fingerprint()


def test_a_loss_that_is_no_number_keeps_the_last_good_weights(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    good = make_encoder()
    tuner_for(good, STILL).run()
    encoder = make_encoder()
    tuner = tuner_for(encoder, replace(STILL, epochs=2))
    ordinary = tuner._update

    def spoilt(optimiser: torch.optim.Optimizer, chosen: np.ndarray) -> torch.Tensor:
        loss = ordinary(optimiser, chosen)
        return loss * float("nan") if tuner.updates > 4 else loss

    tuner._update = spoilt
    tuner.run()
    assert "not a number in epoch 2" in tuner.warnings[0]
    for ours, theirs in zip(encoder.parameters(), good.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


def test_a_loss_that_is_no_number_at_once_is_an_error(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    before = copy.deepcopy(encoder.state_dict())
    with pytest.raises(BilexError, match="lower the learning rate"):
        tuner_for(encoder, replace(STILL, learning_rate=float("inf"))).run()
    assert encoder.state_dict().keys() == before.keys()


def run_short_of_memory(tuner: Tuner) -> None:
    """Let the tuner run out of memory wherever a batch has more than one pair."""
    ordinary = tuner.lay_out

    def short_of_memory(chosen: np.ndarray) -> object:
        if len(chosen) > 1:
            raise torch.cuda.OutOfMemoryError("no room")
        return ordinary(chosen)

    tuner.lay_out = short_of_memory


def test_too_little_gpu_memory_halves_the_micro_batch(make_encoder: Callable[..., WordEncoder]) -> None:
    reference, encoder = make_encoder(), make_encoder()
    tuner_for(reference, STILL).run()
    tuner = tuner_for(encoder, STILL)
    run_short_of_memory(tuner)
    tuner.run()
    assert tuner.micro_batch == 1
    assert "1 pairs at a time" in tuner.warnings[-1]
    assert_same_weights(encoder, reference)


def test_pairs_of_unreadable_words_are_dropped(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    tokens = encoder.tokenise(["dog", " "]), encoder.tokenise(["hund", "katze"])
    pairs = TrainingPairs(
        np.array([[0, 0], [1, 1]]), np.array([[1, 1, 1], [0, 0, 0]]), np.array([[1, 1, 1], [0, 0, 0]]), 2
    )
    tuner = Tuner(encoder, *tokens, pairs, STILL).run()
    assert (len(tuner.losses), tuner.dropped) == (1, 1)
    empty = encoder.tokenise([" ", " "])
    with pytest.raises(BilexError, match="into nothing"):
        Tuner(encoder, empty, empty, pairs, STILL)


def test_a_checkpoint_of_an_earlier_version_is_known(
    make_encoder: Callable[..., WordEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = make_encoder()
    monkeypatch.setattr(encoder, "fingerprint", lambda: "its weights")
    tuner = tuner_for(encoder, STILL)
    content = hashlib.sha256(tuner.columns.tobytes() + tuner.tokens.ids.tobytes()).hexdigest()
    stamp = {"encoder": "its weights", "pairs": content, "settings": asdict(tuner.settings)}
    assert tuner._identity() == hashlib.sha256(json.dumps(stamp, sort_keys=True).encode()).hexdigest()
