"""VecMap: an advanced linear mapping, and self-learning that starts from few seeds or none.

Artetxe, Labaka and Agirre, "Generalizing and improving bilingual word embedding mappings with a
multi-step framework of linear transformations" (AAAI 2018) and "A robust self-learning method for
fully unsupervised cross-lingual mappings of word embeddings" (ACL 2018).
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from bilex.aligners.advanced import AdvancedReport, advanced_maps
from bilex.aligners.base import Aligner, Folder, Limits, Pairs
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.preparation import Prepared, unit_center_unit
from bilex.aligners.spelling import identical_strings
from bilex.aligners.starts import COLLAPSED, FromPairs, unsupervised_similarity_distributions
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.search.search import placed
from bilex.search.threads import single_threaded_torch
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from typing import Self

    from bilex.search.matching import Matches

_SECONDS_KEPT = 10.0
# In a trial: patience, growth and matched words. The confidences learned from shorter self-learning are as
# good as those of a whole fit (research/trial.md).
_TRIAL_PATIENCE, _TRIAL_GROWTH, _TRIAL_FREQUENT = 5, 4.0, 5_000
_JUDGED_WORDS, _JUDGED_SPLITS = 4000, 3  # of `recovered_share`


@dataclass(frozen=True, kw_only=True)
class VecMapReport(AdvancedReport):
    """The report of a mapping.

    Attributes:
        dictionary: Pairs that it was learned from.
    """

    dictionary: int = 0


@dataclass(frozen=True, kw_only=True)
class SelfLearningReport(VecMapReport):
    """The report of self-learning.

    Attributes:
        first_dictionary: Pairs of the first round.
        rounds: Rounds until it ended.
        objective: The mean similarity of best partners in the last one.
        agreement: The share of words whose best partner's best partner they are.
        recovered: The share of induced pairs that the others predict.
    """

    first_dictionary: int = 0
    rounds: int = 0
    objective: float = 0.0
    agreement: float = 0.0
    recovered: float = 0.0


@dataclass(kw_only=True, repr=False)
class VecMapSupervised(FromPairs):
    """One advanced mapping of the seed pairs: whiten, rotate, re-weight, undo the whitening.

    Examples:
        >>> VecMapSupervised().fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "vecmap-supervised"
    summary = "whitened, re-weighted mapping of centred vectors from the seed pairs; seconds"

    report_: VecMapReport = field(init=False, compare=False)

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        _map(self, unit_center_unit(source.vectors), unit_center_unit(target.vectors), pairs, progress)


@dataclass(kw_only=True, repr=False)
class _SelfLearning(Aligner):
    """Map, match the frequent words, and map again, with decreasing randomness.

    In each round the two languages are rotated onto each other by the current dictionary, and every
    frequent word of both takes its best partner by CSLS, of which at first nine in ten are hidden at
    random. When `patience` rounds have not raised the mean similarity of best partners by
    `threshold`, fewer are hidden; when that happens with none hidden, or the dictionary stays the same
    then, the last dictionary gives the final advanced mapping. The first dictionary serves the first
    round only.

    Args:
        frequent: How many of the most frequent words of each language are matched.
        neighbours: k of CSLS.
        keep: The probability that a score is not hidden, at the start.
        growth: What `keep` is multiplied by, up to 1.
        patience: Rounds without improvement until then.
        threshold: The least improvement.
    """

    limits: ClassVar[Limits] = {
        "frequent": (1, None),
        "neighbours": (1, None),
        "keep": (1e-3, 1),  # less would hide all scores, and grow too slowly
        "growth": (1.01, None),
        "patience": (1, None),
        "threshold": (0, None),
        "described": (1, None),
    }

    frequent: int = 20000
    neighbours: int = 10
    keep: float = 0.1
    growth: float = 2.0
    patience: int = 50
    threshold: float = 1e-6
    report_: SelfLearningReport = field(init=False, compare=False)

    def for_trial(self, pairs: int, words: int) -> Self:
        """Less patience, faster growth and fewer words."""
        return self.clone().set_params(
            patience=min(self.patience, _TRIAL_PATIENCE),
            growth=max(self.growth, _TRIAL_GROWTH),
            frequent=min(self.frequent, _TRIAL_FREQUENT),
        )

    def _first_dictionary(self, source: WordVectors, target: WordVectors, pairs: Pairs) -> Pairs:
        """The pairs of the first round: the seeds, if a method does not find others."""
        return pairs

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        if len(pairs) and not self.needs_seeds:
            progress.log(f"method '{self.name}' makes its own first dictionary; the seed pairs are not used.")
        first = self._first_dictionary(source, target, pairs)
        x, y = unit_center_unit(source.vectors), unit_center_unit(target.vectors)
        device = resolve_device(self.device)
        placed_x, placed_y = placed(x.rows, device), placed(y.rows, device)
        state = Checkpoint.of_fit(checkpoint, self.settings(), source, target, pairs, progress)
        learned = self._learn(placed_x, placed_y, torch.from_numpy(first).to(device), state, progress)
        induced = _both(learned.forward, learned.backward)
        _map(self, x, y, induced.cpu().numpy(), progress)
        share = recovered_share(placed_x, placed_y, induced, k=self.neighbours, seed=self.seed)
        warnings: tuple[str, ...] = ()
        if share < COLLAPSED:
            warnings = (
                f"a part of the induced pairs predicts only {share:.0%} of the others, so the two languages "
                "were probably not brought together; give (more) seed pairs.",
            )
            progress.log(warnings[0])
        self.report_ = replace(
            self.report_,
            first_dictionary=len(first),
            objective=float(learned.objective),
            agreement=float(_mutual(learned).double().mean()),
            recovered=share,
            warnings=warnings,
        )

    def _learn(
        self, x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor, state: Checkpoint, progress: Progress
    ) -> Matches:
        """The loop; what the last round found."""
        from bilex.search.matching import StochasticMatcher

        frequent_x, frequent_y = x[: self.frequent], y[: self.frequent]
        loop = _Loop(self.keep)
        if (kept := state.load()) is not None:
            loop = _Loop(**{part.name: kept.state[part.name] for part in fields(_Loop)})
            pairs = _both(kept.tensors["forward"].to(x.device), kept.tensors["backward"].to(x.device))
        match = StochasticMatcher(self.neighbours, self.seed, x.device, calls=loop.number)
        saved = time.monotonic()
        with progress.task("self-learning") as task:
            while True:
                loop.number += 1
                found = match(frequent_x @ rotation(x, y, pairs), frequent_y, loop.keep)
                before, pairs = pairs, _both(found.forward, found.backward)
                if found.objective >= loop.best + self.threshold:
                    loop.best, loop.improved = found.objective, loop.number
                task.advance(round=loop.number, similarity=found.objective, keep=loop.keep)
                tired = loop.number - loop.improved >= self.patience
                if loop.keep >= 1 and (tired or torch.equal(before, pairs)):
                    self.report_ = replace(self.report_, rounds=loop.number)
                    return found
                if tired:
                    loop.keep, loop.improved = min(1.0, self.growth * loop.keep), loop.number
                if time.monotonic() - saved > _SECONDS_KEPT:
                    state.save({"forward": found.forward, "backward": found.backward}, **asdict(loop))
                    saved = time.monotonic()


@dataclass
class _Loop:
    """The state of self-learning after a round."""

    keep: float  # the probability that a score is not hidden
    number: int = 0  # rounds so far
    improved: int = 0  # the last round with an improvement, or with a new `keep`
    best: float = -math.inf  # the highest mean similarity so far


@dataclass(kw_only=True, repr=False)
class VecMapSemi(_SelfLearning, FromPairs):
    """Self-learning that starts from seed pairs.

    Examples:
        >>> VecMapSemi().fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "vecmap-semi"
    summary = "self-learning from few seed pairs; minutes"


@dataclass(kw_only=True, repr=False)
class VecMapIdentical(_SelfLearning):
    """Self-learning that starts from the words that both languages spell alike.

    Examples:
        >>> VecMapIdentical().fit(source, target)  # doctest: +SKIP
    """

    name = "vecmap-identical"
    summary = "self-learning from words spelled alike, no seeds; for languages in one script"
    needs_seeds = False

    def _first_dictionary(self, source: WordVectors, target: WordVectors, pairs: Pairs) -> Pairs:
        shared = identical_strings(source, target)
        if len(shared) < self.fewest_pairs:
            raise BilexError(
                f"the two vocabularies share {len(shared)} words, too few for method '{self.name}'; "
                "use vecmap-unsupervised, or give seed pairs to vecmap-semi."
            )
        return shared


@dataclass(kw_only=True, repr=False)
class VecMapUnsupervised(_SelfLearning):
    """Self-learning that starts from how similarities are distributed in each language.

    Args:
        described: The number of frequent words among which the first dictionary is searched.

    Examples:
        >>> VecMapUnsupervised().fit(source, target)  # doctest: +SKIP
    """

    name = "vecmap-unsupervised"
    summary = "self-learning from the two spaces alone, no seeds; may fail, with a warning"
    needs_seeds = False

    described: int = 4000

    def _first_dictionary(self, source: WordVectors, target: WordVectors, pairs: Pairs) -> Pairs:
        return unsupervised_similarity_distributions(
            source, target, frequent=self.described, k=self.neighbours, device=self.device
        )


def _both(forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
    """Forward, then backward pairs; a pair found both ways counts twice."""
    source, target = (torch.arange(len(rows), device=rows.device) for rows in (forward, backward))
    return torch.cat([torch.stack([source, forward], 1), torch.stack([backward, target], 1)])


def _mutual(found: Matches) -> torch.Tensor:
    """Whether each source word is the best partner of its best partner."""
    return found.backward[found.forward] == torch.arange(len(found.forward), device=found.forward.device)


def _map(
    aligner: VecMapSupervised | _SelfLearning, x: Prepared, y: Prepared, pairs: Pairs, progress: Progress
) -> None:
    """Set the maps of `aligner` to the advanced mapping of a dictionary, and report it."""
    maps = advanced_maps(x.rows[pairs[:, 0]], y.rows[pairs[:, 1]], progress)
    aligner.source_map_ = Map([*x.steps, Linear(maps.source), Unit()])
    aligner.target_map_ = Map([*y.steps, Linear(maps.target), Unit()])
    aligner.report_ = replace(aligner.report_, dictionary=len(pairs), ridge=maps.ridge)


def rotation(x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The orthogonal map of a dictionary from the source onto the target.

    Where the dimensions differ, it leads onto the directions that the two have in common; in both cases
    xWyᵀ are the similarities of VecMap, which turns both sides by half of it.
    """
    sources, partners = pairs[:, 0], y[pairs[:, 1]]
    words = int(sources.max()) + 1
    if x.device.type == "cpu" and words < len(pairs):  # add up the partners of a word first
        left, partners = x[:words], torch.zeros(words, y.shape[1]).index_add_(0, sources, partners)
    else:  # a GPU would add them up in another order each time
        left = x[sources]
    covariance = (left.T @ partners).double().cpu()
    with single_threaded_torch() as use_one_thread:  # more would take as long, and wait for each other
        use_one_thread()
        u, _, v = torch.linalg.svd(covariance, full_matrices=False)
        turn: torch.Tensor = u @ v
    return turn.to(x.device, torch.float32)


def recovered_share(
    x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor, *, k: int = 10, seed: int = 0
) -> float:
    """The share of mutual best partners that a rotation learned from a few other ones finds again.

    Among the 4,000 most frequent words of each language, the pairs that are each other's best by CSLS
    under the map of `pairs` are split at random: as many as there are dimensions (at most half) to
    learn a rotation from, the others to be found again. The mean over three splits is returned.
    """
    turn = rotation(x, y, pairs)
    x, y = x[:_JUDGED_WORDS], y[:_JUDGED_WORDS]
    from bilex.search.matching import StochasticMatcher

    match = StochasticMatcher(k, device=x.device)
    found = match(x @ turn, y, 1.0)
    words = torch.nonzero(_mutual(found))[:, 0]
    learned = min(max(x.shape[1], y.shape[1]), len(words) // 2)
    if learned < 2:
        return 0.0
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(_JUDGED_SPLITS):
        order = words[torch.from_numpy(random.permutation(len(words))).to(x.device)]
        few, rest = order[:learned], order[learned:]
        again = match(x @ rotation(x, y, torch.stack([few, found.forward[few]], dim=1)), y, 1.0)
        shares.append(float((again.forward[rest] == found.forward[rest]).double().mean()))
    return float(np.mean(shares))
