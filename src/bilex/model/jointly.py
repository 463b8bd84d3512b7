"""Vectors of several languages and dictionaries of some pairs become one model: C1 with one map per language.

The fit itself (`C1.learn`) is that of two languages. Many languages add the choice of words that take part,
pairs that share a translation in a third language, and held-out words that no dictionary of any two languages
shows to the fit.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bilex.aligners.advanced import check_connected
from bilex.aligners.base import Pairs
from bilex.aligners.c1 import C1, Evidence, Maps
from bilex.aligners.c1_settings import MANY_SEEDS
from bilex.aligners.checkpoint import Checkpoint, fingerprint
from bilex.aligners.induction import without_pairs, without_words_of
from bilex.aligners.maps import Map, Unit
from bilex.aligners.preparation import UnitRows, frequent_words
from bilex.core.device import enough_memory, resolve_device
from bilex.core.errors import BilexError
from bilex.core.languages import LanguagePair
from bilex.core.locks import exclusive_lock
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import from_json
from bilex.fit.calibration import FEWEST_WORDS, Calibration, answer_records, learn_confidences
from bilex.fit.report import TrialReport
from bilex.fit.trial import (
    FAILURES,
    HELD_OUT_AT_LEAST,
    HELD_OUT_AT_MOST,
    choose_extent,
    not_calibrated,
    scores_by_name,
    word_scores,
)
from bilex.lexicon import Lexicon
from bilex.model.answers import by_query
from bilex.model.many import ManyLanguages
from bilex.model.provenance import JointReport, ManyProvenance
from bilex.model.space import Space, map_words
from bilex.vectors import WordVectors

FREQUENT = 20_000
# The language pairs with the most held-out words that choose the extent of rounds.
_CHOOSING = 3
_SUMMARY = "all languages aligned together: C1 with one map per language, from the pairs of every two"
_NO_PAIRS = np.zeros((0, 2), np.int64)

Vocabularies = Mapping[str, WordVectors]
Lexicons = Mapping[LanguagePair, Lexicon]
Calibrations = dict[LanguagePair, Calibration]
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
    """Align several languages together; it is a BilexError if the seeds do not connect all of them.

    `vocabularies` are vectors as they came from their files, `c1` the settings for every two languages, which
    is not fitted itself. The `frequent` most frequent words of each language take part in the fit. If
    `calibrated`, confidences are learned on held-out seeds. An interrupted run resumes from `checkpoint`.
    """
    c1 = c1 or C1()
    usable = {
        (a, b): lexicon.covered(vocabularies[a].key_to_index, vocabularies[b].key_to_index)
        for (a, b), lexicon in seeds.items()
    }
    usable = {pair: lexicon for pair, lexicon in usable.items() if len(lexicon) or lexicon.rejected}
    check_connected(list(vocabularies), [pair for pair, lexicon in usable.items() if len(lexicon)])
    started = time.monotonic()
    with exclusive_lock(checkpoint):
        trial, calibrations = TrialReport(), Calibrations()
        most = max(map(len, usable.values()))
        if calibrated or c1.leaves_extent_open(most):
            settings = {**c1.settings(), "frequent_words": frequent, "calibrated": calibrated}
            folder = None if checkpoint is None else checkpoint / "trial"
            state = _checkpoint(folder, settings, vocabularies, usable, progress)
            trial, calibrations = _trial(vocabularies, usable, c1, frequent, progress, state)
            calibrations = calibrations if calibrated else Calibrations()
            if trial.extent is not None:
                c1 = c1.clone().set_params(extent=trial.extent)
        rounds = None if checkpoint is None else checkpoint / "rounds"
        fit = fit_jointly(vocabularies, usable, c1, frequent=frequent, progress=progress, checkpoint=rounds)
    changed = {name: value for name, value in c1.settings().items() if name not in ("device", "start")}
    return ManyLanguages(
        vocabularies={code: map_words(words, fit.maps[code]) for code, words in vocabularies.items()},
        maps=fit.maps,
        seeds=dict(seeds),
        calibrations=calibrations,
        subwords={code: words.subwords for code, words in vocabularies.items() if words.subwords is not None},
        lowercase=lowercase,
        device=c1.device,
        provenance=ManyProvenance(
            method="joint",
            method_summary=_SUMMARY,
            settings={**changed, "frequent_words": frequent},
            report=replace(fit.report, trial=trial),
            fit_seconds=round(time.monotonic() - started, 2),
            files={
                code: words.report.source if words.report else None for code, words in vocabularies.items()
            },
            dimensions={code: words.dim for code, words in vocabularies.items()},
        ),
    )


class JointFit(NamedTuple):
    """The maps of all languages, from vectors as they come from their files, and what happened.

    `snapshots` are the maps along the last round, where the settings want them.
    """

    maps: dict[str, Map]
    report: JointReport
    snapshots: dict[float, dict[str, Map]]


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
        words = _of_one_dimension(_fit_vocabularies(vocabularies, seeds, frequent))
        evidence, composed = _evidence(words, seeds, c1)
        settings, device = {**c1.settings(), "frequent": frequent}, resolve_device(c1.device)
        state = _checkpoint(checkpoint, settings, vocabularies, seeds, progress)
        rows = {language: UnitRows(part, device) for language, part in words.items()}
        first = {pair: own.joined for pair, own in evidence.items()}
        losses, last = [], dict.fromkeys(map("-".join, evidence), 0)
        for learned in c1.learn(rows, evidence, lambda _: first, state, progress):
            if learned.round is not None:
                losses.append(learned.round.loss)
                last = {"-".join(pair): len(own) for pair, own in learned.dictionary.items() if len(own)}
    report = JointReport(
        seed_pairs={"-".join(pair): own.size for pair, own in evidence.items()},
        pairs_of_the_last_round=last,
        composed_pairs={"-".join(pair): len(found) for pair, found in composed.items() if len(found)},
        losses=tuple(losses),
        stopped=learned.broke or "",
    )

    def of_files(maps: Maps) -> dict[str, Map]:
        return {code: Map.linear(w.cpu().numpy()[: vocabularies[code].dim]) for code, w in maps.items()}

    snapshots = {share: of_files(maps) for share, maps in learned.snapshots.items()}
    return JointFit(of_files(learned.maps), report, snapshots)


def _fit_vocabularies(vocabularies: Vocabularies, seeds: Lexicons, frequent: int) -> dict[str, WordVectors]:
    """The most frequent words of each language and those of its seeds."""
    found = {}
    for language, words in vocabularies.items():
        ours = [(pair.index(language), lexicon) for pair, lexicon in seeds.items() if language in pair]
        used = {both[side] for side, lexicon in ours for both in lexicon.pairs}
        found[language] = frequent_words(words, frequent, used)
    return found


def _of_one_dimension(vocabularies: Vocabularies) -> dict[str, WordVectors]:
    """Unit vectors of all languages; narrow ones are padded."""
    dimension, found = max(words.dim for words in vocabularies.values()), {}
    for language, words in vocabularies.items():
        units = Unit()(np.asarray(words.vectors, np.float32))
        wide = np.pad(units, ((0, 0), (0, dimension - words.dim)))
        found[language] = WordVectors(words.index_to_key, wide, ("unit",))
    return found


def _evidence(
    words: Vocabularies, seeds: Lexicons, c1: C1
) -> tuple[dict[LanguagePair, Evidence], dict[LanguagePair, Pairs]]:
    """What is known about every two languages, and which of their seeds come from a third one."""
    pairs: dict[LanguagePair, Pairs] = {}
    wrong: dict[LanguagePair, Pairs] = {}
    for pair in itertools.combinations(words, 2):
        a, b = pair if pair in seeds or pair[::-1] not in seeds else pair[::-1]
        lexicon = seeds.get((a, b), Lexicon([]))
        places = words[a].key_to_index, words[b].key_to_index
        pairs[a, b], wrong[a, b] = lexicon.index(*places), lexicon.rejected_index(*places)
    evidence, composed = {}, {}
    for (a, b), own in pairs.items():
        found = composed_pairs(a, b, pairs, words) if len(own) < MANY_SEEDS else _NO_PAIRS
        composed[a, b] = without_pairs(found, wrong[a, b])
        spelled = without_pairs(c1.spelled(words[a], words[b], len(own)), wrong[a, b])
        d_0 = np.concatenate([own, composed[a, b]])
        evidence[a, b] = Evidence(d_0, wrong[a, b], spelled, len(own))
    return evidence, composed


def composed_pairs(a: str, b: str, seeds: Mapping[LanguagePair, Pairs], languages: Iterable[str]) -> Pairs:
    """Pairs of two languages that share a translation in a third, and whose words have no seed."""

    def between(one: str, other: str) -> Pairs:
        return seeds[one, other] if (one, other) in seeds else seeds.get((other, one), _NO_PAIRS)[:, ::-1]

    found = []
    for third in (language for language in languages if language not in (a, b)):
        onward = by_query(between(third, b))
        for source, middle in between(a, third).tolist():
            found += [(source, target) for target in onward.get(middle, ())]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return without_words_of(np.unique(pairs, axis=0), between(a, b))


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


def _trial(
    vocabularies: Vocabularies, seeds: Lexicons, c1: C1, frequent: int, progress: Progress, state: Checkpoint
) -> tuple[TrialReport, Calibrations]:
    """What held-out seeds choose, found now or before the run was interrupted.

    It is the extent of rounds, if that is open, and confidences for every two languages with seeds.
    """
    if (kept := state.load(of_another="ignore")) is not None:
        stored = kept.state["calibrations"]
        calibrations = {(a, b): Calibration.from_dict(found) for a, b, found in stored}
        return from_json(TrialReport, kept.state["report"]), calibrations
    words = max(len(lexicon.translations()) for lexicon in seeds.values())
    learned, held_out = split_together(seeds, c1.seed)
    tested = sum(len(pairs.translations()) for pairs in held_out.values())
    report = TrialReport(note=f"{words} seed words in the vectors are too few to hold some out")
    calibrations, failed = {}, False
    try:
        if tested:
            short = c1.for_trial(max(map(len, learned.values())), min(map(len, vocabularies.values())))
            short = replace(short, size=None)
            fitted = fit_jointly(vocabularies, learned, short, frequent=frequent, progress=progress)
            maps, note = fitted.maps, "confidences were learned on the held-out words"
            report = TrialReport(ran=True, note=note, held_out_words=tested)
            if fitted.snapshots:
                small = _fit_vocabularies(vocabularies, seeds, frequent)
                curve = _along(fitted.snapshots, small, held_out, c1.device)
                extent, nearest = choose_extent(curve)
                maps, note = fitted.snapshots[nearest], f"extent = {extent} is taken"
                report = replace(report, note=note, extent=extent, extent_scores=scores_by_name(curve))
            mapped = {code: map_words(rows, maps[code]) for code, rows in vocabularies.items()}
            for a, b in seeds:
                space = Space(mapped[a], mapped[b], "cosine", c1.device)
                records = answer_records(space, held_out[a, b], seeds[a, b])
                calibrations[a, b] = learn_confidences(records, c1.seed, of_auto=c1.preset == "auto")
    except FAILURES as error:
        report, failed = TrialReport(note=f"the trial could not be finished ({error})"), True
    if not report.ran:
        calibrations = dict.fromkeys(seeds, not_calibrated(True, words, report.note))
    progress.log(f"Trial: {report.note}.")
    if not failed:  # else the next run tries again
        stored = [[*pair, found.as_dict()] for pair, found in calibrations.items()]
        state.save({}, report=report.as_dict(), calibrations=stored)
    return report, calibrations


def _along(
    snapshots: Mapping[float, Mapping[str, Map]], words: Vocabularies, held_out: Lexicons, device: str
) -> dict[float, np.ndarray]:
    """The reciprocal ranks of held-out words under each of some maps."""
    judged = sorted(held_out, key=lambda pair: -len(held_out[pair]))[:_CHOOSING]
    curve = {}
    for share, maps in snapshots.items():
        found: list[np.ndarray] = []
        for a, b in (pair for pair in judged if len(held_out[pair])):
            rows = held_out[a, b].index(words[a].key_to_index, words[b].key_to_index)
            x, y = (maps[code](words[code].vectors) for code in (a, b))
            found += word_scores(x, y, rows, device)
        curve[share] = np.concatenate(found)
    return curve


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
        by_drawn: dict[int, list[tuple[str, str]]] = {0: [], 1: [], 2: []}
        for source, target in lexicon.pairs:
            by_drawn[((a, source) in drawn) + ((b, target) in drawn)].append((source, target))
        learned[a, b] = Lexicon(by_drawn[0], lexicon.name, rejected=lexicon.rejected)
        held_out[a, b] = Lexicon(by_drawn[2], lexicon.name)
    return learned, held_out
