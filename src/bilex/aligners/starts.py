"""First dictionaries without seeds, or with few.

The vocabularies suggest several: words of identical spelling, shared numerals, words that sound alike in any
script, all of these together, and the distributions of similarities in the two spaces. `first_dictionary`
extends each by VecMap's self-learning on the most frequent words. Without gold pairs, the induced pairs show
which start succeeded: if two languages are aligned, a part of the pairs predicts the others
(`vecmap.recovered_share`). The start with the highest share is taken; one with a high share ends the search,
since starts that succeed end in nearly the same pairs. If no share is high enough, there is no result. Seeds
join each start that consists of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.c1_settings import TriedStart
from bilex.aligners.induction import augmentation, induce_pairs, without_pairs
from bilex.aligners.maps import Array
from bilex.aligners.preparation import small_vocabularies, unit_center_unit
from bilex.aligners.spelling import numerals, of_like_frequency, romanised, spelled_alike
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex.search import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.vecmap import VecMapSemi, VecMapUnsupervised

    SelfLearning: TypeAlias = "VecMapSemi | VecMapUnsupervised"
    Start: TypeAlias = "tuple[str, SelfLearning, Lexicon | None]"

# Below this share of recovered pairs the alignment has most likely failed: wrong starts reach 0.17 at most,
# right ones 0.24 at least (research/never_worse.md).
COLLAPSED = 0.2
# A start needs this number of shared words or numerals.
_FEWEST_SHARED = 20
# Starts are searched among this number of words per language. Rarer words add shared spellings that are no
# translations, and shift the mean.
_START_WORDS = 20_000
# A share at which other starts are not tried: on two families of vectors every start that reached it ended
# within 0.02 of the best (research/c1.md).
_CLEAR = 0.5
# Words of each language on which starts are compared, and self-learning's patience there.
_COMPARED_WORDS = 4_000
_PATIENCE = 10
# Words that the best start pairs, and pairs that are kept, as in C1 with few seeds.
_INDUCED_FREQUENT, _INDUCED = 20_000, 6_000


def unsupervised_similarity_distributions(
    source: WordVectors, target: WordVectors, *, frequent: int = 4000, k: int = 10, device: str = "auto"
) -> Pairs:
    """Pair words whose similarities to the other words of their own language are distributed alike.

    VecMap's unsupervised start. Each frequent word is described by its sorted row of the square root of the
    similarity matrix of its language; descriptions are normalised, centred and normalised again, and matched
    by CSLS in both directions. The dictionary is poor, but better than chance for similar spaces.
    """
    size = min(frequent, len(source), len(target))
    if size < 2:
        raise BilexError("the unsupervised start needs at least two words in each language.")
    shape_x = _sorted_root_similarities(unit_center_unit(source.vectors).rows[:size])
    shape_y = _sorted_root_similarities(unit_center_unit(target.vectors).rows[:size])
    return _match_both_ways(shape_x, shape_y, min(k, size), device)


def _sorted_root_similarities(rows: Array) -> Array:
    """Each row of (XXᵀ)^½ = U S Uᵀ in rising order, then unit, centred, unit."""
    u, singular, _ = scipy.linalg.svd(rows, full_matrices=False)
    root = (u * singular) @ u.T
    root.sort(axis=1)
    return unit_center_unit(root).rows


def _match_both_ways(source: Array, target: Array, k: int, device: str) -> Pairs:
    """Each source row with its best target row by CSLS, then each target row with its best source row."""
    source_mean, target_mean = neighbourhoods(source, target, k, device=device)
    _, forward = csls_top_k(source, target, 1, query_mean=source_mean, key_mean=target_mean, device=device)
    _, backward = csls_top_k(target, source, 1, query_mean=target_mean, key_mean=source_mean, device=device)
    return np.concatenate(
        [_pairs(np.arange(len(source)), forward[:, 0]), _pairs(backward[:, 0], np.arange(len(target)))]
    )


def _pairs(source_rows: npt.NDArray[np.int64], target_rows: npt.NDArray[np.int64]) -> Pairs:
    return np.stack([source_rows, target_rows], axis=1).astype(np.int64)


class _Trial(NamedTuple):
    """The result of one start: the aligner, the share of pairs that others predict, their similarity."""

    name: str
    aligner: SelfLearning
    recovered: float
    similarity: float


class FirstDictionary(NamedTuple):
    """The pairs to start from, the start that was taken (None for the seeds alone), and those tried."""

    pairs: Pairs
    start: str | None = None
    tried: Mapping[str, TriedStart] = MappingProxyType({})


def first_dictionary(
    source: WordVectors,
    target: WordVectors,
    seeds: Pairs,
    *,
    start: str = "joined",
    frequent: int = _INDUCED_FREQUENT,
    keep: int | None = None,
    words: int | None = None,
    k: int = 10,
    device: str = "auto",
    seed: int = 0,
    progress: Progress = SILENT,
) -> FirstDictionary:
    """The pairs to start from without seeds, or with few.

    `start` is the name of a start, or "joined" for the best. It pairs the `frequent` first words of each
    language with partners among the first `words` (None for all), and keeps `keep` pairs per direction (None
    for 6,000, or fewer in a small vocabulary). Seeds stay alone where the vocabularies have nothing to join
    them.

    Raises:
        BilexError: There are no seeds, and no start is possible or all of them failed.
    """
    given = _words(source, target, seeds)
    small = small_vocabularies(source, target, Lexicon(given), _START_WORDS)
    possible = _possible(*small, given, start, device, seed)
    if [name for name, *_ in possible] == ["seeds"]:
        return FirstDictionary(seeds)
    trials = _trials(possible, small, progress)
    tried = {
        trial.name: TriedStart(recovered=round(trial.recovered, 4), similarity=round(trial.similarity, 4))
        for trial in trials
    }
    best = max(trials, key=lambda trial: (trial.recovered, trial.similarity))
    shares = ", ".join(f"{trial.name} {trial.recovered:.0%}" for trial in trials)
    if best.recovered < COLLAPSED:
        if len(seeds):
            progress.log(
                f"{len(seeds)} seeds: no other start helps (pairs that the others predict: {shares})."
            )
            return FirstDictionary(seeds, None, tried)
        raise BilexError(
            f"without seeds the two languages could not be brought together (pairs that the other pairs "
            f"predict: {shares}); give even a few dozen seed pairs with --seeds."
        )
    known = f"{len(seeds)} seeds" if len(seeds) else "No seeds"
    progress.log(f"{known}: starting from {best.name} (pairs that the other pairs predict: {shares}).")
    x = torch.from_numpy(best.aligner.source_map_(source.head(words).vectors))
    y = torch.from_numpy(best.aligner.target_map_(target.head(words).vectors))
    keep = keep or min(_INDUCED, max(1, 2 * min(len(source), len(target)) // 3))
    induced = induce_pairs(x, y, frequent=frequent, keep=keep, k=k, device=device)
    return FirstDictionary(np.concatenate([seeds, augmentation(induced, seeds)]), best.name, tried)


@dataclass(kw_only=True, repr=False)
class FromPairs(Aligner):
    """A method that learns from pairs, which may be more than the seeds.

    Args:
        start: "seeds" for the seed pairs alone, as in the papers; "joined" for these, if any, and the pairs
            that the vocabularies suggest: words spelled or pronounced alike, numerals, or the shapes of the
            spaces, carried through self-learning. For few seeds or none.
    """

    start: Literal["seeds", "joined"] = "seeds"

    def _usable_pairs(
        self, source: WordVectors, target: WordVectors, lexicon: Lexicon, progress: Progress
    ) -> Pairs:
        if self.start == "seeds":
            return super()._usable_pairs(source, target, lexicon, progress)
        seeds = lexicon.index(source.key_to_index, target.key_to_index)
        self.report_ = replace(self.report_, seed_pairs=len(lexicon), seed_pairs_used=len(seeds))
        settings: dict[str, Any] = {"device": self.device, "seed": self.seed, "progress": progress}
        found = first_dictionary(source, target, seeds, **settings).pairs
        return without_pairs(found, self.rejected_)


def _possible(
    source: WordVectors,
    target: WordVectors,
    seeds: list[tuple[str, str]],
    wanted: str,
    device: str,
    seed: int,
) -> list[Start]:
    """The starts that the vocabularies and the settings allow."""
    from bilex.aligners.vecmap import VecMapSemi, VecMapUnsupervised

    settings: dict[str, Any] = {
        "device": device,
        "seed": seed,
        "frequent": _COMPARED_WORDS,
        "patience": _PATIENCE,
    }
    rows = {
        "identical": spelled_alike(source, target),
        "numerals": numerals(source, target),
        "romanised": of_like_frequency(romanised(source, target)),
    }
    found = {name: _words(source, target, pairs) for name, pairs in rows.items()}
    together = list(dict.fromkeys(pair for pairs in found.values() for pair in pairs))
    if len(together) > max(map(len, found.values())):
        found["shared"] = together
    starts: list[Start] = [
        (name, VecMapSemi(**settings), Lexicon([*seeds, *pairs], name))
        for name, pairs in found.items()
        if len(pairs) >= _FEWEST_SHARED
    ]
    if seeds:
        starts.append(("seeds", VecMapSemi(**settings), Lexicon(seeds, "seeds")))
    else:
        starts.append(("unsupervised", VecMapUnsupervised(**settings), None))
    any_start = wanted in ("auto", "joined", "seeds")
    chosen = [start for start in starts if any_start or start[0] in (wanted, "seeds")]
    if not chosen:
        counts = ", ".join(f"{len(pairs)} {name}" for name, pairs in found.items())
        raise BilexError(
            f"start '{wanted}' needs at least {_FEWEST_SHARED} such words that both languages have; these "
            f"share {counts}; use start=unsupervised or give seeds."
        )
    return chosen


def _words(source: WordVectors, target: WordVectors, pairs: Pairs) -> list[tuple[str, str]]:
    """Pairs of rows as pairs of words."""
    return [(source.index_to_key[a], target.index_to_key[b]) for a, b in pairs]


def _trials(
    possible: list[Start], frequent: tuple[WordVectors, WordVectors], progress: Progress
) -> list[_Trial]:
    """Extend starts by self-learning, one after the other, until one succeeds clearly."""
    trials: list[_Trial] = []
    for start in possible:
        trials.append(_tried(*start, *frequent, progress))
        if trials[-1].recovered >= _CLEAR:
            break
    return trials


def _tried(
    name: str,
    aligner: SelfLearning,
    lexicon: Lexicon | None,
    source: WordVectors,
    target: WordVectors,
    progress: Progress,
) -> _Trial:
    """Extend one start by self-learning on the frequent words; its pairs may have rarer words."""
    words = None if lexicon is not None else 2 * _COMPARED_WORDS
    progress.log(f"Trying the start from {name}.")
    aligner.fit(source.head(words), target.head(words), lexicon, progress=progress)
    return _Trial(name, aligner, aligner.report_.recovered, aligner.report_.objective)
