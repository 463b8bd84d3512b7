"""Packed words against an ordinary padded, masked batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from padded_reference import WORDS, padded_vectors

from bilex.encoders.model import WordEncoder
from bilex.encoders.tokens import pack


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "mt5", "xlm"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_packed_vectors_equal_padded_ones(
    make_encoder: Callable[..., WordEncoder], kind: str, pooling: str
) -> None:
    encoder = make_encoder(kind, pooling)
    with torch.no_grad():
        expected = padded_vectors(make_encoder(kind, pooling), WORDS).numpy()
    assert encoder.module.packed == (kind in ("bert", "xlm-roberta"))
    np.testing.assert_allclose(encoder.encode(WORDS), expected, atol=2e-6)
    np.testing.assert_allclose(encoder.encode(WORDS, batch_size=3), expected, atol=2e-6)


def test_each_distinct_word_is_computed_once_without_padding(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    encoder = make_encoder()
    seen: list[int] = []
    encoder.module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0].ids)))
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


def test_packing_sorts_by_length_and_tells_where_each_word_went(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    table = make_encoder().tokenise(["abc", "d", "ef", "g"])
    packed, rows = pack(table, np.array([0, 1, 2, 3]))
    assert rows.tolist() == [1, 3, 2, 0]
    assert [(g.start, g.words, g.length) for g in packed.groups] == [(0, 2, 3), (6, 1, 4), (10, 1, 5)]
    assert packed.positions.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]


def test_an_encoder_prepared_for_packing_still_takes_padded_batches(
    make_encoder: Callable[..., WordEncoder],
) -> None:
    encoder = make_encoder()
    ids = torch.tensor([[1, 5, 6, 2], [1, 7, 8, 2]])
    alone = encoder.module.encoder(input_ids=ids).last_hidden_state.mean(1).detach().numpy()
    np.testing.assert_allclose(alone, encoder.encode(["ab", "cd"]), atol=2e-6)
