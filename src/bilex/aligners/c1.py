"""Stage C1: contrastive alignment of static vectors inside a self-learning loop (the paper's Algorithm 1).

    D ← D_0                                             the seeds
    for each round:
        from the second round on:
            D ← D_0 ∪ D_add, pairs that W_x and W_y find    `induction`
        W_x, W_y ← advanced mapping of D                `advanced`
        for each update:                                `contrast`
            find hard negatives of the pairs in the current maps
            W_x, W_y ← W_x, W_y − rate · clipped gradient of the loss

`C1.algorithm_1` is that loop, for two languages or more. `C1.learn` passes through it once, or several times
with the most confident pairs found so far as further seeds. `c1_settings` has all settings and constants.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from bilex.aligners.advanced import advanced_maps, damping_sentence, joint_maps
from bilex.aligners.base import Pairs
from bilex.aligners.c1_settings import C1Constants, C1Settings, Pass, Round
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.contrast import Contrast, Words, forbidden_partners, known_negatives
from bilex.aligners.induction import (
    augmentation,
    confident_pairs,
    induce_pairs,
    without_pairs,
    without_words_of,
)
from bilex.aligners.maps import Linear, Map, Unit
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


class Known(NamedTuple):
    """What one pass uses of two languages: D_0, pairs that are no translations, and the constants."""

    seeds: Pairs
    rejected: Pairs
    constants: C1Constants


class Learned(NamedTuple):
    """The result of a round of Algorithm 1.

    Attributes:
        maps: The map of each language.
        dictionary: The pairs that they were learned from, by language pair.
        round: Its sizes and losses; None for the state that a checkpoint kept.
        broke: Why the fit cannot go on after it; None if it can.
        anchors: Pairs that served as seeds of its pass; 0 in the first pass.
    """

    maps: Maps
    dictionary: Dictionaries
    round: Round | None
    broke: str | None = None
    anchors: int = 0


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
        known: Mapping[LanguagePair, Known],
        dictionary: Dictionaries,
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
            words: Search new pairs and negatives among this number of frequent words; None for all.
            titles: The name of each round that is left to do.
            progress: Receives progress reports.

        Yields:
            The result of each round.
        """
        for title in titles:
            if maps is not None:  # D_add is found anew in every round and never accumulated
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
                    # A map that several language pairs move goes a share of each step.
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
        smallest = min(map(len, rows.values()))
        lead = max(evidence, key=lambda two: evidence[two].size)
        same_length = replace(self, passes=len(self.plan(evidence[lead].size, smallest)))
        plans = {two: same_length.plan(own.size, smallest) for two, own in evidence.items()}
        total, done, before = sum(part.constants.iterations for part in plans[lead]), 0, 0
        seeds = {two: own.seeds for two, own in evidence.items()}
        maps: Maps | None = None
        if (kept := state.load()) is None:
            dictionary = first_dictionary(plans[lead][0])
        else:
            done, dictionary = int(kept.state["done"]), {}
            maps = {language: kept.tensors[language].to(part.device) for language, part in rows.items()}
            seeds = {two: kept.tensors["-".join(("seeds", *two))].numpy() for two in evidence}
            progress.log(f"{state.folder}: going on after iteration {done}.")
            yield Learned(maps, {}, None, anchors=int(kept.state.get("anchors", 0)))
        for number, part in enumerate(plans[lead]):
            left = range(max(done, before), before + part.constants.iterations)
            before += part.constants.iterations
            if len(left) == part.constants.iterations and maps is not None and number:  # the pass begins
                seeds = {
                    two: self._anchored(rows, maps, two, own, plans[two][number], progress)
                    for two, own in evidence.items()
                }
                dictionary = seeds
                if any(map(len, seeds.values())):
                    maps = None  # the first round of the pass starts from `dictionary`
            known = {
                two: Known(seeds[two], own.rejected, plans[two][number].constants)
                for two, own in evidence.items()
            }
            if part.constants.warm_up and left and not left[0]:
                maps = self._warm_up(rows, known, dictionary, part, progress)
            titles = [f"iteration {place + 1} of {total}" for place in left]
            rounds = self.algorithm_1(
                rows, known, dictionary, part.constants, maps, part.words, titles, progress
            )
            anchors = sum(map(len, seeds.values())) if number else 0
            for found in rounds:
                yield found._replace(anchors=anchors)
                maps, done = found.maps, done + 1
                if found.broke:
                    progress.log(f"{found.broke}; the maps before it are kept; try a lower learning_rate.")
                    return
                d_0 = {"-".join(("seeds", *two)): torch.from_numpy(pairs) for two, pairs in seeds.items()}
                state.save({**maps, **d_0}, done=done, anchors=anchors)

    def _turns(
        self,
        rows: Mapping[str, UnitRows],
        known: Mapping[LanguagePair, Known],
        contrasted: Dictionaries,
        updates: int,
        words: int | None,
    ) -> Iterator[tuple[int, LanguagePair, Contrast]]:
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

        for maps, _, found, broke, anchors in self.learn(
            rows, {SOURCE_TARGET: own}, first_dictionary, state, progress
        ):
            self.source_map_, self.target_map_ = (
                Map([Unit(), Linear(maps[side].cpu().numpy()), Unit()]) for side in SOURCE_TARGET
            )
            history = self.report_.history if found is None else (*self.report_.history, found)
            self.report_ = replace(self.report_, history=history, stopped=broke, anchors=anchors)
        self.report_ = replace(self.report_, seconds=round(time.perf_counter() - started, 3))

    def spelled(self, source: WordVectors, target: WordVectors, seeds: int) -> Pairs:
        """Words of identical spelling, where the settings want them as evidence."""
        if not self.resolved(seeds).spelling or not self.self_learning:
            return np.zeros((0, 2), np.int64)
        return spelled_alike(source, target)

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
        two: LanguagePair,
        own: Evidence,
        part: Pass,
        progress: Progress,
    ) -> Pairs:
        """D_0 of a further pass: the seeds, confirmed spellings, and the most confident pairs found."""
        with progress.task("choosing pairs for another pass"):
            x, y = (rows[language].mapped(maps[language]) for language in two)
            alike, found = confident_pairs(
                x, y, own.spelled, words=part.words, k=self.neighbours, device=x.device
            )
        known = own._replace(spelled=alike).joined
        found = without_pairs(without_words_of(found, known), own.rejected)
        return np.concatenate([known, found[: part.anchors]])

    def _warm_up(
        self,
        rows: Mapping[str, UnitRows],
        known: Mapping[LanguagePair, Known],
        dictionary: Dictionaries,
        part: Pass,
        progress: Progress,
    ) -> Maps:
        """Rounds of mapping and new pairs alone, for seeds too few to contrast on."""
        with progress.task("warming up", part.constants.warm_up) as task:
            for _ in range(part.constants.warm_up):
                maps = self._mapping(rows, dictionary, progress)
                dictionary = {
                    two: np.concatenate(
                        [own.seeds, self._new_pairs(rows, maps, part.words, two, own, progress)]
                    )
                    for two, own in known.items()
                }
                task.advance(pairs=sum(map(len, dictionary.values())))
        return self._mapping(rows, dictionary, progress)

    def _new_pairs(
        self,
        rows: Mapping[str, UnitRows],
        maps: Maps,
        words: int | None,
        two: LanguagePair,
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

    def _mapping(self, rows: Mapping[str, UnitRows], dictionary: Dictionaries, progress: Progress) -> Maps:
        """The advanced mapping of two languages, or of several at once."""
        if len(rows) > len(SOURCE_TARGET):
            found = joint_maps(rows, dictionary)
            return {one: torch.from_numpy(w).float().to(rows[one].device) for one, w in found.items()}
        ((a, b), pairs) = next(iter(dictionary.items()))
        two = advanced_maps(rows[a][pairs[:, 0]], rows[b][pairs[:, 1]])
        if two.ridge:
            progress.log(damping_sentence(len(pairs), two.ridge))
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
