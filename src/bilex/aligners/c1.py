"""Stage C1: contrastive alignment of static vectors inside a self-learning loop (the paper's Algorithm 1).

    D ← D_0                                             the seeds
    for each round:
        W_x, W_y ← advanced mapping of D                `advanced`
        for each update:                                `contrast`
            find hard negatives of the pairs in the current maps
            W_x, W_y ← W_x, W_y − rate · clipped gradient of the loss
        D ← D_0 ∪ D_add, pairs that W_x and W_y find    `induction`

`C1.algorithm_1` is that loop, for two languages or more. `_fit` passes through it once, or several times with
the surest pairs found so far as further seeds. `c1_settings` has all settings and constants.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from bilex.aligners.advanced import Two, advanced_maps, damping_sentence, joint_maps
from bilex.aligners.base import Pairs
from bilex.aligners.c1_settings import C1Constants, C1Settings, Pass, Round
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.contrast import Contrast, Words, forbidden_partners, known_negatives
from bilex.aligners.induction import augmentation, induce_pairs, surest_pairs, without_pairs, without_words_of
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.preparation import UnitRows
from bilex.core.device import resolve_device
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

# The objectives of so many pairs of languages are in memory at once. Where there are more, a round goes over
# groups of them several times, with a part of its updates each time.
_PAIRS_AT_ONCE, _TURNS = 10, 4

Maps = dict[str, torch.Tensor]
SOURCE_TARGET: Two = ("source", "target")


class Known(NamedTuple):
    """What is known about two languages.

    Attributes:
        seeds: D_0.
        rejected: Pairs that are no translations.
        constants: Those of these two languages, but for the number and the length of updates.
    """

    seeds: Pairs
    rejected: Pairs
    constants: C1Constants


class Learned(NamedTuple):
    """What a round of Algorithm 1 came to.

    Attributes:
        maps: The map of each language.
        dictionary: The pairs that they were learned from, by two languages.
        round: Its sizes and losses.
        broke: Why the fit cannot go on after it; None if it can.
    """

    maps: Maps
    dictionary: Mapping[Two, Pairs]
    round: Round
    broke: str | None = None


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

    def algorithm_1(
        self,
        rows: Mapping[str, UnitRows],
        known: Mapping[Two, Known],
        dictionary: Mapping[Two, Pairs],
        constants: C1Constants,
        maps: Maps | None,
        words: int | None,
        titles: Sequence[str],
        progress: Progress,
    ) -> Iterator[Learned]:
        """Algorithm 1, for the paper's two languages and for more, each with one map.

        Every two languages have seeds D_0, find new pairs D_add and are contrasted in turn; `dictionary` is
        D_0 ∪ D_add.

        Args:
            rows: The vectors of each language.
            known: D_0 of every two languages, with their constants.
            dictionary: The dictionary of the first round, where there are no maps yet.
            constants: They give the number and the length of updates.
            maps: The maps after the last finished round; None before the first.
            words: Search new pairs and negatives among so many of the most frequent words; None for all.
            titles: The name of each round that is left to do.
            progress: Receives how far each round is.

        Yields:
            The result of each round.
        """
        for title in titles:
            if maps is not None:  # D_add is found anew in every round and never kept
                found = {two: self._new_pairs(rows, maps, words, two, known[two], progress) for two in known}
                dictionary = {two: np.concatenate([known[two].seeds, found[two]]) for two in known}
            maps = self._mapping(rows, dictionary, progress)
            contrasted = {
                two: pairs if own.constants.contrast_on_augmented or not len(own.seeds) else own.seeds
                for (two, own), pairs in zip(known.items(), dictionary.values(), strict=True)
                if len(pairs)
            }
            losses, searches, broke = np.zeros(constants.updates), 0, None
            with progress.task(title, constants.updates * len(contrasted)) as task:
                for update, (a, b), contrast in self._turns(
                    rows, known, contrasted, constants.updates, words
                ):
                    before = contrast.searched
                    # A map that several pairs of languages move goes a share of each step.
                    rate = constants.learning_rate * constants.decay**update / (len(rows) - 1)
                    updated, loss = self.update(contrast, (maps[a], maps[b]), rate)
                    if not math.isfinite(loss):
                        broke = f"the fit broke at update {update + 1} of {title} (loss {loss})"
                        losses = losses[:update]
                        break
                    maps[a], maps[b] = updated
                    losses[update] += loss / len(contrasted)
                    searches += contrast.searched - before
                    task.advance(loss=f"{loss:.4f}", pairs=len(contrasted[a, b]))
            sizes = [sum(map(len, found.values())) for found in (dictionary, contrasted)]
            loss_of_updates = tuple(round(loss, 6) for loss in losses.tolist())
            yield Learned(
                maps,
                dictionary,
                Round(dictionary=sizes[0], contrasted=sizes[1], loss=loss_of_updates, full_searches=searches),
                broke,
            )
            if broke:
                return

    def _turns(
        self,
        rows: Mapping[str, UnitRows],
        known: Mapping[Two, Known],
        contrasted: Mapping[Two, Pairs],
        updates: int,
        words: int | None,
    ) -> Iterator[tuple[int, Two, Contrast]]:
        """The updates of a round: their numbers, and every two languages with their objective in turn."""
        chosen = list(contrasted)
        groups = [chosen[start : start + _PAIRS_AT_ONCE] for start in range(0, len(chosen), _PAIRS_AT_ONCE)]
        for numbers in np.array_split(np.arange(updates), _TURNS if len(groups) > 1 else 1):
            for group in groups if len(numbers) else []:
                objectives = {
                    (a, b): self.objective(
                        rows[a], rows[b], contrasted[a, b], known[a, b].constants, words, known[a, b].rejected
                    )
                    for a, b in group
                }
                for update in numbers.tolist():
                    for two, contrast in objectives.items():
                        yield update, two, contrast

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        """Pass through Algorithm 1, once or several times, and keep what each round comes to."""
        started = time.perf_counter()
        device = resolve_device(self.device)
        rows = dict(zip(SOURCE_TARGET, (UnitRows(source, device), UnitRows(target, device)), strict=True))
        decided_by = np.concatenate([pairs, self.rejected_])
        state = Checkpoint.of_fit(checkpoint, self.settings(), source, target, decided_by, progress)
        plan, maps, seeds, dictionary, done = self._begin(source, target, pairs, state, progress)
        self.report_ = replace(self.report_, constants=plan[-1].constants)
        schedule = [(place, number) for place, part in enumerate(plan) for number in range(part.rounds)]
        for place, part in enumerate(plan):
            left = [number for number, (pass_, _) in enumerate(schedule) if pass_ == place and number >= done]
            if len(left) == part.rounds:  # the pass begins
                if maps is not None:
                    seeds = dictionary = self._anchored(rows, maps, pairs, part, progress)
                    maps = None if len(seeds) else maps
                elif part.constants.warm_up:
                    maps = self._warm_up(rows, dictionary, seeds, part, progress)
            self.report_ = replace(self.report_, passes=len(plan), anchors=len(seeds) if place else 0)
            titles = [f"iteration {number + 1} of {len(schedule)}" for number in left]
            known = {SOURCE_TARGET: Known(seeds, self.rejected_, part.constants)}
            first = {SOURCE_TARGET: dictionary}
            learning = self.algorithm_1(
                rows, known, first, part.constants, maps, part.words, titles, progress
            )
            for maps, _, found, broke in learning:
                self._set_maps(maps)  # what an interruption in the next round leaves
                done += 1
                self.report_ = replace(self.report_, history=(*self.report_.history, found), stopped=broke)
                if broke:
                    progress.say(f"{broke}; the maps before it are kept; try a lower learning_rate.")
                    return
                state.save({**maps, "seeds": torch.from_numpy(seeds)}, done=done, passes=len(plan))
        if maps is not None:
            self._set_maps(maps)
        self.report_ = replace(self.report_, seconds=round(time.perf_counter() - started, 3))

    def _begin(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        state: Checkpoint,
        progress: Progress,
    ) -> tuple[tuple[Pass, ...], Maps | None, Pairs, Pairs, int]:
        """The passes, and where they begin or go on: maps, D_0 of the pass, dictionary, finished rounds."""
        size = len(pairs), min(len(source), len(target))
        plan = self.plan(*size)
        if (kept := state.load()) is None:
            dictionary = self._first_dictionary(source, target, pairs, plan[0], progress)
            one_pass = self.passes is None and self.report_.start is None
            return replace(self, passes=1).plan(*size) if one_pass else plan, None, pairs, dictionary, 0
        device, done = resolve_device(self.device), int(kept.state["done"])
        progress.say(f"{state.folder}: going on after iteration {done}.")
        maps = {side: kept.tensors[side].to(device) for side in SOURCE_TARGET}
        plan = replace(self, passes=1).plan(*size) if kept.state["passes"] == 1 else plan
        return plan, maps, (seeds := kept.tensors["seeds"].numpy()), seeds, done

    def _first_dictionary(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, first: Pass, progress: Progress
    ) -> Pairs:
        """The seeds, alone or joined by what the vocabularies suggest (`starts`)."""
        joined = self._has_few(len(pairs)) if self.start == "auto" else self.start != "seeds"
        if not len(pairs) or (joined and self.self_learning):
            from bilex.aligners.starts import first_dictionary

            pairs, start, tried = first_dictionary(
                source,
                target,
                pairs,
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
        self, rows: Mapping[str, UnitRows], maps: Maps, pairs: Pairs, part: Pass, progress: Progress
    ) -> Pairs:
        """D_0 of a further pass: the seeds, and the surest of the pairs that the last one has found."""
        with progress.task("choosing pairs for another pass"):
            x, y = (rows[side].mapped(maps[side]) for side in SOURCE_TARGET)
            found = surest_pairs(x, y, words=part.words, k=self.neighbours, device=x.device)
        found = without_pairs(without_words_of(found, pairs), self.rejected_)
        return np.concatenate([pairs, found[: part.anchors]])

    def _warm_up(
        self,
        rows: Mapping[str, UnitRows],
        dictionary: Pairs,
        pairs: Pairs,
        part: Pass,
        progress: Progress,
    ) -> Maps:
        """Rounds of mapping and new pairs alone, for seeds too few to contrast on."""
        known = Known(pairs, self.rejected_, part.constants)
        with progress.task("warming up", part.constants.warm_up) as task:
            for _ in range(part.constants.warm_up):
                maps = self._mapping(rows, {SOURCE_TARGET: dictionary}, progress)
                fresh = self._new_pairs(rows, maps, part.words, SOURCE_TARGET, known, progress)
                dictionary = np.concatenate([pairs, fresh])
                task.advance(pairs=len(dictionary))
        return self._mapping(rows, {SOURCE_TARGET: dictionary}, progress)

    def _new_pairs(
        self,
        rows: Mapping[str, UnitRows],
        maps: Maps,
        words: int | None,
        two: Two,
        known: Known,
        progress: Progress,
    ) -> Pairs:
        """D_add of two languages under the current maps."""
        constants = known.constants
        with progress.task("finding new pairs"):
            x, y = (rows[language].head(words).mapped(maps[language]) for language in two)
            induced = induce_pairs(
                x,
                y,
                frequent=constants.frequent,
                keep=constants.augment,
                k=self.neighbours,
                full_csls=constants.full_csls,
                device=x.device,
            )
        return without_pairs(augmentation(induced, known.seeds), known.rejected)

    def _mapping(
        self, rows: Mapping[str, UnitRows], dictionary: Mapping[Two, Pairs], progress: Progress
    ) -> Maps:
        """The advanced mapping of two languages, or of several at once."""
        if len(rows) > len(SOURCE_TARGET):
            found = joint_maps(rows, dictionary)
            return {one: torch.from_numpy(w).float().to(rows[one].device) for one, w in found.items()}
        ((a, b), pairs) = next(iter(dictionary.items()))
        two = advanced_maps(rows[a][pairs[:, 0]], rows[b][pairs[:, 1]])
        if two.ridge:
            progress.say(damping_sentence(len(pairs), two.ridge))
        return {a: two.source.float(), b: two.target.float()}

    def objective(
        self,
        x: UnitRows,
        y: UnitRows,
        dictionary: Pairs,
        constants: C1Constants,
        words: int | None = None,
        rejected: Pairs | None = None,
    ) -> Contrast:
        """The loss of one round: its pairs, and among which words their negatives are found."""
        rejected = self.rejected_ if rejected is None else rejected
        limit = min(self.negative_vocabulary or max(len(x), len(y)), words or len(x) + len(y))
        source_forbidden, target_forbidden = forbidden_partners(
            dictionary, limit, all_known=constants.mask_known, rejected=rejected
        )
        return Contrast(
            Words.of(x, dictionary[:, 0], limit),
            Words.of(y, dictionary[:, 1], limit),
            source_forbidden,
            target_forbidden,
            constants.negatives,
            self.temperature,
            constants.through_norms,
            known_negatives(x, y, dictionary, rejected),
        )

    def update(
        self, contrast: Contrast, maps: tuple[torch.Tensor, torch.Tensor], rate: float
    ) -> tuple[tuple[torch.Tensor, torch.Tensor], float]:
        """One step of SGD with the joint gradient clipped; the loss is NaN if anything is not finite."""
        step = contrast.step(*maps)
        norm = (step.source.square().sum() + step.target.square().sum()).sqrt()
        amount = rate * (self.clip / (norm + 1e-6)).clamp(max=1.0)
        updated = (maps[0] - amount * step.source, maps[1] - amount * step.target)
        squares = [part.square().sum().double() for part in updated]  # if these overflow, so will lengths
        loss, *others = torch.stack([step.loss, norm.double(), *squares]).tolist()
        return updated, loss if all(map(math.isfinite, others)) else math.nan

    def _set_maps(self, maps: Maps) -> None:
        self.source_map_ = Map([Unit(), Linear(maps["source"].cpu().numpy()), Unit()])
        self.target_map_ = Map([Unit(), Linear(maps["target"].cpu().numpy()), Unit()])
