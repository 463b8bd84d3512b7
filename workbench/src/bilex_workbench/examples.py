"""Example sentences from a corpus: a full-text index beside the model, and the best sentences with a word."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np
from fastapi import APIRouter

from bilex.core.errors import BilexError
from bilex.core.files import opened, temporary_path
from bilex.core.progress import SILENT, Progress
from bilex.core.reading import Source
from bilex.model.space import SIDES, Side
from bilex_workbench import api
from bilex_workbench.entries import forms_of
from bilex_workbench.workbench import Book, BookOf, Reader

router = APIRouter(tags=["table"])
_APPLICATION = 0x62697863  # "bixc"
_SHORTEST, _LONGEST = 12, 240  # characters of a sentence that may be an example
_LINES = 10_000  # between two reports of progress
_RANKED = 60  # sentences that are compared: each costs a read of the index
_MOST_FORMS = 16  # of a word, the most frequent first
_BEST_WORDS = 11  # in a sentence
_NEIGHBOURS, _FREQUENT = 20, 20_000  # how many words near a word, among the most frequent ones
_READ = 1_000  # sentences with the rarer of two words in which the other is searched
Row = tuple[str, str, int]  # both sentences and their number
Marking = tuple[int, str, re.Pattern[str]]  # a side of the corpus, its name, and words on it


Marked = api.response(
    "Marked",
    "A sentence with the places of a word in it, in characters.",
    text=str,
    marks=list[tuple[int, int]],
)
SourceExample = api.response("SourceExample", "A sentence of the source language.", source=Marked)
TargetExample = api.response("TargetExample", "A sentence of the target language.", target=Marked)
ParallelExample = api.response(
    "ParallelExample", "A sentence and its translation.", target=Marked, source=Marked
)
ExamplesAnswer = api.response(
    "ExamplesAnswer",
    corpus=bool,
    parallel=[ParallelExample],
    source=[SourceExample],
    target=[TargetExample],
)


@router.get("/api/examples", response_model=ExamplesAnswer)
def examples(
    book: BookOf, db: Reader, source: api.WordQuery, target: api.TextQuery = "", k: api.K = 3
) -> Any:
    """Good sentences of the corpus with a word, its translation, or both; empty without a corpus."""
    corpus = book.bench.corpus
    if corpus is None:
        return {"corpus": False, "parallel": [], "source": [], "target": []}
    words, row = book.space.target, book.space.target.key_to_index.get(target)
    listed = db.execute("SELECT row FROM forms WHERE side = 1 AND head = ? LIMIT 50", (row,))
    target_forms = [target, *(words.index_to_key[form] for (form,) in listed)] if target else []
    sides = [
        ("source", [source, *forms_of(db, source)], _neighbours(book, source, "source")),
        ("target", target_forms, _neighbours(book, target, "target")),
    ]
    names, forms, near = zip(*(sides if book.direction == "forward" else sides[::-1]), strict=True)
    return {"corpus": True, **corpus.examples(forms, near, k, names)}


def _neighbours(book: Book, word: str, side: Side) -> set[str]:
    """Frequent words near a word: rare ones are in few sentences, and all words take ten times as long."""
    words = book.space.words(side)
    row = words.key_to_index.get(word)
    if row is None:  # a word that somebody typed
        return set()
    keys, vector = (np.asarray(words.vectors[part], np.float32) for part in (slice(_FREQUENT), row))
    near = np.einsum("kd,d->k", keys, vector)  # a product's threads would wait for those of other requests
    best = np.argsort(-near, kind="stable")[: _NEIGHBOURS + 1].tolist()
    return {words.index_to_key[one].casefold() for one in best if one != row}


def corpus_file(model: str | Path) -> Path:
    """The index of a model's corpus, beside the model."""
    folder = Path(model).resolve()
    return folder.with_name(folder.name + ".corpus.sqlite")


def opened_corpus(
    model: str | Path, source: str | None, target: str | None, progress: Progress = SILENT
) -> Corpus | None:
    """The index of a corpus, built if it is missing or its files have changed."""
    path = corpus_file(model)
    if source is None and target is None:
        return Corpus(path) if path.is_file() else None
    texts = [_files(name) for name in (source, target)]
    stats = [[(str(one.resolve()), one.stat()) for one in side] for side in texts]
    facts = [[(name, stat.st_size, stat.st_mtime_ns) for name, stat in side] for side in stats]
    mark = hashlib.sha256(repr(facts).encode()).hexdigest()
    if path.is_file():
        found = Corpus(path)
        if found.mark == mark:
            return found
        found.close()
    _build(path, texts, mark, progress)
    return Corpus(path)


def _files(name: str | None) -> list[Path]:
    if name is None:
        return []
    path = Path(name)
    listed = sorted(path.iterdir()) if path.is_dir() else [path]
    found = [one for one in listed if one.is_file() and (one == path or not one.name.startswith("."))]
    if not found:
        raise BilexError(f"{name}: is no text file and no folder with text files.")
    return found


def _lines(files: Sequence[Path], advance: Callable[[float], None]) -> Iterator[str]:
    for path in files:
        with opened(path) as file:
            source = Source(file, str(path), path.stat().st_size)
            for number, line in enumerate(iter(partial(source.read, 0, longest_line=-1), b""), 1):
                yield line.decode("utf-8", "replace").strip()
                if number % _LINES == 0:
                    advance(source.newly_used())
            advance(source.newly_used())


def _sentences(sides: Sequence[Iterator[str]], counts: list[int]) -> Iterator[tuple[int, str, str]]:
    """The sentences that may be examples, by line: neither too short nor too long, and plain text."""
    for number, pair in enumerate(zip_longest(*sides), 1):
        source, target = (
            one if one and _SHORTEST <= len(one) <= _LONGEST and one.isprintable() else "" for one in pair
        )
        for side, one in enumerate(pair):
            counts[side] += one is not None
        if source or target:
            yield number, source, target


def _build(path: Path, texts: Sequence[Sequence[Path]], mark: str, progress: Progress) -> None:
    """Write the index, whole or not at all."""
    size, counts = sum(one.stat().st_size for side in texts for one in side), [0, 0]
    try:
        with temporary_path(path) as made, progress.task("Indexing the corpus", size) as task:
            with closing(sqlite3.connect(made, isolation_level=None)) as connection:
                connection.executescript(
                    f"PRAGMA application_id={_APPLICATION}; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "
                    "PRAGMA cache_size=-200000; CREATE VIRTUAL TABLE sentences USING fts5(source, target, "
                    "detail=column, tokenize='unicode61 remove_diacritics 0'); "
                    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL); BEGIN;"
                )
                connection.executemany(
                    "INSERT INTO sentences (rowid, source, target) VALUES (?, ?, ?)",
                    _sentences([_lines(side, task.advance) for side in texts], counts),
                )
                facts = [("mark", mark), ("parallel", str(int(counts[0] == counts[1] > 0)))]
                connection.executemany("INSERT INTO facts VALUES (?, ?)", facts)
                connection.execute("COMMIT")
            made.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise BilexError(f"{path}: the index of the corpus cannot be written ({error}).") from error


class Corpus:
    """An index that is open for queries."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
            facts = dict(self._connection.execute("SELECT name, value FROM facts").fetchall())
        except sqlite3.Error as error:
            raise BilexError(f"{path}: is no index of a corpus ({error}); remove it.") from error
        self.mark, self.parallel = facts.get("mark", ""), facts.get("parallel") == "1"

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def examples(
        self,
        words: Sequence[Sequence[str]],
        near: Sequence[set[str]],
        k: int = 3,
        names: Sequence[str] = SIDES,
    ) -> dict[str, list[dict[str, Any]]]:
        """The best sentences: short, whole, and with words that are near the word in meaning.

        `words`, `near` and the `names` of the results are in the order of the corpus, source first.
        """
        found = [self._rows(side, words[side]) for side in (0, 1)]
        sides = [(side, names[side], _pattern(words[side])) for side in (0, 1)]
        return {
            "parallel": _best(self._pairs(words, found), sides, near[0] | near[1], k),
            **{name: _best(found[side], [sides[side]], near[side], k) for side, name in enumerate(names)},
        }

    def _rows(self, side: int, words: Sequence[str], other: re.Pattern[str] | None = None) -> list[Row]:
        """The first pairs of sentences that have a word on one side, and the pattern on the other."""
        query = _any(words)
        if not query:
            return []
        with self._lock:
            rows = self._connection.execute(
                "SELECT source, target, rowid FROM sentences WHERE sentences MATCH ? LIMIT ?",
                (f"{SIDES[side]} : ({query})", _READ if other else _RANKED),
            )
            return list(islice((row for row in rows if not other or other.search(row[1 - side])), _RANKED))

    def _pairs(self, words: Sequence[Sequence[str]], found: Sequence[Sequence[Row]]) -> list[Row]:
        """The first pairs of sentences with words on both sides.

        FTS5 could look for both at once, and would read its whole index for frequent words that rarely meet;
        here the rows of the rarer word are read, a bounded number of them.
        """
        if not self.parallel or not all(found):
            return []
        side = min((0, 1), key=lambda one: (len(found[one]), -found[one][-1][2]))
        return self._rows(side, words[side], _pattern(words[1 - side]))


def _any(words: Sequence[str]) -> str:
    """A query for any of the words; the index has no phrases, so one of several tokens is all of them."""
    found = (" AND ".join(f'"{token}"' for token in _tokens(word)) for word in words[:_MOST_FORMS])
    return " OR ".join(f"({one})" for one in found if one)


def _tokens(word: str) -> list[str]:
    """The parts into which FTS5's unicode61 divides a word: letters, digits and combining accents."""
    return "".join(
        c if category(c)[0] in "LN" or category(c) == "Co" or 768 <= ord(c) <= 817 else " " for c in word
    ).split()


def _best(rows: Sequence[Row], sides: Sequence[Marking], near: set[str], k: int) -> list[dict[str, Any]]:
    """The k best rows by the sentence of the first side, each sentence once, with the words marked."""
    once = {row[:2][sides[0][0]]: row[:2] for row in rows}
    best: list[dict[str, Any]] = []
    for text in sorted(once, key=lambda text: _worth(text, near), reverse=True):
        marked: dict[str, Any] = {}
        for side, name, words in sides:
            sentence = once[text][side]
            marked[name] = {"text": sentence, "marks": [one.span() for one in words.finditer(sentence)]}
        if all(one["marks"] for one in marked.values()):
            best.append(marked)
        if len(best) == k:
            break
    return best


def _worth(sentence: str, near: set[str]) -> float:
    words = [word.casefold() for word in re.findall(r"\w+", sentence)]
    whole = (sentence[:1].isupper() or not sentence[:1].isalpha()) + (sentence[-1:] in ".!?…。")
    typical = sum(word in near for word in set(words))
    digits = sum(character.isdigit() for character in sentence)
    return 2 * whole + min(2, typical) - abs(len(words) - _BEST_WORDS) / 4 - digits / 4


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    texts = sorted((re.sub(r"[\s_]+", " ", word) for word in words), key=len, reverse=True)
    any_word = "|".join(re.escape(text).replace(r"\ ", r"[\s_]+") for text in texts)
    return re.compile(rf"(?<!\w)(?:{any_word})(?!\w)", re.IGNORECASE)
