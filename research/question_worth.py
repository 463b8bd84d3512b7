"""How many of the first questions of the review queue are worth asking, with and without kinds.

    python -m research.question_worth MODEL freedict-eng-fin.dict.dz --questions 100 300

A question is worth asking if the word is a content word of a dictionary: a headword that a Wiktionary-based
FreeDict file (Debian's dict-freedict-*) lists as noun, verb, adjective or adverb, and not as pronoun,
preposition, conjunction, article, determiner, particle, numeral or proper noun. Forms such as "months" are no
headwords. The file takes no part in finding kinds, so the judge is independent of the queue.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path

import numpy as np

from bilex.model import Translator
from bilex_workbench.kinds import Kinds
from bilex_workbench.priority import CANDIDATES, Priorities, in_queue, sample_rows

_HEAD = re.compile(r"^(?P<word>\S[^/<]*?) (/.*/ )?<(?P<speech>[a-z]+)[^>]*>$")
_CONTENT = {"n", "v", "adj", "adv"}
_OTHER = {"pronoun", "preposition", "conjunction", "article", "determiner", "particle", "numeral", "pn"}
_SHOWN = 10


def content_words(path: Path) -> set[str]:
    """The content words of a FreeDict file, in lower case."""
    speech: dict[str, set[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            found = _HEAD.match(line.rstrip("\n"))
            if found:
                speech.setdefault(found["word"].lower(), set()).add(found["speech"])
    return {word for word, parts in speech.items() if parts & _CONTENT and not parts & _OTHER}


def main() -> None:
    """Print one line of JSON for each number of questions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("freedict", type=Path)
    parser.add_argument("--languages", default="", help="codes such as de,it where the model names none")
    parser.add_argument("--questions", type=int, nargs="+", default=[100, 300, 1000])
    options = parser.parse_args()
    translator = Translator.load(options.model, verify=False)
    space = translator.space
    codes = options.languages.split(",") if options.languages else translator.provenance.languages
    propose = translator.proposer("forward", "csls")
    rows = np.arange(len(space.source), dtype=np.int64)
    found = propose(rows, _SHOWN)
    worth = Priorities.of(propose(sample_rows(len(rows)), CANDIDATES))(rows, found)
    kinds = Kinds(space, (codes[0], codes[1])).of(rows, found.rows[:, :5])
    queue = np.array([in_queue(float(one), kind) for one, kind in zip(worth, kinds, strict=True)])
    judge = content_words(options.freedict)
    for count in options.questions:
        shares = {}
        for name, order in (("before", worth), ("now", queue)):
            asked = np.argsort(-order, kind="stable")[:count]
            shares[name] = sum(space.source.index_to_key[row] in judge for row in asked)
        print(json.dumps({"questions": count, **shares, "times": round(shares["now"] / shares["before"], 2)}))


if __name__ == "__main__":
    main()
