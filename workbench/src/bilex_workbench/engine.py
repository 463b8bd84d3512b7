"""An open model: translations from the stored candidates, or by searches."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bilex.core.files import sha256
from bilex.core.manifest import CHECKSUMS
from bilex.model import Answer, Translator
from bilex.model.answers import Translation
from bilex.model.known import Proposals
from bilex.model.space import Direction, Retrieval
from bilex_workbench.completions import Completions
from bilex_workbench.problems import LONGEST_WORD
from bilex_workbench.recalibration import UNCHANGED, Lineage, Recalibration
from bilex_workbench.searching import Searches
from bilex_workbench.served import ServedSpace
from bilex_workbench.store import Store

STORED_CANDIDATES = 10
STORED = np.dtype([("row", "<i4"), ("score", "<f4"), ("confidence", "<f4"), ("known", "?")])
_BUSY_SECONDS, _ALONE_SECONDS = 0.5, 10.0


class Engine:
    """A model that is open, with its review file.

    All confidences that are searched and stored are those of the model before audits changed them;
    `change` is applied to what is shown. So applying a change to the model rewrites nothing that is stored.

    Args:
        folder: The model, whose checksums were compared.
        store: Its review file.
    """

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
