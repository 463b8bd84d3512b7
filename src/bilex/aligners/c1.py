"""Stage C1: contrastive alignment of static vectors inside a self-learning loop (the paper's Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from bilex.aligners.advanced import advanced_maps, damping_sentence
from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.c1_report import C1Report
from bilex.aligners.c1_rounds import Rounds
from bilex.aligners.c1_settings import (
    MANY_SEEDS,
    PRESET_SUMMARIES,
    C1Constants,
    Pass,
    check_preset,
    check_start,
    constants_for,
    passes,
)
from bilex.aligners.contrast import Contrast, Words, forbidden_partners
from bilex.aligners.induction import augmentation, induce_pairs
from bilex.aligners.limits import SMALLEST, Limits
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.rejected import known_negatives, without_pairs
from bilex.aligners.unit_rows import UnitRows
from bilex.core.device import resolve_device
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    Maps = tuple[torch.Tensor, torch.Tensor]


@dataclass(kw_only=True, repr=False)
class C1(Aligner):
    """Advanced mapping, contrastive updates against hard negatives, and a dictionary that grows.

    Every constant of the paper is a setting. Those left at None follow the preset, which picks and scales
    them by the number of seeds and words (see `c1_settings.constants_for`); "auto" is what `bilex.fit`
    chooses among presets for, and by itself the same as "paper". Without seeds, the first dictionary is found
    as `aligners.seedless` describes.

    Args:
        preset: "paper", "best", "careful", "quick", "5k", "1k", or "auto", which `bilex.fit` replaces by
            what held-out seeds prefer, and which is "paper" for an aligner that is fitted by itself.
        iterations: Rounds of self-learning (N_iter).
        updates: Contrastive updates a round (N_CL).
        negatives: Hard negatives a side (N_neg).
        frequent: Words that look for new pairs (N_freq).
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
        anchors: Without seeds, or with few: how many of the pairs that earlier passes have found
            are taken as seeds of the last pass of the rounds; 0 for one pass.
        start: Without seeds, or with few: "auto", "identical", "numerals", "romanised", "shared"
            (these three together) or "unsupervised".

    References:
        Li et al., Improving Word Translation via Two-Stage Contrastive Learning, ACL 2022.

    Examples:
        >>> C1().fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "c1"
    summary = "the paper's stage C1: contrastive, self-learning; minutes; the default"
    needs_seeds = False
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
    anchors: int | None = None
    start: str = "auto"
    report_: C1Report = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check_preset(self.preset)
        check_start(self.start)

    def constants(self, seeds: int, smaller_vocabulary: int) -> C1Constants:
        """The constants that hold for a problem of this size."""
        overrides = {constant.name: getattr(self, constant.name) for constant in fields(C1Constants)}
        constants = constants_for(self.preset, seeds, smaller_vocabulary, **overrides)
        if not self.contrastive:
            constants = replace(constants, updates=0)
        if not self.self_learning:
            constants = replace(constants, iterations=1, warm_up=0, anchors=0)
        return constants

    def passes(self, seeds: int, smaller_vocabulary: int) -> tuple[Pass, ...]:
        """How often the rounds are gone through, and with what constants."""
        constants = (self.constants(size, smaller_vocabulary) for size in (seeds, MANY_SEEDS))
        return passes(seeds, *constants)

    def pinned(self, pairs: int, smaller_vocabulary: int) -> C1:
        """A copy with the constants for a problem of some size, whatever it will be fitted on."""
        return C1(**{**self.settings(), **asdict(self.constants(pairs, smaller_vocabulary))})

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        """Algorithm 1: `pairs` are D_0, `dictionary` is D_0 ∪ D_add, `maps` are W_x and W_y."""
        device = resolve_device(self.device)
        constants = self.constants(len(pairs), min(len(source), len(target)))
        self.report_ = replace(self.report_, constants=constants)
        everything = UnitRows(source, device), UnitRows(target, device)
        schedule = self.passes(len(pairs), min(len(source), len(target)))
        rounds = Rounds(self, source, target, pairs, schedule, device, progress, checkpoint)
        maps, pairs, dictionary = rounds.start()
        if maps is None and constants.warm_up:
            x, y = rounds.seen(0, *everything)
            maps = self._warm_up(x, y, dictionary, pairs, constants, progress)
        for number, constants in rounds:
            x, y = rounds.seen(number, *everything)
            if maps is not None:
                begins = rounds.begins_pass(number)
                if begins:
                    mapped = (rows.mapped(part) for rows, part in zip(everything, maps, strict=True))
                    pairs = dictionary = rounds.found_seeds(number, *mapped)
                if not begins or not len(pairs):  # D_add is found anew in every round and never kept
                    fresh = self._new_pairs(x, y, maps, pairs, constants, progress)
                    dictionary = np.concatenate([pairs, fresh])
            maps = self._advanced_maps(x, y, dictionary, progress)
            contrasted = dictionary if constants.contrast_on_augmented or not len(pairs) else pairs
            if constants.updates:
                contrast = self.objective(x, y, contrasted, constants)
                with rounds.watched(number, contrast) as healthy:
                    for update in range(constants.updates):
                        rate = constants.learning_rate * constants.decay**update
                        updated, loss = self.update(contrast, maps, rate)
                        if not healthy(update, loss):
                            break
                        maps = updated
            self._set_maps(maps)  # what an interruption in the next round leaves
            rounds.finish(number, maps, len(dictionary), len(contrasted))
        if maps is not None:
            self._set_maps(maps)
        self.report_ = replace(self.report_, seconds=rounds.seconds)

    def _warm_up(
        self,
        x: UnitRows,
        y: UnitRows,
        dictionary: Pairs,
        pairs: Pairs,
        constants: C1Constants,
        progress: Progress,
    ) -> Maps:
        """Rounds of mapping and new pairs alone, for seeds too few to contrast on."""
        with progress.task("warming up", constants.warm_up) as task:
            for _ in range(constants.warm_up):
                maps = self._advanced_maps(x, y, dictionary, progress)
                fresh = self._new_pairs(x, y, maps, pairs, constants, progress)
                dictionary = np.concatenate([pairs, fresh])
                task.advance(pairs=len(dictionary))
        return self._advanced_maps(x, y, dictionary, progress)

    def _new_pairs(
        self,
        x: UnitRows,
        y: UnitRows,
        maps: Maps,
        seeds: Pairs,
        constants: C1Constants,
        progress: Progress,
    ) -> Pairs:
        """D_add under the current maps."""
        with progress.task("finding new pairs"):
            induced = induce_pairs(
                x.mapped(maps[0]),
                y.mapped(maps[1]),
                frequent=constants.frequent,
                keep=constants.augment,
                k=self.neighbours,
                full_csls=constants.full_csls,
                device=x.device,
            )
        return without_pairs(augmentation(induced, seeds), self.rejected_)

    def _advanced_maps(self, x: UnitRows, y: UnitRows, dictionary: Pairs, progress: Progress) -> Maps:
        found = advanced_maps(x[dictionary[:, 0]], y[dictionary[:, 1]])
        if found.ridge:
            progress.say(damping_sentence(len(dictionary), found.ridge))
        return found.source.float(), found.target.float()

    def objective(self, x: UnitRows, y: UnitRows, dictionary: Pairs, constants: C1Constants) -> Contrast:
        """The loss of one round: its pairs, and among which words their negatives are found."""
        limit = self.negative_vocabulary or max(len(x), len(y))
        source_forbidden, target_forbidden = forbidden_partners(
            dictionary, limit, all_known=constants.mask_known, rejected=self.rejected_
        )
        return Contrast(
            Words.of(x, dictionary[:, 0], limit),
            Words.of(y, dictionary[:, 1], limit),
            source_forbidden,
            target_forbidden,
            constants.negatives,
            self.temperature,
            constants.through_norms,
            known_negatives(x, y, dictionary, self.rejected_),
        )

    def update(self, contrast: Contrast, maps: Maps, rate: float) -> tuple[Maps, float]:
        """One step of SGD with the joint gradient clipped; the loss is NaN if anything is not finite."""
        step = contrast.step(*maps)
        norm = (step.source.square().sum() + step.target.square().sum()).sqrt()
        amount = rate * (self.clip / (norm + 1e-6)).clamp(max=1.0)
        updated = (maps[0] - amount * step.source, maps[1] - amount * step.target)
        squares = [part.square().sum().double() for part in updated]  # if these overflow, so will lengths
        loss, *others = torch.stack([step.loss, norm.double(), *squares]).tolist()
        return updated, loss if all(map(math.isfinite, others)) else math.nan

    def _set_maps(self, maps: Maps) -> None:
        self.source_map_ = Map([Unit(), Linear(maps[0].cpu().numpy()), Unit()])
        self.target_map_ = Map([Unit(), Linear(maps[1].cpu().numpy()), Unit()])
