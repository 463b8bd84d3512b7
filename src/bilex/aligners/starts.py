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

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
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
    x, y = (_sorted_root_similarities(words, size) for words in (source, target))
    r_x, r_y = neighbourhoods(x, y, min(k, size), device=device)
    _, forward = csls_top_k(x, y, 1, query_mean=r_x, key_mean=r_y, device=device)
    _, backward = csls_top_k(y, x, 1, query_mean=r_y, key_mean=r_x, device=device)
    rows = np.arange(size)
    pairs = np.concatenate([np.stack([rows, forward[:, 0]], 1), np.stack([backward[:, 0], rows], 1)])
    return pairs.astype(np.int64)


def _sorted_root_similarities(words: WordVectors, size: int) -> Array:
    """Each row of (XXᵀ)^½ = U S Uᵀ in rising order, then unit, centred, unit."""
    u, singular, _ = scipy.linalg.svd(unit_center_unit(words.vectors).rows[:size], full_matrices=False)
    root = (u * singular) @ u.T
    root.sort(axis=1)
    return unit_center_unit(root).rows


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
    from bilex.aligners.vecmap import VecMapSemi, VecMapUnsupervised

    given = _words(source, target, seeds)
    small = small_vocabularies(source, target, Lexicon(given), _START_WORDS)
    possible = _possible(*small, given, start)
    if list(possible) == ["seeds"]:
        return FirstDictionary(seeds)
    fitted: dict[str, VecMapSemi | VecMapUnsupervised] = {}
    for name, pairs in possible.items():
        progress.log(f"Trying the start from {name}.")
        method = VecMapUnsupervised if pairs is None else VecMapSemi
        aligner = method(device=device, seed=seed, frequent=_COMPARED_WORDS, patience=_PATIENCE)
        seen = 2 * _COMPARED_WORDS if pairs is None else None  # pairs may have rarer words
        fitted[name] = aligner.fit(small[0].head(seen), small[1].head(seen), pairs, progress=progress)
        if aligner.report_.recovered >= _CLEAR:
            break
    found = {name: (one.report_.recovered, one.report_.objective) for name, one in fitted.items()}
    tried = {
        name: TriedStart(recovered=round(r, 4), similarity=round(s, 4)) for name, (r, s) in found.items()
    }
    shares = ", ".join(f"{name} {recovered:.0%}" for name, (recovered, _) in found.items())
    best = max(found, key=lambda name: found[name])
    if found[best][0] < COLLAPSED:
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
    progress.log(f"{known}: starting from {best} (pairs that the other pairs predict: {shares}).")
    x = torch.from_numpy(fitted[best].source_map_(source.head(words).vectors))
    y = torch.from_numpy(fitted[best].target_map_(target.head(words).vectors))
    keep = keep or min(_INDUCED, max(1, 2 * min(len(source), len(target)) // 3))
    induced = induce_pairs(x, y, frequent=frequent, keep=keep, k=k, device=device)
    return FirstDictionary(np.concatenate([seeds, augmentation(induced, seeds)]), best, tried)


def _possible(
    source: WordVectors, target: WordVectors, seeds: list[tuple[str, str]], wanted: str
) -> dict[str, Lexicon | None]:
    """The starts that are allowed, by name: their pairs, or None for the shapes of the spaces."""
    rows = {
        "identical": spelled_alike(source, target),
        "numerals": numerals(source, target),
        "romanised": of_like_frequency(romanised(source, target)),
    }
    shared = {name: _words(source, target, pairs) for name, pairs in rows.items()}
    together = list(dict.fromkeys(itertools.chain(*shared.values())))
    if len(together) > max(map(len, shared.values())):
        shared["shared"] = together
    starts: dict[str, Lexicon | None] = {
        name: Lexicon([*seeds, *pairs], name)
        for name, pairs in shared.items()
        if len(pairs) >= _FEWEST_SHARED
    }
    starts |= {"seeds": Lexicon(seeds, "seeds")} if seeds else {"unsupervised": None}
    if wanted not in ("auto", "joined", "seeds"):
        starts = {name: pairs for name, pairs in starts.items() if name in (wanted, "seeds")}
    if not starts:
        counts = ", ".join(f"{len(pairs)} {name}" for name, pairs in shared.items())
        raise BilexError(
            f"start '{wanted}' needs at least {_FEWEST_SHARED} such words that both languages have; these "
            f"share {counts}; use start=unsupervised or give seeds."
        )
    return starts


def _words(source: WordVectors, target: WordVectors, pairs: Pairs) -> list[tuple[str, str]]:
    return [(source.index_to_key[a], target.index_to_key[b]) for a, b in pairs]


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
        found = first_dictionary(source, target, seeds, device=self.device, seed=self.seed, progress=progress)
        return without_pairs(found.pairs, self.rejected_)
