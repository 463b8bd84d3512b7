"""Several languages aligned together: Algorithm 1 of C1 with one map per language and the pairs of all.

The maps of all languages are learned from the pairs of all at once, then improved by contrastive updates of
every two languages in turn, which share the maps; then every two languages, also those without seeds, find
new pairs, and the next round begins. For two languages this is C1.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.c1 import C1
from bilex.aligners.c1_settings import MANY_SEEDS, C1Constants
from bilex.aligners.checkpoint import Checkpoint, fingerprint
from bilex.aligners.contrast import Contrast
from bilex.aligners.induction import augmentation, induce_pairs, without_pairs, without_words_of
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.preparation import UnitRows
from bilex.core.device import enough_memory, resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex.model.many.mapping import Two, joint_maps
from bilex.model.provenance import JointReport
from bilex.vectors import WordVectors


@dataclass(frozen=True, eq=False)
class Part:
    """The most frequent words of a language, and those of its seeds.

    Attributes:
        words: Their unit vectors, in order of frequency; narrow vectors are padded with zeros.
        dim: The dimension that the vectors have in their file.
    """

    words: WordVectors
    dim: int

    def whole_map(self, matrix: npt.NDArray[np.floating]) -> Map:
        """The map of vectors as they come from their file, from a matrix for the rows of this part."""
        return Map([Unit(), Linear(np.asarray(matrix[: self.dim])), Unit()])


def take_part(
    vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon], frequent: int
) -> dict[str, Part]:
    """The words that a joint fit looks at, by language.

    Args:
        vocabularies: The vectors of each language as they came from their files.
        seeds: Word pairs by two languages; their words take part however rare they are.
        frequent: How many of the most frequent words of each language take part.
    """
    dimension = max(words.dim for words in vocabularies.values())
    used: dict[str, set[str]] = {language: set() for language in vocabularies}
    for two, lexicon in seeds.items():
        for place, language in enumerate(two):
            used[language].update(pair[place] for pair in lexicon.pairs)
    unit = Unit()
    parts = {}
    for language, words in vocabularies.items():
        rare = {words.key_to_index[word] for word in used[language] if word in words}
        chosen = sorted({*range(min(frequent, len(words))), *rare})
        wide = np.zeros((len(chosen), dimension), np.float32)
        wide[:, : words.dim] = unit(np.asarray(words.vectors[np.array(chosen)], np.float32))
        known = WordVectors([words.index_to_key[row] for row in chosen], wide, ("unit",))
        parts[language] = Part(known, words.dim)
    return parts


def identity_of(
    settings: dict[str, Any], vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon]
) -> str:
    """A hash of the languages, all their vectors and seeds, and the settings but for the device.

    Args:
        settings: All that decides the fit beside the data.
        vocabularies: The vectors of each language.
        seeds: Word pairs by two languages; every language is in one of them.
    """
    digest = hashlib.sha256(repr(list(vocabularies)).encode())
    for (a, b), lexicon in seeds.items():
        places = vocabularies[a].key_to_index, vocabularies[b].key_to_index
        pairs = np.concatenate([lexicon.index(*places), lexicon.rejected_index(*places)])
        digest.update(repr((a, b)).encode())
        digest.update(fingerprint(settings, vocabularies[a], vocabularies[b], pairs).encode())
    return digest.hexdigest()


_NO_PAIRS = np.zeros((0, 2), np.int64)


def every_two(languages: Sequence[str], known: Mapping[Two, object]) -> list[Two]:
    """Every two languages once, in the order that their seeds have."""
    return [
        two if two in known or two[::-1] not in known else two[::-1]
        for two in itertools.combinations(languages, 2)
    ]


def composed_pairs(two: Two, seeds: Mapping[Two, Pairs], languages: Sequence[str]) -> Pairs:
    """Pairs of two languages that share a translation in a third, and whose words no seed of theirs holds.

    Args:
        two: The two languages.
        seeds: Seed pairs of any two languages, as rows.
        languages: All languages.

    Returns:
        Each pair once.
    """
    a, b = two
    own = _of(seeds, a, b)
    found = [own[:0]]
    for third in languages:
        if third not in two:
            onward: dict[int, list[int]] = {}
            for middle, target in _of(seeds, third, b).tolist():
                onward.setdefault(middle, []).append(target)
            through = [
                (source, target)
                for source, middle in _of(seeds, a, third).tolist()
                for target in onward.get(middle, ())
            ]
            found.append(np.array(through, np.int64).reshape(-1, 2))
    return without_words_of(np.unique(np.concatenate(found), axis=0), own)


def _of(seeds: Mapping[Two, Pairs], a: str, b: str) -> Pairs:
    if (a, b) in seeds:
        return seeds[a, b]
    return seeds[b, a][:, ::-1] if (b, a) in seeds else _NO_PAIRS


def new_pairs(
    mapped: Mapping[str, torch.Tensor],
    seeds: Mapping[Two, Pairs],
    rejected: Mapping[Two, Pairs],
    constants: Mapping[Two, C1Constants],
    neighbours: int,
) -> dict[Two, Pairs]:
    """The pairs that every two languages find in the common space, as C1 finds them.

    Args:
        mapped: Unit rows of each language in the common space.
        seeds: By two languages; no pair with a word of theirs is added.
        rejected: Pairs that are never added.
        constants: How many words look for pairs, and how many pairs are kept.
        neighbours: k of CSLS.
    """
    found = {}
    for (a, b), own in seeds.items():
        of_two = constants[a, b]
        induced = induce_pairs(
            mapped[a],
            mapped[b],
            frequent=of_two.frequent,
            keep=of_two.augment,
            k=neighbours,
            full_csls=of_two.full_csls,
            device=mapped[a].device,
        )
        found[a, b] = without_pairs(augmentation(induced, own), rejected[a, b])
    return found


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
