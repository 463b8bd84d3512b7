"""The constants of stage C1, and the rule that sets them for any number of seeds and any vocabulary."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, NamedTuple

from bilex.core.errors import BilexError, nearest_name

# Between 1k and 5k seeds, in the geometric middle, the rules change over.
MANY_SEEDS = 2236
_FEW_SEEDS = 600
# Fewer seeds than this are joined by pairs that the two vocabularies themselves suggest (`seedless`).
JOINED_SEEDS = 300
# Then so many pairs that earlier passes of the rounds have found are the seeds of the last one, but at most
# one for so many words of the smaller vocabulary.
_ANCHORS, _WORDS_AN_ANCHOR = 5_000, 3
# Words of each language that the passes before the last see.
_EARLY_WORDS = 20_000
# "best" and "careful" take steps twice as long as the paper's, half as many of which go as far; longer ones
# break some fits (docs/recipe.md). The share of that way that each goes:
_LONGER = 2
_WAYS = {"best": 1.0, "careful": 0.5}


@dataclass(frozen=True)
class C1Constants:
    """What Algorithm 1 of the paper needs to know.

    Attributes:
        iterations: Rounds of self-learning (N_iter).
        updates: Contrastive updates a round (N_CL; the authors' program does one more than the paper says).
        negatives: Hard negatives a side (N_neg).
        frequent: Words of each language that look for new pairs (N_freq).
        augment: New pairs kept from each direction (N_aug).
        learning_rate: Of plain SGD, anew in every round.
        decay: What the learning rate is multiplied by after each update (γ).
        contrast_on_augmented: Whether the contrastive updates also use the new pairs.
        warm_up: Rounds of advanced mapping and new pairs, without contrast, before the first round.
        through_norms: Whether the gradient goes through the norms of the mapped vectors.
        mask_known: Whether other known translations of a word are kept out of its negatives.
        full_csls: Whether new pairs are ranked by true CSLS.
        anchors: Without seeds, or with few: how many of the pairs found by earlier passes of the rounds are
            taken as seeds of the last one; 0 for one pass.
    """

    iterations: int
    updates: int
    negatives: int
    frequent: int
    augment: int
    learning_rate: float
    decay: float
    contrast_on_augmented: bool
    warm_up: int = 0
    through_norms: bool = False
    mask_known: bool = False
    full_csls: bool = False
    anchors: int = 0


class Pass(NamedTuple):
    """One pass of the rounds.

    Attributes:
        anchors: How many found pairs are its seeds, beside the user's.
        constants: Its constants.
        words: It sees so many of the most frequent words of each language; None for all.
    """

    anchors: int
    constants: C1Constants
    words: int | None = None

    @property
    def updates(self) -> int:
        """Its contrastive updates."""
        return self.constants.iterations * self.constants.updates


def passes(seeds: int, first: C1Constants, last: C1Constants) -> tuple[Pass, ...]:
    """The passes of a fit: one, or without seeds or with few, where there are anchors, three.

    The first starts from what `seedless` finds. Its surest pairs are the seeds of a second pass, and those of
    the second, which are better, the seeds of a third, which has enough of them for what the paper does with
    many seeds. The first two see frequent words only, which finds as good pairs (docs/recipe.md).

    Args:
        seeds: Usable seed pairs.
        first: The constants for these seeds.
        last: Those for many seeds.
    """
    if not first.anchors or seeds >= JOINED_SEEDS:
        return (Pass(0, first),)
    fewer = max(1, 3 * first.anchors // 5)
    return Pass(0, first, _EARLY_WORDS), Pass(fewer, first, _EARLY_WORDS), Pass(first.anchors, last)


SUPERVISED = C1Constants(2, 201, 150, 60_000, 10_000, 1.5, 0.99, False)
SEMI_SUPERVISED = C1Constants(3, 51, 60, 20_000, 6_000, 2.0, 1.0, True)
PRESETS = {"5k": SUPERVISED, "1k": SEMI_SUPERVISED}
# What held-out seed pairs of several languages liked better than the paper's way (docs/how-it-works.md).
_BEST = {"through_norms": True, "full_csls": True}
# By then the loss of a round has settled; the paper's 200 updates take minutes on two cores.
_QUICK_UPDATES = 40
PRESET_SUMMARIES = {
    "auto": "best or careful, whichever translates held-out seeds better; the default of bilex align",
    "paper": "the paper's constants, chosen by the number of seeds",
    "best": "gradient through the norms, new pairs by true CSLS: much better on web vectors",
    "careful": "the same, half as far: better than the paper on all vectors tried",
    "quick": f"at most {_QUICK_UPDATES} updates a round: a first look in a fraction of the time",
    "5k": "the paper's constants for 5,000 seeds",
    "1k": "the paper's constants for 1,000 seeds",
}
STARTS = ("auto", "identical", "numerals", "romanised", "shared", "unsupervised")
_MAY_BE_ZERO = ("updates", "warm_up", "augment", "anchors")


def long_steps(updates: int, learning_rate: float, decay: float) -> dict[str, Any]:
    """Settings that go as far as these in half the updates, in steps twice as long.

    Args:
        updates: At the paper's learning rate, as the next two.
        learning_rate: Of the first update.
        decay: Factor on it after each.
    """
    fewer = max(1, round(updates / _LONGER))
    return {"updates": fewer, "learning_rate": _LONGER * learning_rate, "decay": decay**_LONGER}


def updates_of_a_share(share: float, updates: int, decay: float) -> int:
    """The updates that go a share of the way of all, when each step is `decay` times the one before.

    Args:
        share: Of the summed lengths of the steps.
        updates: All updates.
        decay: Positive.
    """
    way = list(accumulate(decay**update for update in range(updates)))
    return bisect_left(way, share * way[-1]) + 1


def check_preset(preset: str) -> None:
    """Refuse a preset that there is not.

    Raises:
        BilexError: The preset is not known; the nearest name is given.
    """
    if str(preset) not in PRESET_SUMMARIES:
        known = ", ".join(PRESET_SUMMARIES)
        raise BilexError(
            f"preset '{preset}' of c1 is not known; use {known}.{nearest_name(preset, PRESET_SUMMARIES)}"
        )


def check_start(start: str) -> None:
    """Refuse a start without seeds that there is not.

    Raises:
        BilexError: The start is not known; the nearest name is given.
    """
    if str(start) not in STARTS:
        known = ", ".join(STARTS)
        raise BilexError(f"start '{start}' of c1 is not known; use {known}.{nearest_name(start, STARTS)}")


def constants_for(preset: str, seeds: int, smaller_vocabulary: int, **overrides: object) -> C1Constants:
    """The constants for a number of usable seed pairs and a smaller vocabulary of so many words.

    From 2,236 seeds on (the geometric middle of 1k and 5k) the paper's supervised constants hold, below
    its semi-supervised ones. Under 600 seeds, where the first mapping is poor, rounds without contrast
    come first: one for 301 to 599 seeds and one more for each further halving. Under 300, and without
    seeds, "best" and "careful" go through the rounds three times (`passes`). A small vocabulary caps
    what cannot be had from it: at most two thirds of its words become new pairs, at most one in
    twenty are negatives of a pair, and at most one in three are seeds of the last pass.

    Args:
        preset: "paper" for this rule, and "auto" too where no trial chooses (`bilex.fit`); "best" for it
            with the options that proved better than the paper's way, and half its updates in steps twice as
            long; "careful" for these, stopped half way; "quick" for it with fewer updates;
            "5k" or "1k" for the paper's constants whatever the seeds.
        seeds: Usable seed pairs.
        smaller_vocabulary: Words in the smaller vocabulary.
        overrides: Constants that the user has set; None leaves one to the rule.

    Raises:
        BilexError: The preset is not known, or a constant makes no sense.
    """
    if preset in PRESETS:
        constants = PRESETS[preset]
    elif preset in PRESET_SUMMARIES:
        constants = SUPERVISED if seeds >= MANY_SEEDS else SEMI_SUPERVISED
        if 0 < seeds < _FEW_SEEDS:
            constants = replace(constants, warm_up=1 + int(math.log2(_FEW_SEEDS / seeds)))
        if preset in _WAYS:
            steps = long_steps(constants.updates, constants.learning_rate, constants.decay)
            steps["updates"] = updates_of_a_share(_WAYS[preset], steps["updates"], steps["decay"])
            anchors = _ANCHORS if seeds < JOINED_SEEDS else 0
            constants = replace(constants, **_BEST, **steps, anchors=anchors)
        if preset == "quick":
            constants = replace(constants, updates=min(constants.updates, _QUICK_UPDATES))
    else:
        check_preset(preset)
    constants = replace(
        constants,
        augment=min(constants.augment, max(1, 2 * smaller_vocabulary // 3)),
        negatives=min(constants.negatives, max(1, smaller_vocabulary // 20)),
        anchors=min(constants.anchors, max(1, smaller_vocabulary // _WORDS_AN_ANCHOR)),
    )
    constants = replace(constants, **{k: v for k, v in overrides.items() if v is not None})  # type: ignore[arg-type]
    for field in fields(constants):
        value = getattr(constants, field.name)
        least = 0 if isinstance(value, bool) or field.name in _MAY_BE_ZERO else 1e-9
        if not least <= value < math.inf:
            raise BilexError(f"setting '{field.name}' of c1 is {value}; it must be positive and finite.")
    return constants
