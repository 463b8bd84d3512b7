"""Learning from decisions of people without harm to the words that nobody decided.

Decided pairs become known pairs: accepted ones are answers, rejected ones never are. What they say about
other words is one local step of the contrastive loss. For an accepted pair (s, t), with c the centroid of the
30 best other answers of s, and p the probability of t among t and the ten best of these (softmax of CSLS),

    pull(s) = (1 − p) (y_t − c)        x ← x + step · Σ_s w(x, x_s) pull(s) / (1 + Σ_s w(x, x_s))

for each source word x, with w = exp((cos − 1) / width), and likewise for target words. A pull towards t alone
would draw words closer to everything in the other language and make hubs of them; the centroid takes that
away, and no single candidate counts as wrong because it was not chosen. A rejected pair pushes from its
answer to the centroid. Decisions that the model agrees with move little; words far from all decisions stay.

Width and step are chosen on decisions that the pulls did not come from (five folds) and on the seeds: the
ones with the highest gain less its standard error. The step is taken only if the gain is 0.2 points of mean
reciprocal rank and two standard errors, the decisions do not lose, the seeds do not lose more than one
standard error, and few other answers change; otherwise the space stays as it is (research/refine.md).

So many decisions as a seed dictionary has pairs say more than a local step can express: from 500 decided
words on, the model's own aligner is fitted again with the decisions among its seeds. A fit without a third of
them judges first; if these lose no more than one standard error, the fit with all of them is taken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.aligners.maps import Linear, Local, Map, Unit, moved_rows
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.fit.calibration import DIRECTIONS
from bilex.fit.report import now
from bilex.fit.trial import word_scores
from bilex.lexicon import Lexicon
from bilex.model.provenance import Retrained
from bilex.model.space import CSLS_NEIGHBOURS, Direction, Floats, Rows, Side, Space
from bilex.model.unknown import Remapped, with_seed_phrases
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.model.translator import Translator

Pair = tuple[str, str]
Numbers = npt.NDArray[np.float64]

# Chosen on decisions of the packaged sample, confirmed on de-it and ru-fr (research/refine.md).
WIDTHS, STEPS = (0.1, 0.2), (2.0, 1.0, 0.5, 0.25)
CHANGES_PER_DECISION = 5
_CENTROID, _COMPETITORS, _TEMPERATURE = 30, 10, 0.1
_FOLDS, _CANDIDATES, _WORDS = 5, 15, 500
_CLEAR, _LEAST = 2.0, 0.002  # a gain must be so many standard errors, and so much mean reciprocal rank
# From so many decided words on the aligner is fitted again, unless this share of them, held out, lose by it.
_REFIT_WORDS, _REFIT_HELD_OUT = 500, 1 / 3
_WORST_CONDITION = 1e4  # beyond it single precision does not bring the vectors back
# CSLS's term of a word after a step is the mean of the best among so many of its neighbours.
_NEAR = 15
_COMPARED, _AT_ONCE = 50_000, 1_000


@dataclass(frozen=True)
class Refinement:
    """What a refinement did.

    Attributes:
        accepted: New pairs that were accepted.
        rejected: New pairs that were rejected.
        missing: Decided pairs without effect, because a word of them has no vector.
        moved: Whether other words moved; otherwise decisions are known pairs and no more.
        refitted: Whether they moved because the aligner was fitted again.
        note: The same as a sentence.
        width: How far a decision reaches; None where nothing moved.
        step: How far words moved; likewise.
        changed: Words without a decision, of the 50,000 most frequent, whose first answer is another now.
        decisions: Decided words in the cross-validation, and the mean change of their reciprocal rank.
        seeds: The same for seeds without a decision.
        seconds: How long it took.
    """

    accepted: int
    rejected: int
    moved: bool
    note: str
    width: float | None = None
    step: float | None = None
    changed: int = 0
    decisions: tuple[int, float] = (0, 0.0)
    seeds: tuple[int, float] = (0, 0.0)
    seconds: float = 0.0
    missing: tuple[Pair, ...] = ()
    refitted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def refined(
    translator: Translator,
    accepted: Iterable[Pair] = (),
    rejected: Iterable[Pair] = (),
    *,
    held_out: Collection[str] = (),
    progress: Progress = SILENT,
) -> tuple[Translator, Refinement]:
    """A translator that has learned from decisions; the given one stays as it is.

    Args:
        translator: The present model.
        accepted: Pairs that are translations, source word first.
        rejected: Pairs that are not. A word that was merely not chosen does not belong here.
        held_out: Source words whose pairs become known, but are not learned from.
        progress: Receives how far the work is.
    """
    started = time.monotonic()
    space = translator.space
    places = space.source.key_to_index, space.target.key_to_index
    decided = Lexicon(list(accepted), "decisions", rejected=tuple(rejected)).as_units(*places)
    seeds = translator.seeds.corrected(decided)
    fresh = Lexicon(
        [pair for pair in decided.pairs if pair not in set(translator.seeds.pairs)],
        rejected=tuple(pair for pair in decided.rejected if pair not in set(translator.seeds.rejected)),
    )
    before = translator.provenance
    provenance = replace(
        before,
        seed_pairs=len(seeds),
        seed_pairs_covered=len(seeds.index(*places)),
        retrained=Retrained(
            rounds=1 + (0 if before.retrained is None else before.retrained.rounds),
            accepted=len(decided),
            rejected=len(decided.rejected),
        ),
        made=now(),
    )
    known = translator.with_parts(seeds=seeds, provenance=provenance)
    learned = Lexicon(
        [pair for pair in fresh.pairs if pair[0] not in held_out],
        rejected=tuple(pair for pair in fresh.rejected if pair[0] not in held_out),
    )
    right, wrong = learned.index(*places), learned.rejected_index(*places)
    given = (*decided.pairs, *decided.rejected)
    missing = tuple(pair for pair in given if pair[0] not in places[0] or pair[1] not in places[1])
    report = Refinement(len(fresh), len(fresh.rejected), False, "", missing=missing)
    if not len(right) and not len(wrong):
        note = "Nothing new was decided about words of the vocabularies; the space stays as it is."
        return with_seed_phrases(known), replace(report, note=note)
    taught = Lexicon([pair for pair in seeds.pairs if pair[0] not in held_out], rejected=seeds.rejected)
    again = _refitted(translator, taught, learned, progress)
    maps: dict[Side, Map] = {"source": translator.source_map, "target": translator.target_map}
    if again is not None:
        moved, onward, whole = again.space, again.onward, again.maps
        note = "The model was fitted again with the decisions; "
        report = replace(report, decisions=again.decisions, refitted=True)
    else:
        choice = _choose(space, right, wrong, seeds.index(*places), progress)
        report = replace(
            report, decisions=choice.decisions, seeds=choice.seeds, width=choice.width, step=choice.step
        )
        if choice.steps is None:
            note = (
                "The decisions are known pairs now. Other words stay as they are, since moving the "
                "neighbours of decided words did not help held-out decisions and seeds."
            )
            seconds = round(time.monotonic() - started, 1)
            return with_seed_phrases(known), replace(report, note=note, seconds=seconds)
        moved = _moved(space, choice.steps)
        onward = {"source": Map([choice.steps[0]]), "target": Map([choice.steps[1]])}
        whole = {side: Map([*maps[side].steps, *onward[side].steps]) for side in maps}
        note = f"{len(_decided(right, wrong))} decided words moved their neighbours; "
    with progress.task("Measuring neighbourhoods"):
        moved.neighbourhoods()
    with progress.task("Comparing answers"):
        changed = _changed(space, moved, _decided(right, wrong))
    made = known.with_parts(
        space=moved,
        whole_space=moved,
        source_map=whole["source"],
        target_map=whole["target"],
        unknown=[Remapped(one, maps, onward) for one in translator.unknown],
    )
    return with_seed_phrases(made), replace(
        report,
        moved=True,
        note=f"{note}{changed} other words have another first answer.",
        changed=changed,
        seconds=round(time.monotonic() - started, 1),
    )


def _decided(right: Rows, wrong: Rows) -> set[int]:
    """The source words of decisions."""
    return {*right[:, 0].tolist(), *wrong[:, 0].tolist()}


def refits(translator: Translator, words: int) -> bool:
    """Whether so many decided words make `refined` fit the model's aligner again."""
    return _before_maps(translator, words) is not None


def _before_maps(translator: Translator, words: int) -> tuple[Aligner, Floats, Floats] | None:
    """The aligner to fit again, and the matrices that take both languages' maps back.

    None where decided words are few, the model has a language model, or its vectors cannot be had back.
    """
    made = translator.provenance
    if words < _REFIT_WORDS or made.encoder_settings:
        return None
    aligner = made.aligner()
    source, target = _inverse(translator.source_map), _inverse(translator.target_map)
    return None if aligner is None or source is None or target is None else (aligner, source, target)


class _Refitted(NamedTuple):
    """A space that was fitted again, its maps, those from the present space, and the evidence for it."""

    space: Space
    maps: dict[Side, Map]
    onward: dict[Side, Map]
    decisions: tuple[int, float]


def _refitted(
    translator: Translator, seeds: Lexicon, learned: Lexicon, progress: Progress
) -> _Refitted | None:
    """The space of the model's own aligner with the decisions among its seeds.

    None where that cannot be, or held-out decisions lose.
    """
    words, space = list(learned.translations()), translator.space
    found = _before_maps(translator, len(words))
    if found is None:
        return None
    aligner, *back = found
    source, target = (
        WordVectors(side.index_to_key, unit_rows(np.asarray(side.vectors) @ matrix))
        for side, matrix in zip((space.source, space.target), back, strict=True)
    )
    count = round(_REFIT_HELD_OUT * len(words))
    held_out = set(np.random.default_rng(0).permutation(words)[:count].tolist())
    judged = Lexicon([pair for pair in learned.pairs if pair[0] in held_out])
    answers = {target for _, target in judged.pairs}
    rest = [pair for pair in seeds.pairs if pair[0] not in held_out and pair[1] not in answers]
    try:
        trial = aligner.clone().fit(source, target, Lexicon(rest, rejected=seeds.rejected), progress=progress)
        after = _reciprocal_ranks(Space.from_aligner(trial, source, target), judged)
        gain, error = _mean_and_error(after - _reciprocal_ranks(space, judged))
        if gain < -error:
            return None
        fitted = aligner.clone().fit(source, target, seeds, progress=progress)
    except BilexError:
        return None
    maps: dict[Side, Map] = {"source": fitted.source_map_, "target": fitted.target_map_}
    onward: dict[Side, Map] = {
        "source": Map([Linear(back[0]), *maps["source"].steps]),
        "target": Map([Linear(back[1]), *maps["target"].steps]),
    }
    return _Refitted(Space.from_aligner(fitted, source, target), maps, onward, (count, gain))


def _inverse(one: Map) -> Floats | None:
    """The matrix that takes a map back, up to lengths; None where there is none."""
    steps = [step for step in one.steps if not isinstance(step, Unit)]
    if len(steps) != 1 or not isinstance(steps[0], Linear) or len(set(steps[0].matrix.shape)) > 1:
        return None
    matrix = steps[0].matrix.astype(np.float64)
    return None if np.linalg.cond(matrix) > _WORST_CONDITION else np.linalg.inv(matrix).astype(np.float32)


def _reciprocal_ranks(space: Space, pairs: Lexicon) -> Numbers:
    """Of the best right answer of each word, forward and then backward; 0 beyond ten answers."""
    rows = pairs.index(space.source.key_to_index, space.target.key_to_index)
    sides = np.asarray(space.source.vectors), np.asarray(space.target.vectors)
    return np.concatenate(word_scores(*sides, rows, space.device))


class _Pull(NamedTuple):
    """What decisions do to one language: anchors with their pulls, and the fold of each."""

    anchors: Floats
    pulls: Floats
    folds: Rows

    def step(self, width: float, step: float = 1.0, but: int | None = None) -> Local:
        """As a step of a map, without the decisions of one fold."""
        kept = np.ones(len(self.folds), bool) if but is None else self.folds != but
        return Local(self.anchors[kept], self.pulls[kept], width, step)


class _Chosen(NamedTuple):
    """The steps of both languages, or None, and the evidence for them."""

    steps: tuple[Local, Local] | None
    decisions: tuple[int, float]
    seeds: tuple[int, float]
    width: float | None = None
    step: float | None = None


def _choose(space: Space, right: Rows, wrong: Rows, seeds: Rows, progress: Progress) -> _Chosen:
    """The best width and step that hurt neither decisions nor seeds, and change few other answers."""
    rng = np.random.default_rng(0)
    decided = np.unique(np.concatenate([right[:, 0], wrong[:, 0]]))
    fold = dict(zip(decided.tolist(), (rng.permutation(len(decided)) % _FOLDS).tolist(), strict=True))
    pulls = [_pulls(space, right, wrong, seeds, fold, direction) for direction in DIRECTIONS]
    settled = set(right[:, 1].tolist())
    others = seeds[[a not in fold and b not in settled for a, b in seeds.tolist()]]
    judged_seeds = _judged(space, rng.permutation(others)[:_WORDS], None)
    tested = rng.permutation(right)[:_WORDS]
    judged = [
        one
        for number in range(_FOLDS)
        for one in _judged(space, tested[[fold[row] == number for row in tested[:, 0].tolist()]], number)
    ]
    free = np.setdiff1d(np.arange(min(_COMPARED, len(space.source))), decided)
    sample = _Judged(space, {int(row): [] for row in rng.permutation(free)[:_WORDS]}, "forward", None)
    _find_neighbours(space, [*judged, *judged_seeds, sample])
    best, most = _Chosen(None, (0, 0.0), (0, 0.0)), 0.0
    with progress.task("Choosing how far decisions reach", len(WIDTHS)) as task:
        for width in WIDTHS:
            changes = sample.changes(*(pull.step(width) for pull in pulls)) * len(free)
            gains, seed_gains = _gains(judged, pulls, width), _gains(judged_seeds, pulls, width)
            for number, step in enumerate(STEPS):
                if changes[number] > CHANGES_PER_DECISION * len(decided):
                    continue
                parts = gains[number], seed_gains[number]
                (mean, _), (of_seeds, error) = map(_mean_and_error, parts)
                pooled, pooled_error = _mean_and_error(np.concatenate(parts))
                clear = pooled > max(_CLEAR * pooled_error, _LEAST)
                if clear and mean >= 0 and of_seeds >= -error and pooled - pooled_error > most:
                    steps = pulls[0].step(width, step), pulls[1].step(width, step)
                    best = _Chosen(steps, (len(parts[0]), mean), (len(parts[1]), of_seeds), width, step)
                    most = pooled - pooled_error
            task.advance()
    return best


def _pulls(
    space: Space, right: Rows, wrong: Rows, known: Rows, fold: Mapping[int, int], direction: Direction
) -> _Pull:
    """The pull of each decided pair on the neighbours of its query word."""
    forward = direction == "forward"
    folds = np.array([fold[row] for row in np.concatenate([right, wrong])[:, 0].tolist()], np.int64)
    if not forward:
        right, wrong, known = right[:, ::-1], wrong[:, ::-1], known[:, ::-1]
    pairs = np.concatenate([right, wrong])
    settled: dict[int, set[int]] = {}
    for query, answer in np.concatenate([known, pairs]).tolist():
        settled.setdefault(query, set()).add(answer)
    query_side, key_side = space.sides(direction)
    deep = _CENTROID + max(len(settled[query]) for query in pairs[:, 0].tolist())
    scores, found = space.search(pairs[:, 0], deep, direction=direction)
    own = space.scores(pairs[:, 0], pairs[:, 1], direction=direction)
    pulls = np.empty((len(pairs), space.dim), np.float32)
    for number, (query, answer) in enumerate(pairs.tolist()):
        others = [place for place, row in enumerate(found[number].tolist()) if row not in settled[query]]
        others = others[:_CENTROID]
        centroid = unit_rows(np.asarray(key_side.vectors[found[number, others]])).mean(axis=0)
        toward = unit_rows(np.asarray(key_side.vectors[answer])[None])[0] - centroid
        rivals = scores[number, others[:_COMPETITORS]] - own[number]
        probability = 1 / (1 + np.exp(rivals / _TEMPERATURE).sum())
        pulls[number] = (1 - probability if number < len(right) else -probability) * toward
    anchors = unit_rows(np.asarray(query_side.vectors[pairs[:, 0]]))
    return _Pull(anchors, pulls, folds)


class _Judged:
    """Queries ranked among the best answers of the present space and their right ones, before and after."""

    def __init__(
        self, space: Space, golds: Mapping[int, Sequence[int]], direction: Direction, fold: int | None
    ) -> None:
        self.direction, self.fold = direction, fold
        query_side, key_side = space.sides(direction)
        queries = np.array(list(golds), np.int64)
        best = space.search(queries, _CANDIDATES, direction=direction)[1]
        self.most = max(map(len, golds.values()))
        filled = [[*given, *[-1] * (self.most - len(given))] for given in golds.values()]
        right = np.array(filled, np.int64).reshape(len(queries), self.most)
        repeated = (best[:, :, None] == right[:, None, :]).any(axis=2)
        rows = np.concatenate([right, np.where(repeated, -1, best)], axis=1)
        self.keys, place = np.unique(rows, return_inverse=True)
        self.x, self.y = np.asarray(query_side.vectors[queries]), np.asarray(key_side.vectors[self.keys])
        self.place, self.empty = place.reshape(rows.shape), rows < 0

    def set_neighbours(self, rows: Rows, query_side: WordVectors) -> None:
        """Take the nearest words of each key in the language of the queries."""
        near, place = np.unique(rows, return_inverse=True)
        self.near, self.near_place = np.asarray(query_side.vectors[near]), place.reshape(rows.shape)

    def _scores(self, x: Floats, y: Floats, near: Floats) -> Floats:
        terms = np.empty(len(y), np.float32)
        for start in range(0, len(y), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            nearest = np.einsum("kd,knd->kn", y[part], near[self.near_place[part]])
            terms[part] = np.sort(nearest, axis=1)[:, -CSLS_NEIGHBOURS:].mean(axis=1)
        scores: Floats = 2 * np.einsum("qd,qcd->qc", x, y[self.place]) - terms[self.place]
        scores[self.empty] = -np.inf
        return scores

    def _after(self, of_source: Local, of_target: Local) -> list[Floats]:
        """The scores after each of `STEPS`, the right answers first."""
        own, other = (of_source, of_target) if self.direction == "forward" else (of_target, of_source)
        rows = self.x, self.y, self.near
        shifts = own.shift(self.x), other.shift(self.y), own.shift(self.near)
        return [
            self._scores(*(moved_rows(*both, step) for both in zip(rows, shifts, strict=True)))
            for step in STEPS
        ]

    def gains(self, of_source: Local, of_target: Local) -> Numbers:
        """The change of each query's reciprocal rank of its best right answer, one row per step."""

        def reciprocal_ranks(scores: Floats) -> Numbers:
            right, others = scores[:, : self.most].max(axis=1), scores[:, self.most :]
            ranks: Numbers = 1 / (1 + (others > right[:, None]).sum(axis=1))
            return ranks

        before = reciprocal_ranks(self._scores(self.x, self.y, self.near))
        return np.stack([reciprocal_ranks(s) - before for s in self._after(of_source, of_target)])

    def changes(self, of_source: Local, of_target: Local) -> Numbers:
        """The share of queries that have another first answer, for each step."""
        before = self._scores(self.x, self.y, self.near).argmax(axis=1)
        after = self._after(of_source, of_target)
        return np.array([(scores.argmax(axis=1) != before).mean() for scores in after])


def _find_neighbours(space: Space, judged: Sequence[_Judged]) -> None:
    """Give all judged queries the neighbours of their keys, found in one search per direction."""
    for direction, back in ((DIRECTIONS[0], DIRECTIONS[1]), (DIRECTIONS[1], DIRECTIONS[0])):
        ones = [one for one in judged if one.direction == direction]
        if not ones:
            continue
        query_side, _ = space.sides(direction)
        keys = np.unique(np.concatenate([one.keys for one in ones]))
        near = space.search(np.maximum(keys, 0), _NEAR, direction=back, retrieval="nn")[1]
        for one in ones:
            one.set_neighbours(near[np.searchsorted(keys, one.keys)], query_side)


def _judged(space: Space, pairs: Rows, fold: int | None) -> list[_Judged]:
    """Some pairs as queries of both directions."""
    if not len(pairs):
        return []
    return [
        _Judged(space, _by_query(pairs), "forward", fold),
        _Judged(space, _by_query(pairs[:, ::-1]), "backward", fold),
    ]


def _gains(judged: Sequence[_Judged], pulls: Sequence[_Pull], width: float) -> Numbers:
    """The gain of each query, one row per step, without the decisions of its own fold."""
    parts = [one.gains(*(pull.step(width, but=one.fold) for pull in pulls)) for one in judged]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(STEPS), 0))


def _mean_and_error(gains: Numbers) -> tuple[float, float]:
    """The mean gain and its standard error; zeros where there is none."""
    if not len(gains):
        return 0.0, 0.0
    return float(gains.mean()), float(gains.std()) / math.sqrt(len(gains))


def _by_query(pairs: Rows) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for query, answer in dict.fromkeys(map(tuple, pairs.tolist())):
        found.setdefault(query, []).append(answer)
    return found


def _moved(space: Space, steps: tuple[Local, Local]) -> Space:
    """The space after a step of each language."""
    source, target = (
        WordVectors(side.index_to_key, Map([step])(side.vectors), side.preprocessing)
        for side, step in zip((space.source, space.target), steps, strict=True)
    )
    return Space(source, target, space.metric, space.device)


def _changed(before: Space, after: Space, decided: Collection[int]) -> int:
    """How many of the most frequent source words without a decision have another first answer."""
    rows = np.arange(min(_COMPARED, len(before.source)), dtype=np.int64)
    rows = rows[~np.isin(rows, list(decided))]
    if not len(rows):
        return 0
    first = [space.search(rows, 1)[1][:, 0] for space in (before, after)]
    return int((first[0] != first[1]).sum())
