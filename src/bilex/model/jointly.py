"""Vectors of several languages and dictionaries of some pairs become one model: C1 with one map per language.

Algorithm 1 (`C1.algorithm_1`) and the trial (`bilex.fit.trial.Trial`) are those of two languages. Many
languages add the choice of words that take part, pairs that share a translation in a third language, and
held-out words that no dictionary of any two languages shows to the fit.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners.advanced import check_connected
from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.c1 import C1, Known, Maps
from bilex.aligners.c1_settings import MANY_SEEDS
from bilex.aligners.checkpoint import Checkpoint, fingerprint
from bilex.aligners.induction import without_pairs, without_words_of
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.preparation import UnitRows, frequent_words, small_vocabularies
from bilex.core.device import enough_memory, resolve_device
from bilex.core.errors import BilexError
from bilex.core.locks import exclusive_lock
from bilex.core.progress import SILENT, Progress
from bilex.fit.calibration import FEWEST_WORDS, Calibration, Records, ask, learn_confidences
from bilex.fit.held_out import HELD_OUT_AT_LEAST, HELD_OUT_AT_MOST, WordScores, halves, word_scores
from bilex.fit.trial import Decisions, Trial
from bilex.lexicon import Lexicon
from bilex.model.many import ManyLanguages
from bilex.model.provenance import JointReport, ManyProvenance
from bilex.model.space import Space, map_words
from bilex.model.storage import LanguagePair
from bilex.vectors import WordVectors

FREQUENT = 20_000
MAPPING = "mapping"  # the candidate without contrastive updates
_SUMMARY = "all languages aligned together: C1 with one map per language, from the pairs of every two"
_NO_PAIRS = np.zeros((0, 2), np.int64)

Vocabularies = Mapping[str, WordVectors]
Lexicons = Mapping[LanguagePair, Lexicon]
Word = tuple[str, str]  # its language and itself


def align_languages(
    vocabularies: Vocabularies,
    seeds: Lexicons,
    c1: C1 | None = None,
    *,
    frequent: int = FREQUENT,
    calibrated: bool = True,
    lowercase: bool = True,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> ManyLanguages:
    """Align several languages together.

    Args:
        vocabularies: The vectors of each language, by its code, as they came from their files.
        seeds: Word pairs by pair of languages, the first language's word first; they connect all languages.
        c1: The settings of C1 for every two languages; it is not fitted. None for the defaults, which
            leave the preset to held-out seeds.
        frequent: How many of the most frequent words of each language take part in the fit.
        calibrated: Whether to learn confidences on held-out seeds, in the trial that also chooses the preset.
        lowercase: Whether the vocabularies were lower-cased when they were read.
        progress: Receives progress reports.
        checkpoint: A folder where the state is kept; an interrupted run resumes there.

    Raises:
        BilexError: The seeds do not connect all languages, or a setting is invalid.
    """
    c1 = c1 or C1()
    usable = {
        (a, b): lexicon.covered(vocabularies[a].key_to_index, vocabularies[b].key_to_index)
        for (a, b), lexicon in seeds.items()
    }
    usable = {two: lexicon for two, lexicon in usable.items() if len(lexicon) or lexicon.rejected}
    check_connected(list(vocabularies), [two for two, lexicon in usable.items() if len(lexicon)])
    started = time.monotonic()
    with exclusive_lock(checkpoint):
        trial = ManyTrial(
            aligner=c1,
            vocabularies=vocabularies,
            seeds=usable,
            frequent=frequent,
            calibrate=calibrated,
            progress=progress,
        )
        decisions, calibrations = trial.decided(checkpoint)
        chosen = C1(**{**c1.settings(), **decisions.settings})
        rounds = None if checkpoint is None else checkpoint / "rounds"
        fit = fit_jointly(
            vocabularies, usable, chosen, frequent=frequent, progress=progress, checkpoint=rounds
        )
    changed = {name: value for name, value in chosen.settings().items() if name not in ("device", "start")}
    return ManyLanguages(
        {code: map_words(words, fit.maps[code]) for code, words in vocabularies.items()},
        fit.maps,
        dict(seeds),
        calibrations,
        {code: words.subwords for code, words in vocabularies.items() if words.subwords is not None},
        ManyProvenance(
            method="joint",
            method_summary=_SUMMARY,
            settings={**changed, "frequent_words": frequent},
            report=replace(fit.report, trial=decisions.report),
            fit_seconds=round(time.monotonic() - started, 2),
            files={
                code: words.report.source if words.report else None for code, words in vocabularies.items()
            },
            dimensions={code: words.dim for code, words in vocabularies.items()},
        ),
        lowercase,
        c1.device,
    )


@dataclass(frozen=True)
class JointFit:
    """The maps of all languages, from vectors as they come from their files, and what happened."""

    maps: dict[str, Map]
    report: JointReport


def fit_jointly(
    vocabularies: Vocabularies,
    seeds: Lexicons,
    c1: C1,
    *,
    frequent: int = FREQUENT,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> JointFit:
    """Learn a map for each language, as `align_languages`; a checkpoint keeps the last finished round."""
    if frequent < 1:
        raise BilexError(f"{frequent} words of each language cannot be aligned; give 1 or more.")
    with enough_memory():
        words = _taking_part(vocabularies, seeds, frequent)
        known, composed = _known(words, seeds, c1)
        most = max(len(own.seeds) - len(composed[two]) for two, own in known.items())
        constants = c1.constants(most, min(map(len, words.values())))
        settings = {**c1.settings(), "frequent": frequent}
        state = _checkpoint(checkpoint, settings, vocabularies, seeds, progress)
        device = resolve_device(c1.device)
        maps: Maps | None = None
        done, losses, last, stopped = 0, [], dict.fromkeys(map("-".join, known), 0), ""
        if (kept := state.load()) is not None:
            maps = {language: kept.tensors[language].to(device) for language in words}
            done, losses, last = int(kept.state["done"]), kept.state["losses"], kept.state["pairs"]
            progress.say(f"{state.folder}: resuming after round {done}.")
        rows = {language: UnitRows(part, device) for language, part in words.items()}
        first = {two: own.seeds for two, own in known.items()}
        titles = [f"Round {n + 1} of {constants.iterations}" for n in range(done, constants.iterations)]
        rounds = c1.algorithm_1(rows, known, first, constants, maps, None, titles, progress)
        for maps, dictionary, found, broke in rounds:
            losses.append(list(found.loss))
            last = {"-".join(two): len(pairs) for two, pairs in dictionary.items() if len(pairs)}
            if broke:
                stopped = broke
                progress.say(f"{broke}; the maps before it are kept; try a lower learning_rate.")
                break
            state.save(maps, done=len(losses), losses=losses, pairs=last)
    report = JointReport(
        seed_pairs={"-".join(two): len(own.seeds) - len(composed[two]) for two, own in known.items()},
        pairs_of_the_last_round=last,
        composed_pairs={"-".join(two): len(found) for two, found in composed.items() if len(found)},
        losses=tuple(map(tuple, losses)),
        stopped=stopped,
    )
    matrices = {
        language: w.cpu().numpy()[: vocabularies[language].dim] for language, w in (maps or {}).items()
    }
    return JointFit({code: Map([Unit(), Linear(w), Unit()]) for code, w in matrices.items()}, report)


def _taking_part(vocabularies: Vocabularies, seeds: Lexicons, frequent: int) -> dict[str, WordVectors]:
    """The most frequent words of each language and those of its seeds; narrow vectors are padded."""
    dimension = max(words.dim for words in vocabularies.values())
    found = {}
    for language, words in vocabularies.items():
        used = {
            pair[two.index(language)]
            for two, lexicon in seeds.items()
            if language in two
            for pair in lexicon.pairs
        }
        part = frequent_words(words, frequent, used)
        units = Unit()(np.asarray(part.vectors, np.float32))
        wide = np.pad(units, ((0, 0), (0, dimension - words.dim)))
        found[language] = WordVectors(part.index_to_key, wide, ("unit",))
    return found


def _known(
    words: Vocabularies, seeds: Lexicons, c1: C1
) -> tuple[dict[LanguagePair, Known], dict[LanguagePair, Pairs]]:
    """What is known about every two languages, and which of their seeds come from a third one."""
    pairs: dict[LanguagePair, Pairs] = {}
    wrong: dict[LanguagePair, Pairs] = {}
    for two in itertools.combinations(words, 2):
        a, b = two if two in seeds or two[::-1] not in seeds else two[::-1]
        lexicon = seeds.get((a, b), Lexicon([]))
        places = words[a].key_to_index, words[b].key_to_index
        pairs[a, b], wrong[a, b] = lexicon.index(*places), lexicon.rejected_index(*places)
    smallest = min(map(len, words.values()))
    known, composed = {}, {}
    for two, own in pairs.items():
        few = len(own) < MANY_SEEDS
        composed[two] = (
            without_pairs(composed_pairs(two, pairs, list(words)), wrong[two]) if few else _NO_PAIRS
        )
        d_0 = np.concatenate([own, composed[two]])
        known[two] = Known(d_0, wrong[two], c1.constants(len(own), smallest))
    return known, composed


def composed_pairs(two: LanguagePair, seeds: Mapping[LanguagePair, Pairs], languages: Sequence[str]) -> Pairs:
    """Pairs of two languages that share a translation in a third, and whose words no seed of theirs holds."""

    def between(a: str, b: str) -> Pairs:
        return seeds[a, b] if (a, b) in seeds else seeds.get((b, a), _NO_PAIRS)[:, ::-1]

    own = between(*two)
    found = [own[:0]]
    for third in (language for language in languages if language not in two):
        onward: dict[int, list[int]] = {}
        for middle, target in between(third, two[1]).tolist():
            onward.setdefault(middle, []).append(target)
        through = [
            (source, target)
            for source, middle in between(two[0], third).tolist()
            for target in onward.get(middle, ())
        ]
        found.append(np.array(through, np.int64).reshape(-1, 2))
    return without_words_of(np.unique(np.concatenate(found), axis=0), own)


def _checkpoint(
    folder: Path | None,
    settings: dict[str, Any],
    vocabularies: Vocabularies,
    seeds: Lexicons,
    progress: Progress,
) -> Checkpoint:
    """A checkpoint known by a hash of the languages, their vectors and seeds, and settings but the device."""
    digest = hashlib.sha256(repr(list(vocabularies)).encode())
    for (a, b), lexicon in seeds.items() if folder is not None else ():
        places = vocabularies[a].key_to_index, vocabularies[b].key_to_index
        pairs = np.concatenate([lexicon.index(*places), lexicon.rejected_index(*places)])
        digest.update(repr((a, b)).encode())
        digest.update(fingerprint(settings, vocabularies[a], vocabularies[b], pairs).encode())
    return Checkpoint(folder, digest.hexdigest(), progress)


class ManyScores(dict[LanguagePair, WordScores]):
    """The scores of the held-out words of each dictionary."""

    def mean(self, half: Mapping[LanguagePair, Pairs] | None = None, /) -> float:
        """The mean over the dictionaries; of those words that `half` holds, or of all."""
        parts = {two: None if half is None else half[two] for two in self}
        return float(
            np.mean([self[two].mean(rows) for two, rows in parts.items() if rows is None or len(rows)])
        )


@dataclass(eq=False, kw_only=True)
class ManyTrial(Trial[JointFit, Mapping[LanguagePair, Pairs]]):
    """The held-out trial of many languages; the mapping without contrast is a candidate too."""

    aligner: C1
    vocabularies: Vocabularies
    seeds: Lexicons
    frequent: int
    held_out: float = 0.1
    calibrations: dict[LanguagePair, Calibration] = field(init=False, default_factory=dict)
    fewest = round(FEWEST_WORDS / HELD_OUT_AT_MOST)

    def decided(self, checkpoint: Path | None) -> tuple[Decisions, dict[LanguagePair, Calibration]]:
        """The decisions and confidences, or those from before an interruption."""
        settings = {**self.aligner.settings(), "frequent_words": self.frequent, "calibrated": self.calibrate}
        folder = None if checkpoint is None else checkpoint / "trial"
        state = _checkpoint(folder, settings, self.vocabularies, self.seeds, self.progress)
        if (kept := state.load(of_another="ignore")) is not None:
            stored = kept.state["calibrations"]
            found = {(a, b): Calibration.from_dict(calibration) for a, b, calibration in stored}
            return Decisions.from_dict(kept.state), found
        decisions = self.decisions()
        if self.calibrate and not self.calibrations:
            self.calibrations = dict.fromkeys(self.seeds, decisions.calibration)
        stored = [[*two, found.as_dict()] for two, found in self.calibrations.items()]
        state.save({}, **decisions.as_dict(), calibrations=stored)
        return decisions, self.calibrations

    @cached_property
    def words(self) -> int:  # type: ignore[override]
        """Source words of the largest dictionary."""
        return max(len(lexicon.translations()) for lexicon in self.seeds.values())

    @cached_property
    def split(self) -> tuple[dict[LanguagePair, Lexicon], dict[LanguagePair, Lexicon]]:
        """The pairs to learn from, and those held out."""
        return split_together(self.seeds, self.aligner.seed, self.held_out)

    @property
    def tested(self) -> dict[LanguagePair, Lexicon]:
        """The dictionaries that hold words out."""
        return {two: pairs for two, pairs in self.split[1].items() if len(pairs)}

    @property
    def held_out_words(self) -> int:
        """Source words that are held out of all dictionaries."""
        return sum(len(pairs.translations()) for pairs in self.tested.values())

    @cached_property
    def steps(self) -> list[dict[str, dict[str, Any]]]:  # type: ignore[override]
        """With preset "auto": two presets (there is one pass), and the plain mapping."""
        if self.aligner.preset != "auto":
            return [{self.aligner.preset: {}}]
        found: dict[str, dict[str, Any]] = {name: {"preset": name} for name in ("careful", "best")}
        if self.aligner.updates is not None:
            return [{"careful": found["careful"]}]
        return [{**found, MAPPING: {"preset": "careful", "updates": 0}}]

    def fit(self, aligner: Aligner) -> JointFit:
        """Fit a candidate without the held-out words, with fewer updates."""
        learned = self.split[0]
        size = max(map(len, learned.values())), min(map(len, self.vocabularies.values()))
        constants = C1(**aligner.settings()).for_trial(*size).constants(*size)
        steps = {name: getattr(constants, name) for name in ("updates", "learning_rate", "decay")}
        shorter = C1(**{**aligner.settings(), **steps})
        return fit_jointly(
            self.vocabularies, learned, shorter, frequent=self.frequent, progress=self.progress
        )

    def _small(self, two: LanguagePair) -> tuple[WordVectors, WordVectors]:
        source, target = (self.vocabularies[code] for code in two)
        return small_vocabularies(source, target, self.split[1][two], self.frequent)

    def _rows(self, two: LanguagePair, pairs: Lexicon) -> Pairs:
        source, target = self._small(two)
        return pairs.index(source.key_to_index, target.key_to_index)

    def scores(self, fitted: JointFit) -> ManyScores:
        """The scores of the held-out words among frequent ones."""
        found = ManyScores()
        for two, pairs in self.tested.items():
            sides = zip(two, self._small(two), strict=True)
            x, y = (np.asarray(map_words(side, fitted.maps[code]).vectors) for code, side in sides)
            found[two] = word_scores(x, y, self._rows(two, pairs), self.aligner.device)
        return found

    def learn(self) -> Calibration:
        """Confidences by pair of languages, from the answers to each half by what the other half chose."""
        judged = [(self.choice(None).form, self.split[1])]
        if len(self.fits) > 1:
            one, other = self.halves()
            rows = [{two: self._rows(two, pairs) for two, pairs in half.items()} for half in (one, other)]
            by_one, by_other = (self.choice(half).form for half in rows)
            judged = [(by_one, self.split[1])] if by_one == by_other else [(by_other, one), (by_one, other)]
        mapped = {
            form: {
                code: map_words(words, self.fits[form].maps[code])
                for code, words in self.vocabularies.items()
            }
            for form, _ in judged
        }
        for a, b in self.seeds:
            records: Records = {}
            for form, held_out in judged:
                space = Space(mapped[form][a], mapped[form][b], "cosine", self.aligner.device)
                for key, answers in ask(space, held_out[a, b], self.seeds[a, b]).items():
                    records[key] = records[key] + answers if key in records else answers
            self.calibrations[a, b] = learn_confidences(records, self.aligner.seed, pooled=True)
        return Calibration(note="calibrated by pair of languages")

    def halves(self) -> tuple[dict[LanguagePair, Lexicon], dict[LanguagePair, Lexicon]]:
        """The held-out pairs in two halves; words that pairs of any languages connect are in one half."""
        texts = [
            (repr((a, source)), repr((b, target)))
            for (a, b), lexicon in self.tested.items()
            for source, target in lexicon.pairs
        ]
        same = [(word, word) for word in dict.fromkeys(itertools.chain.from_iterable(texts))]
        first = {source for source, _ in halves(Lexicon([*texts, *same]), self.aligner.seed)[0].pairs}
        parts: tuple[dict[LanguagePair, Lexicon], dict[LanguagePair, Lexicon]] = ({}, {})
        for two, lexicon in self.split[1].items():
            inside = [repr((two[0], source)) in first for source, _ in lexicon.pairs]
            for part, wanted in zip(parts, (True, False), strict=True):
                chosen = [pair for pair, one in zip(lexicon.pairs, inside, strict=True) if one is wanted]
                part[two] = Lexicon(chosen, lexicon.name)
        if not all(any(map(len, part.values())) for part in parts):
            raise BilexError("the held-out words cannot be cut in halves")
        return parts


def split_together(
    seeds: Lexicons, seed: int = 0, share: float = 0.1
) -> tuple[dict[LanguagePair, Lexicon], dict[LanguagePair, Lexicon]]:
    """Cut the dictionaries of several languages in those to learn from and those held out.

    Dictionaries of different languages often translate the same words, so that a pair that is held out of one
    could be found through two others. Words are drawn with all their translations in all languages: a pair is
    held out if both its words were drawn, learned from if neither was, and in neither list otherwise. Drawn
    is `share` of the source words of each dictionary; at least 200, but never more than a fifth.
    """
    translations: dict[Word, set[Word]] = {}
    for (a, b), lexicon in seeds.items():
        for source, target in lexicon.pairs:
            translations.setdefault((a, source), set()).add((b, target))
            translations.setdefault((b, target), set()).add((a, source))
    drawn: set[Word] = set()
    random_state = random.Random(seed)
    for (a, b), lexicon in seeds.items():
        right = lexicon.translations()
        few = min(HELD_OUT_AT_LEAST, int(HELD_OUT_AT_MOST * len(right)))
        wanted = max(round(share * len(right)), few)
        if wanted < FEWEST_WORDS:
            continue
        held = {word for word in right if (a, word) in drawn and any((b, t) in drawn for t in right[word])}
        others = sorted(set(right) - held)
        for word in random_state.sample(others, max(0, wanted - len(held))):
            drawn.add((a, word))
            drawn.update(translations[a, word])
    learned, held_out = {}, {}
    for (a, b), lexicon in seeds.items():
        ends = [((a, source) in drawn, (b, target) in drawn) for source, target in lexicon.pairs]
        pairs = list(zip(lexicon.pairs, ends, strict=True))
        kept = [pair for pair, end in pairs if not any(end)]
        learned[a, b] = Lexicon(kept, lexicon.name, rejected=lexicon.rejected)
        held_out[a, b] = Lexicon([pair for pair, end in pairs if all(end)], lexicon.name)
    return learned, held_out
