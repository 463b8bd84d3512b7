from __future__ import annotations

import numpy as np
import pytest

from bilex.model.answers import Proposals
from bilex_workbench.precompute import Priorities, leads, sample_rows

WORDS = 50
ROWS = np.arange(WORDS, dtype=np.int64)


def proposals(lead, known=False):
    """Two translations per word, the second so far behind the first; no confidences."""
    scores = np.stack([np.full(WORDS, 0.8), 0.8 - np.broadcast_to(lead, WORDS)], axis=1)
    return Proposals(
        scores.astype(np.float32),
        np.stack([ROWS, (ROWS + 1) % WORDS], axis=1),
        np.full(scores.shape, np.nan),
        np.full(scores.shape, known),
    )


def worth(found, listed=True):
    return Priorities(leads(found))(ROWS, found, np.broadcast_to(listed, WORDS))


def order(found):
    return np.argsort(-worth(found), kind="stable").tolist()


def test_words_whose_candidates_are_about_as_good_come_first_without_confidences():
    unequal = np.where(ROWS % 2 == 0, 0.3, 0.01)
    ranked = [row for row in order(proposals(unequal)) if row >= 10]
    assert all(row % 2 for row in ranked[:20]) and not any(row % 2 for row in ranked[20:])


def test_of_equal_words_the_frequent_come_first():
    assert order(proposals(0.1)) == ROWS.tolist()


def test_words_that_no_table_lists_come_after_the_others_but_have_a_place():
    found = proposals(0.1)
    ranked = np.argsort(-worth(found, listed=ROWS % 2 == 1), kind="stable")
    assert (ranked[:25] % 2 == 1).all() and (worth(found, listed=False) > 0).all()


def test_known_words_and_words_without_translation_come_last():
    assert not worth(proposals(0.1, known=True)).any()
    found = proposals(0.1)
    found.rows[3], found.scores[3] = -1, np.nan
    assert worth(found)[3] == 0 and (np.delete(worth(found), 3) > 0).all()


def test_a_word_with_a_single_translation_has_a_place():
    found = proposals(0.1)
    single = Proposals(*(part[:, :1] for part in (found.scores, found.rows, found.confidence, found.known)))
    assert (worth(single) > 0).all()


@pytest.mark.parametrize("words", [1, 7, 1_000, 20_000, 200_000])
def test_the_sample_is_spread_over_the_frequent_words(words):
    rows = sample_rows(words)
    assert rows[0] == 0 and rows[-1] == min(words, 20_000) - 1
    assert len(rows) == len(set(rows.tolist())) == min(words, 1_000)
