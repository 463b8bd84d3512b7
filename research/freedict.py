"""Word pairs of FreeDict's dictionaries, as TSV files that studies judge by.

    apt-get download dict-freedict-eng-fin mueller7-dict …; dpkg-deb -x … FOLDER
    python -m research.freedict FOLDER/usr/share/dictd OUT en-fi en-ru …

writes OUT/en-fi.tsv from freedict-eng-fin and freedict-fin-eng, as far as they are there; words are
lower-cased. For en-ru it adds Mueller's dictionary. For two languages without a dictionary, such as fi-ru, it
writes the pairs that at least two of the other languages confirm. The dictionaries are under the GPL or
CC BY-SA; nothing of them is in this repository.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter
from pathlib import Path

from bilex import Lexicon

CODES = {"de": "deu", "en": "eng", "fi": "fin", "fr": "fra", "it": "ita", "ru": "rus"}
# What stands between translations in Mueller's dictionary: pronunciation, remarks, labels, numbers of senses.
_NO_WORD = re.compile(r"\[[^\]]*\]|\([^)]*\)|_[\w-]+\.?|\b\d+[.>)]")


def pairs_of(folder: Path, source: str, target: str) -> list[tuple[str, str]]:
    """The pairs of both directions, source word first."""
    found: list[tuple[str, str]] = []
    for first, second in ((source, target), (target, source)):
        file = folder / f"freedict-{CODES[first]}-{CODES[second]}.index"
        if file.exists():
            lexicon = Lexicon.load(file)
            found += (lexicon if first == source else lexicon.swapped()).pairs
    if (source, target) == ("en", "ru"):
        found += mueller_pairs(folder / "mueller7.dict.dz")
    return sorted({(a.lower(), b.lower()) for a, b in found})


def mueller_pairs(file: Path) -> list[tuple[str, str]]:
    """Headwords with each translation that is a single word; [] without the file."""
    if not file.exists():
        return []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        entries = re.split(r"\n(?=\S)", lines.read())
    found = []
    for entry in entries:
        word, _, text = entry.partition("\n")
        parts = re.split(r"[,;\n]\s*", _NO_WORD.sub(";", re.sub(r"\n\s+", " ", text)))
        found += [(word, part.strip()) for part in parts if re.fullmatch(r"[а-яё-]+", part.strip())]
    return found


def confirmed_pairs(folder: Path, source: str, target: str) -> list[tuple[str, str]]:
    """The pairs that share a translation in at least two other languages."""
    votes: Counter[tuple[str, str]] = Counter()
    for pivot in sorted(CODES.keys() - {source, target}):
        onward = Lexicon(pairs_of(folder, pivot, target)).translations()
        start = pairs_of(folder, source, pivot)
        votes.update({(word, answer) for word, between in start for answer in onward.get(between, ())})
    return sorted(pair for pair, count in votes.items() if count >= 2)


def main() -> None:
    """Write one file per language pair."""
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for pair in sys.argv[3:]:
        found = pairs_of(folder, *pair.split("-")) or confirmed_pairs(folder, *pair.split("-"))
        Lexicon(found, pair).save(out / f"{pair}.tsv")
        print(f"{pair}: {len(found)} pairs")


if __name__ == "__main__":
    main()
