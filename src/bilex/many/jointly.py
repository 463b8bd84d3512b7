"""Several languages aligned together, from the seeds of any pairs of them.

The maps of all languages are learned from all seeds at once; then every two languages add the pairs that are
each other's first answers, and the maps are learned again. A pair of languages with few seeds, or none, is
helped by the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bilex.aligners.base import Pairs
from bilex.aligners.induction import without_words_of
from bilex.aligners.maps import Center, Linear, Map, Unit
from bilex.aligners.rejected import without_pairs
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.many.mapping import Floats, Two, joint_maps
from bilex.many.provenance import JointReport
from bilex.progress import SILENT, Progress
from bilex.similarity import neighbourhoods, top_k
from bilex.vectors import WordVectors

ROUNDS, FREQUENT = 2, 20_000
_NEIGHBOURS = 10


@dataclass(frozen=True)
class JointFit:
    """The maps of all languages, and what happened.

    Attributes:
        maps: Take the vectors of each language, as they came from their file, into the common space.
        report: Seed pairs that were used and pairs that were found, by two languages.
    """

    maps: dict[str, Map]
    report: JointReport


@dataclass
class _Language:
    """The words of a language that take part in the fit: the most frequent ones, and those of the seeds."""

    words: WordVectors
    chosen: list[int]
    before: Map
    rows: Floats
    place: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.place = {self.words.index_to_key[row]: place for place, row in enumerate(self.chosen)}


def fit_jointly(
    vocabularies: Mapping[str, WordVectors],
    seeds: Mapping[Two, Lexicon],
    *,
    rounds: int = ROUNDS,
    frequent: int = FREQUENT,
    device: str = "auto",
    progress: Progress = SILENT,
) -> JointFit:
    """Learn a map for each language.

    Args:
        vocabularies: The vectors of each language as they came from their files.
        seeds: Word pairs by two languages, the first language's word first. Pairs without seeds may be left
            out as long as the others connect all languages.
        rounds: How often new pairs are found and the maps are learned again.
        frequent: How many of the most frequent words of each language look for new pairs.
        device: Where searches run.
        progress: Shows how far the work is.

    Raises:
        BilexError: The seeds do not connect all languages, or a setting makes no sense.
    """
    if rounds < 0 or frequent < 1:
        raise BilexError(
            f"{rounds} rounds over {frequent} words cannot be done; give 0 or more rounds, 1 or more words."
        )
    parts = _take_part(vocabularies, seeds, frequent)
    rows = {language: part.rows for language, part in parts.items()}
    known = {(a, b): found.index(parts[a].place, parts[b].place) for (a, b), found in seeds.items()}
    twos = _every_two(list(vocabularies), known)
    pairs = known
    with progress.task("Aligning all languages", rounds * len(twos) + 1) as task:
        for _ in range(rounds):
            mapped = _mapped(rows, joint_maps(rows, pairs))
            pairs = {}
            for a, b in twos:
                found = mutual_pairs(mapped[a][:frequent], mapped[b][:frequent], device)
                given = seeds.get((a, b), Lexicon([]))
                own = given.index(parts[a].place, parts[b].place)
                wrong = given.rejected_index(parts[a].place, parts[b].place)
                pairs[a, b] = np.concatenate([own, without_pairs(without_words_of(found, own), wrong)])
                task.advance()
        matrices = joint_maps(rows, pairs)
        task.advance()
    report = JointReport(
        seed_pairs={_name(two): len(found) for two, found in known.items()},
        pairs_of_the_last_round={_name(two): len(found) for two, found in pairs.items()},
    )
    return JointFit({language: _whole_map(parts[language], m) for language, m in matrices.items()}, report)


def mutual_pairs(x: Floats, y: Floats, device: str = "auto") -> Pairs:
    """Rows of two languages that are each other's first answer by CSLS.

    Args:
        x: Unit rows of one language in the common space.
        y: Of the other.
        device: Where to search.
    """
    r_x, r_y = neighbourhoods(x, y, _NEIGHBOURS, device=device)
    _, forward = top_k(x, y, 1, key_penalty=r_y, device=device)
    _, backward = top_k(y, x, 1, key_penalty=r_x, device=device)
    asked = np.arange(len(x))
    mutual = backward[forward[:, 0], 0] == asked
    return np.stack([asked[mutual], forward[mutual, 0]], axis=1)


def _every_two(languages: list[str], known: Mapping[Two, Pairs]) -> list[Two]:
    """Every two languages once, in the order that their seeds have."""
    return [
        two if two in known or two[::-1] not in known else two[::-1]
        for two in itertools.combinations(languages, 2)
    ]


def _take_part(
    vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon], frequent: int
) -> dict[str, _Language]:
    """The rows that the fit looks at, centred and of one dimension (narrow ones are padded with zeros)."""
    dimension = max(words.dim for words in vocabularies.values())
    used: dict[str, set[str]] = {language: set() for language in vocabularies}
    for two, lexicon in seeds.items():
        for language, column in zip(two, zip(*lexicon.pairs, strict=True), strict=False):
            used[language].update(column)
    parts = {}
    for language, words in vocabularies.items():
        beyond = {words.key_to_index[word] for word in used[language] if word in words}
        chosen = sorted({*range(min(frequent, len(words))), *beyond})
        rows = np.asarray(words.vectors[np.array(chosen)], np.float32)
        unit = Unit()
        center = Center(unit(rows[:frequent]).mean(axis=0, dtype=np.float64))
        before = Map([unit, center, Unit()])
        wide = np.zeros((len(rows), dimension), np.float32)
        wide[:, : words.dim] = before(rows)
        parts[language] = _Language(words, chosen, before, wide)
    return parts


def _mapped(rows: Mapping[str, Floats], matrices: Mapping[str, Any]) -> dict[str, Floats]:
    unit = Unit()
    return {language: unit(rows[language] @ matrices[language].astype(np.float32)) for language in rows}


def _whole_map(part: _Language, matrix: Any) -> Map:
    return Map([*part.before.steps, Linear(matrix[: part.words.dim]), Unit()])


def _name(two: Two) -> str:
    return "-".join(two)
