"""The settings of stage C1, the rule that sets its constants for any problem, and what a fit reports."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bilex.aligners.base import SMALLEST, Aligner, Limits
from bilex.aligners.report import AlignerReport
from bilex.core.errors import BilexError, nearest_name

if TYPE_CHECKING:
    from typing import Self

# Between 1k and 5k seeds, in the geometric middle, the rules change over.
MANY_SEEDS = 2236
_FEW_SEEDS = 600
# By default, fewer seeds than this are joined by pairs that the vocabularies suggest (`starts`), and the
# rounds are passed through three times.
_JOINED_SEEDS = 300
# Found pairs that are seeds of the last of several passes: so many, half of it where there are many seeds,
# and at most one per so many words of the smaller vocabulary.
_ANCHORS, _WORDS_PER_ANCHOR = 5_000, 3
# Words of each language among which the passes before the last search, with few seeds or none.
_EARLY_WORDS = 20_000
# "best" and "careful" take steps twice as long as the paper's, half as many of which go as far; longer ones
# break some fits (research/trial.md). The share of that way that each goes:
_LONGER = 2
WAYS = {"best": 1.0, "careful": 0.5}
# The share of the way that a round of a trial goes. Trials that go all of it on few words mislead, as do
# those that go a third of it and those with fewer rounds (research/trial.md).
_TRIAL_WAY = 0.45
# "auto" is "best" that stops here, in several passes of which those before the last go this share of it, with
# many seeds in one round: on held-out seeds of three families of vectors as good as all of the way, and as a
# choice between "careful" and "best" (research/never_worse.md).
_AUTO_WAY, _EARLY_WAY = 0.65, 0.75


@dataclass(frozen=True)
class C1Constants:
    """What Algorithm 1 of the paper needs to know; `C1Settings` says what each constant is."""

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


SUPERVISED = C1Constants(2, 201, 150, 60_000, 10_000, 1.5, 0.99, False)
SEMI_SUPERVISED = C1Constants(3, 51, 60, 20_000, 6_000, 2.0, 1.0, True)
PRESETS = {"5k": SUPERVISED, "1k": SEMI_SUPERVISED}
# What held-out seed pairs of several languages preferred to the paper's settings.
_BEST = {"through_norms": True, "full_csls": True}
# By then the loss of a round has settled; the paper's 200 updates take minutes on two cores.
_QUICK_UPDATES = 40
PRESET_SUMMARIES = {
    "auto": "best, in several passes that go two thirds of the way; the default of bilex align",
    "paper": "the paper's constants, chosen by the number of seeds",
    "best": "gradient through the norms, new pairs by true CSLS: much better on web vectors",
    "careful": "the same, half as far: better than the paper on all vectors tried",
    "quick": f"at most {_QUICK_UPDATES} updates per round: a first look in a fraction of the time",
    "5k": "the paper's constants for 5,000 seeds",
    "1k": "the paper's constants for 1,000 seeds",
}
STARTS = ("auto", "seeds", "joined", "identical", "numerals", "romanised", "shared", "unsupervised")
_LAST_PASSES = ("many", "same")
_MAY_BE_ZERO = ("updates", "warm_up", "augment")


class Pass(NamedTuple):
    """One pass through the rounds.

    Attributes:
        anchors: How many found pairs are its seeds, beside the user's.
        constants: Its constants.
        words: New pairs and negatives are searched among so many of the most frequent words; None for all.
    """

    anchors: int
    constants: C1Constants
    words: int | None = None

    @property
    def rounds(self) -> int:
        """Its rounds."""
        return self.constants.iterations


def long_steps(updates: int, learning_rate: float, decay: float) -> dict[str, Any]:
    """Settings that go as far as these in half the updates, in steps twice as long."""
    fewer = max(1, round(updates / _LONGER))
    return {"updates": fewer, "learning_rate": _LONGER * learning_rate, "decay": decay**_LONGER}


def updates_of_a_share(share: float, updates: int, decay: float) -> int:
    """How many updates go a share of the way of all, when each step is `decay` times the one before."""
    way = list(accumulate(decay**update for update in range(updates)))
    return bisect_left(way, share * way[-1]) + 1


def shortened(constants: C1Constants, share: float, preset: str) -> C1Constants:
    """Constants that go a share of the way of each round, in the long steps of "best"."""
    if share >= 1 or not constants.updates:
        return constants
    steps = {name: getattr(constants, name) for name in ("updates", "learning_rate", "decay")}
    if preset not in WAYS:
        steps = long_steps(**steps)
    steps["updates"] = updates_of_a_share(share, steps["updates"], steps["decay"])
    return replace(constants, **steps)


def check_choice(name: str, value: str, known: Iterable[str]) -> None:
    """Refuse a value of a setting that is not among the known ones."""
    known = list(known)
    if str(value) not in known:
        raise BilexError(
            f"{name} '{value}' of c1 is not known; use {', '.join(known)}.{nearest_name(value, known)}"
        )


def constants_for(preset: str, seeds: int, smaller_vocabulary: int, **overrides: object) -> C1Constants:
    """The constants for a number of usable seed pairs and a smaller vocabulary of so many words.

    From 2,236 seeds on (the geometric middle of 1k and 5k) the paper's supervised constants hold, below its
    semi-supervised ones. Under 600 seeds, where the first mapping is poor, rounds without contrast come
    first: one for 301 to 599 seeds and one more for each further halving. A small vocabulary sets limits: at
    most two thirds of its words become new pairs, and at most one in twenty are negatives of a pair.
    """
    check_choice("preset", preset, PRESET_SUMMARIES)
    if preset in PRESETS:
        constants = PRESETS[preset]
    else:
        constants = SUPERVISED if seeds >= MANY_SEEDS else SEMI_SUPERVISED
        if 0 < seeds < _FEW_SEEDS:
            constants = replace(constants, warm_up=1 + int(math.log2(_FEW_SEEDS / seeds)))
        if preset in WAYS:
            steps = long_steps(constants.updates, constants.learning_rate, constants.decay)
            steps["updates"] = updates_of_a_share(WAYS[preset], steps["updates"], steps["decay"])
            constants = replace(constants, **_BEST, **steps)
        if preset == "quick":
            constants = replace(constants, updates=min(constants.updates, _QUICK_UPDATES))
    constants = replace(
        constants,
        augment=min(constants.augment, max(1, 2 * smaller_vocabulary // 3)),
        negatives=min(constants.negatives, max(1, smaller_vocabulary // 20)),
    )
    given: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    constants = replace(constants, **given)
    for part in fields(constants):
        value = getattr(constants, part.name)
        least = 0 if isinstance(value, bool) or part.name in _MAY_BE_ZERO else 1e-9
        if not least <= value < math.inf:
            raise BilexError(f"setting '{part.name}' of c1 is {value}; it must be positive and finite.")
    return constants


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
    """One start that was tried in the place of seeds, or beside them.

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
        constants: Those of this fit; of several passes, those of the last.
        history: Its rounds; of a fit that was resumed, those since then.
        start: The start that was taken in the place of seeds, or beside them; None for the seeds alone.
        starts: The starts that were tried, by name.
        passes: How often it passed through the rounds.
        anchors: Pairs that the last pass took as seeds; 0 where there was one pass.
        stopped: Why it stopped before its end; None if it did not.
        seconds: What it took.
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

    Every constant of the paper is a setting. Those left at None follow the preset, which picks and scales
    them by the number of seeds and words (`constants_for`). Three settings go beyond the paper, with any
    number of seeds: `start` joins the seeds by pairs that the vocabularies suggest, `passes` repeats the
    rounds with the surest pairs found so far as further seeds, and `last_pass` chooses the constants of the
    last repetition.

    Args:
        preset: "paper", "best", "careful", "quick", "5k", "1k", or "auto", which `bilex.fit` replaces by
            several passes of "best", and which is "paper" for an aligner that is fitted by itself.
        iterations: Rounds of self-learning (N_iter).
        updates: Contrastive updates per round (N_CL).
        negatives: Hard negatives per side (N_neg).
        frequent: Words for which new pairs are searched (N_freq).
        augment: New pairs kept from each direction (N_aug).
        learning_rate: Of plain SGD.
        decay: Factor on the learning rate after each update (γ).
        contrast_on_augmented: Whether contrast also uses the new pairs.
        warm_up: Rounds without contrast before the first.
        temperature: τ of the loss.
        clip: Greatest norm of the gradient over both maps.
        negative_vocabulary: Negatives are found among so many of the most frequent words; 0 for all.
        neighbours: k of CSLS in finding new pairs.
        contrastive: Switch for the ablation: False leaves the contrastive updates out.
        self_learning: Switch for the ablation: False makes one round on the seeds alone.
        through_norms: Let the gradient through the norms of the mapped vectors.
        mask_known: Never take another known translation as a negative.
        full_csls: Rank new pairs by true CSLS.
        start: The first dictionary: "seeds" for the seeds alone; "identical", "numerals", "romanised",
            "shared" (these three together) or "unsupervised" for what the vocabularies suggest, joined to the
            seeds; "joined" for the best of these; "auto" for "joined" under 300 seeds and "seeds" from there
            on.
        passes: How often to pass through the rounds; None for three under 300 seeds with "best" and
            "careful", and else one.
        early: The share of the way that passes before the last go; under 1, with many seeds, in one round.
        last_pass: "many" gives the last of several passes the constants for many seeds, "same" those of the
            others.
        anchors: How many of the pairs found so far are seeds of the last pass; None for 5,000, and for 2,500
            where there are many seeds.
        size: Use the constants for this number of seeds, whatever the lexicon has; None for the lexicon's.
        way: The share of the way, in summed lengths of steps, that each round goes. Trials go a part of it.
    """

    presets = PRESET_SUMMARIES
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
        "early": (SMALLEST, 1),
        "way": (SMALLEST, 1),
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
    start: str = "auto"
    passes: int | None = None
    early: float = 1.0
    last_pass: str = "many"
    anchors: int | None = None
    size: int | None = None
    way: float = 1.0
    report_: C1Report = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESET_SUMMARIES)
        check_choice("start", self.start, STARTS)
        check_choice("last_pass", self.last_pass, _LAST_PASSES)

    def constants(self, seeds: int, smaller_vocabulary: int) -> C1Constants:
        """The constants that hold for a problem of this size."""
        seeds = self._seeds(seeds)
        overrides = {constant.name: getattr(self, constant.name) for constant in fields(C1Constants)}
        constants = constants_for(self.preset, seeds, smaller_vocabulary, **overrides)
        constants = shortened(constants, self.way, self.preset)
        if not self.contrastive:
            constants = replace(constants, updates=0)
        if not self.self_learning:
            constants = replace(constants, iterations=1, warm_up=0)
        return constants

    def plan(self, seeds: int, smaller_vocabulary: int) -> tuple[Pass, ...]:
        """The passes through the rounds; the surest pairs of each join the seeds of the next."""
        few, seeds = self._has_few(seeds), self._seeds(seeds)
        own = self.constants(seeds, smaller_vocabulary)
        count = self.passes
        if count is None:
            count = 3 if self.preset in WAYS and few else 1
        if count == 1 or not self.self_learning or self.anchors == 0:
            return (Pass(0, own),)
        last = own
        if self.last_pass == "many":
            last = replace(self, size=MANY_SEEDS).constants(MANY_SEEDS, smaller_vocabulary)
        most = _ANCHORS // 2 if seeds >= MANY_SEEDS else _ANCHORS
        anchors = self.anchors or min(most, max(1, smaller_vocabulary // _WORDS_PER_ANCHOR))
        found = (0, *[max(1, 3 * anchors // 5)] * (count - 2))
        early = shortened(own, self.early, self.preset)
        if self.early < 1 and seeds >= MANY_SEEDS:
            early = replace(early, iterations=1)
        # Without many seeds, 20,000 words find as good pairs (research/trial.md); with them not always.
        words = _EARLY_WORDS if few else None
        return (*(Pass(pairs, early, words) for pairs in found), Pass(anchors, last))

    def _seeds(self, given: int) -> int:
        return given if self.size is None else self.size

    def _has_few(self, seeds: int) -> bool:
        return self._seeds(seeds) < _JOINED_SEEDS

    def for_trial(self, pairs: int, words: int) -> Self:
        """Fewer updates, and one round per pass with many seeds; the constants are those for all seeds."""
        passes = self.passes or 1  # what few seeds and none add by default takes long and decides nothing
        size = self.size or pairs
        rounds = 1 if passes > 1 and size >= MANY_SEEDS else self.iterations
        return self.clone().set_params(size=size, way=_TRIAL_WAY * self.way, passes=passes, iterations=rounds)

    def choices(self, pairs: int) -> list[dict[str, dict[str, Any]]]:
        """With preset "auto" and 300 seeds or more: two passes, and where these are weak a third or a start.

        Held-out seeds of three families of vectors preferred two passes to one almost everywhere, and a third
        pass or a joined start only where static vectors are weak (research/never_worse.md).
        """
        if self.preset != "auto":
            return []
        form: dict[str, Any] = {
            "preset": "best",
            "way": _AUTO_WAY * self.way,
            "early": _EARLY_WAY * self.early,
        }
        learns = self.self_learning and self.contrastive
        if self.passes is not None or not learns or self._has_few(pairs):
            return [{"best": form}]
        form["passes"] = 2
        if pairs < MANY_SEEDS:
            return [{"best": form}, {"third pass": {"passes": 3}}]
        return [{"best": form}, *([{"joined start": {"start": "joined"}}] if self.start == "auto" else [])]
