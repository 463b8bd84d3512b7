"""An open model: translations in both directions, from the stored candidates or by searches."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.files import sha256
from bilex.core.manifest import CHECKSUMS
from bilex.model import Answer, Translator
from bilex.model.answers import Translation
from bilex.model.space import Direction, Floats, Retrieval, Rows, SearchableKeys, Side, Space
from bilex.vectors import WordVectors
from bilex_workbench.interface import LONGEST_WORD
from bilex_workbench.recalibration import UNCHANGED, Lineage, Recalibration
from bilex_workbench.searching import Searches
from bilex_workbench.store import Store

if TYPE_CHECKING:
    from bilex.search.cpu import ServedKeys

STORED_CANDIDATES = 10
STORED = np.dtype([("row", "<i4"), ("score", "<f4"), ("confidence", "<f4"), ("known", "?")])
_BUSY_SECONDS, _ALONE_SECONDS = 0.5, 10.0
_MOST_COMPLETIONS = 20_000
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
QUERIES: dict[Direction, Side] = {"forward": "source", "backward": "target"}
_KEYS: dict[Direction, Side] = {"forward": "target", "backward": "source"}


class Keys:
    """The vectors of one language, searched with and without CSLS's penalty.

    They are rounded to 8 bits once, and the pages of the file that a search touched are given back.
    """

    def __init__(self, words: WordVectors, penalty: Floats) -> None:
        self._words, self._penalty = words, penalty
        self._lock = threading.Lock()

    def top_k(self, vectors: Floats, k: int, *, penalised: bool) -> tuple[Floats, Rows]:
        """The k best words for each vector; exact, as everywhere."""
        with self._lock:
            return self._served.top_k(vectors, min(k, len(self._words)), penalised=penalised)

    def prepare(self) -> None:
        """Round the vectors now, so that the first search need not wait for it."""
        with self._lock:
            self._served  # noqa: B018 - made once, here

    @cached_property
    def _served(self) -> ServedKeys:
        from bilex.search.cpu import ServedKeys

        vectors = np.asarray(self._words.vectors)
        return ServedKeys(vectors, self._penalty, lambda: give_back_pages(vectors))


class ServedSpace(Space):
    """A `Space` whose searches share prepared keys, so that one query costs milliseconds."""

    lowercase = False

    @classmethod
    def of(cls, space: Space, lowercase: bool) -> ServedSpace:
        """The same vocabularies and CSLS terms, for serving."""
        served = cls(space.source, space.target, space.metric, "cpu")
        served.keep_neighbourhoods(*space.neighbourhoods())
        served.lowercase = lowercase
        return served

    @cached_property
    def keys(self) -> dict[str, Keys]:
        """The searchable keys of each language."""
        r_source, r_target = self.neighbourhoods()
        return {"source": Keys(self.source, r_source), "target": Keys(self.target, r_target)}

    def reversed(self) -> ServedSpace:
        """The same space read from target to source, with the same keys."""
        made = ServedSpace(self.target, self.source, self.metric, "cpu")
        made.keep_neighbourhoods(*self.neighbourhoods()[::-1])
        made.lowercase = self.lowercase
        made.__dict__["keys"] = {"source": self.keys["target"], "target": self.keys["source"]}
        return made

    def words(self, side: Side) -> WordVectors:
        """The vocabulary of one language."""
        return self.source if side == "source" else self.target

    def row(self, word: str, side: Side = "source") -> int | None:
        """The row of a word, looked up as it is and then lower-cased."""
        rows = self.words(side).key_to_index
        found = rows.get(word)
        return rows.get(word.lower()) if found is None and self.lowercase else found

    def give_back_pages(self) -> None:
        """Let go of what was read of the vectors' files; searches touch only a few rows of them."""
        for words in (self.source, self.target):
            give_back_pages(np.asarray(words.vectors))

    def _keys(self, direction: Direction, penalty: Floats | None) -> SearchableKeys:
        return _Searched(self.keys[_KEYS[direction]], penalised=penalty is not None)

    def _mean_of_best(self, vectors: Floats, direction: Direction, neighbours: int) -> Floats:
        near, _ = self.keys[_KEYS[direction]].top_k(vectors, neighbours, penalised=False)
        return np.asarray(near.mean(axis=1, dtype=np.float64), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class _Searched:
    """Prepared keys as a search wants them."""

    keys: Keys
    penalised: bool

    def top_k(self, queries: Floats, k: int) -> tuple[Floats, Rows]:
        return self.keys.top_k(queries, k, penalised=self.penalised)


def give_back_pages(array: Floats) -> None:
    """Let go of the pages of a mapped file that were read; they come again when they are touched."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


class Completions:
    """The words of a vocabulary that begin with a text, most frequent first."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._order = sorted(range(len(words)), key=words.__getitem__)

    def __call__(self, text: str, k: int) -> list[str]:
        """At most k words."""
        words, order = self._words, self._order
        start = bisect_left(order, text, key=words.__getitem__)
        stop = bisect_left(order, text + "\U0010ffff", key=words.__getitem__)
        rows = sorted(order[start : min(stop, start + _MOST_COMPLETIONS)])
        return [words[row] for row in rows if len(words[row]) <= LONGEST_WORD][:k]


class Engine:
    """A model that is open, with the review file that keeps its candidates.

    All confidences that are searched and stored are those of the model before audits changed them;
    `change` is applied to what is shown. So applying a change to the model rewrites nothing that is stored.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self.fingerprint = sha256(folder / CHECKSUMS)
        opened = Translator.load(folder, verify=False, device="cpu")
        words = ServedSpace.of(opened.space, opened.lowercase)
        # The phrases of the seeds stand behind the words.
        whole = words
        if opened.whole_space is not opened.space:
            whole = ServedSpace.of(opened.whole_space, opened.lowercase)
        self.space = whole
        self.spaces: dict[Direction, ServedSpace] = {"forward": whole, "backward": whole.reversed()}
        lineage = Lineage.of(folder, self.fingerprint, opened.calibration)
        self.base, self.applied = lineage.base, lineage.applied
        self.translator = opened.with_parts(space=words, whole_space=whole, calibration=lineage.calibration)
        self.recalibration = Recalibration.from_facts(store.fact("recalibration"), self.fingerprint)
        self._completions: dict[Direction, Completions] = {}
        self.stored: dict[Direction, int] = {"forward": 0, "backward": 0}  # words whose answers are stored
        self._asked = -_BUSY_SECONDS
        self._closed = threading.Event()
        self.encoder_open = all(reader.kind == "subwords" for reader in self.translator.unknown)
        self._opening_encoder = threading.Lock()
        self._searches = Searches(self.translator, self._searched)
        threading.Thread(target=self._prepare, name="preparing", daemon=True).start()

    @property
    def change(self) -> Recalibration:
        """How shown confidences differ from the stored ones."""
        return self.recalibration.after(self.applied)

    @property
    def busy(self) -> bool:
        """Whether somebody asked for something just now, so that work in the background should wait."""
        return time.monotonic() - self._asked < _BUSY_SECONDS

    @property
    def alone(self) -> bool:
        """Whether nobody asked for anything for a while."""
        return time.monotonic() - self._asked > _ALONE_SECONDS

    def note_request(self) -> None:
        """Somebody asks for something now."""
        self._asked = time.monotonic()

    def translate(
        self, word: str, k: int, direction: Direction = "forward", retrieval: Retrieval = "csls"
    ) -> Answer:
        """The best translations of a word: those stored, or a search together with others that wait."""
        found = self._looked_up(word, k, direction, retrieval)
        if found is None:
            found = self._searches.ask(word, k, direction, retrieval)
        return self._finished(found, direction, retrieval)

    async def answer(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer:
        """The same for the server's event loop, which serves others until the search is done."""
        found = self._looked_up(word, k, direction, retrieval)
        if found is None and not self.encoder_open and self.space.row(word, QUERIES[direction]) is None:
            await asyncio.to_thread(self.open_encoder)
        if found is None:
            found = await self._searches.answer(word, k, direction, retrieval)
        return self._finished(found, direction, retrieval)

    def _looked_up(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer | None:
        """An answer that the table has already."""
        if retrieval != "csls" or k > STORED_CANDIDATES:
            return None
        row = self.space.row(word, QUERIES[direction])
        if row is None or row >= self.stored[direction]:
            return None
        stored = self.candidates(row, direction)
        if stored is None:
            return None
        words = self.space.words(_KEYS[direction]).index_to_key
        found = (
            Translation(words[at], score, None if np.isnan(sure) else sure, at + 1, known)
            for at, score, sure, known in stored[:k].tolist()
        )
        return Answer(word, tuple(found), "vocabulary")

    def candidates(self, row: int, direction: Direction) -> npt.NDArray[Any] | None:
        """The stored candidates of a row; None where none are stored yet."""
        query = "SELECT answers FROM candidates WHERE direction = ? AND row = ?"
        found = self.store.one(query, DIRECTIONS.index(direction), row)
        return None if found is None else np.frombuffer(found["answers"], STORED)

    def open_encoder(self) -> None:
        """Open the language model, however long that takes, if it is not open yet."""
        with self._opening_encoder:
            if not self.encoder_open:
                with contextlib.suppress(Exception):  # the search that needs it reports what is wrong
                    for reader in self.translator.unknown:
                        reader.vectors(["a"], "source")
                self.encoder_open = True

    def _prepare(self) -> None:
        """Make the keys of both languages ready while nobody asks for anything; searches do it themselves."""
        for side in ("target", "source"):
            while self.busy and not self._closed.wait(_BUSY_SECONDS):
                pass
            if not self._closed.is_set():
                self.space.keys[side].prepare()

    def completions(self, direction: Direction) -> Completions:
        """What completes words of the query language; made when it is first needed."""
        if direction not in self._completions:
            self._completions[direction] = Completions(self.space.sides(direction)[0].index_to_key)
        return self._completions[direction]

    def close(self) -> None:
        """Stop the thread that searches."""
        self._closed.set()
        self._searches.close()

    def _searched(self) -> None:
        """Somebody is being answered by a search, which read some pages of the vectors' files."""
        self.note_request()
        self.space.give_back_pages()

    def _finished(self, answer: Answer, direction: Direction, retrieval: Retrieval) -> Answer:
        """An answer without words too long to show, and recalibrated where audits say something about it."""
        audited = (direction, retrieval) == ("forward", "csls")
        change = self.change if audited else UNCHANGED
        shown = tuple(
            replace(found, confidence=change(found.confidence)) if change.decisions else found
            for found in answer
            if len(found.word) <= LONGEST_WORD
        )
        return replace(answer, translations=shown)
