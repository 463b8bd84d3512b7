"""Learning from decisions of people without harm to the words that nobody decided.

Decided pairs become known pairs: accepted ones are answers, rejected ones never are, and no other word
changes. A few decisions say too little about other words to move them: steps that moved the neighbours of
decided words gained nothing with up to 60 decisions and 0.2 points with 300 (research/refine.md). Many
decisions are a seed dictionary: from 500 decided words on, the aligner of the model is fitted again with the
decisions among its seeds. A fit without a third of the decided words judges first; the fit with all of them
replaces the model only if these words, which it has not seen, are translated at least as well as before.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bilex.aligners.maps import Linear, Map, Unit
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.fit.report import now
from bilex.lexicon import Lexicon
from bilex.model.provenance import Retrained
from bilex.model.space import Floats, Side, Space
from bilex.model.unknown import Remapped, with_seed_phrases
from bilex.vectors import WordVectors
from bilex.vectors.stored import StoredRows, unit_rows

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.model.translator import Translator

Pair = tuple[str, str]

# Decided words from which the aligner is fitted again, and the share of them that judges.
_REFIT_WORDS, _HELD_OUT = 500, 1 / 3
# The relative error of mapped rows by how they are stored, and the largest error of rows that the inverse of
# a map recovers from them.
_ERRORS, _LARGEST_ERROR = {"float32": 3e-7, "float16": 1e-4, "int8": 1e-2}, 0.05
_COMPARED = 50_000  # frequent words whose first answers are compared


@dataclass(frozen=True)
class Refinement:
    """What a refinement did.

    Attributes:
        accepted: New pairs that were accepted.
        rejected: New pairs that were rejected.
        refitted: Whether the aligner was fitted again; otherwise decisions are known pairs and no more.
        note: The same as a sentence.
        changed: Words without a decision, of the 50,000 most frequent, with another first answer than before.
        held_out: Decided words that judged, and the mean change of their reciprocal rank; 0 where none did.
        seconds: How long it took.
        missing: Decided pairs without effect, because a word of them has no vector.
    """

    accepted: int
    rejected: int
    refitted: bool = False
    note: str = ""
    changed: int = 0
    held_out: tuple[int, float] = (0, 0.0)
    seconds: float = 0.0
    missing: tuple[Pair, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class _UnchangedError(Exception):
    """Why the aligner of a model is not fitted again."""


def refined(
    translator: Translator,
    accepted: Iterable[Pair] = (),
    rejected: Iterable[Pair] = (),
    *,
    held_out: Collection[str] = (),
    progress: Progress = SILENT,
) -> tuple[Translator, Refinement]:
    """A translator that has learned from decisions, as `Translator.refine`; the given one stays as it is."""
    started = time.monotonic()
    places = translator.space.places
    decided = Lexicon(list(accepted), "decisions", rejected=tuple(rejected)).as_units(*places)
    known, refused = set(translator.seeds.pairs), set(translator.seeds.rejected)
    new = [pair for pair in decided.pairs if pair not in known]
    newly_rejected = [pair for pair in decided.rejected if pair not in refused]
    seeds, before = translator.seeds.corrected(decided), translator.provenance
    provenance = replace(
        before,
        seed_pairs=len(seeds),
        seed_pairs_covered=len(seeds.index(*places)),
        retrained=Retrained(
            rounds=1 + (before.retrained.rounds if before.retrained else 0),
            accepted=len(decided),
            rejected=len(decided.rejected),
        ),
        made=now(),
    )
    result = translator.with_parts(seeds=seeds, provenance=provenance)
    given = (*decided.pairs, *decided.rejected)
    missing = tuple(pair for pair in given if pair[0] not in places[0] or pair[1] not in places[1])
    report = Refinement(len(new), len(newly_rejected), missing=missing)
    learned = Lexicon([pair for pair in new if pair[0] not in held_out]).covered(*places)
    taught = replace(seeds, pairs=tuple(pair for pair in seeds.pairs if pair[0] not in held_out))
    try:
        result, judged = _refitted(result, taught, learned, progress)
    except _UnchangedError as why:
        note = f"The decisions are known pairs now, and other words stay as they are: {why}."
        return with_seed_phrases(result), replace(report, note=note)
    with progress.task("Measuring neighbourhoods"):
        result.space.neighbourhoods()
    with progress.task("Comparing answers"):
        words = {pair[0] for pair in (*new, *newly_rejected)}
        changed = _changed(translator.space, result.space, words)
    others = f"{changed} other words have another first answer"
    return with_seed_phrases(result), replace(
        report,
        refitted=True,
        note=f"The model was fitted again with the decisions; {others}.",
        changed=changed,
        held_out=judged,
        seconds=round(time.monotonic() - started, 1),
    )


def refits(translator: Translator, words: int) -> bool:
    """Whether this number of decided words makes `refined` fit the aligner of the model again."""
    try:
        _recovered(translator, words)
    except _UnchangedError:
        return False
    return True


def _refitted(
    translator: Translator, seeds: Lexicon, learned: Lexicon, progress: Progress
) -> tuple[Translator, tuple[int, float]]:
    """The translator with its aligner fitted again; how many held-out words judged, and their gain."""
    words, space = list(learned.translations()), translator.space
    aligner, source_matrix, target_matrix = _recovered(translator, len(words))
    source, target = (
        WordVectors(side.index_to_key, unit_rows(np.asarray(side.vectors) @ matrix))
        for side, matrix in ((space.source, source_matrix), (space.target, target_matrix))
    )
    count = round(_HELD_OUT * len(words))
    judges = set(np.random.default_rng(0).permutation(words)[:count].tolist())
    judged = Lexicon([pair for pair in learned.pairs if pair[0] in judges])
    answers = {answer for _, answer in judged.pairs}
    rest = [pair for pair in seeds.pairs if pair[0] not in judges and pair[1] not in answers]
    try:
        trial = aligner.clone().fit(source, target, Lexicon(rest, rejected=seeds.rejected), progress=progress)
        after = _mean_reciprocal_rank(Space.from_aligner(trial, source, target), judged)
        gain = after - _mean_reciprocal_rank(space, judged)
        if gain < 0:
            raise _UnchangedError(
                f"a fit with the other decisions translated {count} decided words worse than the model does"
            )
        fitted = aligner.clone().fit(source, target, seeds, progress=progress)
    except BilexError as error:
        raise _UnchangedError(f"the aligner could not be fitted again ({error})") from error
    source_map, target_map = fitted.source_map_, fitted.target_map_
    before: dict[Side, Map] = {"source": translator.source_map, "target": translator.target_map}
    onward: dict[Side, Map] = {
        "source": Map([Linear(source_matrix), *source_map.steps]),
        "target": Map([Linear(target_matrix), *target_map.steps]),
    }
    unknown = [Remapped(reader, before, onward) for reader in translator.unknown]
    space = Space.from_aligner(fitted, source, target)
    made = translator.with_parts(
        space=space, whole_space=space, source_map=source_map, target_map=target_map, unknown=unknown
    )
    return made, (count, gain)


def _recovered(translator: Translator, words: int) -> tuple[Aligner, Floats, Floats]:
    """The aligner to fit again and the inverse of both maps."""
    made = translator.provenance
    if words < _REFIT_WORDS:
        raise _UnchangedError(
            f"a model is fitted again from {_REFIT_WORDS} newly accepted words on, and there are {words}"
        )
    if made.encoder_settings:
        raise _UnchangedError("a model with a language model is not fitted again")
    aligner = made.aligner()
    source = _inverse(translator.source_map, translator.space.source.vectors)
    target = _inverse(translator.target_map, translator.space.target.vectors)
    if aligner is None or source is None or target is None:
        raise _UnchangedError(f"the maps of method '{made.method}' cannot be inverted")
    return aligner, source, target


def _inverse(one: Map, rows: Floats | StoredRows) -> Floats | None:
    """The inverse of the matrix of a map; None where it would not recover the rows before the map."""
    steps = [step for step in one.steps if not isinstance(step, Unit)]
    if len(steps) != 1 or not isinstance(steps[0], Linear) or len(set(steps[0].matrix.shape)) > 1:
        return None
    try:
        inverse = np.linalg.inv(steps[0].matrix.astype(np.float64))
    except np.linalg.LinAlgError:
        return None
    stored = rows.stored.dtype if isinstance(rows, StoredRows) else rows.dtype
    recovered = np.asarray(rows[:1000]) @ inverse
    error = _ERRORS[stored.name] * np.linalg.norm(inverse) / len(inverse) ** 0.5
    return (
        inverse.astype(np.float32)
        if error <= _LARGEST_ERROR * np.linalg.norm(recovered, axis=1).mean()
        else None
    )


def _mean_reciprocal_rank(space: Space, pairs: Lexicon) -> float:
    """Of the words of some pairs, both directions."""
    from bilex.fit.trial import word_scores

    rows = pairs.index(*space.places)
    sides = np.asarray(space.source.vectors), np.asarray(space.target.vectors)
    return float(np.concatenate(word_scores(*sides, rows, space.device)).mean())


def _changed(before: Space, after: Space, decided: Collection[str]) -> int:
    """How many frequent source words without a decision have another first answer."""
    words = before.source.index_to_key[:_COMPARED]
    rows = np.array([row for row, word in enumerate(words) if word not in decided], np.int64)
    if not len(rows):
        return 0
    return int((before.first_answers(rows) != after.first_answers(rows)).sum())
