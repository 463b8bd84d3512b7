"""From your own word vectors and a list of word pairs to a dictionary, in a program.

    python examples/own_vectors.py en.vec fi.vec --seeds seeds.tsv -o en-fi

The steps: read both vocabularies; keep a tenth of the pairs aside; learn from the others; measure on those
kept aside; learn again from all pairs; write the model and a dictionary of words that choose each other. The
packaged sample will do: the README says how to write it out as text.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bilex import Lexicon, Translator, WordVectors, evaluate, get_method

HELD_OUT = 0.1


def read_vectors(path: str | Path, limit: int) -> WordVectors:
    """The most frequent words of a file, lower-cased; the format is recognised."""
    return WordVectors.load(path, limit=limit)


def held_out_accuracy(method: str, source: WordVectors, target: WordVectors, pairs: Lexicon) -> float:
    """The share of held-out words that are translated rightly, learning from the other pairs.

    Args:
        method: The aligner.
        source: Source vectors.
        target: Target vectors.
        pairs: Word pairs; a tenth of the words is held out, with all their pairs.
    """
    train, test = pairs.split(HELD_OUT)
    translator = Translator(get_method(method)()).fit(source, target, train, calibrate=False, progress=False)
    metrics = evaluate(translator.space, test, train=train, bootstrap=0).forward.metrics["csls"]
    return metrics["p@1"] if metrics else 0.0


def build(
    source: WordVectors, target: WordVectors, pairs: Lexicon, folder: Path, *, method: str, confidence: float
) -> Translator:
    """Learn from all pairs, and write the model and its dictionary.

    Args:
        source: Source vectors.
        target: Target vectors.
        pairs: Word pairs to learn from.
        folder: Gets `model` and `dictionary.tsv`.
        method: The aligner.
        confidence: Entries below it are left out.
    """
    translator = Translator(get_method(method)()).fit(source, target, pairs, progress=False)
    folder.mkdir(parents=True, exist_ok=True)
    translator.save(folder / "model")
    dictionary = translator.lexicon(mutual=True, min_confidence=confidence)
    dictionary.save(folder / "dictionary.tsv")
    return translator


def main() -> None:
    """The command line of this example."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", help="vectors of the source language")
    parser.add_argument("target", help="vectors of the target language")
    parser.add_argument("--seeds", required=True, help="word pairs, one per line")
    parser.add_argument("--method", default="procrustes", help="an aligner of `bilex methods`")
    parser.add_argument("--limit", type=int, default=200_000, help="words of each language")
    parser.add_argument("--confidence", type=float, default=0.3, help="leave out less confident entries")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    source, target = (read_vectors(path, given.limit) for path in (given.source, given.target))
    pairs = Lexicon.load(given.seeds)
    accuracy = held_out_accuracy(given.method, source, target, pairs)
    print(f"P@1 on held-out pairs: {accuracy:.1%}")
    build(source, target, pairs, given.output, method=given.method, confidence=given.confidence)
    print(f"{given.output / 'dictionary.tsv'} is the dictionary; {given.output / 'model'} is the model.")


if __name__ == "__main__":
    main()
