"""How right translations of phrases are beside those of words, and what each way to compose them gives.

    bilex align en.npy fi.npy --seeds seeds.tsv --method procrustes --limit 40000 -o en-fi
    python -m research.phrases en-fi freedict-eng-fin.index [--reverse] [--swapped]

Counted are phrases that the vocabulary does not hold, all of whose words it does, and one of whose
translations is a word of the other vocabulary; and single words that are no seeds. CSLS, all words of the
other language are candidates. Of a model with a language model (`bilex align --lm e5-small-q4`) its reading
of the whole phrase is measured too, alone and as the translator joins it with the composed vector.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bilex import Lexicon, Translator
from bilex.model.encoder import FromEncoder
from bilex.model.space import Direction, Floats
from bilex.vectors import WordVectors
from bilex.vectors.phrases import composed, composing_weights, is_phrase, unit_of, words_of
from research.model_tests import parser_of, read_test

AMONG = (1, 5)
FREQUENT = 1_000
_EULER = 0.5772156649

Weights = Callable[[Sequence[int], int], npt.NDArray[np.float32]]


def smooth(a: float) -> Weights:
    """Smooth inverse frequency with another constant than bilex's own."""

    def weights(rows: Sequence[int], words: int) -> npt.NDArray[np.float32]:
        share = 1 / ((np.asarray(rows, np.float64) + 1) * (np.log(words) + _EULER))
        found: npt.NDArray[np.float32] = (a / (a + share)).astype(np.float32)
        return found

    return weights


def at_place(place: int) -> Weights:
    """One word alone."""

    def weights(rows: Sequence[int], words: int) -> npt.NDArray[np.float32]:
        found = np.zeros(len(rows), np.float32)
        found[place] = 1
        return found

    return weights


WAYS: Mapping[str, Weights] = {
    "composed (a = 0.001)": composing_weights,
    "the first word alone": at_place(0),
    "the last word alone": at_place(-1),
    "plain mean": lambda rows, words: np.ones(len(rows), np.float32),
    "a = 0.01": smooth(0.01),
    "a = 0.0001": smooth(0.0001),
}


def composed_rows(phrases: Sequence[str], words: WordVectors, weigh: Weights) -> Floats:
    """The vectors of phrases all of whose words are in a vocabulary, composed in one way."""
    found = []
    for phrase in phrases:
        rows = [words.key_to_index[word] for word in words_of(phrase)]
        vector = composed(np.asarray(words.vectors[np.array(rows)]), weigh(rows, len(words)))
        found.append(np.zeros(words.dim, np.float32) if vector is None else vector)
    return units(np.array(found, np.float32))


def units(rows: Floats) -> Floats:
    """Rows of length one."""
    made: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return made


class Test:
    """A test dictionary against a model, in one direction."""

    def __init__(self, translator: Translator, direction: Direction, lexicon: Lexicon) -> None:
        self.queries, self.keys = translator.space.sides(direction)
        seeds = translator.seeds if direction == "forward" else translator.seeds.swapped()
        known = set(seeds.translations())
        self.golds: dict[str, set[int]] = {}
        for query, gold in lexicon.pairs:
            key = unit_of(gold, self.keys.key_to_index)
            if key is not None and query not in known:
                self.golds.setdefault(query, set()).add(self.keys.key_to_index[key])
        self.search = translator.space.searcher(direction=direction)

    def words(self) -> list[str]:
        """Single words of the vocabulary."""
        return [query for query in self.golds if query in self.queries and not is_phrase(query)]

    def phrases(self) -> list[str]:
        """Phrases that the vocabulary does not hold but all of whose words it does."""
        rows = self.queries.key_to_index
        return [
            query
            for query in self.golds
            if is_phrase(query)
            and unit_of(query, rows) is None
            and all(word in rows for word in words_of(query))
        ]

    def shares(self, queries: Sequence[str], vectors: npt.NDArray[np.generic]) -> list[float]:
        """The share of queries with a right answer among the first one, and the first five."""
        _, answers = self.search(vectors, max(AMONG))  # type: ignore[arg-type]
        right = np.array(
            [
                [row in self.golds[query] for row in found]
                for query, found in zip(queries, answers.tolist(), strict=True)
            ]
        )
        return [100 * float(right[:, :count].any(axis=1).mean()) for count in AMONG]


def measure(translator: Translator, test: Test, most: int, seed: int) -> dict[str, tuple[int, list[float]]]:
    """How many queries of each kind there are, and the shares that are right."""
    rng = random.Random(seed)
    words, phrases = (
        rng.sample(found, most) if len(found) > most else found for found in (test.words(), test.phrases())
    )
    found: dict[str, tuple[int, list[float]]] = {}
    if words:
        rows = np.array([test.queries.key_to_index[word] for word in words])
        found["single words"] = (len(words), test.shares(words, rows))
    if not phrases:
        return found
    for name, weigh in WAYS.items():
        found[name] = (len(phrases), test.shares(phrases, composed_rows(phrases, test.queries, weigh)))
    made = composed_rows(phrases, test.queries, composing_weights)
    frequent = np.asarray(test.queries.vectors[:FREQUENT]).mean(axis=0)
    found["less the mean of frequent words"] = (len(phrases), test.shares(phrases, units(made - frequent)))
    encoder = next((source for source in translator.unknown if isinstance(source, FromEncoder)), None)
    if encoder is not None:
        spoken = [" ".join(words_of(phrase)) for phrase in phrases]
        read = encoder.encoded(spoken)
        joined = np.array(encoder.phrase_vectors(spoken, list(made)), np.float32)
        found["the language model alone"] = (len(phrases), test.shares(phrases, read))
        found[f"composed and language model, λ = {encoder.mixing:.2f}"] = (
            len(phrases),
            test.shares(phrases, joined),
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a row for words, and one for each way to make vectors of phrases."""
    parser = parser_of(__doc__)
    parser.add_argument("--most", type=int, default=2_000, help="of each dictionary, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    translator = Translator.load(options.model)
    for path in options.tests:
        test = Test(translator, "backward" if options.reverse else "forward", read_test(path, options))
        print(f"{path.name:44} queries    P@1    P@5")
        for name, (count, shares) in measure(translator, test, options.most, options.seed).items():
            print(f"{name:44} {count:7,} {shares[0]:6.1f} {shares[1]:6.1f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
