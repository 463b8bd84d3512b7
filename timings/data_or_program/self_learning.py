"""Does VecMap's self-learning fail to reach what it looks for, or does it look for the wrong thing?

A third of the pairs that the 5k training dictionary has beyond the 1k one is held out. Self-learning runs
from the 1k seeds, from "many" (the 5k dictionary without the held-out words), and from many "calmly", with
nothing hidden at random. If all arrive at nearly the same dictionary, with a higher objective than the map
of the many true pairs has, but with fewer of the held-out pairs right, then the optimisation has done its
work and the objective prefers a wrong dictionary on these vectors.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch

from bilex.aligners import Aligner, get_method
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.collapse import rotation
from bilex.aligners.maps import Array
from bilex.aligners.preparation import unit_center_unit
from bilex.aligners.vecmap import VecMapSemi
from bilex.device import resolve_device
from bilex.lexicon import Lexicon
from bilex.progress import Progress
from bilex.similarity.search import placed
from bilex.similarity.stochastic import Matches, StochasticMatcher
from bilex.space import Space
from bilex.vectors import WordVectors
from timings.data_or_program.common import Row, both_ways, hits, lead, markdown, percents, signed, vectors
from timings.packed import read_dictionary

WHAT = "self-learning"
RUNS = ("1k", "many", "many calmly")
SHARE, SEED = 1 / 3, 1


class Watched(VecMapSemi):
    """VecMap with self-learning that keeps what its last round found."""

    learned_: Matches

    def _learn(
        self, x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor, state: Checkpoint, progress: Progress
    ) -> Matches:
        self.learned_ = super()._learn(x, y, pairs, state, progress)
        return self.learned_


@dataclass(frozen=True)
class Seeds:
    """Covered pairs to start from, few and many, and gold pairs that share no word with either."""

    few: Lexicon
    many: Lexicon
    held_out: Lexicon

    @classmethod
    def of(cls, options: argparse.Namespace, pair: str, source: WordVectors, target: WordVectors) -> Seeds:
        """The training dictionaries of a language pair, divided."""
        few, five = (
            read_dictionary(options.data, pair, f"train.freq.{size}").covered(
                source.key_to_index, target.key_to_index
            )
            for size in ("1k", "5k")
        )
        held_out = five.without(few, by="word").split(SHARE, SEED)[1]
        return cls(few, five.without(held_out, by="word"), held_out)


class Pair:
    """Two languages as VecMap sees them, with gold pairs to judge a dictionary of their frequent words.

    Args:
        source: Source vectors.
        target: Target vectors.
        held_out: Gold pairs.
        device: Where to compute.
    """

    def __init__(self, source: WordVectors, target: WordVectors, held_out: Lexicon, device: str) -> None:
        self.source, self.target, self.held_out = source, target, held_out
        self.rows = unit_center_unit(source.vectors).rows, unit_center_unit(target.vectors).rows
        self.x, self.y = (placed(rows, resolve_device(device)) for rows in self.rows)
        self.frequent = VecMapSemi().frequent
        gold = held_out.index(source.key_to_index, target.key_to_index)
        self.within = torch.from_numpy(gold[(gold < self.frequent).all(axis=1)]).to(self.x.device)

    def relational_similarity(self, gold: Lexicon) -> float:
        """`relational_similarity` of the words of gold pairs."""
        left, right = gold.index(self.source.key_to_index, self.target.key_to_index).T
        return relational_similarity(self.rows[0][left], self.rows[1][right])

    def matches(self, seeds: Lexicon) -> Matches:
        """Partners of the frequent words, and the objective, under the orthogonal map of a dictionary."""
        pairs = torch.from_numpy(seeds.index(self.source.key_to_index, self.target.key_to_index))
        turn = rotation(self.x, self.y, pairs.to(self.x.device))
        match = StochasticMatcher(device=self.x.device)
        return match(self.x[: self.frequent] @ turn, self.y[: self.frequent], 1.0)

    def standing(self, found: Matches) -> Row:
        """The objective, the share of gold pairs found, and how many words serve as somebody's partner."""
        left, right = self.within.T
        shares = [_equal(found.forward[left], right), _equal(found.backward[right], left)]
        return {
            "objective": found.objective,
            "gold found": round(100 * float(np.mean(shares)), 2),
            "partners used": [len(torch.unique(found.forward)), len(torch.unique(found.backward))],
        }

    def compared(self, supervised: Aligner, semi: Aligner) -> Row:
        """P@1 of two fits on the gold pairs."""
        before, after = (
            hits(Space.from_aligner(fitted, self.source, self.target), self.held_out)
            for fitted in (supervised, semi)
        )
        return {
            "supervised p@1": percents(before),
            "semi p@1": percents(after),
            "semi less supervised": lead(after, before),
        }


def relational_similarity(x: Array, y: Array) -> float:
    """How alike two spaces are: the correlation of cos(xᵢ, xⱼ) and cos(yᵢ, yⱼ) over all i < j.

    Args:
        x: Unit rows of the source words of gold pairs.
        y: Unit rows of their target words.
    """
    upper = np.triu_indices(len(x), 1)
    return float(np.corrcoef((x @ x.T)[upper], (y @ y.T)[upper])[0, 1])


def agreement(one: Matches, other: Matches) -> float:
    """The share of words with the same partner in two dictionaries, mean of both directions."""
    return (_equal(one.forward, other.forward) + _equal(one.backward, other.backward)) / 2


def _equal(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one == other).double().mean())


def run(options: argparse.Namespace, name: str) -> list[Row]:
    """One row for each run wanted on the language pair called `name`."""
    source, target = (vectors(options.data, language, options.limit) for language in name.split("-"))
    seeds = Seeds.of(options, name, source, target)
    pair = Pair(source, target, seeds.held_out, options.device)
    gold = Lexicon([*seeds.many.pairs, *seeds.held_out.pairs])
    about = {
        "what": WHAT,
        "pair": name,
        "relational similarity": round(pair.relational_similarity(gold), 4),
        "held out": len(seeds.held_out),
        "held out, both words matched": len(pair.within),
    }
    ends: dict[str, Matches] = {}
    rows = []
    for wanted in options.runs:
        start = seeds.few if wanted == "1k" else seeds.many
        keep = 1.0 if wanted == "many calmly" else VecMapSemi().keep
        started = time.perf_counter()
        semi = Watched(device=options.device, patience=options.patience, keep=keep).fit(source, target, start)
        seconds = time.perf_counter() - started
        supervised = get_method("vecmap-supervised")(device=options.device).fit(source, target, start)
        same = {other: round(100 * agreement(semi.learned_, end), 2) for other, end in ends.items()}
        ends[wanted] = semi.learned_
        own = {
            "run": wanted,
            "seeds": len(start),
            "at the seeds' map": pair.standing(pair.matches(start)),
            "at the end": pair.standing(semi.learned_),
            "same partners as": same,
            "rounds": semi.report_.rounds,
            "patience": options.patience,
            "seconds": round(seconds, 1),
        }
        rows.append(about | own | pair.compared(supervised, semi))
    return rows


def summary(rows: list[Row]) -> str:
    """The rows as a table, the pairs most alike first."""
    head = ["pair", "relational similarity", "start", "seeds", "objective", "held-out pairs found, %"]
    head += ["P@1 NN", "P@1 CSLS", "gain NN", "gain CSLS", "same partners as from, %"]
    lines = []
    for row in sorted(rows, key=lambda row: -row["relational similarity"]):
        before, after = row["at the seeds' map"], row["at the end"]
        lines.append(
            [
                row["pair"],
                f"{row['relational similarity']:.3f}",
                row["run"],
                row["seeds"],
                f"{before['objective']:.4f} → {after['objective']:.4f}",
                f"{before['gold found']:.1f} → {after['gold found']:.1f}",
                *(
                    f"{both_ways(row['supervised p@1'], search)} → {both_ways(row['semi p@1'], search)}"
                    for search in ("nn", "csls")
                ),
                *(signed(row["semi less supervised"][search]) for search in ("nn", "csls")),
                ", ".join(f"{other}: {share:.1f}" for other, share in row["same partners as"].items()),
            ]
        )
    return (
        "### Self-learning: what its objective prefers\n\n"
        "From the map of the seeds → at the end of self-learning. The objective is the mean similarity of\n"
        "best partners among the frequent words under the orthogonal map. Held-out pairs found are those\n"
        "that the dictionary of these words holds, of those with both words among them. P@1 is that of the\n"
        "supervised → the self-learned advanced mapping on all held-out pairs, in the whole vocabularies.\n\n"
        + markdown(head, lines)
    )
