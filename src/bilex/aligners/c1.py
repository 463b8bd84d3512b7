"""Stage C1: contrastive alignment of static vectors inside a self-learning loop (the paper's Algorithm 1).

    D ← D_0                                             the seeds
    for each round:
        from the second round on:
            D ← D_0 ∪ D_add, pairs that W_x and W_y find    `induction`
        W_x, W_y ← advanced mapping of D                `advanced`
        for each update:                                `contrast`
            find hard negatives of the pairs in the current maps
            W_x, W_y ← W_x, W_y − rate · clipped gradient of the loss

`Algorithm1.rounds` is that loop, for two languages or more. `C1.learn` passes through it once, or several
times with the most confident pairs found so far as further seeds. `c1_settings` has all settings and
constants.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from bilex.aligners.advanced import advanced_maps, joint_maps
from bilex.aligners.base import NO_PAIRS, Folder, Pairs
from bilex.aligners.c1_settings import C1Settings, Pass, Round, shortened
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.contrast import Contrast
from bilex.aligners.induction import (
    augmentation,
    confident_pairs,
    induce_pairs,
    without_pairs,
    without_words_of,
)
from bilex.aligners.maps import Map
from bilex.aligners.preparation import UnitRows
from bilex.aligners.spelling import spelled_alike
from bilex.core.device import resolve_device
from bilex.core.languages import LanguagePair
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

# The objectives of this number of language pairs are in memory at once. With more, a round visits groups of
# them several times, with a part of its updates each time.
_PAIRS_AT_ONCE, _TURNS = 10, 4

Maps = dict[str, torch.Tensor]
Dictionaries = Mapping[LanguagePair, Pairs]
SOURCE_TARGET: LanguagePair = ("source", "target")


class Evidence(NamedTuple):
    """What is known about two languages.

    Attributes:
        seeds: D_0.
        rejected: Pairs that are no translations.
        spelled: Pairs of identical spelling, which later passes may confirm.
        size: The number of seeds that the constants depend on.
    """

    seeds: Pairs
    rejected: Pairs
    spelled: Pairs
    size: int

    @property
    def joined(self) -> Pairs:
        """The seeds, and pairs of identical spelling whose words no seed has."""
        return np.concatenate([self.seeds, without_words_of(self.spelled, self.seeds)])


class Learned(NamedTuple):
    """The result of a round of Algorithm 1.

    Attributes:
        maps: The map of each language.
        dictionary: The pairs that they were learned from, by language pair.
        round: Its sizes and losses; None for the state that a checkpoint kept.
        broke: Why the fit cannot go on after it; None if it can.
        anchors: Pairs that served as seeds of its pass; 0 in the first pass.
        snapshots: The maps at some shares of its summed step lengths.
    """

    maps: Maps
    dictionary: Dictionaries
    round: Round | None
    broke: str | None = None
    anchors: int = 0
    snapshots: Mapping[float, Maps] = {}


@dataclass(frozen=True)
class Algorithm1:
    """Algorithm 1, for the paper's two languages and for more, each with one map.

    Every two languages have seeds D_0, find new pairs D_add and are contrasted in turn.

    Args:
        c1: The settings.
        rows: The vectors of each language.
        evidence: What is known about every two languages.
        passes: The constants of every two languages in this pass.
        lead: The constants that give the number and the length of updates.
        progress: Receives progress reports.
    """

    c1: C1Settings
    rows: Mapping[str, UnitRows]
    evidence: Mapping[LanguagePair, Evidence]
    passes: Mapping[LanguagePair, Pass]
    lead: Pass
    progress: Progress

    def rounds(self, dictionary: Dictionaries, maps: Maps | None, titles: Sequence[str]) -> Iterator[Learned]:
        """The results of rounds with these titles, after rounds that gave `maps`, or from `dictionary` on."""
        for title in titles:
            first = maps is None and not self.lead.anchors
            if maps is not None:  # D_add is found anew in every round and never accumulated
                dictionary = self.with_new_pairs(maps)
            maps = self.advanced_mapping(dictionary)
            learned = self.contrastive_updates(maps, dictionary, title, first)
            yield learned
            if learned.broke:
                return
            maps = learned.maps

    def with_new_pairs(self, maps: Maps) -> Dictionaries:
        """D_0 ∪ D_add of every two languages under the current maps."""
        found = {}
        for languages, own in self.evidence.items():
            constants = self.passes[languages].constants
            with self.progress.task("finding new pairs"):
                x, y = (self.rows[code].head(self.lead.words).mapped(maps[code]) for code in languages)
                induced = induce_pairs(
                    x,
                    y,
                    frequent=constants.frequent,
                    keep=constants.augment,
                    k=self.c1.neighbours,
                    full_csls=constants.full_csls,
                    device=x.device,
                )
            d_add = without_pairs(augmentation(induced, own.seeds), own.rejected)
            found[languages] = np.concatenate([own.seeds, d_add])
        return found

    def advanced_mapping(self, dictionary: Dictionaries) -> Maps:
        """The advanced mapping of two languages, or of several at once."""
        if len(self.rows) > 2:
            found = joint_maps(self.rows, dictionary, self.lead.constants.damping)
            return {code: torch.from_numpy(w).float().to(self.rows[code].device) for code, w in found.items()}
        ((a, b), pairs) = next(iter(dictionary.items()))
        x, y = self.rows[a][pairs[:, 0]], self.rows[b][pairs[:, 1]]
        both = advanced_maps(x, y, self.progress, damping=self.lead.constants.damping)
        return {a: both.source.float(), b: both.target.float()}

    def contrastive_updates(
        self, maps: Maps, dictionary: Dictionaries, title: str, first: bool = False
    ) -> Learned:
        """Plain SGD on the loss of every two languages in turn; it ends before a step that is not finite.

        The first round has no new pairs, and learns few of them by heart: it makes fewer updates.
        """
        maps = dict(maps)
        contrasted = {languages: pairs for languages, pairs in dictionary.items() if len(pairs)}
        for languages in contrasted:
            seeds = self.evidence[languages].seeds
            if len(seeds) and not self.passes[languages].constants.contrast_on_augmented:
                contrasted[languages] = seeds
        constants = self.lead.constants
        if first and (most := max(map(len, contrasted.values()), default=0)):
            constants = shortened(constants, most / max(most, constants.enough_pairs))
        losses, searches, broke = np.zeros(constants.updates), 0, None
        marks = {shortened(constants, share).updates: share for share in self.lead.snapshots}
        snapshots: dict[float, Maps] = {}
        with self.progress.task(title, constants.updates * len(contrasted)) as task:
            for update, (a, b), contrast in self._turns(contrasted, constants.updates):
                if update in marks:
                    snapshots[marks[update]] = dict(maps)
                before = contrast.searched
                # A map that several language pairs move goes a share of each step.
                rate = constants.learning_rate * constants.decay**update / (len(self.rows) - 1)
                w_a, w_b, loss = self.update(contrast, maps[a], maps[b], rate)
                if not math.isfinite(loss):
                    broke = f"the fit broke at update {update + 1} of {title} (loss {loss})"
                    losses = losses[:update]
                    break
                maps[a], maps[b] = w_a, w_b
                losses[update] += loss / len(contrasted)
                searches += contrast.searched - before
                task.advance(loss=f"{loss:.4f}", pairs=len(contrasted[a, b]))
        if constants.updates in marks and not broke:
            snapshots[marks[constants.updates]] = maps
        done = Round(
            dictionary=sum(map(len, dictionary.values())),
            contrasted=sum(map(len, contrasted.values())),
            loss=tuple(round(loss, 6) for loss in losses.tolist()),
            full_searches=searches,
        )
        return Learned(maps, dictionary, done, broke, snapshots=snapshots)

    def update(
        self, contrast: Contrast, w_x: torch.Tensor, w_y: torch.Tensor, rate: float
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """One step of SGD with the joint gradient clipped; the loss is NaN if anything is not finite."""
        step = contrast.step(w_x, w_y)
        norm = (step.source.square().sum() + step.target.square().sum()).sqrt()
        amount = rate * (self.c1.clip / (norm + 1e-6)).clamp(max=1.0)
        w_x, w_y = w_x - amount * step.source, w_y - amount * step.target
        squares = [w.square().sum().double() for w in (w_x, w_y)]  # if these overflow, so will lengths
        loss, *others = torch.stack([step.loss, norm.double(), *squares]).tolist()
        return w_x, w_y, loss if all(map(math.isfinite, others)) else math.nan

    def objective(self, languages: LanguagePair, pairs: Pairs) -> Contrast:
        """The loss of some pairs, whose negatives are found among the frequent words."""
        x, y = (self.rows[code] for code in languages)
        constants, words = self.passes[languages].constants, self.lead.words
        return Contrast(
            x,
            y,
            pairs,
            min(self.c1.negative_vocabulary or max(len(x), len(y)), words or len(x) + len(y)),
            constants.negatives,
            self.c1.temperature,
            through_norms=constants.through_norms,
            mask_known=constants.mask_known,
            rejected=self.evidence[languages].rejected,
        )

    def warm_up(self, dictionary: Dictionaries) -> Maps:
        """The maps after rounds of mapping and new pairs alone, for seeds too few to contrast on."""
        rounds = self.lead.constants.warm_up
        with self.progress.task("warming up", rounds) as task:
            for _ in range(rounds):
                dictionary = self.with_new_pairs(self.advanced_mapping(dictionary))
                task.advance(pairs=sum(map(len, dictionary.values())))
        return self.advanced_mapping(dictionary)

    def _turns(self, contrasted: Dictionaries, count: int) -> Iterator[tuple[int, LanguagePair, Contrast]]:
        """The updates of a round: their numbers, and every two languages with their objective in turn."""
        chosen = list(contrasted)
        groups = [chosen[start : start + _PAIRS_AT_ONCE] for start in range(0, len(chosen), _PAIRS_AT_ONCE)]
        updates = np.arange(count)
        for numbers in np.array_split(updates, _TURNS if len(groups) > 1 else 1):
            for group in groups if len(numbers) else []:
                objectives = {
                    languages: self.objective(languages, contrasted[languages]) for languages in group
                }
                for update in numbers.tolist():
                    for languages, contrast in objectives.items():
                        yield update, languages, contrast


@dataclass(kw_only=True, repr=False)
class C1(C1Settings):
    """Advanced mapping, contrastive updates against hard negatives, and a dictionary that grows.

    References:
        Li et al., Improving Word Translation via Two-Stage Contrastive Learning, ACL 2022.

    Examples:
        >>> C1().fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "c1"
    summary = "the paper's stage C1: contrastive, self-learning; minutes; the default"
    needs_seeds = False

    def learn(
        self,
        rows: Mapping[str, UnitRows],
        evidence: Mapping[LanguagePair, Evidence],
        first_dictionary: Callable[[Pass], Dictionaries],
        state: Checkpoint,
        progress: Progress,
    ) -> Iterator[Learned]:
        """Pass through Algorithm 1 as often as the settings want, from the last finished round of `state` on.

        The number of passes and of updates follows the language pair with the most seeds.
        """
        self.check()
        smallest = min(map(len, rows.values()))
        lead = max(evidence, key=lambda languages: evidence[languages].size)
        same_length = replace(self, passes=len(self.plan(evidence[lead].size, smallest)))
        plans = {languages: same_length.plan(own.size, smallest) for languages, own in evidence.items()}
        total = sum(part.constants.iterations for part in plans[lead])
        known, maps, done, end = dict(evidence), None, 0, 0
        if (kept := state.load()) is None:
            dictionary = first_dictionary(plans[lead][0])
        else:
            done, dictionary = int(kept.state["done"]), {}
            maps = {code: kept.tensors[code].to(part.device) for code, part in rows.items()}
            for languages, own in evidence.items():
                known[languages] = own._replace(seeds=kept.tensors[_seeds_name(languages)].numpy())
            progress.log(f"{state.folder}: going on after round {done}.")
            yield Learned(maps, {}, None, anchors=int(kept.state.get("anchors", 0)))
        for number in range(len(plans[lead])):
            part = {languages: plan[number] for languages, plan in plans.items()}
            start, end = end, end + part[lead].constants.iterations
            if maps is not None and number and done <= start:  # the pass begins
                for languages, own in evidence.items():
                    seeds = self._anchored(rows, maps, languages, own, part[languages], progress)
                    known[languages] = own._replace(seeds=seeds)
                dictionary = {languages: own.seeds for languages, own in known.items()}
                if any(map(len, dictionary.values())):
                    maps = None  # the first round of the pass starts from `dictionary`
            algorithm = Algorithm1(self, rows, known, part, part[lead], progress)
            if part[lead].constants.warm_up and not done:
                maps = algorithm.warm_up(dictionary)
            d_0 = {_seeds_name(languages): torch.from_numpy(own.seeds) for languages, own in known.items()}
            anchors = sum(map(len, d_0.values())) if number else 0
            titles = [f"round {place + 1} of {total}" for place in range(max(done, start), end)]
            for learned in algorithm.rounds(dictionary, maps, titles):
                yield learned._replace(anchors=anchors)
                maps, done = learned.maps, done + 1
                if learned.broke:
                    progress.log(f"{learned.broke}; the maps before it are kept; try a lower learning_rate.")
                    return
                state.save({**maps, **d_0}, done=done, anchors=anchors)

    def spelled(self, source: WordVectors, target: WordVectors, seeds: int) -> Pairs:
        """Words of identical spelling, where the settings want them as evidence."""
        if not self.resolved(seeds).spelling or not self.self_learning:
            return NO_PAIRS
        return spelled_alike(source, target)

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        started = time.perf_counter()
        device = resolve_device(self.device)
        rows = dict(zip(SOURCE_TARGET, (UnitRows(source, device), UnitRows(target, device)), strict=True))
        decided_by = np.concatenate([pairs, self.rejected_])
        state = Checkpoint.of_fit(checkpoint, self.settings(), source, target, decided_by, progress)
        plan = self.plan(len(pairs), min(len(source), len(target)))
        spelled = without_pairs(self.spelled(source, target, len(pairs)), self.rejected_)
        own = Evidence(pairs, self.rejected_, spelled, len(pairs))
        self.report_ = replace(self.report_, constants=plan[-1].constants, passes=len(plan))

        def first_dictionary(first: Pass) -> Dictionaries:
            return {SOURCE_TARGET: self._first_dictionary(source, target, own, first, progress)}

        for learned in self.learn(rows, {SOURCE_TARGET: own}, first_dictionary, state, progress):
            self.source_map_, self.target_map_ = _of_two(learned.maps)
            self.snapshots_ = {share: _of_two(maps) for share, maps in learned.snapshots.items()}
            history = (*self.report_.history, learned.round) if learned.round else self.report_.history
            self.report_ = replace(
                self.report_, history=history, stopped=learned.broke, anchors=learned.anchors
            )
        self.report_ = replace(self.report_, seconds=round(time.perf_counter() - started, 3))

    def _first_dictionary(
        self, source: WordVectors, target: WordVectors, own: Evidence, first: Pass, progress: Progress
    ) -> Pairs:
        """The seeds, joined by words of identical spelling or by what the vocabularies suggest (`starts`)."""
        joined = self.has_few(own.size) if self.start == "auto" else self.start != "seeds"
        if own.size and not (joined and self.self_learning):
            return own.joined
        from bilex.aligners.starts import first_dictionary

        pairs, start, tried = first_dictionary(
            source,
            target,
            own.seeds,
            start=self.start,
            frequent=first.constants.frequent,
            keep=first.constants.augment,
            words=first.words,
            k=self.neighbours,
            device=self.device,
            seed=self.seed,
            progress=progress,
        )
        self.report_ = replace(self.report_, start=start, starts=dict(tried))
        return without_pairs(pairs, self.rejected_)

    def _anchored(
        self,
        rows: Mapping[str, UnitRows],
        maps: Maps,
        languages: LanguagePair,
        own: Evidence,
        part: Pass,
        progress: Progress,
    ) -> Pairs:
        """D_0 of a further pass: the seeds, confirmed spellings, and the most confident pairs found."""
        with progress.task("choosing pairs for another pass"):
            x, y = (rows[code].mapped(maps[code]) for code in languages)
            alike, found = confident_pairs(
                x, y, own.spelled, words=part.words, k=self.neighbours, device=x.device
            )
        known = own._replace(spelled=alike).joined
        found = without_pairs(without_words_of(found, known), own.rejected)
        return np.concatenate([known, found[: part.anchors]])


def _of_two(maps: Maps) -> tuple[Map, Map]:
    source, target = (Map.linear(maps[side].cpu()) for side in SOURCE_TARGET)
    return source, target


def _seeds_name(languages: LanguagePair) -> str:
    """The name of D_0 in a checkpoint."""
    return "-".join(("seeds", *languages))
