"""The forms of an aligner that a trial compares, as they would be fitted on the whole problem."""

from __future__ import annotations

from bilex.aligners.base import Aligner
from bilex.fit import evidence


def distinct_forms(aligner: Aligner, pairs: int, smaller_vocabulary: int) -> dict[str, Aligner]:
    """The candidates of an aligner by name, the prior first; of those that do the same, the first.

    Args:
        aligner: The aligner as the user asked for it.
        pairs: Usable seed pairs of the whole problem, whose constants the candidates keep.
        smaller_vocabulary: Words in its smaller vocabulary.
    """
    found: dict[str, Aligner] = {}
    for name, form in evidence.candidates(aligner).items():
        pinned = form.pinned(pairs, smaller_vocabulary)
        if not any(_same(pinned, other) for other in found.values()):
            found[name] = pinned
    return found


def _same(one: Aligner, other: Aligner) -> bool:
    """Whether two aligners do the same under different presets."""
    first, second = ({**form.settings(), "preset": None} for form in (one, other))
    return first == second
