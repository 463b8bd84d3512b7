"""An open model in either direction: translations from the stored candidates, or by searches."""

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

from bilex.core.files import sha256
from bilex.core.manifest import CHECKSUMS
from bilex.model import Answer, Translator
from bilex.model.answers import Translation
from bilex.model.known import Proposals, Proposer, doubtful_seeds
from bilex.model.space import Direction, Floats, Retrieval, Rows, SearchableKeys, Space
from bilex.vectors import WordVectors
from bilex_workbench.problems import LONGEST_WORD
from bilex_workbench.recalibration import UNCHANGED, Lineage, Recalibration
from bilex_workbench.searching import Searches
from bilex_workbench.store import Store

if TYPE_CHECKING:
    from bilex.search.streamed import StreamedKeys

STORED_CANDIDATES = 10
STORED = np.dtype([("row", "<i4"), ("score", "<f4"), ("confidence", "<f4"), ("known", "?")])
_BUSY_SECONDS, _ALONE_SECONDS = 0.5, 10.0
_MOST_COMPLETIONS = 20_000
_KEY_SIDES = {"forward": "target", "backward": "source"}
_OTHER: dict[Direction, Direction] = {"forward": "backward", "backward": "forward"}


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
            return self._streamed.top_k(vectors, min(k, len(self._words)), penalised=penalised)

    def prepare(self) -> None:
        """Round the vectors now, so that the first search need not wait for it."""
        with self._lock:
            self._streamed  # noqa: B018 - made once, here

    @cached_property
    def _streamed(self) -> StreamedKeys:
        from bilex.search.streamed import StreamedKeys

        vectors = np.asarray(self._words.vectors)
        return StreamedKeys(vectors, self._penalty, lambda: give_back_pages(vectors))


class ServedSpace(Space):
    """A `Space` whose searches share prepared keys, so that one query costs milliseconds."""

    @classmethod
    def of(cls, space: Space) -> ServedSpace:
        """The same vocabularies and CSLS terms, for serving."""
        served = cls(space.source, space.target, space.metric, "cpu")
        served.keep_neighbourhoods(*space.neighbourhoods())
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
        made.__dict__["keys"] = {"source": self.keys["target"], "target": self.keys["source"]}
        return made

    def give_back_pages(self) -> None:
        """Let go of what was read of the vectors' files; searches touch only a few rows of them."""
        for words in (self.source, self.target):
            give_back_pages(np.asarray(words.vectors))

    def _keys(self, direction: Direction, penalty: Floats | None) -> SearchableKeys:
        return _Searched(self.keys[_KEY_SIDES[direction]], penalised=penalty is not None)

    def _mean_of_best(self, vectors: Floats, direction: Direction, neighbours: int) -> Floats:
        near, _ = self.keys[_KEY_SIDES[direction]].top_k(vectors, neighbours, penalised=False)
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
    """A model that is open, with its review file.

    All confidences that are searched and stored are those of the model before audits changed them;
    `change` is applied to what is shown. So applying a change to the model rewrites nothing that is stored.
    """

    own_candidates = True

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self.fingerprint = sha256(folder / CHECKSUMS)
        opened = Translator.load(folder, verify=False, device="cpu")
        words = ServedSpace.of(opened.space)
        whole = words if opened.whole_space is opened.space else ServedSpace.of(opened.whole_space)
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
    def space(self) -> ServedSpace:
        """The two vocabularies, the phrases of the seeds behind the words."""
        space = self.translator.whole_space
        assert isinstance(space, ServedSpace)
        return space

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

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the two languages, where they are known."""
        return self.translator.provenance.languages

    def propose(self, direction: Direction) -> Proposer:
        """What finds the candidates of some rows."""
        return self.translator.proposer(direction, "csls")

    def doubtful(self, count: int) -> list[str]:
        """The words of seeds that the model itself answers otherwise, the least likely first."""
        return [one.source for one in doubtful_seeds(self.translator, count)]

    def first_answers(self, direction: Direction) -> Rows:
        """The row of each word's first stored candidate; -1 where there is none."""
        first = np.full(len(self.space.sides(direction)[0]), -1, np.int64)
        query = "SELECT row, answers FROM candidates WHERE direction = ?"
        for row, answers in self.store.rows(query, direction_number(direction)):
            if answers:
                first[row] = int.from_bytes(answers[:4], "little", signed=True)
        return first

    def row(self, word: str, direction: Direction) -> int | None:
        """The row of a word of the query language, looked up as it is and then lower-cased."""
        rows = self.space.sides(direction)[0].key_to_index
        found = rows.get(word)
        if found is None and self.translator.lowercase:
            found = rows.get(word.lower())
        return found

    def translate(
        self, word: str, k: int, direction: Direction = "forward", retrieval: Retrieval = "csls"
    ) -> Answer:
        """The best translations of a word: those stored, or a search together with others that wait."""
        found = self._looked_up(word, k, direction, retrieval)
        if found is None:
            found = self._searches.ask(word, k, direction, retrieval)
        return self._finished(found, direction, retrieval)

    async def answer(
        self, word: str, k: int, direction: Direction = "forward", retrieval: Retrieval = "csls"
    ) -> Answer:
        """The same for the server's event loop, which serves others until the search is done."""
        found = self._looked_up(word, k, direction, retrieval)
        if found is None and not self.encoder_open and self.row(word, direction) is None:
            await asyncio.to_thread(self.open_encoder)
        if found is None:
            found = await self._searches.answer(word, k, direction, retrieval)
        return self._finished(found, direction, retrieval)

    def _looked_up(self, word: str, k: int, direction: Direction, retrieval: Retrieval) -> Answer | None:
        """An answer that the table has already."""
        if retrieval != "csls" or k > STORED_CANDIDATES:
            return None
        row = self.row(word, direction)
        if row is None or row >= self.stored[direction]:
            return None
        stored = self._stored(row, direction)
        return None if stored is None else Answer(word, tuple(stored[:k]), "vocabulary")

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

    def _stored(self, row: int, direction: Direction) -> list[Translation] | None:
        found = self.store.one(
            "SELECT answers FROM candidates WHERE direction = ? AND row = ?", direction_number(direction), row
        )
        if found is None:
            return None
        words = self.space.sides(direction)[1].index_to_key
        return [
            Translation(
                words[int(one["row"])],
                float(one["score"]),
                None if np.isnan(one["confidence"]) else float(one["confidence"]),
                int(one["row"]) + 1,
                bool(one["known"]),
            )
            for one in np.frombuffer(found["answers"], STORED)
        ]

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


class Backward(Engine):
    """The same model read from target to source, for a review of its own.

    It has no candidates of its own: it reads those that the model's review file keeps of target words.
    Audits change no confidences in this direction.
    """

    own_candidates = False

    def __init__(self, engine: Engine, store: Store) -> None:
        self._engine, self.store = engine, store
        self.folder, self.fingerprint, self.base = engine.folder, engine.fingerprint, engine.base
        self.recalibration = self.applied = UNCHANGED
        self.translator = engine.translator
        self.stored = {"forward": 0, "backward": 0}
        self._space = engine.space.reversed()

    @property
    def space(self) -> ServedSpace:
        """The two vocabularies, in this direction."""
        return self._space

    @property
    def busy(self) -> bool:
        """Whether somebody asked for something just now."""
        return self._engine.busy

    @property
    def alone(self) -> bool:
        """Whether nobody asked for anything for a while."""
        return self._engine.alone

    @property
    def ready(self) -> bool:
        """Whether the candidates of all words are stored."""
        return bool(self._engine.store.fact("entries_complete") == self.base)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the two languages, in this direction."""
        source, target = self._engine.languages
        return target, source

    def propose(self, direction: Direction) -> Proposer:
        """What reads the stored candidates of some rows."""
        store, number = self._engine.store, direction_number(_OTHER[direction])
        query = "SELECT answers FROM candidates WHERE direction = ? AND row = ?"

        def read(queries: Rows | Floats, k: int) -> Proposals:
            found = Proposals.blank(len(queries), k)
            for place, row in enumerate(queries.tolist()):
                kept = store.one(query, number, row)
                answers = np.frombuffer(kept["answers"] if kept else b"", STORED)[:k]
                parts: tuple[Any, ...] = (found.rows, found.scores, found.confidence, found.known)
                for part, name in zip(parts, STORED.names or (), strict=True):
                    part[place, : len(answers)] = answers[name]
            return found

        return read

    def doubtful(self, count: int) -> list[str]:
        """The target words of doubtful seeds."""
        return [one.target for one in doubtful_seeds(self.translator, count)]

    def first_answers(self, direction: Direction) -> Rows:
        """The row of each word's first stored candidate."""
        return self._engine.first_answers(_OTHER[direction])

    def row(self, word: str, direction: Direction) -> int | None:
        """The row of a word of the query language."""
        return self._engine.row(word, _OTHER[direction])

    def translate(
        self, word: str, k: int, direction: Direction = "forward", retrieval: Retrieval = "csls"
    ) -> Answer:
        """The best translations of a word."""
        return self._engine.translate(word, k, _OTHER[direction], retrieval)

    def close(self) -> None:
        """Nothing runs here."""


def direction_number(direction: Direction) -> int:
    """How a direction stands in the table of candidates."""
    return 0 if direction == "forward" else 1


def packed(proposals: Proposals) -> list[bytes]:
    """Each query's proposals as the table of candidates keeps them."""
    made = np.empty(proposals.rows.shape, STORED)
    made["row"], made["score"] = proposals.rows, proposals.scores
    made["confidence"], made["known"] = proposals.confidence, proposals.known
    there = proposals.rows >= 0
    return [row[kept].tobytes() for row, kept in zip(made, there, strict=True)]
