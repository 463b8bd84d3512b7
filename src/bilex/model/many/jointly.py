"""Several languages aligned together: Algorithm 1 of C1 with one map a language and the pairs of all.

The maps of all languages are learned from the pairs of all at once, then improved by contrastive updates of
every two languages in turn, which share the maps; then every two languages, also those without seeds, find
new pairs, and the next round begins. For two languages this is C1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.c1 import C1
from bilex.aligners.c1_settings import MANY_SEEDS
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.contrast import Contrast
from bilex.aligners.maps import Map
from bilex.aligners.rejected import without_pairs
from bilex.aligners.unit_rows import UnitRows
from bilex.core.device import enough_memory, resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex.model.many.found_pairs import composed_pairs, every_two, new_pairs
from bilex.model.many.identity import identity_of
from bilex.model.many.mapping import Two, joint_maps
from bilex.model.many.parts import take_part
from bilex.model.many.provenance import JointReport
from bilex.vectors import WordVectors

FREQUENT = 20_000
# The objectives of so many pairs of languages are in memory at once. Where there are more, each round passes
# over groups of them so often, a part of its updates each time.
_AT_ONCE, _PASSES = 10, 4


@dataclass(frozen=True)
class JointFit:
    """The maps of all languages, and what happened.

    Attributes:
        maps: Take the vectors of each language, as they came from their file, into the common space.
        report: Pairs used and found by two languages, and the losses.
    """

    maps: dict[str, Map]
    report: JointReport


def fit_jointly(
    vocabularies: Mapping[str, WordVectors],
    seeds: Mapping[Two, Lexicon],
    c1: C1,
    *,
    frequent: int = FREQUENT,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> JointFit:
    """Learn a map for each language.

    Args:
        vocabularies: The vectors of each language as they came from their files.
        seeds: Word pairs by two languages, the first language's word first. Pairs without seeds may be left
            out as long as the others connect all languages.
        c1: The settings of C1, which hold for every two languages; it is not fitted.
        frequent: How many of the most frequent words of each language take part.
        progress: Shows how far the work is.
        checkpoint: A folder where the last finished round is kept; None keeps nothing.

    Raises:
        BilexError: The seeds do not connect all languages, a setting makes no sense, or the checkpoint is
            that of another fit.
    """
    if frequent < 1:
        raise BilexError(f"{frequent} words of each language cannot be aligned; give 1 or more.")
    parts = take_part(vocabularies, seeds, frequent)
    words = {language: part.words for language, part in parts.items()}
    identity = ""
    if checkpoint is not None:
        identity = identity_of({**c1.settings(), "frequent": frequent}, vocabularies, seeds)
    with enough_memory():
        fit = _Fit(words, seeds, c1, Checkpoint(checkpoint, identity, progress), progress)
        maps = fit.run()
    return JointFit({language: parts[language].whole_map(m) for language, m in maps.items()}, fit.report())


@dataclass(eq=False)
class _Fit:
    """One joint fit; `run` carries it out."""

    words: Mapping[str, WordVectors]
    lexicons: Mapping[Two, Lexicon]
    c1: C1
    state: Checkpoint
    progress: Progress
    losses: list[list[float]] = field(init=False, default_factory=list)
    last: dict[Two, int] = field(init=False, default_factory=dict)
    stopped: str = field(init=False, default="")
    maps: dict[str, torch.Tensor] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.device = resolve_device(self.c1.device)
        self.languages = list(self.words)
        self.language_pairs = every_two(self.languages, self.lexicons)
        self.rows = {language: UnitRows(words, self.device) for language, words in self.words.items()}
        self.seeds = {two: self._index(two, rejected=False) for two in self.language_pairs}
        self.rejected = {two: self._index(two, rejected=True) for two in self.language_pairs}
        smallest = min(map(len, self.words.values()))
        most = max(map(len, self.seeds.values()))
        self.whole = self.c1.constants(most, smallest)
        self.constants = {two: self.c1.constants(len(own), smallest) for two, own in self.seeds.items()}
        self.composed = {two: self._composed(two) for two in self.language_pairs}

    def report(self) -> JointReport:
        """What happened."""
        return JointReport(
            seed_pairs={_name(two): len(own) for two, own in self.seeds.items()},
            pairs_of_the_last_round={_name(two): count for two, count in self.last.items()},
            composed_pairs={_name(two): len(found) for two, found in self.composed.items() if len(found)},
            losses=tuple(map(tuple, self.losses)),
            stopped=self.stopped,
        )

    def _index(self, two: Two, *, rejected: bool) -> Pairs:
        """The rows of the seeds of two languages, or of what people rejected."""
        lexicon = self.lexicons.get(two, Lexicon([]))
        places = self.words[two[0]].key_to_index, self.words[two[1]].key_to_index
        return lexicon.rejected_index(*places) if rejected else lexicon.index(*places)

    def _composed(self, two: Two) -> Pairs:
        """What the seeds of other languages say about two that have few seeds of their own."""
        if len(self.seeds[two]) >= MANY_SEEDS:
            return np.zeros((0, 2), np.int64)
        return without_pairs(composed_pairs(two, self.seeds, self.languages), self.rejected[two])

    def run(self) -> dict[str, np.ndarray]:
        """All rounds that are left to do."""
        kept = self.state.load()
        done = 0
        if kept is not None:
            self.maps = {language: kept.tensors[language].to(self.device) for language in self.languages}
            done, self.losses = int(kept.state["done"]), kept.state["losses"]
            self.last = {two: kept.state["pairs"].get(_name(two), 0) for two in self.language_pairs}
            self.progress.say(f"{self.state.folder}: going on after round {done}.")
        for number in range(done, self.whole.iterations):
            pairs = self._dictionary()
            matrices = joint_maps({lang: np.asarray(w.vectors) for lang, w in self.words.items()}, pairs)
            self.maps = {lang: torch.from_numpy(m).float().to(self.device) for lang, m in matrices.items()}
            self.last = {two: len(found) for two, found in pairs.items()}
            self.losses.append(self._contrast(number, pairs))
            if self.stopped:
                break
            counts = {_name(two): count for two, count in self.last.items()}
            self.state.save(self.maps, done=number + 1, losses=self.losses, pairs=counts)
        return {language: matrix.cpu().numpy() for language, matrix in self.maps.items()}

    def _dictionary(self) -> dict[Two, Pairs]:
        """The seeds, what they compose to, and from the second round on what the languages find."""
        known = {two: np.concatenate([self.seeds[two], self.composed[two]]) for two in self.language_pairs}
        if not self.maps:
            return {two: pairs for two, pairs in known.items() if len(pairs)}
        with self.progress.task("Finding new pairs"):
            mapped = {language: self.rows[language].mapped(m) for language, m in self.maps.items()}
            found = new_pairs(mapped, known, self.rejected, self.constants, self.c1.neighbours)
        return {two: np.concatenate([known[two], found[two]]) for two in self.language_pairs}

    def _contrast(self, number: int, pairs: Mapping[Two, Pairs]) -> list[float]:
        """The updates of a round; its losses, the mean over the pairs of languages."""
        updates = self.whole.updates
        language_pairs = [two for two in self.language_pairs if len(pairs.get(two, ()))]
        groups = [
            language_pairs[start : start + _AT_ONCE] for start in range(0, len(language_pairs), _AT_ONCE)
        ]
        passes = np.array_split(np.arange(updates), _PASSES if len(groups) > 1 else 1)
        losses = [0.0] * updates
        title = f"Round {number + 1} of {self.whole.iterations}"
        with self.progress.task(title, updates * len(language_pairs)) as task:
            for numbers, group in itertools.product([some for some in passes if len(some)], groups):
                objectives = {two: self._objective(two, pairs[two]) for two in group}
                for update in numbers.tolist():
                    loss = self._update(objectives, update)
                    if not math.isfinite(loss):
                        self._stop(number, update)
                        return losses[:update]
                    losses[update] += loss / len(language_pairs)
                    task.advance(len(group), loss=f"{loss / len(group):.4f}")
        return [round(loss, 6) for loss in losses]

    def _objective(self, two: Two, pairs: Pairs) -> tuple[C1, Contrast]:
        """The contrast of two languages: on their seeds where these are many, else on all their pairs."""
        c1, constants, seeds = self.c1.clone(), self.constants[two], self.seeds[two]
        c1.rejected_ = self.rejected[two]
        contrasted = pairs if constants.contrast_on_augmented or not len(seeds) else seeds
        return c1, c1.objective(self.rows[two[0]], self.rows[two[1]], contrasted, constants)

    def _update(self, objectives: Mapping[Two, tuple[C1, Contrast]], update: int) -> float:
        """One update of every two languages in turn; the sum of their losses."""
        rate = _pair_rate(self.whole.learning_rate, len(self.languages)) * self.whole.decay**update
        total = 0.0
        for (a, b), (c1, contrast) in objectives.items():
            updated, loss = c1.update(contrast, (self.maps[a], self.maps[b]), rate)
            if not math.isfinite(loss):
                return math.nan
            self.maps[a], self.maps[b] = updated
            total += loss
        return total

    def _stop(self, number: int, update: int) -> None:
        sentence = f"the fit broke at update {update + 1} of round {number + 1}"
        self.progress.say(f"{sentence}; the maps before it are kept; try a lower learning_rate.")
        self.stopped = sentence


def _pair_rate(rate: float, languages: int) -> float:
    """The learning rate of each two languages: C1's own, divided among the pairs that move a map.

    Held-out seeds of two families of vectors preferred that to the whole rate (docs/guide/many-languages.md).
    """
    return rate / (languages - 1)


def _name(two: Sequence[str]) -> str:
    return "-".join(two)
