"""The settings of stage C1, the constants that follow from them for any problem, and the report of a fit."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bilex.aligners.base import SMALLEST, Aligner, AlignerReport, Limits
from bilex.aligners.maps import Map
from bilex.core.errors import BilexError, nearest_name

if TYPE_CHECKING:
    from typing import Self

# Seeds from which the paper's supervised constants apply: the geometric mean of 1,000 and 5,000.
MANY_SEEDS = 2236
# Below this number of seeds, rounds without contrast come first.
_WARM_UP_SEEDS = 600
# Below this number of seeds, pairs that the vocabularies suggest join them (`starts`). For "auto" the
# bound was chosen on held-out seeds and other dictionaries (research/never_worse.md).
_FEW_SEEDS, _FEW_SEEDS_OF_AUTO = 300, 50
# Induced pairs that serve as seeds of the last pass (half of it with many seeds), and the smallest number of
# words of the smaller vocabulary per pair.
_ANCHORS, _WORDS_PER_ANCHOR = 5_000, 3
# Under 300 seeds, the passes before the last search among this number of words per language.
_EARLY_WORDS = 20_000
# The share of the summed step lengths of "best" that a round of "auto" makes where no trial chooses it, and
# the share of that which rounds before the last pass make (research/never_worse.md).
USUAL_EXTENT, _EARLY_EXTENT = 0.65, 0.75
# The less contrast helps, the weaker are the vectors. The damping of "auto" if it did not help at all.
_MOST_DAMPING = 3.0
# A trial that chooses the share keeps its maps at these points of its last round.
_SNAPSHOTS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
# Contrast on few pairs learns them by heart. Pairs from which the first round makes all its updates.
_ENOUGH_PAIRS = 5_000
# "best" and "careful" take half as many steps as the paper, each twice as long; longer ones diverge on some
# data (research/c1.md). The share of the summed step lengths of a round that each preset makes:
_STEP_FACTOR = 2
EXTENTS = {"best": 1.0, "careful": 0.5}
# A trial that has nothing to choose makes this share.
_TRIAL_EXTENT = 0.45


@dataclass(frozen=True)
class C1Constants:
    """What Algorithm 1 of the paper needs to know; `C1Settings` documents each constant."""

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
    enough_pairs: int = 0
    damping: float = 0.0


SUPERVISED = C1Constants(2, 201, 150, 60_000, 10_000, 1.5, 0.99, False)
SEMI_SUPERVISED = C1Constants(3, 51, 60, 20_000, 6_000, 2.0, 1.0, True)
# What held-out seed pairs of several languages prefer to the paper's settings.
_BEST = {"through_norms": True, "full_csls": True}
_QUICK_UPDATES = 40  # by then the loss of a round hardly falls any more
PRESETS = {
    "auto": "best in three passes, with identical spellings, as far as held-out seeds want; the default",
    "paper": "the paper's constants, chosen by the number of seeds",
    "best": "gradient through the norms, new pairs by true CSLS: much better on web vectors",
    "careful": "the same, half as far: better than the paper on all vectors tried",
    "quick": f"at most {_QUICK_UPDATES} updates per round: a first look in a fraction of the time",
    "5k": "the paper's constants for 5,000 seeds",
    "1k": "the paper's constants for 1,000 seeds",
}
_CHOICES = {
    "preset": tuple(PRESETS),
    "start": ("auto", "seeds", "joined", "identical", "numerals", "romanised", "shared", "unsupervised"),
    "last_pass": ("many", "same"),
}


class Pass(NamedTuple):
    """One pass through the rounds of Algorithm 1.

    Attributes:
        anchors: Induced pairs that serve as its seeds, besides the user's.
        constants: Its constants.
        words: It searches among this number of frequent words per language; None for all.
        snapshots: Shares of the summed step lengths of its round at which the maps are kept.
    """

    anchors: int
    constants: C1Constants
    words: int | None = None
    snapshots: tuple[float, ...] = ()


def with_long_steps(constants: C1Constants) -> C1Constants:
    """Constants that go as far as these in half the updates."""
    return replace(
        constants,
        updates=max(1, round(constants.updates / _STEP_FACTOR)),
        learning_rate=_STEP_FACTOR * constants.learning_rate,
        decay=constants.decay**_STEP_FACTOR,
    )


def shortened(constants: C1Constants, extent: float) -> C1Constants:
    """Constants that make a share of the summed step lengths of each round."""
    if extent >= 1 or not constants.updates:
        return constants
    if not extent:
        return replace(constants, updates=0)
    lengths = list(accumulate(constants.decay**update for update in range(constants.updates)))
    return replace(constants, updates=bisect_left(lengths, extent * lengths[-1]) + 1)


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of self-learning.

    Attributes:
        dictionary: Pairs that its maps were learned from.
        contrasted: Of these, the pairs that were contrasted.
        loss: The loss of each contrastive update.
        full_searches: Searches for hard negatives that compared all words.
    """

    dictionary: int
    contrasted: int
    loss: tuple[float, ...] = ()
    full_searches: int = 0


@dataclass(frozen=True, kw_only=True)
class TriedStart:
    """A start that was tried without seeds, or with few.

    Attributes:
        recovered: The share of its induced pairs that the others predict.
        similarity: The mean similarity of its induced pairs.
    """

    recovered: float
    similarity: float


@dataclass(frozen=True, kw_only=True)
class C1Report(AlignerReport):
    """What C1 reports.

    Attributes:
        constants: The constants of the last pass.
        history: The rounds; after resuming from a checkpoint, those since then.
        start: The start that replaced or joined the seeds; None for the seeds alone.
        starts: The starts that were tried, by name.
        passes: The number of passes through the rounds.
        anchors: Pairs that served as seeds of the last pass; 0 for a single pass.
        stopped: Why it stopped before its end; None if it did not.
        seconds: The time it took.
    """

    constants: C1Constants | None = None
    history: tuple[Round, ...] = ()
    start: str | None = None
    starts: Mapping[str, TriedStart] = field(default_factory=dict)
    passes: int = 1
    anchors: int = 0
    stopped: str | None = None
    seconds: float = 0.0


@dataclass(kw_only=True, repr=False)
class C1Settings(Aligner):
    """The settings of C1, and the passes and rounds that follow from them.

    Every constant of the paper is a setting. Those left at None follow the preset, which chooses and scales
    them by the number of seeds and words (`constants`). Beyond the paper, `start` joins the seeds with
    pairs that the vocabularies suggest, `spelling` adds words of identical spelling, and `passes` repeats the
    rounds with the most confident pairs found so far as further seeds (with `early_extent`, `last_pass` and
    `anchors`), each with any number of seeds; `warm_up`, `through_norms`, `mask_known`, `full_csls`,
    `enough_pairs`, `damping`, `size`, `extent` and `snapshots` are additions, too.

    Args:
        preset: "auto", "paper", "best", "careful", "quick", "5k" or "1k" (`bilex methods c1` describes them).
        iterations: Rounds of self-learning (N_iter).
        updates: Contrastive updates per round (N_CL).
        negatives: Hard negatives per side (N_neg).
        frequent: Words for which new pairs are searched (N_freq).
        augment: New pairs kept from each direction (N_aug).
        learning_rate: Learning rate of plain SGD.
        decay: Factor on the learning rate after each update (γ).
        contrast_on_augmented: Whether contrast also uses the new pairs.
        warm_up: Rounds without contrast before the first.
        temperature: τ of the loss.
        clip: Largest norm of the gradient over both maps.
        negative_vocabulary: Negatives are found among this number of frequent words; 0 for all.
        neighbours: k of CSLS in finding new pairs.
        contrastive: Switch for the ablation: False leaves the contrastive updates out.
        self_learning: Switch for the ablation: False makes one round on the seeds alone.
        through_norms: Let the gradient through the norms of the mapped vectors.
        mask_known: Never take another known translation as a negative.
        full_csls: Rank new pairs by true CSLS.
        enough_pairs: If the first round, before new pairs were found, contrasts fewer pairs than this, it
            makes fewer updates: a share of the summed step lengths in proportion to its pairs. 0 for all
            updates whatever the number of pairs; None for 5,000 with preset "auto" and 50 seeds or more,
            otherwise 0.
        damping: This number times dimensions / pairs times the mean eigenvalue is added before whitening;
            None for 3 (1 - extent) with preset "auto", otherwise 0.
        start: The first dictionary: "seeds" for the seeds alone; "identical", "numerals", "romanised",
            "shared" (these three together) for what the vocabularies suggest, joined to the seeds;
            "unsupervised" for the shapes of both spaces, without seeds only; "joined" for the best of these;
            "auto" for "joined" under 300 seeds, with preset "auto" under 50, and "seeds" above.
        spelling: Whether words of identical spelling join the first dictionary, and those that the maps
            confirm the seeds of later passes; None for preset "auto" only.
        passes: How often to pass through the rounds; None for three with preset "auto", and with "best" and
            "careful" under 300 seeds; otherwise one.
        early_extent: The share of the summed step lengths that rounds before the last pass make; under 1 with
            many seeds, the first pass has one round.
        last_pass: "many" gives the last of several passes the constants for many seeds, "same" those of the
            others.
        anchors: Induced pairs that serve as seeds of the last pass; None for 5,000, or 2,500 with many seeds.
        size: Use the constants for this number of seeds, whatever the lexicon has; None for the lexicon's.
        extent: The share of the summed step lengths that each round makes. Under 1, presets other than "best"
            and "careful" also take half as many steps, each twice as long. None for all of them; with preset
            "auto" and 50 seeds or more, for what held-out seeds choose in a trial, or 0.65 without one.
        snapshots: Whether the last of several passes has one whole round, whose maps are kept at some points
            of it in `snapshots_`; a trial chooses `extent` so.

    Attributes:
        snapshots_: By the share of the summed step lengths, the source map and the target map.
    """

    presets = PRESETS
    limits: ClassVar[Limits] = {
        "iterations": (1, None),
        "negatives": (1, None),
        "frequent": (1, None),
        "learning_rate": (SMALLEST, None),
        "decay": (SMALLEST, None),
        "temperature": (SMALLEST, None),
        "clip": (SMALLEST, None),
        "neighbours": (1, None),
        "passes": (1, None),
        "early_extent": (SMALLEST, 1),
        "extent": (SMALLEST, 1),
        "damping": (0, None),
    }

    preset: str = "auto"
    iterations: int | None = None
    updates: int | None = None
    negatives: int | None = None
    frequent: int | None = None
    augment: int | None = None
    learning_rate: float | None = None
    decay: float | None = None
    contrast_on_augmented: bool | None = None
    warm_up: int | None = None
    temperature: float = 1.0
    clip: float = 0.15
    negative_vocabulary: int = 60_000
    neighbours: int = 10
    contrastive: bool = True
    self_learning: bool = True
    through_norms: bool | None = None
    mask_known: bool | None = None
    full_csls: bool | None = None
    enough_pairs: int | None = None
    damping: float | None = None
    start: str = "auto"
    spelling: bool | None = None
    passes: int | None = None
    early_extent: float = 1.0
    last_pass: str = "many"
    anchors: int | None = None
    size: int | None = None
    extent: float | None = None
    snapshots: bool = False
    snapshots_: dict[float, tuple[Map, Map]] = field(init=False, compare=False, default_factory=dict)
    report_: C1Report = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if (value := str(getattr(self, name))) not in known:
                advice = f"use {', '.join(known)}.{nearest_name(value, known)}"
                raise BilexError(f"{name} '{value}' of c1 is not known; {advice}")

    def check(self) -> None:
        """As for every aligner; `set_params` may also have set an unknown preset, start or last pass."""
        super().check()
        self.__post_init__()

    def resolved(self, seeds: int) -> Self:
        """The settings that preset "auto" stands for with a number of seeds; other presets stay as they are.

        Held-out seeds and independent dictionaries of seven families of vectors chose it
        (research/never_worse.md).
        """
        if self.preset != "auto":
            return self
        # Few seeds need whole rounds; the user's number of updates is taken as it is.
        whole = self.has_few(seeds) or self.updates is not None
        extent, early, enough = (1.0, 1.0, 0) if whole else (USUAL_EXTENT, _EARLY_EXTENT, _ENOUGH_PAIRS)
        extent = extent if self.extent is None else self.extent
        return replace(
            self,
            preset="best",
            enough_pairs=enough if self.enough_pairs is None else self.enough_pairs,
            damping=_MOST_DAMPING * (1 - extent) if self.damping is None else self.damping,
            extent=extent,
            early_extent=early * self.early_extent,
            passes=self.passes or 3,
            spelling=self.spelling is not False,
        )

    def constants(self, seeds: int, smaller_vocabulary: int) -> C1Constants:
        """The constants for a number of usable seeds and of words in the smaller vocabulary.

        From 2,236 seeds on the paper's supervised constants apply, below its semi-supervised ones. Under 600
        seeds, where the first mapping is poor, rounds without contrast come first: one for 301 to 599 seeds
        and one more for each further halving. At most two thirds of the words of a small vocabulary become
        new pairs, and at most one in twenty are negatives of a pair. Settings that are not None come last.
        """
        own = self.resolved(seeds)
        seeds = {"5k": 5_000, "1k": 1_000}.get(own.preset, seeds if self.size is None else self.size)
        found = SUPERVISED if seeds >= MANY_SEEDS else SEMI_SUPERVISED
        if 0 < seeds < _WARM_UP_SEEDS:
            found = replace(found, warm_up=1 + int(math.log2(_WARM_UP_SEEDS / seeds)))
        if own.preset in EXTENTS:
            found = shortened(replace(with_long_steps(found), **_BEST), EXTENTS[own.preset])
        if own.preset == "quick":
            found = replace(found, updates=min(found.updates, _QUICK_UPDATES))
        capped = {
            "augment": min(found.augment, max(1, 2 * smaller_vocabulary // 3)),
            "negatives": min(found.negatives, max(1, smaller_vocabulary // 20)),
        }
        settings = {part.name: getattr(own, part.name) for part in fields(found)}
        given = {name: value for name, value in settings.items() if value is not None}
        found = replace(found, **(capped | given))
        extent = 1.0 if own.extent is None else own.extent
        if extent < 1 and own.preset not in EXTENTS and found.updates:
            found = with_long_steps(found)
        found = shortened(found, extent)
        if not self.contrastive:
            found = replace(found, updates=0)
        if not self.self_learning:
            found = replace(found, iterations=1, warm_up=0)
        return found

    def plan(self, seeds: int, smaller_vocabulary: int) -> tuple[Pass, ...]:
        """The passes through the rounds; the most confident pairs of each join the seeds of the next."""
        own = self.resolved(seeds)
        seeds = seeds if self.size is None else self.size
        constants = own.constants(seeds, smaller_vocabulary)
        count = own.passes or (3 if own.preset in EXTENTS and self.has_few(seeds) else 1)
        if count == 1 or not own.self_learning or own.anchors == 0:
            return (Pass(0, constants),)
        last = own if own.last_pass == "same" else replace(own, size=MANY_SEEDS)
        if own.snapshots:
            last = replace(last, extent=1.0, iterations=1)
        many = seeds >= MANY_SEEDS
        most = _ANCHORS // 2 if many else _ANCHORS
        anchors = own.anchors or min(most, max(1, smaller_vocabulary // _WORDS_PER_ANCHOR))
        early = shortened(constants, own.early_extent)
        first = replace(early, iterations=1) if many and own.early_extent < 1 else early
        # With few seeds, 20,000 words find as good pairs (research/c1.md); with many not always.
        words = _EARLY_WORDS if seeds < _FEW_SEEDS else None
        middle = [Pass(max(1, 3 * anchors // 5), early, words)] * (count - 2)
        of_last = last.constants(last.size or seeds, smaller_vocabulary)
        shares = _SNAPSHOTS if own.snapshots else ()
        return Pass(0, first, words), *middle, Pass(anchors, of_last, snapshots=shares)

    def has_few(self, seeds: int) -> bool:
        """Whether there are so few seeds that pairs which the vocabularies suggest join them."""
        few = _FEW_SEEDS_OF_AUTO if self.preset == "auto" else _FEW_SEEDS
        return (seeds if self.size is None else self.size) < few

    def leaves_extent_open(self, pairs: int) -> bool:
        """Whether a trial on so many seeds is to choose the extent."""
        open_ = self.preset == "auto" and self.extent is None and self.updates is None
        return open_ and not self.has_few(pairs) and self.contrastive and len(self.plan(pairs, pairs)) > 1

    def for_trial(self, pairs: int, words: int) -> Self:
        """A copy with at most two passes, one round per pass if there are many seeds, and fewer updates.

        Its constants are those of all seeds, though some are held out. Where the extent is open, its last
        round is whole, and the maps along it are kept.
        """
        size = self.size or pairs
        passes = self.passes or (1 if self.has_few(pairs) else len(self.plan(pairs, words)))
        rounds = 1 if passes > 1 and size >= MANY_SEEDS else self.iterations
        short = self.clone().set_params(size=size, passes=min(2, passes), iterations=rounds)
        if self.leaves_extent_open(pairs):
            return short.set_params(snapshots=True)
        return short.set_params(extent=_TRIAL_EXTENT * (1.0 if self.extent is None else self.extent))
