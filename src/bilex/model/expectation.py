"""What to expect of a model, in words, from how well seed pairs that a fit has not seen were translated."""

from __future__ import annotations

import math

from bilex.fit.expectation import Expectation
from bilex.model.provenance import Provenance

_FEW_SEEDS = 200
_Z = 1.96


def sentences(made: Provenance, model: str = "MODEL") -> list[str]:
    """What to expect, and what to do if that is little.

    Args:
        made: A model's provenance.
        model: The model's name, for commands to copy.
    """
    expected, pairs = made.expectation, made.seed_pairs_covered
    if not expected.measured:
        why = "there were no seeds to test it on" if not made.seed_pairs else expected.how
        stated = [
            f"How good this model is was not measured ({why}): run 'bilex evaluate {model}' on a test list."
        ]
        if 0 < pairs < _FEW_SEEDS:
            stated.append(f"Expect little of it. {_advice(made, pairs, model)}")
        return stated
    stated = [_shares(expected, made)]
    if expected.of_use == "none":
        stated.append(f"That is too little to use this model. {_advice(made, pairs, model)}")
    elif expected.of_use == "with care":
        stated.append(
            f"Look at several answers of each word (-k 5) before you use one. {_advice(made, pairs, model)}"
        )
    return stated


def _shares(expected: Expectation, made: Provenance) -> str:
    """One sentence with the shares of both directions."""
    clauses = []
    for side in expected.words:
        words, right = expected.words[side], expected.right[side]
        query_side, key_side = made.language_names(side)  # type: ignore[arg-type]
        low, high = share_interval(right, words)
        clauses.append(f"{query_side} to {key_side} {right / max(1, words):.0%} ({low:.0%} to {high:.0%})")
    count = max(expected.words.values())
    how = "that a second fit had not seen" if expected.how == "held out" else "each predicted from the others"
    return (
        f"Expect the first answer to be right for this share of words: {'; '.join(clauses)}. "
        f"Measured on {count} seed words {how}; other words are easier or harder."
    )


def _advice(made: Provenance, pairs: int, model: str) -> str:
    if pairs < _FEW_SEEDS:
        without = (
            ", or none at all (without --seeds the method finds its own start)" if made.seeds_optional else ""
        )
        return f"{pairs} seed pairs are few: give more, a thousand if you can{without}."
    if made.seed_pairs > 2 * pairs:
        return "Most seeds are not in the vectors: check that words are written alike in both."
    return (
        "With so many seeds the vectors are the likely reason (little text, or texts of different kinds), or "
        f"wrong seeds: see 'bilex info {model} --doubtful'."
    )


def share_interval(right: int, words: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not words:
        return 0.0, 1.0
    share, squared = right / words, _Z * _Z
    middle = (share + squared / (2 * words)) / (1 + squared / words)
    half = _Z / (1 + squared / words) * math.sqrt(share * (1 - share) / words + squared / (4 * words * words))
    return max(0.0, middle - half), min(1.0, middle + half)
