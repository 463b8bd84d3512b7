"""What a user keeps: a space with both directions, confidences, and a memory of how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bilex.aligners.maps import Map
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.progress import SILENT, Progress
from bilex.space import Direction, Floats, Retrieval, Rows, Space, map_words
from bilex.translator.answers import Answer, Translation
from bilex.translator.calibration import Calibration
from bilex.translator.spelling import closest_spellings
from bilex.translator.unknown import OutOfVocabulary, Side
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.stage import StageC2
    from bilex.translator.induction import InducedLexicon


@dataclass(eq=False, repr=False)
class Translator:
    """Translates words both ways between two languages.

    Args:
        space: Both vocabularies in one space.
        source_map: Takes source vectors, as they come from their file, into the space.
        target_map: Likewise for the target language.
        calibration: From scores to confidences.
        unknown: Who gives vectors to words outside the vocabulary, asked in order.
        seeds: The pairs it was learned from.
        provenance: From what and how it was made: method, settings, report, files.
        lowercase: Whether the vocabularies were lower-cased, so that questions are too.

    Example:
        >>> translator = Translator.load("en-fi")  # doctest: +SKIP
        >>> translator.translate("dog")[0].word  # doctest: +SKIP
        'koira'
    """

    space: Space
    source_map: Map
    target_map: Map
    calibration: Calibration = field(default_factory=Calibration)
    unknown: list[OutOfVocabulary] = field(default_factory=list)
    seeds: Lexicon = field(default_factory=lambda: Lexicon([], "the seeds"))
    provenance: dict[str, Any] = field(default_factory=dict)
    lowercase: bool = True

    def __repr__(self) -> str:
        method = self.provenance.get("method", "unknown method")
        return f"Translator({len(self.space.source)} × {len(self.space.target)} words, {method})"

    @classmethod
    def fit(
        cls,
        aligner: Aligner,
        source: WordVectors,
        target: WordVectors,
        lexicon: Lexicon | None = None,
        *,
        stage: StageC2 | None = None,
        calibrate: bool = True,
        held_out: float = 0.1,
        lowercase: bool = True,
        progress: Progress = SILENT,
        checkpoint: Path | None = None,
    ) -> Translator:
        """Align two languages and make a translator of them.

        The aligner learns from all seed pairs. For the confidences it is fitted once more without
        some of them (see docs/translator.md), which `calibrate=False` spares.

        Args:
            aligner: The method with its settings; fitted in place.
            source: Source vectors.
            target: Target vectors.
            lexicon: Seed pairs; None where the method needs none.
            stage: Settings of stage C2, which adds a language model; None for none.
            calibrate: Whether to learn confidences.
            held_out: The share of the seed's source words that they are learned on.
            lowercase: Whether the vocabularies were lower-cased when they were read.
            progress: Who is told how far the work is.
            checkpoint: A folder where a method that can be resumed keeps its state.

        Raises:
            BilexError: The data cannot serve this method.
        """
        from bilex.translator.fitting import fit_translator

        return fit_translator(
            aligner,
            source,
            target,
            lexicon,
            stage=stage,
            calibrated=calibrate,
            held_out=held_out,
            lowercase=lowercase,
            progress=progress,
            checkpoint=checkpoint,
        )

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True, device: str = "auto") -> Translator:
        """Open a saved translator; its vectors are memory-mapped.

        Args:
            folder: What `save` wrote.
            verify: Whether every file is checked against its checksum.
            device: Where searches run.

        Raises:
            BilexError: It is no such folder, comes from a newer version, or a file was damaged.
        """
        from bilex.translator.storage import load_translator

        return load_translator(folder, verify=verify, device=device)

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` opens, all of it or nothing.

        An earlier model of that name is replaced; a folder that is not one of ours never is.

        Raises:
            BilexError: The folder cannot be written.
        """
        from bilex.translator.storage import save_translator

        save_translator(self, folder)

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, words: str, k: int = 5, *, direction: Direction = "forward", method: Retrieval = "csls"
    ) -> Answer: ...

    @overload
    def translate(
        self,
        words: Iterable[str],
        k: int = 5,
        *,
        direction: Direction = "forward",
        method: Retrieval = "csls",
    ) -> list[Answer]: ...

    def translate(
        self,
        words: str | Iterable[str],
        k: int = 5,
        *,
        direction: Direction = "forward",
        method: Retrieval = "csls",
    ) -> Answer | list[Answer]:
        """The best translations of a word, or of each of several.

        Args:
            words: One word or several. A word is looked up as it is, then lower-cased if the
                vocabularies were.
            k: How many translations a word.
            direction: "forward" from source to target, "backward" the other way.
            method: "csls", or "nn" for the plain similarity.

        Returns:
            An `Answer` for a single word, a list of them for several. An unknown word has an answer
            without translations that knows the closest spellings.
        """
        if isinstance(words, str):
            return self.translate([words], k, direction=direction, method=method)[0]
        if k < 1:
            raise BilexError(f"{k} translations were asked for; ask for at least 1.")
        asked = list(words)
        asking, answering = self.space.sides(direction)
        rows = [self._row(asking, word) for word in asked]
        known = [place for place, row in enumerate(rows) if row is not None]
        propose = partial(self._propose, answering=answering, k=k, direction=direction, method=method)
        found: dict[int, Answer] = {}
        if known:
            queries = np.array([rows[place] for place in known], np.int64)
            for place, translations in zip(known, propose(queries), strict=True):
                found[place] = Answer(asked[place], translations, "vocabulary")
        for place, (vector, origin) in self._read_unknown(asked, rows, direction).items():
            found[place] = Answer(asked[place], propose(vector[None], confident=False)[0], origin)
        return [
            found[place]
            if place in found
            else Answer(word, (), None, partial(closest_spellings, word, asking.index_to_key))
            for place, word in enumerate(asked)
        ]

    def _row(self, asking: WordVectors, word: str) -> int | None:
        row = asking.key_to_index.get(word)
        if row is None and self.lowercase:
            row = asking.key_to_index.get(word.lower())
        return row

    def _read_unknown(
        self, words: Sequence[str], rows: Sequence[int | None], direction: Direction
    ) -> dict[int, tuple[Floats, str]]:
        """The vectors of the words without a row, by place, with the kind of source that gave them."""
        side: Side = "source" if direction == "forward" else "target"
        found: dict[int, tuple[Floats, str]] = {}
        for source in self.unknown:
            waiting = [place for place, row in enumerate(rows) if row is None and place not in found]
            spelt = [words[place].lower() if self.lowercase else words[place] for place in waiting]
            for place, vector in zip(waiting, source.vectors(spelt, side) if spelt else [], strict=True):
                if vector is not None:
                    found[place] = (vector, source.kind)
        return found

    def _propose(
        self,
        queries: Rows | Floats,
        *,
        answering: WordVectors,
        k: int,
        direction: Direction,
        method: Retrieval,
        confident: bool = True,
    ) -> list[tuple[Translation, ...]]:
        """The k best words for each query; confidences are for words of the vocabulary only."""
        scores, found = self.space.search(queries, max(k, 2), direction=direction, method=method)
        confidence = self.calibration.confidence(scores, direction, method) if confident else None
        return [
            tuple(
                Translation(
                    word=answering.index_to_key[row],
                    score=float(scores[query, place]),
                    confidence=None if confidence is None else float(confidence[query, place]),
                    rank=int(row) + 1,
                )
                for place, row in enumerate(found[query][:k])
            )
            for query in range(len(found))
        ]

    def lexicon(self, **wishes: Any) -> InducedLexicon:
        """Induce a whole dictionary; the arguments are those of `bilex.translator.induction.induce`."""
        from bilex.translator.induction import induce

        return induce(self.space, self.calibration, **wishes)

    def map_vectors(self, vectors: WordVectors, side: Side) -> WordVectors:
        """Take new vectors of one language, as they come from their file, into the common space.

        Args:
            vectors: Vectors from the same training run as those the maps were learned on.
            side: Their language: "source" or "target".

        Raises:
            BilexError: Their dimension is not the one the map was learned on.
        """
        sides: dict[str, Map] = {"source": self.source_map, "target": self.target_map}
        if side not in sides:
            raise BilexError(f"side '{side}' is not known; use source or target.")
        expected = self.provenance.get(f"{side}_dim", vectors.dim)
        if vectors.dim != expected:
            raise BilexError(
                f"vectors of dimension {vectors.dim} do not fit the {side} map, which takes {expected}; "
                "use vectors of the model that the map was learned on."
            )
        return map_words(vectors, sides[side], self.space.metric)
