"""Packed words against an ordinary padded, masked batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from padded_reference import WORDS, padded_vectors

from bilex.encoders import WordEncoder
from bilex.encoders.model import TokenTable, pack

CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "mt5", "xlm"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_packed_vectors_equal_padded_ones(
    make_encoder: Callable[..., WordEncoder], kind: str, pooling: str
) -> None:
    encoder = make_encoder(kind, pooling)
    with torch.no_grad():
        expected = padded_vectors(make_encoder(kind, pooling), WORDS).numpy()
    assert encoder.packed == (kind in ("bert", "xlm-roberta"))
    np.testing.assert_allclose(encoder.encode(WORDS, precision="float32"), expected, atol=2e-6)
    in_threes = encoder.encode(WORDS, batch_size=3, precision="float32")
    np.testing.assert_allclose(in_threes, expected, atol=2e-6)


def test_each_distinct_word_is_computed_once(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    seen: list[int] = []
    encoder.register_forward_pre_hook(lambda _, inputs: seen.append(int((inputs[0].numbers >= 0).sum())))
    vectors = encoder.encode(["abc", "de", "abc", "abc"])
    assert seen == [len("abc") + 2 + len("de") + 2]
    assert (vectors[0] == vectors[2]).all()
    assert not (vectors[0] == vectors[1]).all()


def test_a_word_without_tokens_gets_zeros(make_encoder: Callable[..., WordEncoder]) -> None:
    vectors = make_encoder().encode(["abc", " ", ""])
    assert vectors[0].any()
    assert not vectors[1:].any()
    assert make_encoder().encode([]).shape == (0, 24)


def test_long_words_are_cut_with_their_last_special_token_kept(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    table = make_encoder(max_length=6).tokenise(["abcdefgh", "a"])
    assert table.lengths.tolist() == [6, 3]
    assert table.ids[0].tolist() == [1, 5, 6, 7, 8, 2]


def test_packing_sorts_by_length_and_says_where_each_word_went(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    table = make_encoder().tokenise(["abc", "d", "ef", "g"])
    packed, rows = pack(table, np.array([0, 1, 2, 3]), CPU)
    assert rows.tolist() == [1, 3, 2, 0]
    assert packed.counts == ((3, 2), (4, 1), (5, 1))
    assert packed.starts.tolist() == [9, 12, 5, 0], "the longest word comes first in the row"
    assert packed.ids.tolist() == [[1, 5, 6, 7, 2, 1, 9, 10, 2, 1, 8, 2, 1, 11, 2, 0]]
    assert packed.positions.tolist() == [[0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 0]]
    assert packed.numbers.tolist() == [[3, 3, 3, 3, 3, 2, 2, 2, 2, 0, 0, 0, 1, 1, 1, -1]]


@pytest.mark.parametrize("count", [0, 1, 40, 3_000])
@pytest.mark.parametrize("longest", [4, 10, 70])
def test_rows_hold_every_word_whole_and_little_else(count: int, longest: int) -> None:
    rng = np.random.default_rng(count + longest)
    lengths = rng.integers(3, longest + 1, count).astype(np.int32)
    table = TokenTable(rng.integers(1, 99, (count, longest)).astype(np.int32), lengths)
    packed, rows = pack(table, np.arange(count), CPU)
    assert sorted(rows.tolist()) == list(range(count))
    width = packed.ids.shape[1]
    for number, (row, start) in enumerate(zip(rows, packed.starts.tolist(), strict=True)):
        line, place = divmod(start, width)
        word = slice(place, place + lengths[row])
        assert packed.ids[line, word].tolist() == table.ids[row, : lengths[row]].tolist()
        assert (packed.numbers[line, word] == number).all()
        assert packed.positions[line, word].tolist() == list(range(lengths[row]))
    padding = packed.numbers < 0
    assert padding.sum() == packed.numbers.numel() - lengths.sum()
    if count == 3_000 and longest == 10:
        assert padding.float().mean() < 0.01


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_rows_full_of_words_do_not_mix_them(make_encoder: Callable[..., WordEncoder], pooling: str) -> None:
    """Hundreds of words in many rows, in random weights that would show any leak."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), rng.integers(1, 7))) for _ in range(300)]
    with torch.no_grad():
        expected = padded_vectors(make_encoder("bert", pooling), words).numpy()
    found = make_encoder("bert", pooling).encode(words, precision="float32")
    np.testing.assert_allclose(found, expected, atol=3e-6)


def test_an_encoder_prepared_for_packing_still_takes_padded_batches(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    encoder = make_encoder()
    ids = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 8, 9, 2]])
    mask = (ids > 0).long()
    hidden = encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state.detach()
    means = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    found = encoder.encode(["ab", "cde"], precision="float32")
    np.testing.assert_allclose(means.numpy(), found, atol=2e-6)
