"""A simulated lexicographer: which questions of the review queue are worth asking, and what keys they cost.

    python -m research.question_worth DATA DICTIONARIES --pairs en-fi fr-fi europarl/de-fr --questions 100 300

DATA is a folder with vectors/, europarl/ and dictionaries/; DICTIONARIES holds the files of Debian's
dict-freedict packages (freedict-eng-fin.dict.dz and .index, ...), which are made from Wiktionary. They take
no part in fitting or in finding kinds, so the judge is independent of the queue.

The lexicographer knows what the dictionary of the two languages says, recognises forms, and presses the keys
of the guide: a number and Enter where a candidate is right; `t`, the word and Enter twice where none is (once
more for a word outside the vocabulary); `s` where the dictionary lacks the word. A question is worth asking
if the word is a content word whose first answer was confirmed or changed: a headword with a translation that
the dictionaries of its language list as noun, verb, adjective or adverb and as nothing else (an entry
without a part of speech is a function word there). `forms` counts a form of such a word as well, but each
word once and none whose headword the seeds answer; `content` counts content words with and without a
translation in the dictionary.

Two queues are asked: that of commit 3617236 (word forms, uncertain × frequent) and the present one (headwords
by kinds, candidates that are forms of one word together). Models are Procrustes of XLING's seeds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bilex.model import Translator
from bilex.model.answers import Proposals
from bilex.model.space import Rows, Space
from bilex_workbench.kinds import Kinds
from bilex_workbench.precompute import COMPARED, Priorities, in_queue, leads, sample_rows
from bilex_workbench.review import CANDIDATES as SHOWN
from research.packed import read_dictionary, read_vectors

_CODES = {"de": "deu", "en": "eng", "fi": "fin", "fr": "fra", "it": "ita", "ru": "rus"}
_CONTENT = {"n", "v", "adj", "adv"}
_NO_SPEECH = {"masc", "fem", "neut", "pl", ""}  # tags of entries that name no part of speech
_IGNORED = {"interjection", "prefix", "suffix", "phraseologicalUnit", "proverb", "idiom", "letter", "symbol"}
_TAG = re.compile(r"<([A-Za-z]*)[^>]*>$")
_SENSE = re.compile(r"^\d+\. ")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_STORED = 10
_SECONDS_A_KEY = 0.28  # of an average typist (Card, Moran and Newell 1980)


def entries(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Headword, part of speech and translations of each entry of a FreeDict file, in lower case."""
    text = gzip.decompress(path.read_bytes())
    for line in path.with_name(path.name.replace(".dict.dz", ".index")).read_text("utf-8").splitlines():
        head, *place = line.split("\t")
        if head.startswith("00database"):
            continue
        start, size = (sum(_DIGITS.index(c) * 64**n for n, c in enumerate(reversed(one))) for one in place)
        first, *rest = text[start : start + size].decode("utf-8").split("\n")
        tag = _TAG.search(first)
        senses = [_SENSE.sub("", one) for one in rest if _SENSE.match(one)] or rest[:1]
        words = (
            re.sub(r" \d+\.$|\(.*?\)|\u0301", "", word).strip() for one in senses for word in one.split(",")
        )
        yield head.lower(), tag[1] if tag else "", [word.lower() for word in words if word]


@dataclass
class Judge:
    """What independent dictionaries say of the words of one language and their translations."""

    content: set[str] = field(default_factory=set)
    translations: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, source: str, target: str) -> Judge:
        """Read all dictionaries from the source language, and both of the pair."""
        speech: dict[str, set[str]] = {}
        found: dict[str, list[str]] = {}
        for path in sorted(folder.glob(f"freedict-{_CODES[source]}-*.dict.dz")):
            read = list(entries(path))
            if f"-{_CODES[target]}." in path.name:
                for head, _, words in read:
                    found.setdefault(head, []).extend(words)
            if sum(tag in _CONTENT for _, tag, _ in read) > len(read) / 2:  # others name no parts of speech
                for head, tag, _ in read:
                    speech.setdefault(head, set()).add(tag)
        back = folder / f"freedict-{_CODES[target]}-{_CODES[source]}.dict.dz"
        for head, _, words in entries(back) if back.exists() else ():
            for word in words:
                found.setdefault(word, []).append(head)
        content = {
            word for word, tags in speech.items() if tags & _CONTENT and not tags - _CONTENT - _IGNORED
        }
        return cls(content, found)


@dataclass
class Tally:
    """What came of the questions so far."""

    questions: int = 0
    keys: int = 0
    decided: int = 0
    content: int = 0
    confirmed: int = 0
    changed: int = 0
    forms: set[str] = field(default_factory=set)

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        worth, minutes = self.confirmed + self.changed, self.keys * _SECONDS_A_KEY / 60
        return {
            "worth": worth,
            "confirmed": self.confirmed,
            "changed": self.changed,
            "forms": len(self.forms),
            "content": self.content,
            "decided": self.decided,
            "keys": self.keys,
            "decisions per minute of keys": round(self.decided / minutes, 1),
            "worth per minute of keys": round(worth / minutes, 1),
        }


class Lexicographer:
    """Answers questions about one model as the dictionaries do."""

    def __init__(self, judge: Judge, kinds: Kinds, space: Space, seeds: set[int]) -> None:
        self.judge, self.kinds, self.seeds = judge, kinds, seeds
        self.source, self.target = space.source, space.target

    def ask(self, tally: Tally, row: int, found: Rows, *, grouped: bool) -> bool:
        """Answer one question; whether it was decided."""
        word = self.source.index_to_key[row]
        head = self.kinds.head(0, row)
        lemma = self.source.index_to_key[head]
        known = self.judge.translations.get(word) or self.judge.translations.get(lemma) or []
        answers = found[found >= 0].tolist()
        heads = [self.kinds.head(1, answer) for answer in answers]
        texts = self.target.index_to_key
        words = [{texts[answer], texts[other]} for answer, other in zip(answers, heads, strict=True)]
        if grouped:
            words = [
                set().union(*(w for w, h in zip(words, heads, strict=True) if h == head))
                for head in dict.fromkeys(heads)
            ]
        right = [place for place, one in enumerate(words[:SHOWN]) if one & set(known)]
        tally.questions += 1
        tally.content += word in self.judge.content
        if not known:
            tally.keys += 1
            return False
        tally.keys += 2 if right else 3 + len(known[0]) + (known[0] not in self.target.key_to_index)
        tally.decided += 1
        if word in self.judge.content and self.judge.translations.get(word):
            tally.confirmed += right[:1] == [0]
            tally.changed += right[:1] != [0]
        if lemma in self.judge.content and head not in self.seeds:
            tally.forms.add(lemma)
        return True


def fitted(data: Path, pair: str, seeds: str, limit: int) -> Translator:
    """A Procrustes model of two languages of the data."""
    family, _, languages = pair.rpartition("/")
    source, target = languages.split("-")
    folder = data / "dictionaries" / "xling"
    there = (folder / languages).is_dir()
    known = read_dictionary(data, languages if there else f"{target}-{source}", f"train.freq.{seeds}")
    return Translator("procrustes").fit(
        read_vectors(data / family, source, limit),
        read_vectors(data / family, target, limit),
        known if there else known.swapped(),
        languages=(source, target),
        progress=False,
    )


def queues(translator: Translator, kinds: Kinds) -> tuple[Proposals, dict[str, npt.NDArray[np.float64]]]:
    """The answers to all words, and the place of each word in both queues."""
    propose = translator.proposer("forward", "csls")
    rows = np.arange(len(translator.space.source), dtype=np.int64)
    found = propose(rows, _STORED)
    priorities = Priorities(leads(propose(sample_rows(len(rows)), COMPARED)))
    before = priorities(rows, found, np.ones(len(rows), bool))
    worth = priorities(rows, found, kinds.listed(rows))
    named = kinds.of(rows, found.rows[:, :5])
    now = np.array([in_queue(float(one), kind) for one, kind in zip(worth, named, strict=True)])
    return found, {"3617236": before, "now": now}


def main() -> None:
    """Print one line of JSON for each pair and number of questions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("dictionaries", type=Path)
    parser.add_argument("--pairs", nargs="+", required=True)
    parser.add_argument("--seeds", default="5k", choices=["5k", "1k"])
    parser.add_argument("--limit", type=int, default=50_000, help="words of each language")
    parser.add_argument("--questions", type=int, nargs="+", default=[100, 300])
    options = parser.parse_args()
    for pair in options.pairs:
        translator = fitted(options.data, pair, options.seeds, options.limit)
        source, target = pair.rpartition("/")[2].split("-")
        space = translator.space
        kinds = Kinds(space, (source, target))
        found, orders = queues(translator, kinds)
        seeds = set(np.flatnonzero(found.known[:, 0]).tolist())
        judge = Judge.of(options.dictionaries, source, target)
        person = Lexicographer(judge, kinds, space, seeds)
        lines: dict[int, dict[str, dict[str, float]]] = {count: {} for count in options.questions}
        for name, order in orders.items():
            tally, covered = Tally(), set[int]()
            for row in np.argsort(-order, kind="stable"):
                head = kinds.head(0, int(row))
                if name == "now" and head in covered:  # a decision counts for the forms of its headword
                    continue
                if person.ask(tally, int(row), found.rows[row], grouped=name == "now") and head == row:
                    covered.add(head)
                if tally.questions in lines:
                    lines[tally.questions][name] = tally.as_dict()
                if tally.questions >= max(lines):
                    break
        for count, by_queue in lines.items():
            before, now = by_queue.values()
            times = {f"times {name}": round(now[name] / before[name], 2) for name in ("worth", "forms")}
            print(json.dumps({"pair": pair, "questions": count, **times, **by_queue}), flush=True)


if __name__ == "__main__":
    main()
